#!/usr/bin/env bash
# Runs the Go tests: unit, golden, differential, conformance and interoperability tests. Tests whose tools are missing are
# skipped; the output ends with their number and what to install.
# usage: test-go.sh [FLAGS OF go test]     for example -short, without the tests that take longer than seconds
set -euo pipefail
. "$(dirname "$0")/common.sh"
cd "$root"

command -v go >/dev/null || cannot "install Go and run this again"
if [ "${1:-}" != -short ]; then
  optional want mlir-opt-22 mlir-22-tools
  optional want c++ g++ # for the emulator
  optional scripts/setup-nvrtc.sh # the tests compile every kernel with NVRTC
fi
# Without a time limit, since a machine may be slow; a test that hangs is named every half minute.
go build -o build/progress ./scripts/progress
go test -json -timeout 0 -vet off "$@" ./... | build/progress
