#!/usr/bin/env bash
# Takes the pictures of the READMEs, docs/EDITORS.md and the walkthrough from the scenes that scripts/test-vscode.sh has
# played, made small with pngquant.
set -euo pipefail
cd "$(dirname "$0")/.."
scenes=${1:-../build/screenshots}
take() { pngquant --force --quality=60-95 --strip --output "$2" "$scenes/$1.png"; }
take example images/readme-editor.png
take graph-dark images/readme-graph.png
take story-1-opened walkthrough/open.png
take story-4-fixed walkthrough/hints.png
take story-3-fixes walkthrough/fix.png
take story-5-run walkthrough/run.png
take story-6-graph walkthrough/panel.png
