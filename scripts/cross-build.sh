#!/usr/bin/env bash
# Builds dmir for every supported platform, without cgo.
set -euo pipefail
. "$(dirname "$0")/common.sh"
cd "$root"
command -v go >/dev/null || cannot "install Go and run this again"
for platform in linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64; do
  echo "build $platform"
  CGO_ENABLED=0 GOOS=${platform%/*} GOARCH=${platform#*/} go build ./...
done
