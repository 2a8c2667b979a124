# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Shared by the scripts in scripts/lint. Each of them prints what it finds fault
# with, and its exit status says if there was anything. Source it.

. "$(dirname "${BASH_SOURCE[0]}")/../vm/lib.sh"
cd "$TOP" || exit

# sources PATTERN...: the files of this tree that match one of the patterns,
# whether git knows them already or not; no built ones. Without git: all that are
# text. The lists of faults are named as the files in which they put them.
sources()
{
	if [[ -e .git ]] && command -v git >/dev/null; then
		git ls-files -co --exclude-standard -- "$@"
	else
		find . \( -name .git -o -name build -o -name '.checkpatch-*' \) -prune -o \
			-type f -printf '%P\n' | matching "$@" | text
	fi | sed '/^\(selftests\|tools\)\/mutants\/faults\//d' | sort -u | existing
}

# not_lists: of the files on stdin those that are no lists of faults, which have the names of the
# files that they are for.
not_lists()
{
	grep -vE '^(selftests|tools)/mutants/faults/'
}

matching()
{
	local file pattern

	while IFS= read -r file; do
		for pattern; do
			# shellcheck disable=SC2053 # it is a pattern
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

# scripts: those that a shell runs.
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
