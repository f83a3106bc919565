#!/usr/bin/env bash
# Makes the pictures of the documentation: for docs/GALLERY.md the movement graph of each example, and those of training steps as
# written and as planned, the plans for one of them, and for the README the timeline and the mesh of a divided step, as a light and as a
# dark page shows them; for the READMEs, docs/EDITORS.md and the walkthrough of the extension screenshots of VS Code; and the recording
# of the README.
# usage: pictures.sh [vscode] [recording] [steps] [plans] [timeline] [NAME...]     names of examples; all without a name
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
# The story of the README: see, fix, compile, run.
recording() {
  DMIR_VSCODE=newer DMIR_SCENE='^recording' "$root/scripts/test-vscode.sh" scenes
  go run ./scripts/recording build/screenshots/recording docs/images/story.gif
  echo docs/images/story.gif
}
take() {
  pngquant --force --quality=60-95 --strip --output "$2" "build/screenshots/$1.png"
  echo "$2"
}

# graph NAME: the graph of an example.
graph() {
  # shellcheck disable=SC2046 # the flags are words
  (cd examples && "$root/build/dmir" report $(sed -n "s/^$1 //p" ../docs/images/gallery.flags) -o "$scratch/$1.html" "$1.dmir") >/dev/null
  picture "$scratch/$1.html" "gallery/$1" 1120
}
# picture PAGE NAME [HEIGHT]: HEIGHT of a taller window, for figures that are small in one of 800 pixels.
picture() {
  node web/test/picture.mjs "$1" "$scratch/picture" "${@:3}"
  for theme in light dark; do
    pngquant --force --strip --speed 1 --output "docs/images/$2-$theme.png" 64 "$scratch/picture-$theme.png"
  done
  echo "$2"
}

# The graphs of training steps in two stages: as they are written, with their gradients open, and as planned.
steps() {
  cp examples/bert_encoder_train.dmir examples/llama_layer_train.dmir "$scratch"
  go run ./bench/depth -text 48 >"$scratch/gpt2_48_layers.dmir"
  mkdir "$scratch/written" "$scratch/planned"
  for program in "$scratch"/*.dmir; do
    step=$(basename "$program" .dmir)
    [ -e "examples/$step.dmir" ] || cp "$program" "$scratch/written/$step.dmir" # the gallery has the picture of an example
    build/dmir opt --emit schedule "$program" >"$scratch/planned/$step.dmir"
    for stage in written planned; do
      [ -e "$scratch/$stage/$step.dmir" ] || continue
      (cd "$scratch/$stage" && "$root/build/dmir" report -o page.html "$step.dmir") >/dev/null
      picture "$scratch/$stage/page.html" "steps/$step-$stage" 1120
    done
  done
}

# The plans for a training step that needs many devices. The search takes half a minute of an idle machine.
plans() {
  go run ./bench/plan -batch 64 text >"$scratch/llama_70b.dmir"
  (cd "$scratch" && "$root/build/dmir" plan --devices 64 --target dgx-h100 --top 5 --html plans.html llama_70b.dmir) >/dev/null
  picture "$scratch/plans.html" plans
}

# The timeline of a device in a training step, and the mesh of that step.
timeline() {
  for kind in timeline mesh; do
    (cd analysis/report/page/testdata && "$root/build/dmir" report --kind $kind -o "$scratch/$kind.html" overlap.dmir) >/dev/null
    picture "$scratch/$kind.html" $kind
  done
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
mkdir -p docs/images/gallery docs/images/steps
[ $# -gt 0 ] || set -- vscode recording $(basename -s .dmir examples/*.dmir) steps plans timeline
for name in "$@"; do
  case $name in
  vscode) vscode ;;
  recording) recording ;;
  steps) steps ;;
  plans) plans ;;
  timeline) timeline ;;
  *) graph "$name" ;;
  esac
done
