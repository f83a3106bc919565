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

# npm_install FOLDER: the packages that its lockfile names, unless they are there.
npm_install() {
  [ "$(node -p 'process.versions.node.split(".")[0]')" -ge 20 ] || cannot "install Node.js 20 or newer and run this again"
  [ "$1/node_modules/.package-lock.json" -nt "$1/package-lock.json" ] && return
  (cd "$1" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error) || cannot "npm could not install what $1 needs"
}

# debian_tool SUITE PACKAGE BINARY: prints the path of a program of another Debian suite, made to run with the libraries that
# came with it. It is unpacked under build/ once. Needs patchelf.
debian_tool() {
  command -v apt-get >/dev/null || return 1
  local folder=$root/build/$2-$1
  local tree=$folder/root/usr
  local binary
  if ! [ -e "$folder/ready" ]; then
    "$root/scripts/getdeb.sh" "$1" "$folder" "$2" >&2 || return 1
    rm -rf "$folder/apt/archives"
    binary=$(readlink -f "$tree/bin/$3")
    patchelf --set-interpreter "$tree/lib64/ld-linux-x86-64.so.2" --force-rpath \
      --set-rpath "$tree/lib/x86_64-linux-gnu" "$binary" || return 1
    touch "$folder/ready"
  fi
  readlink -f "$tree/bin/$3"
}

# fresh SCRATCH: settings and state of nobody.
fresh() {
  local home
  home=$(mktemp -d "$1/home.XXXX")
  export XDG_CONFIG_HOME=$home/config XDG_DATA_HOME=$home/data XDG_STATE_HOME=$home/state XDG_CACHE_HOME=$home/cache
  mkdir -p "$XDG_CONFIG_HOME" "$XDG_DATA_HOME" "$XDG_STATE_HOME" "$XDG_CACHE_HOME"
}

# workspace FOLDER: a copy of the files that the editors' tests edit.
workspace() {
  cp -r "$root/vscode-extension/test/workspace" "$1"
  touch "$1/dmir.toml"
}

# An editor on a full screen, of 200 by 50 characters, in a tmux of its own. The picture is kept in $picture.
screen_number=0
screen_open() { # screen_open PICTURE COMMAND
  screen_number=$((screen_number + 1)) # a tmux that is ending takes no new session
  screen_name=dmir-$$-$screen_number
  mkdir -p "$root/build/screenshots"
  picture=$root/build/screenshots/$1.txt
  tmux -L "$screen_name" -f /dev/null new-session -d -x 200 -y 50 "$2"
  tmux -L "$screen_name" set-option -g escape-time 0
}
screen_keys() { tmux -L "$screen_name" send-keys "$@"; }
screen_close() { [ $screen_number = 0 ] || tmux -L "$screen_name" kill-server 2>/dev/null || true; }
screen_shows() { # screen_shows WHAT REGEX: waits until a line of the screen matches; sets failed where none does.
  screen_until "$1" grep -Eq "$2" "$picture"
}
screen_lacks() { # screen_lacks WHAT REGEX: waits until no line of the screen matches.
  screen_until "$1" screen_without "$2"
}
screen_without() { ! grep -Eq "$1" "$picture"; }
screen_until() { # screen_until WHAT CONDITION...: waits, for longer than any machine under load takes.
  local what=$1 end=$((SECONDS + 90))
  shift
  while [ $SECONDS -lt $end ]; do
    if tmux -L "$screen_name" capture-pane -p >"$picture" && "$@"; then
      echo "  ok   $what"
      return
    fi
    sleep 0.1
  done
  echo "  FAIL $what; the screen shows:"
  cat "$picture"
  failed=1
}
screen_ends() { # waits until the program on the screen has ended, which ends its tmux.
  local end=$((SECONDS + 90))
  while [ $SECONDS -lt $end ] && tmux -L "$screen_name" has-session 2>/dev/null; do sleep 0.1; done
  screen_close
}
