#!/usr/bin/env bash
# A few seconds of each fuzz target, beyond the seeds that every test run tries.
# usage: fuzz.sh [SECONDS]
set -euo pipefail
. "$(dirname "$0")/common.sh"
cd "$root"
mkdir -p build
seconds=${1:-4}
grep -rl --include='*_test.go' '^func Fuzz' . | sort | while read -r file; do
  for target in $(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$file"); do
    echo "fuzz $(dirname "$file") $target"
    go test "$(dirname "$file")" -run '^$' -fuzz "^$target\$" -fuzztime "${seconds}s" >build/fuzz.log 2>&1 </dev/null || { cat build/fuzz.log; exit 1; }
  done
done
