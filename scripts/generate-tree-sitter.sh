#!/usr/bin/env bash
# Generates the tree-sitter parser: keywords and colours from the op registry, then the parser from the grammar.
set -euo pipefail
. "$(dirname "$0")/common.sh"

want node nodejs
want patchelf patchelf
tree_sitter=$(debian_tool trixie tree-sitter-cli tree-sitter) || cannot "tree-sitter-cli of Debian trixie could not be fetched"
cd "$root"
go generate ./editors/tree-sitter-dmir/gen
cd editors/tree-sitter-dmir
"$tree_sitter" generate --no-bindings
