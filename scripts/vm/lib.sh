# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Functions and paths for the scripts in scripts/vm and scripts/lint, which source this
# file. It runs nothing and prints nothing.

# shellcheck disable=SC2034 # used by other scripts

# The top of the source tree.
TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

# All downloads are kept here, outside the tree. They survive `make clean` and are
# shared by all checkouts of a user.
CACHE=${TIMERWHEEL_CACHE:-${XDG_CACHE_HOME:-${HOME:?is not set, nor is XDG_CACHE_HOME}/.cache}/timerwheel}

# say SENTENCE...: progress and errors go to stderr, results to stdout
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

# The absolute path of the script, for scripts that change the folder.
SCRIPT=$0
[[ $SCRIPT == /* ]] || SCRIPT=$PWD/$SCRIPT

# usage: print the script's header comment without the licence
usage()
{
	sed -n '3,/^[^#]/{/^#/s/^# \{0,1\}//p}' "$SCRIPT"
}

# lock FILE: hold a lock until the script ends, so that concurrent runs do not download
# or build the same files
lock()
{
	local fd

	mkdir -p "${1%/*}"
	exec {fd}>"$1"
	flock -n "$fd" && return
	say "waiting for another run to finish (lock $1)"
	flock "$fd"
}

# note SENTENCE...: print progress with the seconds since the start
note()
{
	export TW_BEGAN=${TW_BEGAN:-$EPOCHSECONDS}
	printf '[%4d s] %s\n' $((EPOCHSECONDS - TW_BEGAN)) "$*"
}

# words [PREFIX]: print a line from scripts/vm/ktap in a readable form
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

# test_programs: the programs in selftests/, quick ones first, without those for debug
# kernels and without suspend, which needs its own guest
test_programs()
{
	local name quick="abi abi_32 ops readers time lifetime faults"

	for name in $quick $(cd "$TOP/selftests" && echo *); do
		[[ -f $TOP/selftests/$name && -x $TOP/selftests/$name ]] || continue
		[[ $name != suspend ]] || continue
		listed debug.list | grep -qxF "$name" || echo "$name"
	done | awk '!seen[$0]++'
}

# cross_prefix ARCH: the prefix of its cross compilers
cross_prefix()
{
	case $1 in
	amd64) echo x86_64-linux-gnu- ;;
	arm64) echo aarch64-linux-gnu- ;;
	s390x) echo s390x-linux-gnu- ;;
	*) die "no cross compiler is known for $1" ;;
	esac
}

# kernel_compiler KDIR: print the compiler with its version, if .kernelvariables names it, as in
# Debian's headers and in debug kernels that are built with clang
kernel_compiler()
{
	[[ ! -e $1/.kernelvariables ]] ||
		sed -nE 's/^CC *:?=.*((gcc|clang)-[0-9]+)$/\1/p' "$1/.kernelvariables"
}

# use_ccache: reuse files that were compiled in another checkout or before `make clean'
use_ccache()
{
	[[ -e /usr/lib/ccache ]] || return 0
	export PATH=/usr/lib/ccache:$PATH CCACHE_DIR=$CACHE/ccache CCACHE_BASEDIR=$TOP
	export CCACHE_NOHASHDIR=1 CCACHE_MAXSIZE=4G
}
