#!/usr/bin/env bash
# Bundles web/src into the script and the style of the pages, which analysis/report/page embeds.
# usage: build-web.sh
set -euo pipefail
. "$(dirname "$0")/common.sh"

want node nodejs
want npm npm
npm_install "$root/vscode-extension"
node "$root/web/build.mjs"
