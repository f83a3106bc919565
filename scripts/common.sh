# shellcheck shell=bash
# Shell functions of the end-to-end tests; to be sourced by bash.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# cannot WHY: ends a leg that cannot run here. A failure where CI=true, else a line that says so and success.
cannot() {
  if [ "${CI:-}" = true ]; then
    echo "failed: cannot run: $*" >&2
    exit 1
  fi
  echo "skipped: $*"
  exit 0
}

# want COMMAND PACKAGE: sees to it that the command is there, with apt-get where we may.
want() {
  command -v "$1" >/dev/null && return
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "installing $2"
    apt-get install -qq -y --no-install-recommends "$2" >/dev/null 2>&1 ||
      { apt-get -qq update && apt-get install -qq -y --no-install-recommends "$2"; } >/dev/null 2>&1 || true
  fi
  command -v "$1" >/dev/null || cannot "install $2 (for the command $1) and run this again"
}

# build_dmir: the binary under test, at build/dmir.
build_dmir() {
  command -v go >/dev/null || cannot "install Go and run this again"
  mkdir -p "$root/build"
  (cd "$root" && go build -o build/dmir .)
}
