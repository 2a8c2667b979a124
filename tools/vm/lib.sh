# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Shared by the scripts in tools/vm and tools/lint: where things are, and how
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

# usage: print the script's own header comment, without the licence line.
usage()
{
	sed -n '3,/^[^#]/{/^#/s/^# \{0,1\}//p}' "$0"
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
