#!/usr/bin/env bash
# Compiles dmir for the systems and the architecture that the other tests do not: together with linux/amd64 these are each supported
# system and each supported architecture. scripts/release.sh builds every pair of them. Without the optimizer, which finds no errors.
set -euo pipefail
. "$(dirname "$0")/common.sh"
cd "$root"
command -v go >/dev/null || cannot "install Go and run this again"
for platform in darwin/arm64 windows/amd64; do
  echo "build $platform"
  GOOS=${platform%/*} GOARCH=${platform#*/} go build -gcflags='all=-N -l' ./...
done
