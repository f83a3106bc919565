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

scratch=$(mktemp -d)
trap 'screen_close; rm -rf "$scratch" 2>/dev/null || true' EXIT
export DMIR_NVIM=$scratch/nvim DMIR_WORKSPACE=$scratch/workspace PATH=$root/build:$PATH
workspace "$DMIR_WORKSPACE"

# The setup from the documentation, with the compiled tree-sitter parser.
cp -r "$root/editors/nvim" "$DMIR_NVIM"
grammar=$root/editors/tree-sitter-dmir/src
mkdir -p "$DMIR_NVIM/parser"
cc -shared -fPIC -O2 -I "$grammar" -o "$DMIR_NVIM/parser/dmir.so" "$grammar/parser.c" "$grammar/scanner.c"

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
screen_shows "the cost stands after its line" 'dm\.relu .*[0-9] (kB|MB|ns|µs)'
exit $failed
