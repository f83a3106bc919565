#!/usr/bin/env bash
# The GPU leg: the device suite, then every workload of bench/gpu beside its peers, on the local NVIDIA card, in under 10
# minutes. Needs PyTorch; Triton and JAX take part where they are. Where there is no Go it takes what scripts/gpu-prepare.sh
# built, build/gpu.tar.gz.
# usage: gpu.sh [TARGET] [OPTIONS OF bench/gpu/run.py]     TARGET: the machine to predict for; by default as the card's name says
set -euo pipefail
. "$(dirname "$0")/common.sh"
cd "$root"
began=$SECONDS
card=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -n 1) || true
[ -n "$card" ] || { echo "skipped: no NVIDIA card here"; exit 0; }
python3 -c 'import torch' 2>/dev/null || { echo "skipped: install PyTorch (pip install torch) and run this again"; exit 0; }
mkdir -p build bench/results
more=()
if command -v go >/dev/null; then
  build_dmir
  go test -c -o build/devicetest.test ./compile/driver
elif [ -e build/gpu.tar.gz ]; then
  tar -xzf build/gpu.tar.gz -C build
  more=(--compiled build/gpu)
fi
[ -x build/dmir ] || { echo "failed: no Go here and no build/gpu.tar.gz; scripts/gpu-prepare.sh builds it elsewhere" >&2; exit 1; }
case $card in
  *H200*) target=h200 ;; *H100*) target=h100 ;; *B200*) target=b200 ;; *A100*80*) target=a100-80 ;; *A100*) target=a100-40 ;;
  *V100*) target=v100 ;; *L40S*) target=l40s ;; *4090*) target=rtx4090 ;; *) target=h200 ;;
esac
case ${1:-} in '' | -*) ;; *) target=$1 && shift ;; esac
build/dmir doctor || true
if [ -x build/devicetest.test ]; then more+=(--suite build/devicetest.test); else echo "the device suite is left out: no build/devicetest.test"; fi
exec python3 bench/gpu/run.py --target "$target" ${more[@]+"${more[@]}"} --budget $((570 - (SECONDS - began))) \
  --json "bench/results/gpu-$(echo "$card" | tr -c 'A-Za-z0-9\n' '-')-$(date -u +%F).json" "$@"
