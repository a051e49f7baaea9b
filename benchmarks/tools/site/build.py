"""Layout of all pages in one folder, and the Sphinx build."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from joulemap.system.errors import MissingPackageError, UsageError
from tools.page import DOCS, PARTS, write_parts
from tools.site.command import write_commands
from tools.site.figure import list_figures, place_figures
from tools.site.library import write_library

SITE: Final = DOCS / "site"
"""Files of the site besides its pages: its settings, its contents, its list of figures."""

TREES: Final = ".doctrees"
"""Folder in which Sphinx caches parsed pages."""

PICTURES: Final = (".svg", ".png")
"""Suffixes of the images that lie next to the pages."""

README: Final = DOCS.parent / "README.md"

PERCENT: Final = re.compile(r"(?<=\d) %(?=[^\n]*\|$)", re.MULTILINE)
"""Pattern of the space before a percent sign in a table, where a line must not break."""


FRAME: Final = """```{{raw}} html
<iframe src="{folder}/index.html" title="joulemap in this browser" loading="lazy"
  style="width: 100%; height: 60rem; border: 1px solid #8886; border-radius: 0.5rem"></iframe>
```
"""
"""Frame of the page that predicts in a browser, on the page about it."""


def build_site(folder: Path, *, embedded: str = "") -> int:
    """Rebuild the site in `folder` and return the exit code; a warning fails the build.

    `embedded` is the folder within the site to which `joulemap page` is written afterwards; empty for none. The source
    pages are in `FOLDER-source`. Raises MissingPackageError without Sphinx, UsageError for a folder with other content.
    """
    try:
        from sphinx.cmd.build import build_main
    except ImportError:
        raise MissingPackageError("sphinx", "docs") from None
    source = folder.parent / f"{folder.name}-source"
    for made, mark in ((folder, ".buildinfo"), (source, TREES)):
        if made.exists() and not (made / mark).exists():
            raise UsageError(f"{made} exists and is not a site: name another folder, or remove it")
        shutil.rmtree(made, ignore_errors=True)
    (source / TREES).mkdir(parents=True)
    lay_out(source, embedded)
    strict = ("-q", "-W", "--keep-going")
    return int(build_main([*strict, "-c", str(SITE), "-d", str(source / TREES), str(source), str(folder)]))


def lay_out(source: Path, embedded: str) -> None:
    """Write every page of the site to `source`, with the figures of the pages and a frame for the embedded page."""
    for path in sorted((*(path for suffix in PICTURES for path in DOCS.glob(f"*{suffix}")), *DOCS.rglob("*.csv"))):
        (source / path.relative_to(DOCS)).parent.mkdir(exist_ok=True)
        shutil.copy(path, source / path.relative_to(DOCS))
    pages = {**read_pages(), **write_commands(), **write_library()}
    if embedded:
        pages["page.md"] = pages["page.md"].replace("\n## ", f"\n{FRAME.format(folder=embedded)}\n## ", 1)
    for name, text in place_figures(pages, list_figures(SITE), source).items():
        path = source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def read_pages() -> Mapping[str, str]:
    """Return the pages of the repository, name -> text, with links adapted to the site.

    README is the first page, with `landing.md` before its first section.
    """
    landing, contents = ((SITE / name).read_text(encoding="utf-8") for name in ("landing.md", "contents.md"))
    about, heading, rest = README.read_text(encoding="utf-8").replace("](docs/", "](").partition("\n## ")
    first = f"{about}\n{landing}{heading}{rest}{contents}"
    paths = sorted((*DOCS.glob("*.md"), SITE / "gallery.md"))
    others = {path.name: write_parts(path.read_text(encoding="utf-8"), PARTS) for path in paths}
    pages = {"index.md": first} | {name: text.replace("](../README.md", "](index.md") for name, text in others.items()}
    return {name: PERCENT.sub("\u00a0%", text) for name, text in pages.items()}
