#!/usr/bin/env bash
# Runs the fuzz targets on more inputs than the seeds, which every test run includes.
# usage: fuzz.sh         each target on a fixed number of inputs, mutations of its seeds: one minute on two cores in total
#        fuzz.sh TIME    each target for TIME ("30s", "5m"), guided by coverage, from its seeds and Go's cache of interesting inputs
# A failing input is written to testdata/fuzz of its package. Give it a descriptive name and commit it with the fix.
set -euo pipefail
. "$(dirname "$0")/common.sh"
cd "$root"
lavish
command -v go >/dev/null || cannot "install Go and run this again"
time=${1:-}
mkdir -p build
scratch=$(mktemp -d build/fuzz.XXXXXX)
trap 'rm -rf "$scratch"' EXIT
module=$(go list -m)
kept=$(go env GOCACHE)/fuzz

# inputs TARGET: the number of inputs that takes about a second on one core.
inputs() {
  case $1 in
  lsp/server.FuzzServe) echo 10 ;;
  dialect/print.* | compile/schedule.*) echo 150 ;;
  compile/sparse.FuzzReadNPZ) echo 500 ;;
  dialect/stablehlo.* | dialect/onnx.*) echo 1000 ;;
  analysis/refactor.* | lsp/feature.* | lsp/server.FuzzRequests) echo 250 ;;
  analysis/cost.* | analysis/diff.*) echo 1000 ;;
  analysis/graph.* | analysis/memory.* | lsp/session.FuzzViewAddress | dialect/op.* | syntax/*.FuzzFile | syntax/scope.*) echo 2500 ;;
  *) echo 5000 ;;
  esac
}

grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u | while read -r folder; do
  package=${folder#./}
  binary=$root/$scratch/${package//\//_}
  # As with -fuzz, but for the module's own packages alone: the others are compiled as for the other tests. A second is too short for
  # coverage to guide it anywhere, and compiling for it takes longer than all the inputs do.
  go test -c -vet off ${time:+-gcflags="$module/...=-d=libfuzzer"} -ldflags='-s -w' -o "$binary" "$folder"
  for target in $(cat "$folder"/*_test.go | sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' | sort); do
    amount=${time:-$(inputs "$package.$target")x}
    cache=$root/$scratch/${package//\//_}.$target
    [ -z "$time" ] || cache=$kept/$module/$package
    log=$root/$scratch/log
    echo "fuzz $package $target $amount"
    (cd "$folder" && exec "$binary" -test.run '^$' -test.fuzz "^$target\$" -test.fuzztime "$amount" -test.fuzzminimizetime 5x \
      -test.fuzzcachedir "$cache") >"$log" 2>&1 </dev/null && continue
    # Go reports a worker that is busy at the end of its time as a failure without an input.
    [ -n "$time" ] && grep -q '^    context deadline exceeded$' "$log" && ! grep -q 'Failing input written' "$log" && continue
    cat "$log"
    # The machine that found it may not be kept.
    input=$(sed -n 's/^ *Failing input written to \(.*\)$/\1/p' "$log")
    [ -z "$input" ] || (cd "$folder" && head -c 10000 "$input")
    exit 1
  done
  rm -rf "${binary:?}"*
done
