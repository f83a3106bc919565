#!/usr/bin/env bash
# Builds what `make gpu` needs on a machine that has a card but no Go: build/gpu.tar.gz, which holds dmir, the device suite
# and every workload compiled. Carry it, and the repository, to that machine.
# usage: gpu-prepare.sh [ARCH]     (default: sm_90a)
set -euo pipefail
. "$(dirname "$0")/common.sh"
cd "$root"
arch=${1:-sm_90a}
command -v go >/dev/null || cannot "install Go and run this again"
command -v python3 >/dev/null || cannot "install Python 3 and run this again"
mkdir -p build
case $arch in
  sm_80) target=a100-80 ;; sm_90 | sm_90a) target=h200 ;; sm_100*) target=b200 ;; *) target=h200 ;;
esac
fresh=$(mktemp -d build/.gpu-XXXXXX)
trap 'rm -rf "$fresh"' EXIT
go build -trimpath -ldflags='-s -w' -o "$fresh/dmir" .
go test -c -trimpath -ldflags='-s -w' -o "$fresh/devicetest.test" ./compile/driver
failed=0 total=0
for name in $(python3 bench/gpu/workloads.py --write "$fresh/gpu"); do
  total=$((total + 1))
  if ! "$fresh/dmir" compile --target "$target" --arch "$arch" --output-format json -o "$fresh/gpu/$name.dmx" "$fresh/gpu/$name.dmir" \
    >"$fresh/gpu/$name.json" 2>"$fresh/gpu/$name.err"; then
    failed=$((failed + 1))
    echo "$name: $(head -n 1 "$fresh/gpu/$name.err")" >&2
  fi
  [ -s "$fresh/gpu/$name.err" ] || rm "$fresh/gpu/$name.err"
done
echo "$target $arch" >"$fresh/gpu/target"
tar -czf "$fresh/gpu.tar.gz" -C "$fresh" dmir devicetest.test gpu
mv "$fresh/gpu.tar.gz" build/gpu.tar.gz
echo "build/gpu.tar.gz: $((total - failed)) of $total workloads compiled for $arch; $(du -m build/gpu.tar.gz | cut -f1) MB"
[ "$failed" = 0 ]
