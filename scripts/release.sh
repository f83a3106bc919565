#!/usr/bin/env bash
# Builds the packages of a release under build/release, with their checksums. The version is the tag of the commit, vX.Y.Z; a
# commit without a tag is 0.0.0-dev. Options are those of the program in release/.
# usage: release.sh [-platforms OS/ARCH,...] [-repository URL]
set -euo pipefail
. "$(dirname "$0")/common.sh"
command -v go >/dev/null || cannot "install Go and run this again"

# The base of the container image: Debian's C library.
base=()
if command -v apt-get >/dev/null; then
  for arch in amd64 arm64; do
    folder=$root/build/image-base/$arch
    if ! [ -e "$folder/ready" ]; then
      "$root/scripts/getdeb.sh" "bookworm/$arch" "$folder" libc6
      rm -rf "$folder/apt"
      touch "$folder/ready"
    fi
  done
  base=(-base "$root/build/image-base")
else
  echo "no container image: its base needs apt-get"
fi

out=$root/build/release
(cd "$root/release" && go run . "${base[@]}" "$@")
"$root/scripts/package-vscode.sh"
cp "$root"/build/vsix/*.vsix "$out/"
cd "$out"
find . -type f ! -name SHA256SUMS -printf '%P\n' | LC_ALL=C sort | xargs sha256sum >SHA256SUMS
ls -l
