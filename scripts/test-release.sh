#!/usr/bin/env bash
# Builds the packages of a release for this machine's architecture, installs each as a user would, and runs the program from it.
set -euo pipefail
. "$(dirname "$0")/common.sh"

command -v go >/dev/null || cannot "install Go and run this again"
[ "$(uname -s)" = Linux ] || cannot "the packages that this test installs are those of Linux"
command -v apt-get >/dev/null || cannot "this test installs a Debian package"
[ "$(id -u)" = 0 ] || cannot "this test installs a Debian package: run it as root"
want git git
want python3 python3
want ruby ruby
want node nodejs
want npm npm
want unzip unzip
want pre-commit pre-commit
python3 -m venv --help >/dev/null && python3 -c 'import ensurepip' 2>/dev/null || want pip3 python3-venv

scratch=$(mktemp -d)
trap 'chmod -R u+w "$scratch"; rm -rf "$scratch"' EXIT
arch=$(go env GOARCH)

# A release of version 1.2.3-rc.4: a copy of the sources, as they are on disk, in a repository with that tag.
sources=$scratch/sources
(
  cd "$root"
  git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' file; do
    if [ -e "$file" ]; then printf '%s\0' "$file"; fi
  done | tar --create --null --files-from=-
) | tar --extract --one-top-level="$sources"
export GIT_CONFIG_GLOBAL=$scratch/gitconfig GIT_CONFIG_NOSYSTEM=1
git config --global user.name test
git config --global user.email test@example.invalid
sed -i 's|"repository": ""|"repository": "https://example.com/dmir"|' "$sources/project.json"
sed -i 's|"dmir==.*"|"dmir==1.2.3rc4"|' "$sources/pyproject.toml"
git -C "$sources" init --quiet
git -C "$sources" add .
git -C "$sources" commit --quiet --message release
git -C "$sources" tag v1.2.3-rc.4
# What earlier runs have downloaded.
npm_install "$root/vscode-extension"
ln -s "$root/vscode-extension/node_modules" "$sources/vscode-extension/node_modules"
mkdir -p "$root/build/image-base" "$sources/build"
ln -s "$root/build/image-base" "$sources/build/image-base"
(cd "$root/release" && go vet ./... && go test -vet off ./...)
"$sources/scripts/release.sh" "linux/$arch"
out=$sources/build/release
(cd "$out" && sha256sum --check --quiet SHA256SUMS)

# A clone of the same commit, elsewhere and in another time zone, gives the same packages.
again=$scratch/elsewhere/again
git clone --quiet "$sources" "$again"
ln -s "$root/vscode-extension/node_modules" "$again/vscode-extension/node_modules"
mkdir "$again/build"
ln -s "$root/build/image-base" "$again/build/image-base"
TZ=Asia/Tokyo "$again/scripts/release.sh" "linux/$arch" >"$scratch/again.log"

failed=0
if diff "$out/SHA256SUMS" "$again/build/release/SHA256SUMS"; then
  echo "  ok   built twice, equal"
else
  echo "  FAIL built twice, and the packages differ" && failed=1
fi
# works WHAT PROGRAM...: the program has the version of the release and formats and lints a file.
works() {
  local what=$1 version
  shift
  version=$("$@" version)
  case $version in
  "dmir 1.2.3-rc.4 "*) ;;
  *) echo "  FAIL $what: the version is $version" && failed=1 && return ;;
  esac
  if printf 'func.func @f() {\nreturn\n}\n' | "$@" fmt - | grep -q '^  return$'; then
    echo "  ok   $what"
  else
    echo "  FAIL $what: fmt" && failed=1
  fi
}

tar --extract --file="$out/dmir-1.2.3-rc.4-linux-$arch.tar.gz" --one-top-level="$scratch/archive" --strip-components=1
works archive "$scratch/archive/dmir"

