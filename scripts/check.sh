#!/usr/bin/env bash
# Checks the Go sources: formatting, vet and staticcheck.
set -euo pipefail
. "$(dirname "$0")/common.sh"
cd "$root"
lavish
staticcheck=honnef.co/go/tools/cmd/staticcheck@v0.7.0

command -v go >/dev/null || cannot "install Go and run this again"
echo gofmt
unformatted=$(gofmt -l $(git ls-files '*.go'))
[ -z "$unformatted" ] || { echo "not formatted (make fmt):" $unformatted >&2; exit 1; }
echo "go vet: compiles everything at first"
go vet ./...
echo staticcheck
go run "$staticcheck" ./...
