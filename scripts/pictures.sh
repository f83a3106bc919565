#!/usr/bin/env bash
# Makes the pictures of docs/GALLERY.md: the movement graph of each example, and those of training steps as written and as planned,
# as a light and as a dark page shows them.
# usage: pictures.sh [NAME...]     names of examples, or "steps"; all without a name
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
# picture PAGE NAME
picture() {
  node web/test/picture.mjs "$1" "$scratch/picture"
  for theme in light dark; do
    pngquant --force --strip --speed 1 --output "docs/images/$2-$theme.png" 64 "$scratch/picture-$theme.png"
  done
  echo "$2"
}

mkdir -p docs/images/gallery docs/images/steps
[ $# -gt 0 ] || set -- $(basename -s .dmir examples/*.dmir) steps
for name in "$@"; do
  if [ "$name" = steps ]; then
    cp examples/bert_encoder_train.dmir examples/llama_layer_train.dmir "$scratch"
    go run ./bench/depth -text 48 >"$scratch/gpt2_48_layers.dmir"
    for program in "$scratch"/*.dmir; do
      step=$(basename "$program" .dmir)
      mkdir -p "$scratch/written" "$scratch/planned"
      build/dmir opt --passes inline,bind,gradient "$program" >"$scratch/written/$step.dmir"
      build/dmir opt --emit schedule "$program" >"$scratch/planned/$step.dmir"
      for stage in written planned; do
        (cd "$scratch/$stage" && "$root/build/dmir" report -o page.html "$step.dmir") >/dev/null
        picture "$scratch/$stage/page.html" "steps/$step-$stage"
      done
    done
    continue
  fi
  # shellcheck disable=SC2046 # the flags are words
  (cd examples && "$root/build/dmir" report $(sed -n "s/^$name //p" ../docs/images/gallery.flags) -o "$scratch/$name.html" "$name.dmir") >/dev/null
  picture "$scratch/$name.html" "gallery/$name"
done
