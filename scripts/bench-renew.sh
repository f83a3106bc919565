#!/usr/bin/env bash
# Renews bench/results on this machine and lists the figures that are worse than the committed ones. Its arguments are the
# benchmarks to run, by default those that install nothing: edits and opening, mlir-opt, corpus, solve, counted. Others are cpu and dist.
set -euo pipefail
. "$(dirname "$0")/common.sh"
cd "$root"
today=$(date -u +%F)
results=bench/results
for what in "${@:-lsp mlir-opt solve counted}"; do
  for one in $what; do
    echo "== $one"
    case $one in
      lsp) scripts/bench-lsp.sh ;;
      mlir-opt) scripts/bench.sh ;;
      solve) go run ./bench/solve -json "$results/solve-$today.json" -table "$results/solve-$today.md" ;;
      counted) go run ./bench/counted -json "$results/counted-$today.json" -md "$results/counted-$today.md" ;;
      cpu | dist) "scripts/bench-$one.sh" ;;
      *)
        echo "unknown benchmark $one" >&2
        exit 2
        ;;
    esac
  done
done
go run ./bench/worse
