#!/usr/bin/env bash
# Runs legs of the tests, three side by side, and ends with a table: result, wall time and processor time of each. Every leg runs,
# whichever fail; the exit status is 1 if one failed. The output of a leg appears as it is written, one leg after the other, and
# stays in build/test/LEG.log.
# A leg that this machine cannot run is skipped, and the table gives what to install; with CI=true it fails.
# usage: test.sh [-j N] [LEG...]     N legs side by side (default 3, since those in editors and browsers mostly wait); all legs without a name
#        test.sh --list              prints the legs
set -uo pipefail
cd "$(dirname "$0")/.."

# The legs, in the order in which they start, and the command of each: go, which takes the longest, and then those that wait for
# editors and browsers, with those that compute between and after them.
legs=(go vscode race pages python release nvim site pre-commit check fuzz tree-sitter emacs actions cross helix)
# Those that wait for editors and browsers, whose users would not wait for compilers either, have the processor first, and those that
# only compute what is left. Of these, go comes before the others: it takes half of all processor time, and its last packages run
# one by one, so that a processor idles at the end unless other legs are left to run beside them.
gentle_of() {
  case $1 in
  go | unit) echo nice -n 5 ;;
  race | fuzz | check | cross | release | pre-commit) echo nice -n 9 ;;
  esac
}
command_of() {
  case $1 in
  check) echo scripts/check.sh ;;                # format, vet, staticcheck
  go) echo scripts/test-go.sh ;;                 # unit, golden, differential, conformance and interoperability tests
  unit) echo scripts/test-go.sh -short ;;        # of these, the ones that take no longer than seconds
  race) echo scripts/test-race.sh ;;             # the race detector
  fuzz) echo scripts/fuzz.sh ;;                  # a fixed number of inputs for each fuzz target
  cross) echo scripts/cross-build.sh ;;          # checks the types for every system and architecture
  python) echo scripts/test-python.sh ;;         # the Python package, and the blocks of docs/PYTHON.md and README.md
  pages) echo scripts/test-pages.sh ;;           # the panels in a browser
  vscode) echo scripts/test-vscode.sh ;;         # the extension in the VS Code workbench
  nvim) echo scripts/test-nvim.sh ;;             # the setup of each editor
  helix) echo scripts/test-helix.sh ;;           #
  emacs) echo scripts/test-emacs.sh ;;           #
  tree-sitter) echo scripts/test-tree-sitter.sh ;; # the grammar, compared with dmir's own parser
  pre-commit) echo scripts/test-precommit.sh ;;  # the hooks
  actions) echo scripts/test-actions.sh ;;       # the GitHub workflows of docs/CI.md
  release) echo scripts/test-release.sh ;;       # the packages of a release, each installed
  site) echo scripts/build-site.sh ;;            # the site of the documentation, and its links
  *) return 1 ;;
  esac
}

