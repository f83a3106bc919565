# shellcheck shell=bash
# Shell functions of the end-to-end tests, for bash to source.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
export CGO_ENABLED=0 # as releases are built: what one leg has compiled serves the others
[ "${CI:-}" != true ] || export GOFLAGS="${GOFLAGS:-} -trimpath" # likewise; elsewhere it serves what a developer builds

# cannot WHY: exits because the test cannot run on this machine: with a failure if CI=true, otherwise with status 77, for which
# scripts/test.sh reports a skipped leg and the reason.
cannot() {
  if [ "${CI:-}" = true ]; then
    echo "failed: cannot run: $*" >&2
    exit 1
  fi
  echo "skipped: $*"
  exit 77
}

# lavish has Go programs, its compiler among them, use five times the memory that they need before they collect garbage: what
# tests and checks compute takes a quarter less processor time.
lavish() { export GOGC="${GOGC:-400}"; }

# optional COMMAND...: runs the command, and goes on if it reports that it cannot run on this machine.
optional() { ("$@") || [ $? = 77 ]; }

# alone COMMAND...: runs the command while no other leg of the tests runs one so: two cannot install at once.
alone() {
  mkdir -p "$root/build"
  if command -v flock >/dev/null; then
    (flock 9 && "$@" 9>&-) 9>"$root/build/lock"
  else
    "$@"
  fi
}

# want COMMAND PACKAGE: installs the package with apt-get if the command is missing and the user is root.
want() {
  command -v "$1" >/dev/null && return
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "installing $2"
    alone apt_install "$2" >/dev/null 2>&1 || true
  fi
  command -v "$1" >/dev/null || cannot "install $2 (for the command $1) and run this again"
}

apt_install() {
  apt-get install -qq -y --no-install-recommends "$1" ||
    { apt-get -qq update && apt-get install -qq -y --no-install-recommends "$1"; }
}

# pip_folder FOLDER WHAT LIST...: replaces FOLDER by the Python packages of the lists, which hold their hashes, as
# `dmir doctor --install-...` does.
pip_folder() {
  local folder=$1 what=$2 args=()
  shift 2
  command -v python3 >/dev/null || cannot "install Python 3 with pip (to fetch $what) and run this again"
  for list in "$@"; do args+=(-r "$root/$list"); done
  mkdir -p "$(dirname "$folder")"
  pip_fresh=$(cd "$(dirname "$folder")" && mktemp -d "$PWD/.new-XXXXXX") # a global, for the trap
  trap 'rm -rf "$pip_fresh"' EXIT
  # Run Python isolated and in a new folder, so that no module of the current folder shadows one of Python's.
  (cd "$pip_fresh" && python3 -I -m pip install --quiet --disable-pip-version-check --no-input --root-user-action=ignore --no-deps --only-binary=:all: \
    --require-hashes --target "$pip_fresh/new" "${args[@]}") || cannot "pip could not fetch the packages that $* name"
  # An existing folder may be in use, so replace it as a whole and not file by file.
  if [ -e "$folder" ]; then mv "$folder" "$pip_fresh/old"; fi
  mv "$pip_fresh/new" "$folder"
}

# build_dmir: builds the binary under test, build/dmir.
build_dmir() {
  command -v go >/dev/null || cannot "install Go and run this again"
  mkdir -p "$root/build"
  (cd "$root" && alone go build -o build/dmir .)
}

# build_wheel VERSION FOLDER: builds the Python wheel of this machine into FOLDER, whose old content is removed.
build_wheel() {
  command -v go >/dev/null || cannot "install Go and run this again"
  (cd "$root/release" && go run . -wheels -version "$1" -platforms "$(go env GOOS)/$(go env GOARCH)" -out "$2")
}

# release_version: prints the version of the commit's tag vX.Y.Z, or 0.0.0-dev if it has none.
release_version() {
  local tag
  tag=$(git -C "$root" describe --tags --exact-match --match 'v[0-9]*' 2>/dev/null) || tag=v0.0.0-dev
  echo "${tag#v}"
}

# npm_install FOLDER: installs the packages of its lockfile unless they are up to date.
npm_install() {
  [ "$(node -p 'process.versions.node.split(".")[0]')" -ge 20 ] || cannot "install Node.js 20 or newer and run this again"
  alone npm_ci "$1" || cannot "npm could not install the packages of $1"
}

npm_ci() {
  [ "$1/node_modules/.package-lock.json" -nt "$1/package-lock.json" ] ||
    (cd "$1" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error)
}

# debian_tool SUITE PACKAGE BINARY: prints the path of a program from another Debian suite, patched to use the libraries of
# that suite. Unpacks it under build/ at first use. Needs patchelf.
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

# fresh SCRATCH: sets the XDG folders to new, empty ones.
fresh() {
  local home
  home=$(mktemp -d "$1/home.XXXX")
  export XDG_CONFIG_HOME=$home/config XDG_DATA_HOME=$home/data XDG_STATE_HOME=$home/state XDG_CACHE_HOME=$home/cache
  mkdir -p "$XDG_CONFIG_HOME" "$XDG_DATA_HOME" "$XDG_STATE_HOME" "$XDG_CACHE_HOME"
}

# workspace FOLDER: copies the files that the editors' tests edit.
workspace() {
  cp -r "$root/vscode-extension/test/workspace" "$1"
  touch "$1/dmir.toml"
}

# The screen_ functions run an editor on a screen of 200 by 50 characters, or as wide as given, in its own tmux server, and store
# the screen in $picture.
screen_number=0
screen_open() { # screen_open PICTURE COMMAND [WIDTH]
  screen_number=$((screen_number + 1)) # a tmux server that is exiting accepts no new session
  screen_name=dmir-$$-$screen_number
  mkdir -p "$root/build/screenshots"
  picture=$root/build/screenshots/$1.txt
  tmux -L "$screen_name" -f /dev/null new-session -d -x "${3:-200}" -y 50 "$2"
  tmux -L "$screen_name" set-option -g escape-time 0
}
screen_keys() { tmux -L "$screen_name" send-keys "$@"; }
screen_close() { [ $screen_number = 0 ] || tmux -L "$screen_name" kill-server 2>/dev/null || true; }
screen_shows() { # screen_shows WHAT REGEX: waits until a line of the screen matches; sets failed on timeout.
  screen_until "$1" grep -Eq "$2" "$picture"
}
screen_lacks() { # screen_lacks WHAT REGEX: waits until no line of the screen matches; sets failed on timeout.
  screen_until "$1" screen_without "$2"
}
screen_without() { ! grep -Eq "$1" "$picture"; }
screen_until() { # screen_until WHAT CONDITION...: waits until the condition holds; the timeout suits a machine under load.
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
screen_ends() { # waits until the program on the screen has exited, which ends its tmux session.
  local end=$((SECONDS + 90))
  while [ $SECONDS -lt $end ] && tmux -L "$screen_name" has-session 2>/dev/null; do sleep 0.1; done
  screen_close
}
