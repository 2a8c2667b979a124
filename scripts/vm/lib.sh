# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Shared by the scripts in scripts/vm and scripts/lint: where things are, and how
# to speak to the user. Source it; it runs nothing and prints nothing.

# shellcheck disable=SC2034 # used by those who source this

# The top of the source tree.
TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

# Everything fetched lives here, outside the tree: it survives `make clean` and
# is shared by all checkouts of one user.
CACHE=${TIMERWHEEL_CACHE:-${XDG_CACHE_HOME:-${HOME:?is not set, nor is XDG_CACHE_HOME}/.cache}/timerwheel}

# Progress and errors go to stderr: stdout belongs to results.
say()
{
	printf '%s: %s\n' "${ME:-${0##*/}}" "$*" >&2
}

# die [--status N] SENTENCE...
die()
{
	local status=1

	if [[ ${1-} == --status ]]; then
		status=$2
		shift 2
	fi
	say "$@"
	exit "$status"
}

# The script itself, for those that change the folder.
SCRIPT=$0
[[ $SCRIPT == /* ]] || SCRIPT=$PWD/$SCRIPT

# usage: print the script's own header comment, without the licence line.
usage()
{
	sed -n '3,/^[^#]/{/^#/s/^# \{0,1\}//p}' "$SCRIPT"
}

# lock FILE: hold a lock until this script ends, so that two runs never fetch
# or build the same thing at once.
lock()
{
	local fd

	mkdir -p "${1%/*}"
	exec {fd}>"$1"
	flock -n "$fd" && return
	say "waiting for another run to finish (lock $1)"
	flock "$fd"
}

# note SENTENCE...: progress of long work, with the seconds since it began.
note()
{
	export TW_BEGAN=${TW_BEGAN:-$EPOCHSECONDS}
	printf '[%4d s] %s\n' $((EPOCHSECONDS - TW_BEGAN)) "$*"
}

# words [PREFIX]: a line of scripts/vm/ktap, made readable.
words()
{
	local name passed failed skipped seconds reason

	read -r name passed failed skipped seconds reason
	printf '%-20s %4d passed, %d failed, %d skipped, %d s%s\n' \
		"${1-}$name" "$passed" "$failed" "$skipped" "$seconds" "${reason:+: $reason}"
}

# listed FILE: the lines of a list in selftests/, without comments.
listed()
{
	[[ ! -e $TOP/selftests/$1 ]] || sed 's/#.*//; /^[[:space:]]*$/d' "$TOP/selftests/$1"
}

# test_programs: the programs in selftests/, the quick ones first, without those
# that are for debug kernels alone and the one that wants a guest of its own.
test_programs()
{
	local name quick="abi abi_32 ops readers time lifetime faults"

	for name in $quick $(cd "$TOP/selftests" && echo *); do
		[[ -f $TOP/selftests/$name && -x $TOP/selftests/$name ]] || continue
		[[ $name != suspend ]] || continue
		listed debug.list | grep -qxF "$name" || echo "$name"
	done | awk '!seen[$0]++'
}

# cross_prefix ARCH: what the names of its cross compilers begin with.
cross_prefix()
{
	case $1 in
	amd64) echo x86_64-linux-gnu- ;;
	arm64) echo aarch64-linux-gnu- ;;
	s390x) echo s390x-linux-gnu- ;;
	*) die "no cross compiler is known for $1" ;;
	esac
}
