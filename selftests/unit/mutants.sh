# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Does a test in user space notice? One fault at a time is put into copies of the module's files,
# they are built with the test's objects, and the test must fail. To be sourced by a script that
# has set
#
#   area		what the tests are called
#   files	(array) the module's files that faults are put into
#   faults	(array) a name; a script for sed, which must change something
#   build_mutant CHANGED BUILD COMPILE...
#		makes $mutants/test. In CHANGED, separated by spaces, are those of the files that
#		the fault is in; copies of all of them are in $mutants.
#
# and then calls run_mutants [--count] [--first N] MODULE BUILD COMPILE... It prints KTAP: "ok" is a
# fault found. The first one changes nothing, and must pass: else the others would say nothing.
# With --first N the tests are numbered from N on and no plan is printed; --count prints how
# many there are.

# shellcheck disable=SC2154 # area, files and faults are the caller's
run_mutants()
{
	local number=1 plan=1 module build fault name result file changed found failed=0

	while :; do
		case ${1-} in
		--count)
			echo $((${#faults[@]} + 1))
			return 0 ;;
		--first)
			number=$2
			plan=
			shift 2 ;;
		*)
			break ;;
		esac
	done
	module=$1
	build=$2
	mutants=$build/mutants
	shift
	mkdir -p "$mutants"
	if [ "$plan" ]; then
		printf 'TAP version 13\n1..%d\n' $((${#faults[@]} + 1))
	fi
	for fault in "" "${faults[@]}"; do
		name="fault found: ${fault%%;*}"
		result="not ok"
		changed=
		for file in "${files[@]}"; do
			sed -e "${fault#*;}" "$module/$file" > "$mutants/$file"
			cmp -s "$module/$file" "$mutants/$file" || changed+=" $file"
		done
		if [ -z "$fault" ]; then
			name="nothing found where there is no fault"
			changed=${files[*]}
		fi
		rm -f "$mutants/test"
		if [ -z "$changed" ]; then
			echo "# the script for this fault fits no line of ${files[*]} any more"
		elif build_mutant "$changed" "$@"; then
			found=1
			"$mutants/test" --short > "$mutants/log" 2>&1 && found=
			[ "${found:+found}" != "${fault:+found}" ] || result="ok"
		else
			echo "# this does not compile"
		fi
		echo "$result $number - $area: $name"
		[ "$result" = ok ] || failed=1
		number=$((number + 1))
	done
	return $failed
}
