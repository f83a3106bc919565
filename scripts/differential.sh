#!/usr/bin/env bash
# Random programs, forward and gradients, on the reference executor, the emulator and every other device that is here.
# usage: differential.sh [N] [SEED]    N programs (20,000), the first of seed SEED (0)
# Programs that go wrong are made small and written to build/differential, with their seed and what is wrong.
# Exit status 1 where there are any.
set -euo pipefail
. "$(dirname "$0")/common.sh"
cd "$root"
command -v go >/dev/null || cannot "install Go and run this again"
want c++ g++ # for the emulator
finds=$root/build/differential
mkdir -p "$finds"
go test -c -o build/differential.test ./compile/differential
cd compile/differential
exec "$root/build/differential.test" -test.run '^TestRandomPrograms$' -test.timeout 0 -programs "${1:-20000}" -seed "${2:-0}" -finds "$finds"
