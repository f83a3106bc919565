#!/usr/bin/env bash
# Compares programs on this machine's processor with OpenBLAS, PyTorch, ONNX Runtime, a copy of as many bytes and the reference
# executor, and writes results to bench/results. The peers are installed into build/bench-cpu (6 GB: PyTorch's package asks for
# CUDA's libraries; delete the folder to get rid of it). A peer that cannot be had is left out, with the reason.
# usage: bench-cpu.sh [OPTIONS OF bench/cpu]
set -euo pipefail
. "$(dirname "$0")/common.sh"
cd "$root"
want clang clang
want python3 python3
python3 -c 'import ensurepip' 2>/dev/null || want python3-venv python3-venv
at=build/bench-cpu
mkdir -p "$at" bench/results
ldconfig -p | grep -q 'libopenblas\.so\.0' || alone apt_install libopenblas0-pthread >/dev/null 2>&1 || echo "skipped: OpenBLAS: install libopenblas0-pthread"
[ -x "$at/bin/python" ] || python3 -m venv "$at"
while read -r package; do
  "$at/bin/python" -m pip install --quiet --disable-pip-version-check "$package" || echo "skipped: $package cannot be installed"
done <bench/cpu/requirements.txt
build_dmir
go build -o "$at/bench" ./bench/cpu
exec "$at/bench" -json bench/results/cpu-MODEL-DATE.json -md bench/results/cpu-MODEL-DATE.md "$@"
