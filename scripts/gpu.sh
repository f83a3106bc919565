#!/usr/bin/env bash
# The GPU leg: predicted beside measured time on the local NVIDIA card. Needs PyTorch; a carried binary does for Go.
# usage: gpu.sh [TARGET]     the machine to predict for; by default the one that the card's name says
set -euo pipefail
. "$(dirname "$0")/common.sh"
cd "$root"
card=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -n 1) || true
[ -n "$card" ] || { echo "skipped: no NVIDIA card here"; exit 0; }
python3 -c 'import torch' 2>/dev/null || { echo "skipped: install PyTorch (pip install torch) and run this again"; exit 0; }
if command -v go >/dev/null; then build_dmir; fi
[ -x build/dmir ] || { echo "failed: no Go here and no build/dmir" >&2; exit 1; }
case $card in
  *H200*) guess=h200 ;; *H100*) guess=h100 ;; *B200*) guess=b200 ;; *A100*80*) guess=a100-80 ;; *A100*) guess=a100-40 ;;
  *V100*) guess=v100 ;; *L40S*) guess=l40s ;; *4090*) guess=rtx4090 ;; *) guess=h200 ;;
esac
target=${1:-$guess}
mkdir -p bench/results
build/dmir doctor
python3 bench/gpu/encoder.py --dmir build/dmir --target "$target" \
  --json "bench/results/gpu-$(echo "$card" | tr -c 'A-Za-z0-9\n' '-')-$(date -u +%F).json"
