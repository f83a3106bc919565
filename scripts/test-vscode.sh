#!/usr/bin/env bash
# Tests the VS Code extension: lint and unit tests, the package, the suite in the extension host, and scenes played in the
# real workbench with the real server. Pictures of the scenes go to build/screenshots.
# usage: test-vscode.sh [unit] [host] [scenes]    (all when none is named)
set -euo pipefail
. "$(dirname "$0")/common.sh"
vscode_version=4.99.4 # of code-server; it embeds VS Code 1.99.3
legs=" ${*:-unit host scenes} "

want node nodejs
want npm npm
[ "$(node -p 'process.versions.node.split(".")[0]')" -ge 20 ] || cannot "install Node.js 20 or newer and run this again"
cd "$root/vscode-extension"
if ! [ node_modules/.package-lock.json -nt package-lock.json ]; then
  npm ci --ignore-scripts --no-audit --no-fund --loglevel=error || cannot "npm could not install the extension's dependencies"
fi
case $legs in *' unit '*) npm run --silent test ;; esac
case $legs in *' host '* | *' scenes '*) ;; *) exit 0 ;; esac

build_dmir
for browser in chromium chromium-browser google-chrome; do
  command -v "$browser" >/dev/null && break
done
command -v "$browser" >/dev/null || { want chromium chromium && browser=chromium; }

server=$root/build/vscode-$vscode_version/node_modules/code-server/lib/vscode
if ! [ -e "$server/node_modules.asar" ]; then
  echo "installing the VS Code server (code-server $vscode_version)"
  mkdir -p "$root/build/vscode-$vscode_version"
  (
    cd "$root/build/vscode-$vscode_version"
    echo '{"private":true}' >package.json
    npm install --ignore-scripts --no-audit --no-fund --loglevel=error --save-exact "code-server@$vscode_version" >/dev/null
    cd "$server"
    npm install --ignore-scripts --no-audit --no-fund --loglevel=error --omit=dev >/dev/null
    ln -sfn node_modules node_modules.asar
  ) || cannot "npm could not install code-server $vscode_version"
fi

# The package carries the binary, as a released one does: the scenes find the server without any setting.
mkdir -p bin
trap 'rm -rf bin 2>/dev/null || true' EXIT
cp "$root/build/dmir" bin/dmir
npm run --silent package >"$root/build/package.log" 2>&1 || { cat "$root/build/package.log"; exit 1; }
node esbuild.mjs --tests

mkdir -p "$root/build/screenshots"
rm -f "$root"/build/screenshots/*.png
export DMIR_VSCODE_SERVER=$server/out/server-main.js DMIR_BINARY=$root/build/dmir DMIR_VSIX=$PWD/dmir.vsix
export DMIR_CHROMIUM DMIR_SCREENSHOTS=$root/build/screenshots
DMIR_CHROMIUM=$(command -v "$browser")
run=()
for leg in host scenes; do
  case $legs in *" $leg "*) run+=("$leg") ;; esac
done
node out/test/workbench.js "${run[@]}"
