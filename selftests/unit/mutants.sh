# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Mutation tests in user space. Each fault is put into copies of the module's files, which are
# built with the test's objects; the test must then fail. To be sourced by a script that defines
#
#   area		prefix of the names of the tests
#   files	(array) the module's files that faults are put into
#   faults	(array) NAME; SCRIPT. The sed script must change at least one of the files.
#   build_mutant CHANGED BUILD COMPILE...
#		builds $mutants/test. CHANGED are the names of the files with the fault, separated
#		by spaces. Copies of all files are in $mutants.
#
# and then calls run_mutants MODULE BUILD COMPILE... It prints KTAP: "ok" means that the fault was
# detected. The first test has no fault and must pass: otherwise the results of the others would mean
# nothing.

# shellcheck disable=SC2154 # area, files and faults are the caller's
run_mutants()
{
	local number=1 module build fault name result file changed found failed=0

	module=$1
	build=$2
	mutants=$build/mutants
	shift
	mkdir -p "$mutants"
	printf 'TAP version 13\n1..%d\n' $((${#faults[@]} + 1))
	for fault in "" "${faults[@]}"; do
		name="detected: ${fault%%;*}"
		result="not ok"
		changed=
		for file in "${files[@]}"; do
			sed -e "${fault#*;}" "$module/$file" > "$mutants/$file"
			cmp -s "$module/$file" "$mutants/$file" || changed+=" $file"
		done
		if [ -z "$fault" ]; then
			name="passes without a fault"
			changed=${files[*]}
		fi
		rm -f "$mutants/test"
		if [ -z "$changed" ]; then
			echo "# the sed script of this fault changes none of ${files[*]}"
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
