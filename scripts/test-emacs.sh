#!/usr/bin/env bash
# Tests the Emacs setup of docs/EDITORS.md with the real server: eglot in batch, and on a full screen. Emacs 30 comes from
# Debian's archive and is unpacked under build/.
set -euo pipefail
. "$(dirname "$0")/common.sh"

want patchelf patchelf
want tmux tmux
build_dmir
emacs=$(debian_tool trixie emacs-nox emacs-nox) || cannot "Emacs of Debian trixie could not be fetched"

scratch=$(mktemp -d)
trap 'screen_close; rm -rf "$scratch" 2>/dev/null || true' EXIT
failed=0
fresh "$scratch"
workspace "$scratch/workspace"

# Emacs expects its own files where Debian installs them.
usr=${emacs%/bin/*}
share=$(echo "$usr"/share/emacs/[0-9]*)
export HOME=$scratch EMACSLOADPATH=$share/lisp EMACSDATA=$share/etc EMACSDOC=$share/etc
EMACSPATH=$(echo "$usr"/libexec/emacs/*/*)
export EMACSPATH DMIR_EMACS=$root/editors/emacs DMIR_WORKSPACE=$scratch/workspace PATH=$root/build:$PATH LANG=C.UTF-8
run=("$emacs" "--dump-file=$(echo "$EMACSPATH"/*.pdmp)" -Q)

"${run[@]}" --version | head -1
timeout 1200 "${run[@]}" --batch -l "$DMIR_EMACS/test/dmir-test.el" -f ert-run-tests-batch-and-exit >"$scratch/log" 2>&1 || failed=1
if [ $failed = 1 ]; then
  cat "$scratch/log"
else
  sed -n 's/^ *passed .*[0-9] *\(dmir-[a-z-]*\) .*/  ok   \1/p' "$scratch/log"
fi
# Byte compilation must give no warning; its output goes to a temporary folder.
cp "$DMIR_EMACS/dmir-mode.el" "$scratch/"
"${run[@]}" --batch --eval '(setq byte-compile-error-on-warn t)' -f batch-byte-compile "$scratch/dmir-mode.el" \
  >"$scratch/log" 2>&1 || { cat "$scratch/log"; failed=1; }

screen_open emacs "${run[*]} -nw -l $DMIR_EMACS/test/init.el $DMIR_WORKSPACE/ffn.dmir"
screen_shows "the cost stands after its line" 'dm\.relu %0 : tensor<8x64x256xf32>.*[0-9](kB|MB|ns|µs)'
screen_shows "the mode line counts the findings" 'Flymake\[[0-9]+ [0-9]+ [1-9]'
exit $failed
