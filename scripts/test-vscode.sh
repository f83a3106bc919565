#!/usr/bin/env bash
# Tests the VS Code extension: lint and unit tests, the package with the binary, the suite in the extension host, and
# scenes in the real workbench with the real server. The suite and the main story run in two versions of
# VS Code, the other scenes in the newer one. Writes screenshots to build/screenshots.
# usage: test-vscode.sh [unit] [host] [scenes]    (default: all)
# DMIR_VSCODE selects one version of code-server, a number, "older" or "newer"; DMIR_SCENE selects scenes by a regular expression
# for their name.
set -euo pipefail
. "$(dirname "$0")/common.sh"
older=4.99.4  # of code-server; it embeds VS Code 1.99.3
newer=4.139.1 # VS Code 1.139.1, which needs a newer Node.js than the extension
legs=" ${*:-unit host scenes} "
case ${DMIR_VSCODE:-} in older) DMIR_VSCODE=$older ;; newer) DMIR_VSCODE=$newer ;; esac

want node nodejs
want npm npm
cd "$root/vscode-extension"
npm_install "$PWD"
case $legs in *' unit '*) npm run --silent test ;; esac
case $legs in *' host '* | *' scenes '*) ;; *) exit 0 ;; esac

for browser in chromium chromium-browser google-chrome; do
  command -v "$browser" >/dev/null && break
done
command -v "$browser" >/dev/null || { want chromium chromium && browser=chromium; }

# The package contains the binary, like a released one: the scenes find the server without any setting.
platform=$(node -p 'process.platform + "-" + process.arch')
"$root/scripts/package-vscode.sh" host
node esbuild.mjs --tests

# install VERSION: installs code-server, without native parts that the workbench does not need.
install() {
  local at=$root/build/vscode-$1 server=$root/build/vscode-$1/node_modules/code-server/lib/vscode node=()
  [ -e "$server/node_modules.asar" ] && return
  [ "$1" = "$older" ] || node=("node-$platform@24")
  echo "installing the VS Code server (code-server $1)"
  mkdir -p "$at"
  (
    cd "$at"
    echo '{"private":true}' >package.json
    npm install --ignore-scripts --no-audit --no-fund --loglevel=error --save-exact "code-server@$1" "${node[@]}" >/dev/null
    cd "$server"
    npm install --ignore-scripts --no-audit --no-fund --loglevel=error --omit=dev >/dev/null
    ln -sfn node_modules node_modules.asar
  ) || cannot "npm could not install code-server $1"
}

export DMIR_CHROMIUM DMIR_SCREENSHOTS=$root/build/screenshots DMIR_BINARY=$root/build/vsix/bin/$platform/dmir
DMIR_CHROMIUM=$(command -v "$browser")
DMIR_VSIX=$(ls -t "$root"/build/vsix/dmir-"$platform"-*.vsix | head -1)
export DMIR_VSIX
mkdir -p "$DMIR_SCREENSHOTS"
rm -f "$DMIR_SCREENSHOTS"/*.png

for version in ${DMIR_VSCODE:-$newer $older}; do
  install "$version"
  at=$root/build/vscode-$version/node_modules
  export DMIR_VSCODE_SERVER=$at/code-server/lib/vscode/out/server-main.js DMIR_VSCODE_NODE=node DMIR_PICTURES=
  [ "$version" = "$older" ] || DMIR_VSCODE_NODE=$at/node-$platform/bin/node
  [ "$version" != "$older" ] || DMIR_PICTURES=older-
  run=()
  case $legs in *' host '*) run+=(host) ;; esac
  case $legs in *' scenes '*) [ "$version" = "${DMIR_VSCODE:-$newer}" ] && run+=(scenes) || run+=(story) ;; esac
  echo "VS Code of code-server $version"
  node out/test/workbench.js "${run[@]}"
done
