#!/usr/bin/env bash
# Packages the VS Code extension, once for each platform with the server's binary, and once ("universal") without, for
# users with dmir on PATH. Writes build/vsix/dmir-TARGET-VERSION.vsix and the file SHA256SUMS, and lists sizes.
# The version is that of the commit's tag, see release.sh, or the one in package.json. If project.json has the repository's address,
# the packages name it and have the README's pictures from there; otherwise they have no pictures, because editors and galleries
# show only pictures from https addresses.
# usage: package-vscode.sh [TARGET…]    (default: all targets; "host" is this machine's)
set -euo pipefail
. "$(dirname "$0")/common.sh"

targets=(linux-x64 linux-arm64 darwin-arm64 darwin-x64 win32-x64 win32-arm64)
goos() { case $1 in win32-*) echo windows ;; *) echo "${1%-*}" ;; esac; }
goarch() { case $1 in *-x64) echo amd64 ;; *) echo "${1#*-}" ;; esac; }

want node nodejs
want npm npm
command -v go >/dev/null || cannot "install Go and run this again"
extension=$root/vscode-extension
npm_install "$extension"

wanted=()
for target in "${@:-all}"; do
  case $target in
  all) wanted+=("${targets[@]}" universal) ;;
  host) wanted+=("$(node -p 'process.platform + "-" + process.arch')") ;;
  *) wanted+=("$target") ;;
  esac
done

out=$root/build/vsix
stage=$out/stage
trap 'rm -rf "$stage"' EXIT
rm -rf "$stage"
mkdir -p "$stage"
(cd "$extension" && node esbuild.mjs)
released=$(release_version)
version=$released
[ "$version" != 0.0.0-dev ] || version=$(node -p "require('$extension/package.json').version")
# Packages a copy, so that several runs may be concurrent and no binary is left in the source folder.
for file in .vscodeignore package.json dmir.schema.json README.md CHANGELOG.md LICENSE THIRD_PARTY_NOTICES.txt language-configuration.json toml-language-configuration.json dist images walkthrough syntaxes; do
  cp -R "$extension/$file" "$stage/"
done

repository=$(node -p "require('$root/project.json').repository")
if [ -n "$repository" ]; then
  links=(--baseImagesUrl "$repository/raw/v$version/vscode-extension" --baseContentUrl "$repository/blob/v$version/vscode-extension")
else
  links=(--no-rewrite-relative-links --allow-missing-repository)
  sed -i.all '/^!\[.*\](images\/.*)$/d' "$stage/README.md"
fi
node -e '
  const fs = require("fs");
  const [file, version, repository] = process.argv.slice(1);
  const manifest = JSON.parse(fs.readFileSync(file, "utf8"));
  manifest.version = version;
  if (repository !== "") Object.assign(manifest, { repository: { type: "git", url: repository }, homepage: repository, bugs: { url: repository + "/issues" } });
  fs.writeFileSync(file, JSON.stringify(manifest, null, 2) + "\n");
' "$stage/package.json" "$version" "$repository"
# Files in the packages have the time of the commit, in UTC, so that packages of one commit are equal.
SOURCE_DATE_EPOCH=$(git -C "$root" log -1 --format=%ct)
export SOURCE_DATE_EPOCH
made=()
for target in "${wanted[@]}"; do
  rm -rf "$stage/bin"
  cp "$extension/THIRD_PARTY_NOTICES.txt" "$stage/"
  which=()
  if [ "$target" != universal ]; then
    case " ${targets[*]} " in *" $target "*) ;; *)
      echo "unknown target $target; the targets are ${targets[*]} universal" >&2
      exit 2
      ;;
    esac
    # Tests also use the binary in build/vsix/bin/TARGET.
    (cd "$root" && CGO_ENABLED=0 GOOS=$(goos "$target") GOARCH=$(goarch "$target") go build -trimpath -ldflags="-s -w -X dmir/cli.version=$released" -o "$out/bin/$target/" .)
    cp -R "$out/bin/$target" "$stage/bin"
    (echo && cat "$root/cli/notices/THIRD_PARTY_NOTICES.txt") >>"$stage/THIRD_PARTY_NOTICES.txt"
    which=(--target "$target")
  fi
  file=dmir-$target-$version.vsix
  (cd "$stage" && TZ=UTC node "$extension/node_modules/@vscode/vsce/vsce" package --no-dependencies \
    "${links[@]}" "${which[@]}" --out "$out/$file") >"$out/$target.log" 2>&1 || { cat "$out/$target.log" >&2; exit 1; }
  made+=("$file")
done

cd "$out"
sha256sum "${made[@]}" >SHA256SUMS
for file in "${made[@]}"; do
  printf '%-32s %6.1f MB  sha256 %s\n' "$file" "$(stat -c %s "$file" | awk '{print $1 / 1e6}')" "$(sha256sum "$file" | cut -c1-16)…"
done
