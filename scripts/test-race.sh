#!/usr/bin/env bash
# Tests the packages that share data between goroutines with the race detector. Tests in which one goroutine works by
# itself are left to the Go leg.
set -euo pipefail
. "$(dirname "$0")/common.sh"
cd "$root"
lavish
command -v go >/dev/null || cannot "install Go and run this again"
want gcc gcc # the race detector links with the C linker
CGO_ENABLED=1 go test -race -short -skip 'RoundF|RoundBF|EveryPair|EveryEncoding|Float8|Linear|LongLists|WorkOf|Allocations|OneMistake|MessagesName|SpliceEquals|EveryOffset|^TestBounds$|SparseOps|SparseProducts|SparseElements|HostileArtifacts|Transpositions|ConformanceFiles|PlainAttrEquals|^TestCorpus$|NPYRoundTrip|NothingReadBack|^TestTraining$|SpliceKeeps|LinesOfKernels' -timeout 0 -vet off -ldflags=-w ./lsp/... ./syntax/parse ./analysis/program ./compile/interp ./compile/tensor ./compile/driver ./gpu/cuda ./gpu/device/...
