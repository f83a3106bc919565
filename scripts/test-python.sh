#!/usr/bin/env bash
# Tests the Python package, python/dmir, with JAX, and with PyTorch where python3 has it. PyTorch, its exporter and their CUDA libraries
# are gigabytes, which this test does not install, not even with CI=true: its tests then skip, saying what to install. To run them,
# have a python3 on PATH with torch, onnx and onnxscript beside what python/tests/requirements.txt lists.
# usage: test-python.sh [TEST...]     for example test_compile, or test_compile.Compile.test_threads
set -euo pipefail
. "$(dirname "$0")/common.sh"

# want_python puts a python3 with the packages of the tests first on PATH.
want_python() {
  python3 -c 'import IPython, equinox, flax, jax, numpy, optax, pandas, ruff' 2>/dev/null && return
  local at=$root/build/python
  python3 -c 'import ensurepip' 2>/dev/null || want python3-venv python3-venv
  [ -x "$at/bin/python" ] || alone python3 -m venv "$at" || cannot "python3 -m venv failed"
  "$at/bin/python" -c 'import IPython, equinox, flax, jax, numpy, optax, pandas, ruff' 2>/dev/null ||
    alone "$at/bin/python" -m pip install --quiet --disable-pip-version-check -r "$root/python/tests/requirements.txt" ||
    cannot "pip could not install what python/tests/requirements.txt lists"
  export PATH="$at/bin:$PATH"
}

want python3 python3
want clang clang # for dmir.compile
want_python
build_dmir
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export DMIR=$root/build/dmir PYTHONPATH=$root/python PYTHONDONTWRITEBYTECODE=1 JAX_PLATFORMS=cpu
export IPYTHONDIR=$scratch/ipython TMPDIR=$scratch
cd "$root/python/tests"
if [ $# = 0 ]; then set -- discover; fi # the word comes first
python3 -m ruff check --no-cache .. && python3 -m ruff format --no-cache --check ..
python3 -W error::ResourceWarning -m unittest "$@" -v
