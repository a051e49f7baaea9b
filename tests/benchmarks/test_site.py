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
from joulemap.system.errors import ExitCode, UsageError
from sample import thin
from tools.manual import Manual, read_manual
from tools.page import DOCS, IN_DOCS, MARKED, PARTS
from tools.public import place_names
from tools.site.build import SITE, build_site, read_pages
from tools.site.command import escape, write_commands
from tools.site.figure import FOLDER, SiteFigure, insert, list_figures
from tools.site.library import write_library

FIGURES = list_figures(SITE)


def list_contents() -> Iterator[str]:
    """Yield the names of the pages in the contents, such as `compare`."""
    contents = (SITE / "contents.md").read_text(encoding="utf-8")
    for block in re.findall(r"```\{toctree\}\n(.*?)```", contents, re.DOTALL):
        yield from re.findall(r"^(?:[^:<]+ <)?([\w/]+)>?$", block, re.MULTILINE)


def test_the_contents_lead_to_every_page_once() -> None:
    pages = {path.stem for path in DOCS.glob("*.md")} | {"gallery", "commands/index", "reference/index"}
    assert Counter(list_contents()) == Counter(pages)


@pytest.mark.parametrize("name", thin(list_commands(), 10))
def test_a_command_has_a_page_with_all_that_its_help_has(name: str) -> None:
    page = write_commands()[f"commands/{name}.md"]
    for manual in list_manuals(read_manual(name)):
        assert f"# {manual.path}\n" in page
        assert all(f"\n{line}\n" in page for line in manual.examples)
        assert all(escape(one.meaning) in page for one in (*manual.arguments, *manual.options))
    assert all(re.search(rf"^- {code.value} ", page, re.MULTILINE) for code in ExitCode)


def list_manuals(manual: Manual) -> Iterator[Manual]:
    yield manual
    for inner in manual.commands:
        yield from list_manuals(inner)


def test_a_manual_has_what_its_command_takes() -> None:
    manual = read_manual("edp")
    assert manual.usage == "joulemap edp [OPTIONS] {MODEL} [HARDWARE]"
    assert manual.paragraphs[0].startswith("Rank the parts")
    assert manual.examples[0] == "joulemap edp resnet50 l4 --precision bf16"
    assert "--level <subgraph|operator>" in [one.names for one in manual.options]
    assert not any("--hardware" in one.names for one in manual.options)  # hidden: the argument is the same
    assert [one.path for one in read_manual("hardware").commands][:1] == ["joulemap hardware list"]


def test_a_text_is_shown_as_it_is() -> None:
    assert escape("a <b> *c* `d_e` f_g [h]") == r"a \<b\> \*c\* `d_e` f\_g \[h\]"


def test_long_tables_stand_on_the_site() -> None:
    pages = read_pages()
    marked = {name: [part[2] for part in MARKED.finditer(text)] for name, text in pages.items()}
    assert Counter(name for names in marked.values() for name in names) == Counter(list(PARTS))
    for name in (page for page, names in marked.items() if set(names) - IN_DOCS):
        assert "The site (`make docs`)" in (DOCS / name).read_text(encoding="utf-8")
        assert "The site (`make docs`)" not in pages[name]


@pytest.mark.wings
def test_every_public_name_is_documented_once() -> None:
    pages = "\n".join(write_library().values())
    public = [f"{module}.{name}" for module, names in place_names().items() for name in names]
    assert Counter(re.findall(r"^\.\. auto\w+:: (joulemap\.[\w.]+)$", pages, re.MULTILINE)) == Counter(public)


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.name)
def test_a_figure_has_its_place(figure: SiteFigure) -> None:
    assert "here it is" in insert(read_pages()[figure.page], figure, "here it is")


def test_figures_have_files_of_their_own() -> None:
    assert all(count == 1 for count in Counter(figure.name for figure in FIGURES).values())


PAGE = "# One\n\nfirst\n\n```sh\n# no heading\n```\n\n## Two\n\nsecond\n"


@pytest.mark.parametrize(
    ("section", "expected"),
    [
        ("One", PAGE.replace("\n\n## Two", "\n\nhere\n\n## Two")),
        ("Two", f"{PAGE}\nhere\n\n"),
    ],
)
def test_a_figure_stands_at_the_end_of_its_section(section: str, expected: str) -> None:
    assert insert(PAGE, SiteFigure(page="one.md", section=section, command="plot edp"), "here") == expected


def test_a_figure_without_its_section_is_refused() -> None:
    with pytest.raises(ValueError, match="has no section 'no heading'"):
        insert(PAGE, SiteFigure(page="one.md", section="no heading", command="plot edp"), "here")


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


@pytest.mark.slow
def test_every_figure_is_drawn(site: Path) -> None:
    for figure in FIGURES:
        page = (site / figure.page).with_suffix(".html").read_text(encoding="utf-8")
        for theme in ("light", "dark"):
            assert f"{figure.name}-{theme}.svg" in page
            assert "<svg" in (site.parent / "site-source" / FOLDER / f"{figure.name}-{theme}.svg").read_text()
        assert "The rows behind it" in page


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
