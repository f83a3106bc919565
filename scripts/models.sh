#!/usr/bin/env bash
# Exports models and training steps with JAX and models with PyTorch, in environments of their own in build/models, and imports, runs,
# costs, plans and compiles each (scripts/models/check.py). The tables replace those in docs/MODELS.md. Needs 10 GB of disk: PyTorch's
# package asks for CUDA's libraries.
# usage: models.sh [jax|torch [NAME...]]    (default: all; with names the table is printed only)
set -euo pipefail
. "$(dirname "$0")/common.sh"
cd "$root"
want python3 python3
python3 -c 'import ensurepip' 2>/dev/null || want python3-venv python3-venv
want g++ g++ # for PyTorch's Inductor
at=$root/build/models
mkdir -p "$at"
scripts/setup-nvrtc.sh >/dev/null || true # to compile for a card
build_dmir
export JAX_PLATFORMS=cpu
failed=0

# table FRAMEWORK PACKAGES [NAME...]
table() {
  local framework=$1 packages=$2 python=$at/$1/bin/python
  shift 2
  [ -x "$python" ] || python3 -m venv "$at/$framework"
  # shellcheck disable=SC2086 # a list
  "$python" -m pip install --quiet --disable-pip-version-check $packages
  "$python" "scripts/models/${framework}_models.py" "$at/programs/$framework" "$@"
  "$python" scripts/models/check.py "$at/programs/$framework" build/dmir "$@" | tee "$at/$framework.md" || failed=1
  [ $# = 0 ] || return 0
  sed -i -e "/^<!-- $framework -->/,/^\$/{/^|/d}" -e "/^<!-- $framework -->/r $at/$framework.md" docs/MODELS.md
}

only=${1:-}
[ $# = 0 ] || shift
[ "$only" = torch ] || table jax "jax==0.10.2 flax==0.12.8 optax==0.2.8" "$@"
[ "$only" = jax ] || table torch "torch==2.15.0 torchvision==0.29.2 transformers==5.23.0 onnx==1.23.2 onnxscript==0.7.2" "$@"
exit $failed
