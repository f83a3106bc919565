#!/usr/bin/env bash
# Tests the Helix setup of docs/EDITORS.md with the real server on a full screen: colours, hints, findings, hover, quick fix
# and formatting. Helix comes from Debian's archive and is unpacked under build/.
set -euo pipefail
. "$(dirname "$0")/common.sh"

want patchelf patchelf
want tmux tmux
want cc gcc
build_dmir
helix=$(debian_tool trixie hx hx) || cannot "Helix of Debian trixie could not be fetched"
HELIX_RUNTIME=$(dirname "$helix")/runtime
export HELIX_RUNTIME PATH=$root/build:$PATH COLORTERM=truecolor

scratch=$(mktemp -d)
trap 'screen_close; rm -rf "$scratch" 2>/dev/null || true' EXIT
failed=0
fresh "$scratch"
workspace "$scratch/workspace"

# The setup from the documentation.
mkdir -p "$XDG_CONFIG_HOME/helix/runtime/grammars"
cp -r "$root/editors/helix/runtime/queries" "$XDG_CONFIG_HOME/helix/runtime/"
cp "$root/editors/helix/config.toml" "$XDG_CONFIG_HOME/helix/"
{
  echo 'use-grammars = { only = ["dmir"] }' # fetch no other grammars
  sed "s|/path/to/dmir|$root|" "$root/editors/helix/languages.toml"
} >"$XDG_CONFIG_HOME/helix/languages.toml"
"$helix" --version
"$helix" --grammar build >"$scratch/log" 2>&1 || { cat "$scratch/log"; failed=1; }
"$helix" --health dmir | sed 's/\x1b\[[0-9;]*m//g' >"$scratch/health"
for part in 'Tree-sitter parser' 'Highlight queries' 'Textobject queries' 'Indent queries'; do
  if grep -q "$part: ✓" "$scratch/health"; then
    echo "  ok   $part"
  else
    echo "  FAIL $part"
    cat "$scratch/health"
    failed=1
  fi
done

cost='[0-9](n|µ|m)s [0-9.]+(kB|MB)'
screen_open helix "$helix $scratch/workspace/ffn.dmir 2>$scratch/err"
screen_shows "the cost stands after its line" "dm\.relu %0 : tensor<8x64x256xf32> .*$cost"
screen_shows "waste is shown at the end of its line" 'dm\.add .*re-reads'
screen_keys ']' d
screen_shows "the finding at the cursor shows its savings" '^ *saves [0-9.]+ MB'
screen_keys Space k
screen_shows "hover shows the numbers of the op" 'moved.*MB'
screen_shows "and how much it computes for what it moves" 'intensity.*FLOP/B'
screen_keys Escape
screen_lacks "which Escape closes" 'intensity.*FLOP/B'
screen_keys Space a
screen_shows "the quick fix promises bytes" 'Move %0 into the kernel of %h: saves'
screen_keys Enter
screen_shows "and has been applied" '^ *[0-9]+ +%0 = dm\.kernel'
screen_keys ':' 'q!' Enter
screen_ends

screen_open helix-format "$helix $scratch/workspace/messy.dmir 2>$scratch/err"
screen_shows "the file is open" "dm\.exp .*$cost"
screen_keys ':' 'format' Enter
screen_shows "it is formatted, comments kept" '^ *[●]? *[0-9]+ +%y = dm\.exp %x : tensor<64x64xf32> .*// kept'
screen_keys ':' 'wq' Enter
screen_ends
if grep -q '^  %y = dm.exp %x : tensor<64x64xf32> // kept$' "$scratch/workspace/messy.dmir"; then
  echo "  ok   and written"
else
  echo "  FAIL the file on disk:"
  cat "$scratch/workspace/messy.dmir"
  failed=1
fi
exit $failed
