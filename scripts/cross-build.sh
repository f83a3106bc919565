#!/usr/bin/env bash
# Builds dmir for each supported system and each supported architecture. scripts/release.sh builds every pair of them.
set -euo pipefail
. "$(dirname "$0")/common.sh"
cd "$root"
command -v go >/dev/null || cannot "install Go and run this again"
for platform in linux/arm64 darwin/arm64 windows/amd64; do
  echo "build $platform"
  GOOS=${platform%/*} GOARCH=${platform#*/} go build ./...
done