usage() {
  sed -n 's/^# usage: */usage: /p' "$0" >&2
  echo "legs: unit ${legs[*]}" >&2
  exit 2
}
[ "${1:-}" != --list ] || { echo "unit ${legs[*]}"; exit; }
lanes=3
[ "${1:-}" != -j ] || { lanes=${2:-0}; shift 2 || usage; }
[ "$lanes" -ge 1 ] 2>/dev/null || usage
command -v flock >/dev/null || lanes=1 # legs that install something lock each other out with it
for leg in "$@"; do command_of "$leg" >/dev/null || usage; done
[ $# = 0 ] || legs=("$@")

logs=build/test
mkdir -p "$logs"

# Nothing here reads debug information, which is a tenth of the work of compiling.
[ "${CI:-}" != true ] || export GOFLAGS="${GOFLAGS:-} -gcflags=all=-dwarf=false"

# Several legs build the same packages: they are compiled before the legs start, since of legs side by side each would compile them.
compile_shared() {
  (
    . scripts/common.sh
    lavish
    go list -export -deps ./...
  ) >/dev/null 2>"$logs/build.log" || true # what does not compile, the legs report
}
if [ ${#legs[@]} -gt 1 ] && command -v go >/dev/null; then
  SECONDS=0
  TIMEFORMAT='%U %S'
  { time compile_shared; } 2>"$logs/build.log.times"
  built=$SECONDS
fi
set -m # each leg is a process group, which is ended as a whole
pids=() starts=() results=() times=() running=0 next=0 shown=0 offset=0

# stop ends what still runs, first politely: legs delete their temporary files.
stop() {
  trap '' INT TERM HUP
  local i
  for i in "${!pids[@]}"; do
    [ -n "${results[i]:-}" ] || kill -TERM -- "-${pids[i]}" 2>/dev/null
  done
  for i in "${!pids[@]}"; do wait "${pids[i]}" 2>/dev/null; done
  echo "interrupted" >&2
  exit 130
}
trap stop INT TERM HUP

start() { # start I
  local log=$logs/${legs[$1]}.log
  : >"$log"
  # shellcheck disable=SC2046 # the command is words
  (
    TIMEFORMAT='%U %S'
    { time $(gentle_of "${legs[$1]}") $(command_of "${legs[$1]}") >"$log" 2>&1 </dev/null; } 2>"$log.times"
  ) &
  pids[$1]=$! starts[$1]=$SECONDS
}

reap() { # reap I: notes the result of a leg that has ended
  local status=0
  wait "${pids[$1]}" || status=$?
  times[$1]=$((SECONDS - starts[$1]))
  case $status in
  0) results[$1]=passed ;;
  77) results[$1]=skipped ;;
  *) results[$1]=failed ;;
  esac
}

show() { # show I: copies what the leg has written since the last call
  local log=$logs/${legs[$1]}.log size
  [ -n "${pids[$1]:-}" ] || return
  [ "$offset" != 0 ] || [ -n "${header:-}" ] || { header=1; printf '\n=== %s: %s\n' "${legs[$1]}" "$(command_of "${legs[$1]}")"; }
  size=$(wc -c <"$log")
  if [ "$size" -gt "$offset" ]; then
    tail -c "+$((offset + 1))" "$log" | head -c "$((size - offset))"
    offset=$size
  fi
}

while [ $shown -lt ${#legs[@]} ]; do
  while [ $running -lt "$lanes" ] && [ $next -lt ${#legs[@]} ]; do
    start $next
    next=$((next + 1)) running=$((running + 1))
  done
  for ((i = 0; i < next; i++)); do
    { [ -n "${results[i]:-}" ] || kill -0 "${pids[i]}" 2>/dev/null; } && continue
    reap $i
    running=$((running - 1))
    [ $i = $shown ] || printf -- '--- %s %s after %ds\n' "${legs[i]}" "${results[i]}" "${times[i]}"
  done
  show $shown
  if [ -n "${results[shown]:-}" ]; then
    show $shown
    shown=$((shown + 1)) offset=0 header=
  else
    sleep 0.5
  fi
done

printf '\n%-12s %-8s %7s %7s\n' leg result time cpu
cpu_of() { awk '{ t += $1 + $2 } END { printf "%ds", t }' "$1.times"; }
[ -z "${built:-}" ] || printf '%-12s %-8s %6ds %7s\n' build "" "$built" "$(cpu_of "$logs/build.log")"
for i in "${!legs[@]}"; do
  log=$logs/${legs[i]}.log
  cpu=$(cpu_of "$log")
  case ${results[i]} in
  passed) why= ;;
  skipped) why=$(sed -n 's/^skipped: //p' "$log" | tail -1) ;;
  failed) why=$(sed -n 's/^failed: //p' "$log" | tail -1) ;;
  esac
  [ "${results[i]}" != failed ] || why=${why:-$log}
  printf '%-12s %-8s %6ds %7s  %s\n' "${legs[i]}" "${results[i]}" "${times[i]}" "$cpu" "$why"
done | sed 's/ *$//'
[[ " ${results[*]} " != *" failed "* ]]
