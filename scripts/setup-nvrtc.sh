#!/usr/bin/env bash
# Fetches NVRTC, NVIDIA's run-time compiler, with pip to where dmir looks for it; what `dmir doctor --install-nvrtc` does, for CI.
# usage: setup-nvrtc.sh [FOLDER]      (default: dmir's folder in the user's cache, or in $DMIR_CACHE)
set -euo pipefail
. "$(dirname "$0")/common.sh"
folder=${1:-${DMIR_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/dmir}/cuda}
if compgen -G "$folder/nvidia/*/lib/libnvrtc.so.*" >/dev/null; then
  echo "NVRTC is in $folder"
  exit 0
fi
[ "$(uname -s)" = Linux ] || cannot "NVRTC's package is for Linux and Windows; on Windows use: dmir doctor --install-nvrtc"
command -v python3 >/dev/null || cannot "install Python 3 with pip (to fetch NVRTC) and run this again"
mkdir -p "$(dirname "$folder")"
fresh=$(mktemp -d "$(dirname "$folder")/.cuda-XXXXXX")
trap 'rm -rf "$fresh"' EXIT
python3 -m pip install --quiet --disable-pip-version-check --no-input --root-user-action=ignore --no-deps --only-binary=:all: \
  --target "$fresh" 'nvidia-cuda-nvrtc>=13,<14' || cannot "pip could not fetch nvidia-cuda-nvrtc"
rm -rf "$folder"
mv "$fresh" "$folder"
trap - EXIT
echo "NVRTC is in $folder"
