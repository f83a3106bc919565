#!/usr/bin/env bash
# Runs the Go tests: unit, golden, differential, conformance and interoperability tests. Tests whose tools are missing are
# skipped; the output ends with their number and what to install.
# usage: test-go.sh [FLAGS OF go test]     for example -short, without the tests that take longer than seconds
set -euo pipefail
. "$(dirname "$0")/common.sh"
cd "$root"
lavish

# want_sanitizers installs the libraries of clang's sanitizers, of clang's version.
want_sanitizers() {
  local version
  version=$(clang -dumpversion 2>/dev/null) || return 77
  [ -n "$(find "$(clang -print-resource-dir)" -name 'libclang_rt.asan*' 2>/dev/null)" ] ||
    alone apt_install "libclang-rt-${version%%.*}-dev" >/dev/null 2>&1 || return 77
}

# want_python puts a python3 with NumPy, which examples/embed/train.py needs, and JAX, on whose devices bench/dist runs what is
# exported, first on PATH.
want_python() {
  python3 -c 'import numpy, jax' 2>/dev/null && return
  local at=$root/build/python
  python3 -c 'import ensurepip' 2>/dev/null || want python3-venv python3-venv
  [ -x "$at/bin/python" ] || alone python3 -m venv "$at" || return 77
  "$at/bin/python" -c 'import numpy, jax' 2>/dev/null ||
    alone "$at/bin/python" -m pip install --quiet --disable-pip-version-check -r bench/dist/requirements.txt || return 77
  export PATH="$at/bin:$PATH"
}

command -v go >/dev/null || cannot "install Go and run this again"
if [ "${1:-}" != -short ]; then
  optional want mlir-opt-22 mlir-22-tools
  optional want c++ g++ # for the emulator
  optional want clang clang # for programs on the processor
  optional want opt llvm # verifies their IR
  optional want_sanitizers
  optional want mpirun.openmpi openmpi-bin # with libopenmpi3, whose libmpi.so.40 the tests open
  optional want mpirun.mpich mpich
  want_python || [ $? = 77 ] # in this shell, whose PATH it changes
  optional scripts/setup-nvrtc.sh # the tests compile every kernel with NVRTC
  optional scripts/setup-highs.sh # the planner's search is compared with a solver of integer programs
fi
# Without a time limit, since a machine may be slow; a test that hangs is named every half minute.
go build -o build/progress ./scripts/progress
if [ "${1:-}" != -short ]; then
  build_dmir
  export DMIR_COMMAND=$root/build/dmir # for the tests that run the command, of several packages
  # Counts the compilations of this run, for build/progress to sum up; outside the module, whose files Go's cache of results depends on.
  export DMIR_TALLY=${XDG_CACHE_HOME:-$HOME/.cache}/dmir/tally
  mkdir -p "$(dirname "$DMIR_TALLY")"
  : >"$DMIR_TALLY"
fi
go test -json -timeout 0 -vet off -ldflags='-s -w' "$@" ./... | build/progress
