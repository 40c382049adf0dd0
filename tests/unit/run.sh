#!/bin/sh
# run.sh JOBS DIR: run each line of the standard input, a suite's command, JOBS at a time. Each one's output is printed
# when it ends, and after all of them the lines that say what failed. DIR keeps the output.
set -eu
jobs=$1 dir=$2
rm -rf "$dir"
mkdir -p "$dir"
run='log=$0/$$
sh -c "$1" > "$log" 2>&1 && exec cat "$log"
echo "failed: $1" >> "$log"
mv "$log" "$log.failed"
cat "$log.failed"
exit 1'
xargs -P "$jobs" -I{} sh -c "$run" "$dir" {} && exit
echo "unit tests failed:"
tests/build/failures.sh "$dir"/*.failed
exit 1