dpkg --install "$out/dmir_1.2.3~rc.4_$arch.deb" >"$scratch/dpkg.log" || { cat "$scratch/dpkg.log"; exit 1; }
trap 'dpkg --purge dmir >/dev/null 2>&1; chmod -R u+w "$scratch"; rm -rf "$scratch"' EXIT
works "Debian package" /usr/bin/dmir
[ -s /usr/share/bash-completion/completions/dmir ] && gzip -t /usr/share/man/man1/dmir.1.gz || { echo "  FAIL Debian package: completion and manual page" && failed=1; }
gzip -dc /usr/share/man/man1/dmir.1.gz | grep '"dmir 1.2.3-rc.4"' >/dev/null || { echo "  FAIL Debian package: the version in the manual page" && failed=1; }
dpkg --purge dmir >/dev/null
[ ! -e /usr/bin/dmir ] || { echo "  FAIL Debian package: left behind after it was removed" && failed=1; }

pip3 download --quiet --dest "$scratch/wheels" setuptools # with which pip builds the empty package that pre-commit installs beside
export PIP_NO_INDEX=1 PIP_FIND_LINKS="$out $scratch/wheels" PIP_DISABLE_PIP_VERSION_CHECK=1
python3 -m venv "$scratch/venv"
"$scratch/venv/bin/pip" install --quiet dmir==1.2.3rc4
works wheel "$scratch/venv/bin/dmir"
works "Python module" "$scratch/venv/bin/python" -m dmir
(cd / && PATH=/usr/bin:/bin "$scratch/venv/bin/python" -c 'import dmir; dmir.shape("f32[8,64]")' && "$scratch/venv/bin/python" -m dmir trace --help >/dev/null) ||
  { echo "  FAIL Python module: import" && failed=1; }

# pre-commit installs the wheel, by the hooks of the tag and by those that need no address; no Go is on PATH.
for hooks in tag local; do
  rm -rf "$scratch/project"
  mkdir "$scratch/project"
  (
    cd "$scratch/project"
    git init --quiet
    printf 'func.func @f() {\nreturn\n}\n' >f.dmir
    if [ $hooks = tag ]; then
      printf 'repos:\n  - {repo: "%s", rev: v1.2.3-rc.4, hooks: [{id: dmir-fmt}, {id: dmir-lint}]}\n' "$sources" >.pre-commit-config.yaml
    else
      sed -n '/^<!-- pre-commit with pip -->/,/^```$/p' "$root/docs/CI.md" | sed '1,2d;$d;s/DMIR_VERSION/1.2.3rc4/' >.pre-commit-config.yaml
    fi
    git add .
    export PRE_COMMIT_HOME=$scratch/pre-commit PATH=/usr/local/bin:/usr/bin:/bin
    ! pre-commit run --all-files >"$scratch/pre-commit.log" 2>&1
    grep -q '^  return$' f.dmir && git add . && pre-commit run --all-files >"$scratch/pre-commit.log" 2>&1
  ) && echo "  ok   wheel in pre-commit: $hooks" || { echo "  FAIL wheel in pre-commit: $hooks" && cat "$scratch/pre-commit.log" && failed=1; }
done

# The formula's own code, run by Ruby with the few methods of Homebrew that it uses.
ruby "$root/release/testdata/formula.rb" "$out" "$scratch/brew"
works "Homebrew formula" "$scratch/brew/bin/dmir"

# The image's layers, unpacked, are the root of the program's file system.
python3 "$root/release/testdata/unpack.py" "$out/dmir-1.2.3-rc.4-oci.tar.gz" "$scratch/image"
works "container image" chroot "$scratch/image" /usr/bin/dmir

unzip -q "$out/dmir-universal-1.2.3-rc.4.vsix" -d "$scratch/vsix"
(
  cd "$scratch/vsix/extension"
  [ ! -e bin ] && [ -s dmir.schema.json ] && [ -s dist/extension.js ]
  grep -q '"version": "1.2.3-rc.4"' package.json
  grep -q '"url": "https://example.com/dmir"' package.json
  grep -q '(https://example.com/dmir/raw/v1.2.3-rc.4/vscode-extension/images/readme-editor.png)' [Rr][Ee][Aa][Dd][Mm][Ee].md
) && echo "  ok   universal extension" || { echo "  FAIL universal extension" && failed=1; }

(cd "$out" && python3 -c '
import json, sys, glob
for name in glob.glob("*.cdx.json"):
    bom = json.load(open(name))
    names = {c["name"] for c in bom["components"]}
    assert bom["bomFormat"] == "CycloneDX" and "std" in names and "github.com/alecthomas/kong" in names, name
') && echo "  ok   SBOM"
exit $failed
