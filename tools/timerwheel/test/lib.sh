# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
#
# Shared by the tests of the command line tool: run it, look at what it said, TAP.
# Source it; $tool is where `timerwheel' is. It is executable only because such files go into guests.

number=0
failures=0
status=0
t=$(mktemp -d "${TMPDIR:-/tmp}/timerwheel-test.XXXXXX")

# result STATUS NAME: a test has passed if the status is 0; if not, what was seen is shown.
result()
{
	number=$((number + 1))
	if [ "$1" = 0 ]; then
		echo "ok $number $2"
		return
	fi
	failures=$((failures + 1))
	echo "# status: $status"
	# Whatever it ends with, the verdict has a line of its own.
	head -n 20 "$t/out" | awk '{ print "# out: " $0 }'
	head -n 20 "$t/err" | awk '{ print "# err: " $0 }'
	echo "not ok $number $2"
}

# try ARGUMENT...: run the tool; its status, output and errors are for those below.
try()
{
	printf poison >"$t/out"
	printf poison >"$t/err"
	status=0
	# shellcheck disable=SC2154 # whoever sources this has set it
	"$tool" "$@" >"$t/out" 2>"$t/err" || status=$?
}

# ends STATUS NAME: it has ended with this status; with 0 nothing was said on stderr.
ends()
{
	wrong=0
	[ "$status" = "$1" ] || wrong=1
	[ "$1" != 0 ] || [ ! -s "$t/err" ] || wrong=1
	result $wrong "$2"
}

# refused STATUS PATTERN NAME: it has ended with this status, and said why; on stdout is nothing.
refused()
{
	wrong=0
	[ "$status" = "$1" ] || wrong=1
	grep -q -- "$2" "$t/err" || wrong=1
	[ ! -s "$t/out" ] || wrong=1
	result $wrong "$3"
}

# is EXPECTED SEEN NAME
is()
{
	wrong=0
	if [ "$1" != "$2" ]; then
		echo "# expected '$1', not '$2'"
		wrong=1
	fi
	result $wrong "$3"
}

# json FILTER NAME: the output is JSON of which, or of the last of which, jq's filter says true.
json()
{
	wrong=0
	jq -e "$1" "$t/out" >"$t/jq" 2>&1 || wrong=1
	# Some versions of jq say true of nothing.
	[ -s "$t/out" ] || wrong=1
	[ $wrong = 0 ] || sed 's/^/# jq: /' "$t/jq"
	result $wrong "$2"
}

# eventually COMMAND...: repeat it until it succeeds, for some minutes.
eventually()
{
	tries=0
	until "$@"; do
		tries=$((tries + 1))
		[ $tries -lt 2400 ] || return 1
		sleep 0.1
	done
}

# output_has PATTERN: wait until it is in the output, which comes meanwhile.
output_has()
{
	eventually grep -q -- "$1" "$t/out"
}

# finish: the plan, and the status of the test program.
finish()
{
	rm -rf "$t"
	echo "1..$number"
	[ $failures = 0 ] || exit 1
	exit 0
}
