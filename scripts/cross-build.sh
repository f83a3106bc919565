#!/usr/bin/env bash
# Checks that dmir compiles for the systems and the architecture that the other tests do not run on: together with linux/amd64 these
# are each supported system and each supported architecture. scripts/release.sh builds every pair of them.
set -euo pipefail
. "$(dirname "$0")/common.sh"
cd "$root"
lavish
command -v go >/dev/null || cannot "install Go and run this again"
go run ./scripts/cross darwin/arm64 windows/amd64
