"""Writes the sources of the documentation's site: the pages of docs/, the README and the changelog, with links that hold there.

usage: site.py FOLDER
"""

import json
import pathlib
import posixpath
import re
import shutil
import sys

root = pathlib.Path(__file__).parent.parent
repository = json.loads((root / "project.json").read_text())["repository"]
pages = {f"docs/{page.name}": page.name for page in sorted((root / "docs").glob("*.md"))}
# A README.md would be the index of its folder.
pages |= {"README.md": "index.md", "docs/README.md": "documentation.md", "CHANGELOG.md": "CHANGELOG.md", "CONTRIBUTING.md": "CONTRIBUTING.md"}
# A block of code, a link or picture, or a span of code: the first that matches at a place counts.
token = re.compile(r"^```.*?^```$|(!?)\[((?:`[^`]*`|[^\[\]`]|\[[^\]]*\])*)\]\(([^)\s]+)\)|`[^`\n]*`", re.M | re.S)


picture = re.compile(r'<picture><source media="\(prefers-color-scheme: dark\)" srcset="([^"]+)"><img alt="([^"]*)" src="([^"]+)"></picture>')


def convert(source):
    def replace(match):
        mark, text, target = match.groups()
        if target is None:  # code; a mark behind its language is for tests, and for the site no fence, nor is "|" to be escaped
            if match[0].startswith("```"):
                return re.sub(r"^```(\w+) (?:jax|torch|notebook)$", r"```\1", match[0], flags=re.M)
            return match[0].replace(r"\|", "|")
        path, _, anchor = target.partition("#")
        if not path or ":" in path:
            return match[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        if not (root / path).exists():
            raise SystemExit(f"{source}: no file {path}")
        if path in pages:
            return f"[{text}]({pages[path]}{'#' + anchor if anchor else ''})"
        if path.endswith(".png"):
            shutil.copy(root / path, out / "docs/images")
            return f"{mark}[{text}](images/{posixpath.basename(path)}{'#' + anchor if anchor else ''})"
        # What is not on the site is in the repository.
        return f"[{text}]({repository}/blob/main/{path})" if repository else text

    # GitHub chooses the picture by the element, the site's theme by the anchor.
    text = picture.sub(r"![\2](\3#only-light)![\2](\1#only-dark)", (root / source).read_text())
    return token.sub(replace, text)


out = pathlib.Path(sys.argv[1])
shutil.rmtree(out, ignore_errors=True)
(out / "docs/images").mkdir(parents=True)
for source, name in pages.items():
    (out / "docs" / name).write_text(convert(source))
config = (root / "docs/site/mkdocs.yml").read_text()
if repository:
    config += f"repo_url: {json.dumps(repository)}\n"
(out / "mkdocs.yml").write_text(config)
