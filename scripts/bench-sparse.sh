#!/usr/bin/env bash
# Compares products with sparse matrices on this machine's processor with SciPy, PyTorch and MLIR's sparsifier, and writes results to
# bench/results, in less than ten minutes. Python's peers are installed into build/bench-sparse (6 GB: PyTorch's package asks for CUDA's
# libraries; delete the folder to get rid of it); mlir-opt and mlir-runner are those of the package mlir-22-tools. A peer that cannot be had
# is left out, with the reason.
# usage: bench-sparse.sh [OPTIONS OF bench/sparse]
set -euo pipefail
. "$(dirname "$0")/common.sh"
cd "$root"
want clang clang
want python3 python3
python3 -c 'import ensurepip' 2>/dev/null || want python3-venv python3-venv
at=build/bench-sparse
mkdir -p "$at" bench/results
[ -x "$at/bin/python" ] || python3 -m venv "$at"
while read -r package; do
  "$at/bin/python" -m pip install --quiet --disable-pip-version-check "$package" || echo "skipped: $package cannot be installed"
done <bench/sparse/requirements.txt
go build -o "$at/bench" ./bench/sparse
exec "$at/bench" -json bench/results/sparse-MODEL-DATE.json -md bench/results/sparse-MODEL-DATE.md "$@"
