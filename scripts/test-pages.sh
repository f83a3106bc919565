#!/usr/bin/env bash
# Tests the pages of the panels: web/ is checked with the tools of the VS Code extension, its bundle is compared with the
# committed one, and the pages are opened in a browser from a file, from a loopback server and as in a web view. Screenshots
# are written to build/screenshots.
# usage: test-pages.sh
set -euo pipefail
. "$(dirname "$0")/common.sh"

want node nodejs
want npm npm
command -v go >/dev/null || cannot "install Go and run this again"
extension=$root/vscode-extension
npm_install "$extension"
for browser in chromium chromium-browser google-chrome; do
  command -v "$browser" >/dev/null && break
done
command -v "$browser" >/dev/null || { want chromium chromium && browser=chromium; }

cd "$root/web"
"$extension/node_modules/.bin/tsc" -p .
"$extension/node_modules/.bin/eslint" --max-warnings 0 .
for script in src/*.ts; do
  [ "$script" != src/data.ts ] || continue # generated
  [ "$(wc -l <"$script")" -lt 400 ] || { echo "failed: $script has 400 lines or more" >&2; exit 1; }
done

DMIR_PAGES=$(mktemp -d)
trap 'rm -rf "$DMIR_PAGES" 2>/dev/null || true' EXIT
DMIR_CHROMIUM=$(command -v "$browser")
DMIR_SCREENSHOTS=$root/build/screenshots
export DMIR_PAGES DMIR_CHROMIUM DMIR_SCREENSHOTS
mkdir -p "$DMIR_SCREENSHOTS"
rm -f "$DMIR_SCREENSHOTS"/page-*
(cd "$root" && go test -count=1 -vet off -ldflags="-s -w" ./analysis/report/page)
node --test --test-concurrency=1 --test-reporter=spec test/*.test.mjs
