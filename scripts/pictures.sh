#!/usr/bin/env bash
# Makes the pictures of docs/GALLERY.md: the movement graph of each example, as a light and as a dark page shows it.
# usage: pictures.sh [NAME...]     names of examples; all without a name
set -euo pipefail
. "$(dirname "$0")/common.sh"

want node nodejs
want npm npm
want pngquant pngquant
npm_install "$root/vscode-extension"
for browser in chromium chromium-browser google-chrome; do
  command -v "$browser" >/dev/null && break
done
command -v "$browser" >/dev/null || { want chromium chromium && browser=chromium; }
DMIR_CHROMIUM=$(command -v "$browser")
export DMIR_CHROMIUM
build_dmir

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$root"
mkdir -p docs/images/gallery
[ $# -gt 0 ] || set -- $(basename -s .dmir examples/*.dmir)
for name in "$@"; do
  # shellcheck disable=SC2046 # the flags are words
  (cd examples && "$root/build/dmir" report $(sed -n "s/^$name //p" ../docs/images/gallery.flags) -o "$scratch/$name.html" "$name.dmir") >/dev/null
  node web/test/picture.mjs "$scratch/$name.html" "$scratch/$name"
  for theme in light dark; do
    pngquant --force --strip --speed 1 --output "docs/images/gallery/$name-$theme.png" 64 "$scratch/$name-$theme.png"
  done
  echo "$name"
done
