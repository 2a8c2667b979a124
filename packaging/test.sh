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
	# After `||' or `if' bash would continue after a failed command.
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

# relay NAME COMMAND...: run a test, and count its points. If it does not print its
# plan, that is a failed point, NAME.
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

# finish: print the plan; the status is 0 if all points passed.
finish()
{
	echo "1..$number"
	[[ $failed == 0 ]]
}

# same EXPECTED ACTUAL: compare two files, and print differences.
same()
{
	diff -u --label expected --label found "$1" "$2"
}

# refused SENTENCE COMMAND...: COMMAND fails and prints SENTENCE.
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

# everything: each file, folder and link of this system, one per line, except records of apt, dpkg
# and other tools, and keys that DKMS creates with its first build.
everything()
{
	find / -xdev \( -path /var/lib/apt -o -path /var/lib/dpkg -o -path /var/cache \
		-o -path /var/log -o -path /root -o -path '/var/lib/dkms/mok.*' \) -prune \
		-o -printf '%M %u %g %p %l\n' | LC_ALL=C sort
}
