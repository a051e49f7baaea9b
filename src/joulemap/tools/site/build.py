"""All pages laid out beside each other, and Sphinx called on them."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from joulemap.system.errors import MissingPackageError, UsageError
from joulemap.tools.page import DOCS, PARTS, write_parts
from joulemap.tools.site.command import write_commands
from joulemap.tools.site.figure import list_figures, place_figures
from joulemap.tools.site.library import write_library

SITE: Final = DOCS / "site"
"""What the site has beside the pages: its settings, its contents, its list of figures."""

TREES: Final = ".doctrees"
"""What Sphinx keeps of the pages that it has read, beside them."""

PICTURES: Final = (".svg", ".png")
"""Of pages, beside them."""

README: Final = DOCS.parent / "README.md"

PERCENT: Final = re.compile(r"(?<=\d) %(?=[^\n]*\|$)", re.MULTILINE)
"""What a cell of a table breaks no line before."""


def build_site(folder: Path, *, has_figures: bool = True) -> int:
    """Return the exit code of a build into `folder`, which is made anew; a warning fails it.

    The pages that it is built from lie in `FOLDER-source`. Raises MissingPackageError without Sphinx, UsageError for a
    folder that holds something else.
    """
    try:
        from sphinx.cmd.build import build_main
    except ImportError:
        raise MissingPackageError("sphinx", "docs") from None
    source = folder.parent / f"{folder.name}-source"
    for made, mark in ((folder, ".buildinfo"), (source, TREES)):
        if made.exists() and not (made / mark).exists():
            raise UsageError(f"{made} is there and is no site: name another folder, or remove it")
        shutil.rmtree(made, ignore_errors=True)
    (source / TREES).mkdir(parents=True)
    lay_out(source, has_figures=has_figures)
    strict = ("-q", "-W", "--keep-going")
    return int(build_main([*strict, "-c", str(SITE), "-d", str(source / TREES), str(source), str(folder)]))


def lay_out(source: Path, *, has_figures: bool) -> None:
    """Write every page of the site to `source`, with the figures that pages hold."""
    for path in sorted(path for suffix in PICTURES for path in DOCS.glob(f"*{suffix}")):
        shutil.copy(path, source)
    pages = {**read_pages(), **write_commands(), **write_library()}
    if has_figures:
        pages = place_figures(pages, list_figures(SITE), source)
    for name, text in pages.items():
        path = source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def read_pages() -> Mapping[str, str]:
    """Return the pages of the tree, name -> text, with links as they are on the site.

    README is its first page, with what leads to the stories before its first section.
    """
    landing, contents = ((SITE / name).read_text(encoding="utf-8") for name in ("landing.md", "contents.md"))
    about, heading, rest = README.read_text(encoding="utf-8").replace("](docs/", "](").partition("\n## ")
    first = f"{about}\n{landing}{heading}{rest}{contents}"
    paths = sorted((*DOCS.glob("*.md"), SITE / "gallery.md"))
    others = {path.name: write_parts(path.read_text(encoding="utf-8"), PARTS) for path in paths}
    pages = {"index.md": first} | {name: text.replace("](../README.md", "](index.md") for name, text in others.items()}
    return {name: PERCENT.sub("\u00a0%", text) for name, text in pages.items()}


def list_contents() -> Iterator[str]:
    """Yield the pages that the contents lead to, as `compare`."""
    contents = (SITE / "contents.md").read_text(encoding="utf-8")
    for block in re.findall(r"```\{toctree\}\n(.*?)```", contents, re.DOTALL):
        yield from re.findall(r"^(?:[^:<]+ <)?([\w/]+)>?$", block, re.MULTILINE)
