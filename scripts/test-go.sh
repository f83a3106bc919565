#!/usr/bin/env bash
# Runs the Go checks: vet, formatting, staticcheck, unit, golden, differential, conformance and interop tests.
set -euo pipefail
. "$(dirname "$0")/common.sh"
cd "$root"
staticcheck=honnef.co/go/tools/cmd/staticcheck@v0.7.0

command -v go >/dev/null || cannot "install Go and run this again"
want mlir-opt-22 mlir-22-tools
want c++ g++ # for the emulator
scripts/setup-nvrtc.sh # the tests compile every kernel with NVRTC

go vet ./...
unformatted=$(gofmt -l $(git ls-files '*.go'))
[ -z "$unformatted" ] || { echo "not formatted (make fmt):" $unformatted >&2; exit 1; }
go run "$staticcheck" ./...
go test -timeout 20m ./...
