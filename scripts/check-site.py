"""Checks a site: every link to one of its pages has a target, no file is fetched from elsewhere, and search finds ops and rules.

usage: check-site.py FOLDER
"""

import html.parser
import json
import pathlib
import sys
import urllib.parse

site = pathlib.Path(sys.argv[1]).resolve()
problems = []


class Page(html.parser.HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.path, self.ids, self.links, self.code = path, set(), [], 0
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        of = dict(attributes)
        self.code += tag == "code"
        if of.get("id"):
            self.ids.add(of["id"])
        if tag == "a" and of.get("href"):
            self.links.append(of["href"])
        fetched = of.get("src") if tag in ("script", "img", "iframe") else of.get("href") if tag == "link" and of.get("rel") != "canonical" else None
        if fetched and urllib.parse.urlparse(fetched).netloc:
            problems.append(f"{self.path.relative_to(site)} fetches {fetched}")
        elif fetched:
            self.links.append(fetched)

    def handle_endtag(self, tag):
        self.code -= tag == "code"

    def handle_data(self, data):
        if "```" in data and (not self.code or data.lstrip().startswith("```")):
            problems.append(f"{self.path.relative_to(site)}: a fence that is none: {data.strip()[:40]}")


pages = {path: Page(path) for path in site.rglob("*.html")}
checked = 0
for page in pages.values():
    if page.path.name == "404.html":
        continue  # its links are relative to the place it is shown at
    for link in page.links:
        parts = urllib.parse.urlparse(link)
        if parts.scheme or parts.netloc:
            continue
        checked += 1
        target = (page.path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else page.path
        if target.is_dir():
            target /= "index.html"
        anchor = urllib.parse.unquote(parts.fragment)
        if not target.exists() or anchor and target in pages and anchor not in pages[target].ids | {"__skip", "__top"}:
            problems.append(f"{page.path.relative_to(site)}: no target of {link}")
found = json.dumps(json.loads((site / "search.json").read_text()))
problems += [f"search does not find {word}" for word in ("dm.layer_norm", "DM201", "pre-commit") if word not in found]
for problem in problems:
    print(problem, file=sys.stderr)
print(f"{len(pages)} pages, {checked} links")
sys.exit(bool(problems))
