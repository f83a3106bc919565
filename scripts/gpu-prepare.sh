#!/usr/bin/env bash
# Builds the archive that `make gpu` needs on a machine with a card but without Go, a compiler for the card, or PyTorch:
# build/gpu.tar.xz contains dmir, every workload compiled, and the device suite: programs with machine code and the
# reference's results. Copy it and the repository to that machine. The build takes about half an hour on two cores.
# usage: gpu-prepare.sh [ARCH]     (default: sm_90a)
# For a quick build, WORKLOADS=REGEX and TESTS=REGEX select workloads and the tests that write the suite's cases.
set -euo pipefail
. "$(dirname "$0")/common.sh"
cd "$root"
arch=${1:-sm_90a}
command -v go >/dev/null || cannot "install Go and run this again"
command -v python3 >/dev/null || cannot "install Python 3 and run this again"
mkdir -p build
case $arch in # the machines of the architecture, each with its own tiles
  sm_80) targets="a100-80 a100-40" ;; sm_90 | sm_90a) targets="h200 h100" ;; sm_100*) targets=b200 ;; *) targets=h200 ;;
esac
# Compile with NVRTC of CUDA 13.0, independent of the installed one: every CUDA 13 driver loads its machine code.
nvrtc=${DMIR_NVRTC:-$root/build/nvrtc-13.0}
if [ -z "${DMIR_NVRTC:-}" ] && ! [ -e "$nvrtc/ready" ]; then
  rm -rf "$nvrtc"
  wanted=$(mktemp build/.nvrtc-XXXXXX)
  cat >"$wanted" <<'END'
nvidia-cuda-nvrtc==13.0.88 --hash=sha256:ad9b6d2ead2435f11cbb6868809d2adeeee302e9bb94bcf0539c7a40d80e8575 --hash=sha256:d27f20a0ca67a4bb34268a5e951033496c5b74870b868bacd046b1b8e0c3267b
END
  python3 -I -m pip install --quiet --disable-pip-version-check --no-input --root-user-action=ignore --no-deps --only-binary=:all: \
    --require-hashes --target "$nvrtc" -r "$wanted" || cannot "pip could not download NVRTC 13.0; set DMIR_NVRTC to a library"
  rm -f "$wanted"
  touch "$nvrtc/ready"
fi
if [ -d "$nvrtc/nvidia/cu13/lib" ]; then nvrtc=$nvrtc/nvidia/cu13/lib; fi
export DMIR_NVRTC=$nvrtc

fresh=$(mktemp -d "$root/build/.gpu-XXXXXX")
trap 'rm -rf "$fresh"' EXIT
mkdir -p "$fresh/gpu/cases"
# The other machine has other libraries, so the binaries must not link to any.
CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o "$fresh/gpu/dmir" .
CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o "$fresh/gpu/suite" ./bench/gpu/suite
failed=0 total=0
for target in $targets; do
  folder=$fresh/gpu/workloads/$target
  for name in $(python3 bench/gpu/workloads.py --write "$folder" | grep -E "${WORKLOADS:-.}"); do
    total=$((total + 1))
    file=$folder/$name
    if ! "$fresh/gpu/dmir" compile --target "$target" --arch "$arch" --output-format json -o "$file.dmx" "$file.dmir" >"$file.json" 2>"$file.err"; then
      failed=$((failed + 1))
      echo "$name: $(head -n 1 "$file.err")" >&2
    fi
    rm -f "$file.json" "$file".*.npy
    [ -s "$file.err" ] || rm "$file.err"
  done
  echo "$target $arch" >"$folder/target"
done
# The tests that run these programs on the emulator write them as cases.
DMIR_CARRY=$fresh/gpu/cases DMIR_CARRY_ARCH=$arch go test -count=1 -timeout 90m \
  -run "${TESTS:-^Test(Contraction(Orders|Bulk|Long|Convolutions|Reductions|Groups|Around|Types)|Every.*|Probes|LongRows|Attention(Depths|SmallTiles|Variants|Deep)|Devices|Wide|Control|Edges|ExamplesOfOps|Rows|Reductions|InPlace|Orders|RandomPrograms|WorkloadCases)\$}" \
  ./compile/cuda ./compile/driver ./bench/gpu
python3 - "$fresh" <<'END'
import sys, tarfile
with tarfile.open(sys.argv[1] + "/gpu.tar.xz", "w:xz") as t:
    t.add(sys.argv[1] + "/gpu", "gpu")
END
mv "$fresh/gpu.tar.xz" build/gpu.tar.xz
echo "build/gpu.tar.xz: $((total - failed)) of $total workloads compiled for $arch, $(find "$fresh/gpu/cases" -name '*.case' | wc -l) cases; $(du -m build/gpu.tar.xz | cut -f1) MB"
[ "$failed" = 0 ]
