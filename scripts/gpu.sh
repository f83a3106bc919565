#!/usr/bin/env bash
# Spends a budget of minutes on the local NVIDIA card: smoke programs, the card's constants, the device suite, then workloads beside
# their peers, as the table in bench/README.md has it. PyTorch, Triton and JAX take part if one of the machine's Pythons has them.
# Without Go, or without a compiler for the card, it uses build/gpu.tar.xz, which scripts/gpu-prepare.sh builds. It writes all output
# to one folder in $OUT or, if that is unset, in bench/results: lines of JSON as it goes, logs, and report.md, the table to commit.
# The exit status is 1 if a step failed, faulted or hung, or gave wrong results.
# $GPU_ARCHIVE replaces build/gpu.tar.xz.
# usage: gpu.sh [--minutes N] [--python FILE] [--target NAME] [--only REGEX] [OPTIONS OF bench/gpu/plan.py]
set -euo pipefail
. "$(dirname "$0")/common.sh"
cd "$root"
card=$(timeout 20 nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -n 1) || true
[ -n "$card" ] || { echo "skipped: this machine has no NVIDIA card"; exit 0; }
python=
for each in python3 /usr/bin/python3 /usr/local/bin/python3 /opt/conda/bin/python; do
  command -v "$each" >/dev/null && python=$each && break
done
[ -n "$python" ] || { echo "failed: install Python 3 and run this again" >&2; exit 1; }
out=${OUT:-bench/results}/gpu-$(echo "$card" | tr -c 'A-Za-z0-9\n' '-')-$(date -u +%F-%H%M%S)
mkdir -p "$out"
exec > >(exec tee -a "$out/log.txt") 2>&1
tee=$!
work=$(mktemp -d)
trap 'rm -rf "$work"; exec >&- 2>&-; wait "$tee" || true' EXIT
case $card in
  *H200*) target=h200 ;; *H100*) target=h100 ;; *B200*) target=b200 ;; *A100*80*) target=a100-80 ;; *A100*) target=a100-40 ;;
  *V100*) target=v100 ;; *L40S*) target=l40s ;; *4090*) target=rtx4090 ;; *) target=h200 ;;
esac
archive=${GPU_ARCHIVE:-build/gpu.tar.xz}
if [ -e "$archive" ]; then
  from=(--archive "$archive")
elif command -v go >/dev/null; then
  DMIR_CACHE=${DMIR_CACHE:-$work/cache} go build -o "$work/dmir" .
  from=(--dmir "$work/dmir")
  echo "skipped: the device suite; scripts/gpu-prepare.sh builds its cases"
else
  echo "failed: install Go, or build $archive with scripts/gpu-prepare.sh on another machine" >&2
  exit 1
fi
status=0
PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 "$python" bench/gpu/plan.py --card "$card" --target "$target" "${from[@]}" --out "$out" "$@" || status=$?
echo "$out: $(ls "$out" | tr '\n' ' ')"
exit $status
