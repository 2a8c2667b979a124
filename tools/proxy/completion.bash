# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Completion of timerwheel-proxy's command line in bash. Install it as
# /usr/share/bash-completion/completions/timerwheel-proxy, or source it.
#
# The options are taken from the program's own --help.

_timerwheel_proxy()
{
	local program=$1 word=$2 previous=$3 words

	COMPREPLY=()
	case $previous in
	--log|-o)
		compopt -o filenames 2>/dev/null
		mapfile -t COMPREPLY < <(compgen -f -- "$word")
		return
		;;
	--proxy-protocol|-p) words="v1 v2" ;;
	--idle|--half-closed|--lifetime|--grace|--store-after|--connect-timeout|-[ixLgsc])
		words="1s 30s 5m 1h none"
		;;
	--listen|--to|--metrics|--threads|--max-connections|--store-max|-[ltMnmS]) return ;;
	*) words=$("$program" --help 2>/dev/null | sed -n 's/^  -., \(--[a-z-]*\).*/\1/p') ;;
	esac
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}

complete -F _timerwheel_proxy timerwheel-proxy
