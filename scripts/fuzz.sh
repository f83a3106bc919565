#!/usr/bin/env bash
# A few seconds of each fuzz target, beyond the seeds that every test run tries.
# usage: fuzz.sh [SECONDS]
set -euo pipefail
. "$(dirname "$0")/common.sh"
cd "$root"
command -v go >/dev/null || cannot "install Go and run this again"
mkdir -p build
seconds=${1:-4}
log=build/fuzz.log
grep -rl --include='*_test.go' '^func Fuzz' . | sort | while read -r file; do
  for target in $(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$file"); do
    echo "fuzz $(dirname "$file") $target"
    go test "$(dirname "$file")" -run '^$' -fuzz "^$target\$" -fuzztime "${seconds}s" -fuzzminimizetime 5x >$log 2>&1 </dev/null && continue
    # A worker that is busy when the time is up is reported as a failure of its own, without an input.
    grep -q '^    context deadline exceeded$' $log && ! grep -q 'Failing input written' $log && continue
    cat $log
    exit 1
  done
done
