# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Shared by the tests in packaging: test points in KTAP. Source it.

number=0 failed=0

# check NAME [ARGUMENT]...: run the function or command NAME, each of whose commands
# has to succeed, as one test point of that name.
check()
{
	local output status line

	number=$((number + 1))
	# Behind `||' or `if' bash would go on after a command that failed.
	set +e
	output=$(set -e; "$@" 2>&1 </dev/null)
	status=$?
	set -e
	if [[ $status == 0 ]]; then
		echo "ok $number $1"
		return
	fi
	failed=$((failed + 1))
	while IFS= read -r line; do
		echo "# $line"
	done <<<"$output"
	echo "# (status $status)"
	echo "not ok $number $1"
}

# relay NAME COMMAND...: run a test whose points count as ours. If it does not come to its
# plan that is a failed point, NAME.
relay()
{
	local name=$1 line complete=''

	shift
	while IFS= read -r line; do
		line=${line%$'\r'}
		case $line in
		"ok "*|"not ok "*)
			number=$((number + 1))
			[[ $line == ok* ]] || failed=$((failed + 1))
			echo "${line%%ok*}ok $number ${line##* }"
			;;
		1..*) complete=1 ;;
		*) echo "# ${line#"# "}" ;;
		esac
	done < <("$@" 2>&1 </dev/null)
	if [[ -z $complete ]]; then
		number=$((number + 1)) failed=$((failed + 1))
		echo "not ok $number $name"
	fi
}

# finish: print the plan; the status tells if all went well.
finish()
{
	echo "1..$number"
	[[ $failed == 0 ]]
}

# same EXPECTED ACTUAL: two files; what differs is printed.
same()
{
	diff -u --label expected --label found "$1" "$2"
}

# refused SENTENCE COMMAND...: COMMAND fails and says so.
refused()
{
	local sentence=$1 output status=0

	shift
	output=$("$@" 2>&1) || status=$?
	if [[ $status == 0 || $output != *"$sentence"* ]]; then
		echo "status $status, expected a failure with: $sentence"
		printf '%s\n' "$output"
		return 1
	fi
}

# everything: each file, folder and link of this system, one a line, but for what apt, dpkg
# and others keep records in, and for keys that DKMS makes when it first builds something.
everything()
{
	find / -xdev \( -path /var/lib/apt -o -path /var/lib/dpkg -o -path /var/cache \
		-o -path /var/log -o -path /root -o -path '/var/lib/dkms/mok.*' \) -prune \
		-o -printf '%M %u %g %p %l\n' | LC_ALL=C sort
}
