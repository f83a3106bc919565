#!/usr/bin/env bash
# Tests the Neovim setup with the real server: headless in Neovim 0.12 (vim.lsp.config) and 0.10 (vim.lsp.start), and once on
# a full screen. Both versions come from Debian's archive and are unpacked under build/.
set -euo pipefail
. "$(dirname "$0")/common.sh"

want patchelf patchelf
want tmux tmux
want cc gcc
want curl curl
build_dmir

optional npm_install "$root/vscode-extension" # which has another server for Python
pyright=$root/vscode-extension/node_modules/basedpyright/langserver.index.js
if [ -e "$pyright" ]; then export DMIR_PYRIGHT=$pyright; fi

scratch=$(mktemp -d)
trap 'screen_close; rm -rf "$scratch" 2>/dev/null || true' EXIT
export DMIR_NVIM=$scratch/nvim DMIR_WORKSPACE=$scratch/workspace PATH=$root/build:$PATH
workspace "$DMIR_WORKSPACE"
cp "$root"/examples/{bert_encoder,mlp_train}.dmir "$DMIR_WORKSPACE"
cp -r "$root/testdata/traced" "$DMIR_WORKSPACE/traced"

# The setup from the documentation, with the compiled tree-sitter parser.
cp -r "$root/editors/nvim" "$DMIR_NVIM"
grammar=$root/editors/tree-sitter-dmir/src
mkdir -p "$DMIR_NVIM/parser"
cc -shared -fPIC -O2 -I "$grammar" -o "$DMIR_NVIM/parser/dmir.so" "$grammar/parser.c" "$grammar/scanner.c"

# screen_is GOLDEN: the screen is the file, but for its two last rows, which name the folder, and the devices of this machine.
# With DMIR_UPDATE it becomes the file once costs and findings are shown.
screen_is() {
  head -n -2 "$picture" | sed 's/| Run on .*//; s/ *$//' >"$scratch/screen"
  if [ -n "${DMIR_UPDATE:-}" ] && grep -q '^[WH].*µs\|^[WH].*dm\.' "$scratch/screen"; then cp "$scratch/screen" "$1"; fi
  cmp -s "$1" "$scratch/screen"
}

failed=0
for suite in sid trixie; do
  nvim=$(debian_tool $suite neovim nvim) || cannot "Neovim of Debian $suite could not be fetched"
  echo "$("$nvim" --version | head -1):"
  fresh "$scratch"
  timeout 1200 "$nvim" --headless -n -u "$DMIR_NVIM/test/init.lua" -c "luafile $DMIR_NVIM/test/spec.lua" 2>&1 || failed=1
done

echo "on a screen:"
nvim=$(debian_tool sid neovim nvim)
fresh "$scratch"
screen_open neovim "$nvim -n -u $DMIR_NVIM/test/init.lua $DMIR_WORKSPACE/ffn.dmir"
screen_shows "the cost stands before its line" '^[ HIWE]+[0-9.]+(n|µ|m)s +[0-9.]+[kMG]?B .*dm\.relu '
screen_shows "lenses are above the function" '^ *[0-9.]+ (n|µ|m)s on h200 .*Run on .*Cost.*Graph.*More'
screen_close

# The same screens each time: costs are whole, aligned and on the screen, whatever the width. DMIR_UPDATE=1 writes them.
for width in 80 100; do
  for position in left right; do
    fresh "$scratch"
    screen_open "neovim-$width-$position" "$nvim -n -u $DMIR_NVIM/test/init.lua --cmd 'let g:position = \"$position\"' +60 $DMIR_WORKSPACE/bert_encoder.dmir" "$width"
    golden=$root/editors/nvim/test/screen-$width-$position.txt
    screen_until "$width characters, costs at the $position" screen_is "$golden"
    screen_close
  done
done
exit $failed
