#!/usr/bin/env bash
# Tests the pre-commit hooks of this repository in a separate repository, as pre-commit runs them for users:
# from the wheel, built with Go from the sources here, and with the binary on PATH.
set -euo pipefail
. "$(dirname "$0")/common.sh"

want git git
want pre-commit pre-commit
want python3 python3
want pip3 python3-pip
build_dmir

scratch=$(mktemp -d)
trap 'chmod -R u+w "$scratch" && rm -rf "$scratch" 2>/dev/null || true' EXIT
export PRE_COMMIT_HOME=$scratch/cache PATH=$root/build:$PATH
export GIT_CONFIG_GLOBAL=$scratch/gitconfig GIT_CONFIG_NOSYSTEM=1
# pre-commit builds in a separate GOPATH for each trial; downloads and compiled packages are shared with this one.
GOMODCACHE=$(go env GOMODCACHE)
export GOMODCACHE GOFLAGS="${GOFLAGS:-} -trimpath"
git config --global user.name test
git config --global user.email test@example.invalid
git config --global init.defaultBranch main
git config --global --add safe.directory '*'

# The wheel of the release that the hooks install, which pip finds here and in no registry.
pinned=$(sed -n 's/^dependencies = \["dmir==\(.*\)"\]$/\1/p' "$root/pyproject.toml")
build_wheel "$pinned" "$scratch/wheels"
python3 -m pip download --quiet --disable-pip-version-check --dest "$scratch/wheels" setuptools || cannot "pip could not fetch setuptools"
export PIP_NO_INDEX=1 PIP_FIND_LINKS=$scratch/wheels

# Copies the repository as it is on disk, with uncommitted changes, to one commit that provides the hooks.
(
  cd "$root"
  git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' file; do
    if [ -e "$file" ]; then printf '%s\0' "$file"; fi
  done | tar --create --null --files-from=-
) | tar --extract --one-top-level="$scratch/dmir"
git -C "$scratch/dmir" init --quiet
git -C "$scratch/dmir" add .
git -C "$scratch/dmir" commit --quiet --message snapshot
revision=$(git -C "$scratch/dmir" rev-parse HEAD)

# project FILE...: creates a repository that uses the hooks, with files of the test workspace.
project() {
  rm -rf "$scratch/project"
  mkdir "$scratch/project"
  cd "$scratch/project"
  git init --quiet
  for file in "$@"; do
    cp "$root/vscode-extension/test/workspace/$file" .
  done
  cat >.pre-commit-config.yaml <<END
repos:
  - repo: $scratch/dmir
    rev: $revision
    hooks: [{id: dmir-fmt}, {id: dmir-lint}, {id: dmir-fmt-go}, {id: dmir-lint-go}, {id: dmir-fmt-system}, {id: dmir-lint-system}]
END
  git add .
}

# hook ID: runs the hook and prints its exit status; its output is in $log.
log=$scratch/log
hook() {
  local status=0
  pre-commit run "$1" --all-files >"$log" 2>&1 || status=$?
  echo $status
}

# try ID: the same with try-repo, which runs the hook from a checkout without a configuration.
try() {
  local status=0
  pre-commit try-repo "$scratch/dmir" "$1" --all-files >"$log" 2>&1 || status=$?
  echo $status
}

failed=0
check() { # check WHAT CONDITION...
  local what=$1
  shift
  if "$@"; then
    echo "  ok   $what"
  else
    echo "  FAIL $what"
    tail -20 "$log" | sed 's/^/       /'
    failed=1
  fi
}

for kind in '' -go -system; do
  project messy.dmir
  check "dmir-fmt$kind stops a commit of an unformatted file" [ "$(hook dmir-fmt$kind)" = 1 ]
  check "  and has formatted it, comments kept" grep -Eq '^  %y = dm\.exp %x : tensor<64x64xf32> +// kept$' messy.dmir
  git add .
  check "  and passes it the next time" [ "$(hook dmir-fmt$kind)" = 0 ]
  check "dmir-lint$kind passes a file without waste" [ "$(hook dmir-lint$kind)" = 0 ]

  project ffn.dmir
  check "dmir-lint$kind passes hints" [ "$(hook dmir-lint$kind)" = 0 ]

  project kernel.dmir
  check "dmir-lint$kind stops a commit that wastes movement" [ "$(hook dmir-lint$kind)" = 1 ]
  check "  and reports where and why" grep -Eq 'kernel\.dmir:[0-9]+:[0-9]+: .*DM[0-9]+' "$log"

  # What try-repo installs is made anew each time, so that the hooks of one kind stand for those of the others.
  [ -z "$kind" ] || continue
  project kernel.dmir messy.dmir
  check "try-repo: dmir-fmt$kind formats" [ "$(try dmir-fmt$kind)" = 1 ]
  check "  and has done so" grep -Eq '^  %y = dm\.exp %x : tensor<64x64xf32> +// kept$' messy.dmir
  check "try-repo: dmir-lint$kind finds the waste" [ "$(try dmir-lint$kind)" = 1 ]
  check "  and reports where" grep -Eq 'kernel\.dmir:[0-9]+:[0-9]+: .*DM[0-9]+' "$log"
done
exit $failed
