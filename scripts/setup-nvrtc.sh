#!/usr/bin/env bash
# Installs NVRTC, NVIDIA's run-time compiler, and nvdisasm with pip where dmir looks for them, as `dmir doctor --install-nvrtc`
# does. For CI it also installs nvcc, which dmir uses if NVRTC is missing. Downloads about 180 MB, 450 MB on disk.
# usage: setup-nvrtc.sh [FOLDER]      (default: dmir's folder in the user's cache, or in $DMIR_CACHE)
set -euo pipefail
. "$(dirname "$0")/common.sh"
folder=${1:-${DMIR_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/dmir}/cuda}
bin=$folder/nvidia/cu13/bin
if compgen -G "$folder/nvidia/*/lib/libnvrtc.so.*" >/dev/null && [ -x "$bin/nvdisasm" ] && [ -x "$bin/nvcc" ]; then
  echo "NVRTC, nvdisasm and nvcc are in $folder"
  exit 0
fi
[ "$(uname -s)" = Linux ] || cannot "NVRTC's package is for Linux and Windows; on Windows use: dmir doctor --install-nvrtc"
command -v python3 >/dev/null || cannot "install Python 3 with pip (to fetch NVRTC) and run this again"
mkdir -p "$(dirname "$folder")"
fresh=$(cd "$(dirname "$folder")" && mktemp -d "$PWD/.cuda-XXXXXX")
trap 'rm -rf "$fresh"' EXIT
# Run Python isolated and in a new folder, so that no module of the current folder shadows one of Python's.
(cd "$fresh" && python3 -I -m pip install --quiet --disable-pip-version-check --no-input --root-user-action=ignore --no-deps --only-binary=:all: \
  --require-hashes --target "$fresh/new" -r "$root/gpu/nvrtc/wheels.txt" -r "$root/gpu/nvrtc/wheels-nvcc.txt") ||
  cannot "pip could not fetch NVIDIA's packages that gpu/nvrtc/wheels*.txt name"
# An existing folder may be in use, so replace it as a whole and not file by file.
if [ -e "$folder" ]; then mv "$folder" "$fresh/old"; fi
mv "$fresh/new" "$folder"
echo "NVRTC, nvdisasm and nvcc are in $folder"
