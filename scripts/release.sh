#!/usr/bin/env bash
# Builds the packages of a release under build/release, with their checksums: archives and Python wheels for six platforms, Debian
# packages, a container image, a Homebrew formula, SBOMs and VS Code extensions. The version is that of the commit's tag, vX.Y.Z; a
# commit without a tag is 0.0.0-dev.
# usage: release.sh [OS/ARCH]    (default: all platforms)
set -euo pipefail
. "$(dirname "$0")/common.sh"
command -v go >/dev/null || cannot "install Go and run this again"

# The base of the container image: Debian's C library.
base=()
if command -v apt-get >/dev/null; then
  base=(-base "$root/build/image-base")
  for arch in amd64 arm64; do
    folder=$root/build/image-base/$arch
    [ -e "$folder/ready" ] && continue
    case ${1:-} in '' | linux/$arch) ;; *) continue ;; esac
    "$root/scripts/getdeb.sh" "bookworm/$arch" "$folder" libc6
    rm -rf "$folder/apt"
    touch "$folder/ready"
  done
else
  echo "no container image: its base needs apt-get"
fi

out=$root/build/release
(cd "$root/release" && go run . "${base[@]}" -version "$(release_version)" ${1:+-platforms "$1"})
extensions=()
[ $# = 0 ] || extensions=(universal)
"$root/scripts/package-vscode.sh" "${extensions[@]}"
cp "$root"/build/vsix/*.vsix "$out/"
cd "$out"
find . -type f ! -name SHA256SUMS -printf '%P\n' | LC_ALL=C sort | xargs sha256sum >SHA256SUMS
ls -l
