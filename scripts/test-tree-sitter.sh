#!/usr/bin/env bash
# Tests the tree-sitter grammar: the committed parser is current; its own tests pass; the examples and the
# conformance inputs parse without errors and yield the same ops at the same positions as dmir's parser.
set -euo pipefail
. "$(dirname "$0")/common.sh"

command -v go >/dev/null || cannot "install Go and run this again"
want cc gcc
want node nodejs
want patchelf patchelf
tree_sitter=$(debian_tool trixie tree-sitter-cli tree-sitter) || cannot "tree-sitter-cli of Debian trixie could not be fetched"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch" 2>/dev/null || true' EXIT
export XDG_CACHE_HOME=$scratch/cache XDG_CONFIG_HOME=$scratch/config
cp -r "$root/editors/tree-sitter-dmir" "$scratch/grammar"
cd "$scratch/grammar"
failed=0

"$tree_sitter" --version
"$tree_sitter" generate --no-bindings
if diff -r "$root/editors/tree-sitter-dmir/src" src; then
  echo "  ok   the committed parser is current"
else
  echo "  FAIL src/ is not current; run scripts/generate-tree-sitter.sh"
  failed=1
fi
"$tree_sitter" test || failed=1

# parses FILES...: checks that all parse without errors, with ops at the positions that dmir's parser finds.
echo '(operation name: (op_name) @op)' >"$scratch/ops.scm"
parses() {
  printf '%s\n' "$@" >"$scratch/paths"
  "$tree_sitter" parse --quiet --stat --paths "$scratch/paths" >"$scratch/parsed" 2>/dev/null || true
  grep -E 'ERROR|MISSING' "$scratch/parsed" | head -5 || true
  tail -2 "$scratch/parsed"
  grep -q 'failed parses: 0;' "$scratch/parsed" || failed=1
  "$tree_sitter" query --paths "$scratch/paths" "$scratch/ops.scm" 2>/dev/null |
    (cd "$root" && go run ./editors/tree-sitter-dmir/compare) || failed=1
}

echo "examples:"
parses "$root"/examples/*.dmir
conformance=$root/../shared/conformance
if [ -d "$conformance" ]; then
  echo "conformance inputs:"
  mapfile -t inputs < <(find "$(cd "$conformance" && pwd)" -name '*.mlir' | sort)
  parses "${inputs[@]}"
elif [ "${CI:-}" = true ]; then
  echo "  FAIL no conformance inputs at $conformance"
  failed=1
else
  echo "  skipped: no conformance inputs at $conformance"
fi
exit $failed
