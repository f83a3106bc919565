#!/usr/bin/env bash
# Compares wall time and memory with the peers, in the same run. Writes results to bench/results.
set -euo pipefail
. "$(dirname "$0")/common.sh"
cd "$root"
want mlir-opt-22 mlir-22-tools
mkdir -p build bench/results
go build -o build/mliropt ./bench/mliropt
build/mliropt -json "bench/results/mlir-opt-$(date -u +%F).json"
go test ./compile/interp -run '^$' -bench . -benchtime 1x
