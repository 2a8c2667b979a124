# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Completion of timerwheel-guard's command line in bash. Install it as
# /usr/share/bash-completion/completions/timerwheel-guard, or source it.
#
# The options are taken from the program's own --help.

_timerwheel_guard()
{
	local program=$1 word=$2 previous=$3 words

	COMPREPLY=()
	case $previous in
	--log|-o)
		compopt -o filenames 2>/dev/null
		mapfile -t COMPREPLY < <(compgen -f -- "$word")
		return
		;;
	--cgroup|-C)
		compopt -o filenames 2>/dev/null
		mapfile -t COMPREPLY < <(compgen -d -- "$word")
		return
		;;
	--unit|-u)
		words=$(systemctl list-units --no-legend --plain --type=service \
			--state=running 2>/dev/null | awk '{ print $1 }')
		;;
	--pid|-P) words=$(ps -eo pid= 2>/dev/null) ;;
	--idle|--half-closed|--lifetime|--grace|--interval|-[ixLgI]) words="1s 30s 5m 1h" ;;
	--port|--metrics|-[pM]) return ;;
	*) words=$("$program" --help 2>/dev/null | sed -n 's/^  -., \(--[a-z-]*\).*/\1/p') ;;
	esac
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}

complete -F _timerwheel_guard timerwheel-guard
