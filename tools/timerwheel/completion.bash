# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# bash completion for timerwheel: commands, their options, processes with wheels, keys, columns,
# files. Install it as /usr/share/bash-completion/completions/timerwheel, or source it.
#
# Commands and options are taken from the output of --help.

# _timerwheel_options PROGRAM [COMMAND]: long options
_timerwheel_options()
{
	"$@" --help 2>/dev/null | sed -n 's/^  \(-.,\|   \) \(--[a-z-]*\).*/\2/p'
}

_timerwheel_commands()
{
	"$1" --help 2>/dev/null | sed -n '/^Commands/,/^$/s/^  \([a-z]\{1,\}\) .*/\1/p'
}

# _timerwheel_pids PROGRAM: processes with wheels that the user may inspect
_timerwheel_pids()
{
	"$1" top --batch --no-header --count 1 --interval 10ms 2>/dev/null | awk '{ print $1 }'
}

_timerwheel_files()
{
	compopt -o filenames 2>/dev/null
	mapfile -t COMPREPLY < <(compgen -f -- "$1")
}

# _timerwheel_value PROGRAM COMMAND OPTION WORD: complete the value of an option; fails if the
# option takes no value
_timerwheel_value()
{
	local words=''

	case $3 in
	--pid) words=$(_timerwheel_pids "$1") ;;
	--fd|--wheel-fd) words="3 4 5 6 7 8 9" ;;
	--sort)
		words="left key value none"
		[[ $2 != top ]] || words="pending due armed delivered memory pid command"
		;;
	--from|--overdue) _timerwheel_files "$4"; return ;;
	--value|--match|--period|--slack|--limit|--count|-n|--timeout|-t|--buffer) ;;
	--interval|-d|--overdue-mark|--timers) ;;
	*) return 1 ;;
	esac
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$4")
}

_timerwheel()
{
	local program=$1 word=$2 previous=$3 command='' target=() i

	COMPREPLY=()
	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		--fd|--pid|--wheel-fd)
			target+=("${COMP_WORDS[i]}" "${COMP_WORDS[i + 1]-}")
			i=$((i + 1))
			;;
		# another program's command line follows
		--exec) _timerwheel_files "$word"; return ;;
		-*) ;;
		*) [[ -n $command ]] || command=${COMP_WORDS[i]} ;;
		esac
	done
	if _timerwheel_value "$program" "$command" "$previous" "$word"; then
		return
	elif [[ $word == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$(_timerwheel_options "$program" \
			${command:+"$command"})" -- "$word")
		return
	fi
	case $command in
	''|help) mapfile -t COMPREPLY < <(compgen -W "$(_timerwheel_commands "$program")" -- "$word") ;;
	save|restore) _timerwheel_files "$word" ;;
	move|remove|list)
		[[ ${#target[@]} == 0 ]] || mapfile -t COMPREPLY < <(compgen -W \
			"$("$program" "${target[@]}" list --limit 100 --no-header --sort key \
				2>/dev/null | awk '{ print $1 }')" -- "$word")
		;;
	esac
}

complete -F _timerwheel timerwheel
