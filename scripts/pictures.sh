#!/usr/bin/env bash
# Makes the pictures of the documentation: for docs/GALLERY.md the movement graph of each example, as a light and as a dark page
# shows it; for the READMEs, docs/EDITORS.md and the walkthrough of the extension screenshots of VS Code.
# usage: pictures.sh [vscode] [NAME...]     vscode, and names of examples; all of them without a name
set -euo pipefail
. "$(dirname "$0")/common.sh"

# The screenshots that are pictures, and their files. The scenes of vscode-extension/test/workbench take them.
scenes='^(the example|panels: roofline|pictures)'
vscode() {
  DMIR_VSCODE=newer DMIR_SCENE=$scenes "$root/scripts/test-vscode.sh" scenes
  take example vscode-extension/images/readme-editor.png
  take graph-dark vscode-extension/images/readme-graph.png
  for step in open hints fix run cuda panel; do take picture-$step vscode-extension/walkthrough/$step.png; done
}
take() {
  pngquant --force --quality=60-95 --strip --output "$2" "build/screenshots/$1.png"
  echo "$2"
}

# graph NAME: the graph of an example.
graph() {
  # shellcheck disable=SC2046 # the flags are words
  (cd examples && "$root/build/dmir" report $(sed -n "s/^$1 //p" ../docs/images/gallery.flags) -o "$scratch/$1.html" "$1.dmir") >/dev/null
  node web/test/picture.mjs "$scratch/$1.html" "$scratch/$1"
  for theme in light dark; do
    pngquant --force --strip --speed 1 --output "docs/images/gallery/$1-$theme.png" 64 "$scratch/$1-$theme.png"
  done
  echo "$1"
}

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
[ $# -gt 0 ] || set -- vscode $(basename -s .dmir examples/*.dmir)
for name in "$@"; do
  case $name in
  vscode) vscode ;;
  *) graph "$name" ;;
  esac
done
