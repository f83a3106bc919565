#!/usr/bin/env bash
# Compares the bytes that devices send in programs that dmir divides with those after XLA's partitioner, and writes results to
# bench/results. JAX is installed into build/bench-dist (400 MB; delete the folder to get rid of it).
# usage: bench-dist.sh [OPTIONS OF bench/dist]
set -euo pipefail
. "$(dirname "$0")/common.sh"
cd "$root"
want python3 python3
python3 -c 'import ensurepip' 2>/dev/null || want python3-venv python3-venv
at=build/bench-dist
mkdir -p "$at" bench/results
[ -x "$at/bin/python" ] || python3 -m venv "$at"
"$at/bin/python" -m pip install --quiet --disable-pip-version-check -r bench/dist/requirements.txt
go build -o "$at/bench" ./bench/dist
exec "$at/bench" -json bench/results/dist-DATE.json -md bench/results/dist-DATE.md "$@" "$at/bin/python"
