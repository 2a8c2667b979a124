# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Functions for the scripts in scripts/lint, to be sourced. Each script prints the faults that it
# finds, and its exit status is 1 if there are any.

. "$(dirname "${BASH_SOURCE[0]}")/../vm/lib.sh"
cd "$TOP" || exit

# sources PATTERN...: the files of this tree that match one of the patterns, including untracked and
# excluding ignored ones. Without git: all text files. Lists of faults are excluded, because they
# have the names of the files in which they insert faults.
sources()
{
	if [[ -e .git ]] && command -v git >/dev/null; then
		git ls-files -co --exclude-standard -- "$@"
	else
		find . \( -name .git -o -name build -o -name __pycache__ -o -name '.checkpatch-*' \) -prune -o \
			-type f -printf '%P\n' | matching "$@" | text
	fi | sed '/^\(selftests\|tools\)\/mutants\/faults\//d' | sort -u | existing
}

# not_lists: drop lists of faults from the files on stdin
not_lists()
{
	grep -vE '^(selftests|tools)/mutants/faults/'
}

matching()
{
	local file pattern

	while IFS= read -r file; do
		for pattern; do
			# shellcheck disable=SC2053 # $pattern is a pattern
			if [[ $file == $pattern ]]; then
				printf '%s\n' "$file"
				break
			fi
		done
	done
}

text()
{
	local file

	while IFS= read -r file; do
		! grep -Iq . "$file" || printf '%s\n' "$file"
	done
}

existing()
{
	local file

	while IFS= read -r file; do
		[[ ! -f $file || -L $file ]] || printf '%s\n' "$file"
	done
}

# scripts: all shell scripts
scripts()
{
	local file

	sources '*' | while IFS= read -r file; do
		case $file in
		*.sh) ;;
		*) head -n 1 "$file" | tr -d '\0' | grep -qE '^#!.*\<(ba|da)?sh\>' || continue ;;
		esac
		printf '%s\n' "$file"
	done
}
