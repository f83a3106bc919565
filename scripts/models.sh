#!/usr/bin/env bash
# Exports models and training steps with JAX and models with PyTorch, in environments of their own in build/models, and imports, runs,
# costs, plans and compiles each (scripts/models/check.py). The tables replace those in docs/MODELS.md. Needs 10 GB of disk: PyTorch's
# package asks for CUDA's libraries. The third table is of models that PyTorch and dmir train (scripts/models/train.py), in
# docs/TRAINING.md. The last two, in docs/PLANNING.md, are of exported plans: models that PyTorch trains under them on four processes
# (scripts/models/export_torch.py), and what torchtitan, DeepSpeed, Megatron Core and NeMo read (scripts/models/export_tools.py).
# usage: models.sh [jax|torch|train|export [NAME...]]    (default: all; with names the table is printed only)
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

# environment FRAMEWORK PACKAGES makes the Python of a framework.
environment() {
  python=$at/$1/bin/python
  [ -x "$python" ] || python3 -m venv "$at/$1"
  # shellcheck disable=SC2086 # a list
  "$python" -m pip install --quiet --disable-pip-version-check $2
}

# page NAME FILE puts the table $at/NAME.md in its place in FILE.
page() {
  sed -i -e "/^<!-- $1 -->/,/^\$/{/^|/d}" -e "/^<!-- $1 -->/r $at/$1.md" "$2"
}

# table FRAMEWORK PACKAGES [NAME...]
table() {
  local framework=$1
  environment "$1" "$2"
  shift 2
  "$python" "scripts/models/${framework}_models.py" "$at/programs/$framework" "$@"
  "$python" scripts/models/check.py "$at/programs/$framework" build/dmir "$@" | tee "$at/$framework.md" || failed=1
  [ $# = 0 ] || return 0
  page "$framework" docs/MODELS.md
}

# trained [NAME...]
trained() {
  environment torch "$torch"
  "$python" scripts/models/train.py "$at/programs/train" build/dmir "$@" | tee "$at/train.md" || failed=1
  [ $# = 0 ] || return 0
  page train docs/TRAINING.md
}

# exported [NAME...]
exported() {
  environment torch "$torch"
  "$python" -W ignore scripts/models/export_torch.py "$at/programs/export" build/dmir "$@" | tee "$at/export-torch.md" || failed=1
  [ $# = 0 ] || return 0
  page export-torch docs/PLANNING.md
  environment tools "$tools"
  "$python" -W ignore scripts/models/export_tools.py "$at/programs/export/gpt.dmir" build/dmir | grep '^|' | tee "$at/export-tools.md" || failed=1
  page export-tools docs/PLANNING.md
}

torch="torch==2.15.0 torchvision==0.29.2 transformers==5.23.0 onnx==1.23.2 onnxscript==0.7.2"
tools="torch==2.15.0 torchtitan==0.3.0 deepspeed==0.19.8 megatron-core==0.16.1 pyyaml"
only=${1:-all}
[ $# = 0 ] || shift
case $only in jax | all) table jax "jax==0.10.2 flax==0.12.8 optax==0.2.8" "$@" ;; esac
case $only in torch | all) table torch "$torch" "$@" ;; esac
case $only in train | all) trained "$@" ;; esac
case $only in export | all) exported "$@" ;; esac
exit $failed
