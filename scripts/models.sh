#!/usr/bin/env bash
# Exports models and training steps with JAX, in an environment of its own in build/models, and imports, runs, costs, plans and
# compiles each (scripts/models/check.py). The table replaces the one in docs/MODELS.md. Takes about 15 minutes and 2 GB of disk.
# usage: models.sh [NAME...]    (default: all; with names the table is printed only)
set -euo pipefail
. "$(dirname "$0")/common.sh"
cd "$root"
want python3 python3
python3 -c 'import ensurepip' 2>/dev/null || want python3-venv python3-venv
at=$root/build/models
mkdir -p "$at"
[ -x "$at/venv/bin/python" ] || python3 -m venv "$at/venv"
"$at/venv/bin/pip" install --quiet --disable-pip-version-check jax==0.10.2 flax==0.12.8 optax==0.2.8
scripts/setup-nvrtc.sh >/dev/null || true # to compile for a card
build_dmir
JAX_PLATFORMS=cpu "$at/venv/bin/python" scripts/models/jax_models.py "$at/programs" "$@"
"$at/venv/bin/python" scripts/models/check.py "$at/programs" build/dmir "$@" | tee "$at/table.md"
[ $# = 0 ] || exit 0
sed -i -e '/^| program |/,/^$/{/^|/d}' -e "/^<!-- models -->/r $at/table.md" docs/MODELS.md
