#!/usr/bin/env bash
# Builds the site of the documentation, build/site/index.html, and checks its links.
set -euo pipefail
. "$(dirname "$0")/common.sh"
zensical=0.0.73

want python3 python3
want pip3 python3-venv
tools=$root/build/zensical-$zensical
if ! [ -x "$tools/bin/zensical" ]; then
  rm -rf "$tools"
  { python3 -m venv "$tools" && "$tools/bin/pip" install --quiet --disable-pip-version-check "zensical==$zensical"; } || cannot "pip could not install zensical"
fi
sources=$root/build/site-sources
python3 "$root/scripts/site.py" "$sources"
(cd "$sources" && "$tools/bin/zensical" build --strict --clean)
rm -rf "$root/build/site"
mv "$sources/site" "$root/build/site"
python3 "$root/scripts/check-site.py" "$root/build/site"
