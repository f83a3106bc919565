#!/usr/bin/env bash
# Compares the language server with mlir-lsp-server, and fmt and lint over the conformance inputs with mlir-opt,
# in the same run. Writes results to bench/results and passes its arguments to bench/lsp.
set -euo pipefail
. "$(dirname "$0")/common.sh"
cd "$root"
want mlir-lsp-server-22 mlir-22-tools
mkdir -p bench/results
today=$(date -u +%F)
go run ./bench/lsp -json "bench/results/lsp-$today.json" "$@"
if [ -d ../shared/conformance ]; then
  go run ./bench/corpus -json "bench/results/corpus-$today.json"
else
  echo "skipped: no conformance inputs at ../shared/conformance"
fi
