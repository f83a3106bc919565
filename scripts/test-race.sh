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
# The language server: its tests but those of texts and numbers. The edits of a document are drawn for one encoding, and lsp/feature
# answers in the goroutine that asks: what it shares between documents is read where they are looked at side by side.
race -skip '^Test(WorkOf|Allocations|Bounds$|EveryRequestEverywhere|ProfileCommand)|^TestEditsEqualFreshOpen$/UTF-8' $(go list ./lsp/... | grep -v '/lsp/feature$')
# Elsewhere the tests that start goroutines: long texts and loops over many elements, programs that several read, devices, teams,
# programs that are kept, tuning, and compiling for several devices and architectures.
race -run '^Test(Titles|DeepNesting|ManyErrors|PoolPanics|ConcurrentUse|SpliceCases|SpliceShardings|Random$|Threads|Cancel|Examples$|Expansions|AttentionDropout|Gemm|SortLong|SparseMask|SparsePrograms|Run|Processor|Devices|Architectures|Kept|Collectives|Team|Tune|StateInPlace|StepsCheckState|TrainingOnEmulator|EndlessLoop|ConstantIsShared|Forecast)|^FuzzSplice' -skip '^TestKeptBounds$' \
  ./lsp/feature ./syntax/parse ./analysis/program ./compile/interp ./compile/tensor ./gpu/cuda ./compile/driver
exit $failed
