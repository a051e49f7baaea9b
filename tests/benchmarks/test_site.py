"""The documentation as a site: complete, with no broken link and nothing from outside."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from joulemap.cli.overview import list_commands
from joulemap.system.errors import UsageError
from tools.page import DOCS
from tools.public import place_names
from tools.site.build import SITE, build_site
from tools.site.library import write_library


def list_contents() -> Iterator[str]:
    """Yield the names of the pages in the contents, such as `compare`."""
    contents = (SITE / "contents.md").read_text(encoding="utf-8")
    for block in re.findall(r"```\{toctree\}\n(.*?)```", contents, re.DOTALL):
        yield from re.findall(r"^(?:[^:<]+ <)?([\w/]+)>?$", block, re.MULTILINE)


def test_the_contents_lead_to_every_page_once() -> None:
    pages = {path.stem for path in DOCS.glob("*.md")} | {"gallery", "commands/index", "reference/index"}
    assert Counter(list_contents()) == Counter(pages)


@pytest.mark.wings
def test_every_public_name_is_documented_once() -> None:
    pages = "\n".join(write_library().values())
    public = [f"{module}.{name}" for module, names in place_names().items() for name in names]
    assert Counter(re.findall(r"^\.\. auto\w+:: (joulemap\.[\w.]+)$", pages, re.MULTILINE)) == Counter(public)


def test_what_is_no_site_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "thesis.md").write_text("mine")
    with pytest.raises(UsageError, match="is not a site"):
        build_site(tmp_path)
    assert (tmp_path / "thesis.md").read_text() == "mine"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "site"
    build(folder)
    return folder


def build(folder: Path) -> None:
    program = [sys.executable, "-m", "tools.site", str(folder)]
    path = {"PYTHONPATH": str(DOCS.parent / "benchmarks")}
    done = subprocess.run(program, capture_output=True, text=True, env={**os.environ, **path})
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"open {folder / 'index.html'}\n"


class Page(HTMLParser):
    """What a page links to, what it loads, and what in it can be linked to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors = {""}
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self.anchors.add(attributes.get("id") or "")
        if tag == "a" and attributes.get("href"):
            self.links.append(attributes["href"] or "")
        elif address := attributes.get("src") or (tag == "link" and attributes.get("href")):
            self.loaded.append(address)


@cache
def read_page(path: Path) -> Page:
    return Page(path)


@pytest.mark.slow
@pytest.mark.long
def test_links_of_the_site_lead_somewhere(site: Path) -> None:
    broken = []
    for path in site.rglob("*.html"):
        for link in read_page(path).links:
            parts = urlsplit(link)
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if parts.scheme or (parts.fragment == "" and target.is_file()):
                continue
            if not target.is_file() or unquote(parts.fragment) not in read_page(target).anchors:
                broken.append(f"{path.relative_to(site)}: {link}")
    assert broken == []


@pytest.mark.slow
def test_the_site_loads_nothing_from_outside(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > len(list_commands()) + len(list(DOCS.glob("*.md")))
    loaded = {address for path in pages for address in read_page(path).loaded}
    assert loaded
    assert not [address for address in loaded if urlsplit(address).scheme or address.startswith("//")]
    for path in site.rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*[\"']?(https?:)?//", path.read_text(encoding="utf-8")), path
