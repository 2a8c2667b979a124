#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# usage: fuzz.sh BUILD SECONDS
#
# Run the fuzzer in BUILD for SECONDS. Inputs that reach new code are kept in BUILD/corpus for the
# next run, inputs that fail in BUILD/crash-*. Prints KTAP.
set -u

build=$1
seconds=$2

mkdir -p "$build/corpus"
printf 'TAP version 13\n1..1\n'
if "$build/fuzz" -max_total_time="$seconds" -max_len=4096 -timeout=20 -print_final_stats=1 \
	-artifact_prefix="$build/" "$build/corpus" > "$build/fuzz.log" 2>&1; then
	sed -n 's/^stat::/# /p' "$build/fuzz.log"
	result="ok"
else
	grep '^# ' "$build/fuzz.log"
	tail -n 40 "$build/fuzz.log" | sed 's/^/# /'
	echo "# repeat with: $build/fuzz $build/crash-... (see above); full log: $build/fuzz.log"
	result="not ok"
fi
echo "$result 1 - wheel: fuzzed for $seconds s:" \
	"$(sed -n 's/^stat::number_of_executed_units: */runs /p' "$build/fuzz.log")"
[ "$result" = ok ]
