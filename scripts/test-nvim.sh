#!/usr/bin/env bash
# Tests the Neovim set-up with the real server: headless in Neovim 0.12 (vim.lsp.config) and 0.10 (vim.lsp.start), and once on
# a full screen. Both versions come from Debian's archive and are unpacked under build/.
set -euo pipefail
. "$(dirname "$0")/common.sh"

command -v apt-get >/dev/null || cannot "this needs Debian's apt-get to fetch Neovim 0.10 and 0.12"
want patchelf patchelf
want tmux tmux
build_dmir

scratch=$(mktemp -d)
trap 'rm -rf "$scratch" 2>/dev/null || true' EXIT
export DMIR_NVIM=$root/editors/nvim DMIR_WORKSPACE=$scratch/workspace PATH=$root/build:$PATH
cp -r "$root/vscode-extension/test/workspace" "$DMIR_WORKSPACE"
touch "$DMIR_WORKSPACE/dmir.toml"

# neovim SUITE: prints the path of that suite's Neovim, made to run with the libraries that came with it.
neovim() {
  local folder=$root/build/neovim-$1
  local tree=$folder/root/usr
  if ! [ -e "$folder/ready" ]; then
    "$root/scripts/getdeb.sh" "$1" "$folder" neovim >&2 || return 1
    patchelf --set-interpreter "$tree"/lib64/ld-linux-x86-64.so.2 --force-rpath \
      --set-rpath "$tree/lib/x86_64-linux-gnu" "$tree/bin/nvim" || return 1
    touch "$folder/ready"
  fi
  echo "$tree/bin/nvim"
}

# fresh: settings and state of nobody.
fresh() {
  local home
  home=$(mktemp -d "$scratch/home.XXXX")
  export XDG_CONFIG_HOME=$home/config XDG_DATA_HOME=$home/data XDG_STATE_HOME=$home/state XDG_CACHE_HOME=$home/cache
}

failed=0
for suite in sid trixie; do
  nvim=$(neovim $suite) || cannot "Neovim of Debian $suite could not be fetched"
  echo "$("$nvim" --version | head -1):"
  fresh
  timeout 300 "$nvim" --headless -n -u "$DMIR_NVIM/test/init.lua" -c "luafile $DMIR_NVIM/test/spec.lua" 2>&1 || failed=1
done

echo "on a screen:"
nvim=$(neovim sid)
fresh
session=dmir-$$
tmux -L "$session" new-session -d -x 200 -y 40 "$nvim -n -u $DMIR_NVIM/test/init.lua $DMIR_WORKSPACE/ffn.dmir"
mkdir -p "$root/build/screenshots"
picture=$root/build/screenshots/neovim.txt
seen=0
for _ in $(seq 100); do
  tmux -L "$session" capture-pane -p >"$picture"
  if grep -Eq 'dm\.relu .*[0-9] (kB|MB|µs)' "$picture"; then
    seen=1
    break
  fi
  sleep 0.2
done
tmux -L "$session" kill-server
if [ $seen = 1 ]; then
  echo "  ok   the cost stands after its line"
else
  echo "  FAIL the cost never stood after its line:"
  cat "$picture"
  failed=1
fi
exit $failed
