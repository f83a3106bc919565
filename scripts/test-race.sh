#!/usr/bin/env bash
# Tests the packages that share data between goroutines with the race detector. Tests in which one goroutine works by
# itself, or asks one thing after the other, are left to the Go leg.
set -euo pipefail
. "$(dirname "$0")/common.sh"
cd "$root"
lavish
command -v go >/dev/null || cannot "install Go and run this again"
want gcc gcc # the race detector links with the C linker
race() { CGO_ENABLED=1 go test -race -short -timeout 0 -vet off -ldflags='-s -w' "$@" || failed=1; }
failed=0
race -skip 'RoundF|RoundBF|EveryPair|EveryEncoding|Float8|Linear|LongLists|WorkOf|Allocations|OneMistake|MessagesName|SpliceEquals|EveryOffset|^TestBounds$|SparseOps|SparseProducts|SparseElements|ConformanceFiles|PlainAttrEquals|^TestCorpus$|NPYRoundTrip|SpliceKeeps|EveryRequestEverywhere|ProfileCommand|^TestDecisions$|^TestTime$|SparseProductPadding|SparsePadding|^TestFactors$|^TestNumPy$' ./lsp/... ./syntax/parse ./analysis/program ./compile/interp ./compile/tensor ./gpu/cuda ./gpu/device/...
# Most tests here compile programs one after the other: those remain that run teams, keep programs, tune, or compile for several
# devices and architectures.
race -run '^Test(Run|Processor|Devices|Architectures|Kept|Collectives|Team|Tune|StateInPlace|StepsCheckState|TrainingOnEmulator|EndlessLoop|ConstantIsShared|Forecast)' ./compile/driver
exit $failed
