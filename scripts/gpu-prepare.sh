#!/usr/bin/env bash
# Builds the archive that scripts/gpu.sh needs on a machine with a card but without Go, a compiler for the card, or PyTorch:
# build/gpu.tar.xz contains dmir, every workload compiled, and the device suite: programs with machine code, inputs of two seeds and
# the reference's results. Copy it and the repository to that machine.
# What an earlier run has made of the same inputs is taken from build/gpu-prepare, also after one that was interrupted: machine code
# by the text of its kernel, the cases of a test by the test's program.
# usage: gpu-prepare.sh [ARCH]     (default: sm_90a, for h200 and h100)
# For a quick build, WORKLOADS=REGEX and TESTS=REGEX select workloads and the tests that write the suite's cases.
set -euo pipefail
. "$(dirname "$0")/common.sh"
cd "$root"
arch=${1:-sm_90a}
most=60 # MB that the archive may have
command -v go >/dev/null || cannot "install Go and run this again"
command -v python3 >/dev/null || cannot "install Python 3 and run this again"
kept=$root/build/gpu-prepare
mkdir -p "$kept"
case $arch in # the machines of the architecture, each with its own tiles
  sm_80) targets="a100-80 a100-40" ;; sm_90 | sm_90a) targets="h200 h100" ;; sm_100*) targets=b200 ;; *) targets=h200 ;;
esac
# Compile with NVRTC of CUDA 13.0, independent of the installed one: every CUDA 13 driver loads its machine code.
nvrtc=${DMIR_NVRTC:-$root/build/nvrtc-13.0}
if [ -z "${DMIR_NVRTC:-}" ] && ! [ -e "$nvrtc/ready" ]; then
  rm -rf "$nvrtc"
  wanted=$(mktemp build/.nvrtc-XXXXXX)
  cat >"$wanted" <<'LIST'
nvidia-cuda-nvrtc==13.0.88 --hash=sha256:ad9b6d2ead2435f11cbb6868809d2adeeee302e9bb94bcf0539c7a40d80e8575 --hash=sha256:d27f20a0ca67a4bb34268a5e951033496c5b74870b868bacd046b1b8e0c3267b
LIST
  python3 -I -m pip install --quiet --disable-pip-version-check --no-input --root-user-action=ignore --no-deps --only-binary=:all: \
    --require-hashes --target "$nvrtc" -r "$wanted" || cannot "pip could not download NVRTC 13.0; set DMIR_NVRTC to a library"
  rm -f "$wanted"
  touch "$nvrtc/ready"
fi
if [ -d "$nvrtc/nvidia/cu13/lib" ]; then nvrtc=$nvrtc/nvidia/cu13/lib; fi
export DMIR_NVRTC=$nvrtc DMIR_CACHE=$kept/cache DMIR_CARRY_ARCH=$arch

fresh=$(mktemp -d "$root/build/.gpu-XXXXXX")
trap 'rm -rf "$fresh"' EXIT
gpu=$fresh/gpu
mkdir -p "$gpu/cases"
stage() { echo "$1: $(($(date +%s) - began)) s"; }
began=$(date +%s)
# The other machine has other libraries, so the binaries must not link to any.
go build -trimpath -ldflags='-s -w' -o "$gpu/dmir" .
go build -trimpath -ldflags='-s -w' -o "$gpu/suite" ./bench/gpu/suite
stage "built"

