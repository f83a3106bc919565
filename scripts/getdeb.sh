#!/usr/bin/env bash
# usage: getdeb.sh SUITE[/ARCH] FOLDER PACKAGE...
# Unpacks packages of another Debian suite, with their dependencies, into FOLDER/root. The host's own packages do not change:
# apt uses a separate package database under FOLDER, and the archive that this machine is configured with.
set -euo pipefail
if [ $# -lt 3 ]; then
  sed -n '2,4s/^# //p' "$0" >&2
  exit 2
fi
suite=${1%/*} arch=$([[ $1 == */* ]] && echo "${1#*/}" || dpkg --print-architecture)
folder=$(mkdir -p "$2" && cd "$2" && pwd)
shift 2

# The first archive that apt is configured with, in either of apt's two formats.
archive=$(
  shopt -s nullglob
  for file in /etc/apt/sources.list.d/*.sources; do
    sed -n 's|^URIs: *\([^ ]*/debian\)/* *$|\1|p' "$file"
  done
  for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
    [ -e "$file" ] && sed -n 's|^deb  *\(\[[^]]*\]  *\)\{0,1\}\([^ ]*/debian\)/* .*|\2|p' "$file"
  done
  true
)
archive=${archive%%$'\n'*}
if [ -z "$archive" ]; then
  echo "getdeb: apt on this machine has no Debian archive" >&2
  exit 1
fi

state=$folder/apt
mkdir -p "$state/lists/partial" "$state/archives/partial" "$folder/root"
: >"$state/status" # an empty database: every dependency is fetched
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $archive $suite main" >"$state/sources.list"
apt=(
  apt-get -qq -o "APT::Architecture=$arch" -o "APT::Architectures=$arch"
  -o "Dir::Etc::SourceList=$state/sources.list" -o Dir::Etc::SourceParts=/dev/null
  -o "Dir::State::Lists=$state/lists" -o "Dir::State::status=$state/status"
  -o "Dir::Cache::Archives=$state/archives" -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache=
  -o Acquire::Languages=none -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false
  -o APT::Install-Recommends=false -o APT::Sandbox::User=root -o Debug::NoLocking=1
)
"${apt[@]}" update
"${apt[@]}" --yes --download-only install "$@"
for package in "$state"/archives/*.deb; do
  dpkg-deb --extract "$package" "$folder/root"
done
