#!/usr/bin/env bash
# Installs HiGHS, a solver of mixed-integer programs, with pip where dmir looks for it, as `dmir doctor --install-highs` does.
# Downloads about 10 MB.
# usage: setup-highs.sh [FOLDER]      (default: dmir's folder in the user's cache, or in $DMIR_CACHE)
set -euo pipefail
. "$(dirname "$0")/common.sh"
folder=${1:-${DMIR_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/dmir}/highs}
if compgen -G "$folder/highsbox/highs_dist/*/*highs.*" >/dev/null; then
  echo "HiGHS is in $folder"
  exit 0
fi
pip_folder "$folder" HiGHS gpu/highs/wheels.txt
echo "HiGHS is in $folder"