# Files have the same relative names for every target, since line tables hold them: kernels that do not differ are compiled once.
left_out=() total=0
for target in $targets; do
  mkdir -p "$gpu/workloads/$target"
  cd "$gpu/workloads/$target"
  names=$(python3 "$root/bench/gpu/workloads.py" --write .)
  (cd "$root" && go run ./bench/depth -text 12) >gpt2_step.dmir
  for name in $(printf '%s\n' "$names" gpt2_step | grep -E "${WORKLOADS:-.}"); do
    total=$((total + 1))
    "$gpu/dmir" compile --target "$target" --arch "$arch" --output-format json -o "$name.dmx" "$name.dmir" >/dev/null 2>"$name.err" ||
      left_out+=("workload $name for $target: $(head -n 1 "$name.err")")
    [ -s "$name.err" ] || rm "$name.err"
  done
  rm -f ./*.npy
  echo "$target $arch" >target
  cd "$root"
done
stage "compiled $total workloads"

# The tests that run these programs on the emulator write them as cases. Each test has a folder of its own, named by what its results
# depend on: its program and the files that it reads.
tests="${TESTS:-^Test(Smoke|Contraction(Orders|Bulk|Long|Convolutions|Reductions|Groups|Around|Types)|Every.*|Probes|LongRows|Attention(Depths|SmallTiles|Variants|Deep)|Devices|Wide|Control|Edges|ExamplesOfOps|Rows|Reductions|InPlace|Orders|RandomPrograms|WorkloadCases)\$}"
wanted=() keys=" "
for package in ./compile/cuda ./compile/driver ./bench/gpu; do # the longest first
  program=$fresh/$(basename "$package").test
  go test -c -trimpath -o "$program" "$package"
  read=(examples testdata/programs "$package/testdata" bench/gpu/workloads.py)
  key=$({ printf '%s\n' "$arch" && git ls-files -z -- "${read[@]}" | xargs -0 cat && cat "$program"; } | sha256sum | cut -c1-16)
  keys+="$key "
  for name in $("$program" -test.list "$tests"); do wanted+=("$package $program $kept/$name-$key"); done
done
stage "built ${#wanted[@]} tests"
record() { # record PACKAGE PROGRAM FOLDER: runs the test of the folder's name, unless the folder is complete
  [ -e "$3/complete" ] && return
  rm -rf "$3"
  mkdir -p "$3/cases"
  local name
  name=$(basename "${3%-*}")
  if (cd "$1" && DMIR_CARRY=$3/cases "$2" -test.run "^$name\$" -test.timeout 30m) >"$3/log" 2>&1; then
    touch "$3/complete"
  fi
}
export -f record
printf '%s\n' "${wanted[@]}" | xargs -P "$(getconf _NPROCESSORS_ONLN)" -L 1 bash -c 'record "$@"' record
for old in "$kept"/Test*; do # of other versions
  [[ $keys == *" ${old##*-} "* ]] || rm -rf "$old"
done
for each in "${wanted[@]}"; do
  folder=${each##* }
  cp -r "$folder/cases/." "$gpu/cases"
  [ -e "$folder/complete" ] || left_out+=("cases of $(basename "${folder%-*}"): $(grep -m 1 -E '^ +[a-z_]+\.go:|^panic' "$folder/log" || tail -n 1 "$folder/log")")
done
stage "recorded $(find "$gpu/cases" -name '*.case' | wc -l) cases"

# Kernels of the machines are mostly equal: a window that holds all of them keeps one.
# What the steps of scripts/gpu.sh need first comes first, for slow disks.
python3 - "$fresh" <<'END'
import lzma, os, sys, tarfile
filters = [{"id": lzma.FILTER_LZMA2, "preset": 4, "dict_size": 64 << 20}]
with lzma.open(sys.argv[1] + "/gpu.tar.xz", "wb", filters=filters) as f, tarfile.open(fileobj=f, mode="w|") as t:
    os.chdir(sys.argv[1])
    names = [os.path.join(at, n) for at, _, files in os.walk("gpu") for n in files]
    place = lambda n: (n.count("/") > 1, not n.endswith("/target"), "/smoke/" not in n, not n.startswith("gpu/cases"), os.path.splitext(os.path.basename(n)), n)
    for name in sorted(names, key=place):
        t.add(name)
END
mv "$fresh/gpu.tar.xz" build/gpu.tar.xz
stage "packed"
size=$(du -m build/gpu.tar.xz | cut -f1)
[ "$size" -le "$most" ] || left_out+=("nothing, but the archive has more than $most MB: select tests with TESTS")
echo "build/gpu.tar.xz: workloads of $targets for $arch, $(find "$gpu/cases" -name '*.case' | wc -l) cases, $size MB"
for what in "${left_out[@]}"; do echo "left out: $what" >&2; done
[ ${#left_out[@]} = 0 ]
