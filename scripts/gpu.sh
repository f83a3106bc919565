#!/usr/bin/env bash
# Measures the constants of the local NVIDIA card, runs the device suite, then every workload of bench/gpu and its peers, in under 10
# minutes. PyTorch, Triton and JAX take part if they are installed. Without Go, or without a compiler for the card, it uses
# build/gpu.tar.xz, which scripts/gpu-prepare.sh builds. It writes all output to one folder in $OUT or, if that is unset,
# in bench/results: a line of JSON for each finished case, logs, and the result.
# $GPU_ARCHIVE replaces build/gpu.tar.xz.
# usage: gpu.sh [TARGET] [OPTIONS OF bench/gpu/run.py]     TARGET: the machine to predict times for (default: from the card's name)
set -euo pipefail
. "$(dirname "$0")/common.sh"
cd "$root"
began=$SECONDS
card=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -n 1) || true
[ -n "$card" ] || { echo "skipped: this machine has no NVIDIA card"; exit 0; }
command -v python3 >/dev/null || { echo "failed: install Python 3 and run this again" >&2; exit 1; }
out=${OUT:-bench/results}/gpu-$(echo "$card" | tr -c 'A-Za-z0-9\n' '-')-$(date -u +%F-%H%M%S)
mkdir -p "$out"
exec > >(exec tee -a "$out/log.txt") 2>&1
tee=$!
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"; exec >&- 2>&-; wait "$tee" || true' EXIT
export DMIR_CACHE=${DMIR_CACHE:-$scratch/cache} TRITON_CACHE_DIR=$scratch/triton TORCHINDUCTOR_CACHE_DIR=$scratch/inductor PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
case $card in
  *H200*) target=h200 ;; *H100*) target=h100 ;; *B200*) target=b200 ;; *A100*80*) target=a100-80 ;; *A100*) target=a100-40 ;;
  *V100*) target=v100 ;; *L40S*) target=l40s ;; *4090*) target=rtx4090 ;; *) target=h200 ;;
esac
case ${1:-} in '' | -*) ;; *) target=$1 && shift ;; esac
more=()
archive=${GPU_ARCHIVE:-build/gpu.tar.xz}
if [ -e "$archive" ]; then
  python3 -W ignore -c 'import sys, tarfile; tarfile.open(sys.argv[1]).extractall(sys.argv[2])' "$archive" "$scratch"
fi
if [ -x "$scratch/gpu/dmir" ] && "$scratch/gpu/dmir" version >/dev/null; then
  dmir=$scratch/gpu/dmir
  more=(--compiled "$scratch/gpu/workloads/$target" --suite "$scratch/gpu/suite" --cases "$scratch/gpu/cases")
elif command -v go >/dev/null; then
  go build -o "$scratch/dmir" .
  dmir=$scratch/dmir
  echo "skipped: the device suite; scripts/gpu-prepare.sh builds its cases"
else
  echo "failed: install Go, or build $archive with scripts/gpu-prepare.sh on another machine" >&2
  exit 1
fi
"$dmir" doctor || true
# What this card's constants predict stands beside what its data sheet and published figures do.
timeout 90 "$dmir" calibrate --device cuda --base "$target" -o "$out/card.toml" && more+=(--machine "$out/card.toml") ||
  echo "skipped: predictions for this card as it is measured"
status=0
python3 bench/gpu/run.py --dmir "$dmir" --target "$target" ${more[@]+"${more[@]}"} --budget $((570 - (SECONDS - began))) --out "$out" "$@" || status=$?
echo "$out: $(ls "$out" | tr '\n' ' ')"
exit $status
