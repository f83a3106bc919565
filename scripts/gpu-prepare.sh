#!/usr/bin/env bash
# Builds what `make gpu` needs on a machine that has a card but no Go: build/dmir, build/devicetest.test and build/gpu, in
# which every workload lies compiled. Carry these three, and the repository, to that machine.
# usage: gpu-prepare.sh [ARCH]     (default: sm_90a)
set -euo pipefail
. "$(dirname "$0")/common.sh"
cd "$root"
arch=${1:-sm_90a}
command -v go >/dev/null || cannot "install Go and run this again"
command -v python3 >/dev/null || cannot "install Python 3 and run this again"
mkdir -p build
go build -trimpath -ldflags='-s -w' -o build/dmir .
go test -c -trimpath -ldflags='-s -w' -o build/devicetest.test ./compile/driver
case $arch in
  sm_80) target=a100-80 ;; sm_90 | sm_90a) target=h200 ;; sm_100*) target=b200 ;; *) target=h200 ;;
esac
fresh=$(mktemp -d build/.gpu-XXXXXX)
trap 'rm -rf "$fresh"' EXIT
failed=0 total=0
for name in $(python3 bench/gpu/workloads.py --write "$fresh"); do
  total=$((total + 1))
  if ! build/dmir compile --target "$target" --arch "$arch" --output-format json -o "$fresh/$name.dmx" "$fresh/$name.dmir" \
    >"$fresh/$name.json" 2>"$fresh/$name.err"; then
    failed=$((failed + 1))
    echo "$name: $(head -n 1 "$fresh/$name.err")" >&2
  fi
  [ -s "$fresh/$name.err" ] || rm "$fresh/$name.err"
done
echo "$target $arch" >"$fresh/target"
rm -rf build/gpu
mv "$fresh" build/gpu
trap - EXIT
echo "build/gpu: $((total - failed)) of $total workloads compiled for $arch; $(du -sm build/gpu | cut -f1) MB beside $(du -sm build/dmir build/devicetest.test | awk '{s+=$1} END {print s}') MB of programs"
[ "$failed" = 0 ]
