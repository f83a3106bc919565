#!/usr/bin/env bash
# Runs random programs and their gradients on the reference executor, the emulator and every other device of this machine.
# usage: differential.sh [N] [SEED]    N programs (default 20,000), starting at seed SEED (default 0)
# Reduces failing programs and writes them to build/differential, with their seed and the error.
# Exits with status 1 if any program fails.
set -euo pipefail
. "$(dirname "$0")/common.sh"
cd "$root"
command -v go >/dev/null || cannot "install Go and run this again"
want c++ g++ # for the emulator
finds=$root/build/differential
mkdir -p "$finds"
export DMIR_CACHE=$finds/cache # thousands of programs, each compiled once, would displace everything from the user's cache
go test -c -o build/differential.test ./compile/differential
cd compile/differential
exec "$root/build/differential.test" -test.run '^TestRandomPrograms$' -test.timeout 0 -programs "${1:-20000}" -seed "${2:-0}" -finds "$finds"
