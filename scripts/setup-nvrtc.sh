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
pip_folder "$folder" NVRTC gpu/nvrtc/wheels.txt gpu/nvrtc/wheels-nvcc.txt
echo "NVRTC, nvdisasm and nvcc are in $folder"
