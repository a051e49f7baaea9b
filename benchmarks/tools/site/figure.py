"""Figures of the site: `docs/site/figure.toml` lists them, and `joulemap plot` makes them when the site is built."""

from __future__ import annotations

import json
import os
import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from unittest.mock import patch

from joulemap.cli.app import run
from joulemap.system.record import frozen

FOLDER: Final = "figure"
"""Folder of the site with an image per theme and the specification of each figure."""

Spec = Mapping[str, Any]
"""Vega-Lite specification that includes its data."""

THEMES: Final = ("light", "dark")

HEADING: Final = re.compile(r"^(#+) (.*)$", re.MULTILINE)


@frozen(kw_only=True)
class SiteFigure:
    """Figure on a page of the site."""

    page: str
    section: str
    """Heading of the section that ends with the figure."""
    command: str
    """Command that makes the figure, without the word `joulemap`."""

    @property
    def name(self) -> str:
        """Name of its files, without their endings."""
        return re.sub(r"[^a-z0-9]+", "-", self.command.lower().removeprefix("plot "))


def list_figures(folder: Path) -> Sequence[SiteFigure]:
    """Return the figures that the file in `folder` lists."""
    read = tomllib.loads((folder / "figure.toml").read_text(encoding="utf-8"))
    return [SiteFigure(**one) for one in read.get("figure", ())]


def place_figures(pages: Mapping[str, str], figures: Sequence[SiteFigure], source: Path) -> dict[str, str]:
    """Return the pages with their figures, and write the files to `source`; ValueError for a figure without a place."""
    placed = dict(pages)
    (source / FOLDER).mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as folder:
        own = {"JOULEMAP_DB": str(Path(folder) / "joulemap.duckdb"), "JOULEMAP_CALIBRATION": folder}
        with patch.dict(os.environ, own):
            for figure in figures:
                spec = draw(figure, source / FOLDER)
                placed[figure.page] = insert(placed[figure.page], figure, "\n".join(_write(figure, spec)))
    return placed


def draw(figure: SiteFigure, folder: Path) -> Spec:
    """Write a figure's specification and an image for each theme to `folder`; return the specification with data."""
    words = shlex.split(figure.command)
    specification = folder / f"{figure.name}.json"
    _run([*words, "--output", str(specification)])
    for theme in THEMES:
        _run([*words, "--theme", theme, "--output", str(folder / f"{figure.name}-{theme}.svg")])
    read: Spec = json.loads(specification.read_text(encoding="utf-8"))
    return read


def _run(words: Sequence[str]) -> None:
    code = run([*words, "--quiet"])
    if code:
        raise ValueError(f"exit code {code} of joulemap {shlex.join(words)}")


def insert(page: str, figure: SiteFigure, text: str) -> str:
    """Return a page with a text at the end of the figure's section; ValueError if there is no such section."""
    headings = list(HEADING.finditer(re.sub(r"^```.*?^```", _blank, page, flags=re.MULTILINE | re.DOTALL)))
    for index, one in enumerate(headings):
        if one[2] == figure.section:
            end = headings[index + 1].start() if index + 1 < len(headings) else len(page)
            return f"{page[:end].rstrip()}\n\n{text}\n\n{page[end:]}"
    raise ValueError(f"{figure.page} has no section {figure.section!r}")


def _blank(block: re.Match[str]) -> str:
    """Return as many blanks as the block has characters, so that no heading is found in it."""
    return " " * len(block[0])


def _write(figure: SiteFigure, spec: Spec) -> Iterator[str]:
    """Yield the Markdown of a figure: an image per theme, of which the page shows one, its command and its rows."""
    for theme in THEMES:
        yield f":::{{image}} {FOLDER}/{figure.name}-{theme}.svg"
        yield f":alt: {' '.join(spec['description'].split())}"
        yield f":class: only-{theme}\n:::\n"
    made = f"`joulemap {figure.command} -o figure.svg`, of query `{spec['usermeta']['query']}`"
    yield f"{made}: {{download}}`its specification and data <{FOLDER}/{figure.name}.json>`.\n"
    yield _write_rows(spec["datasets"]["rows"])


def _write_rows(rows: Sequence[Mapping[str, object]]) -> str:
    """Return rows as an HTML table that is folded until a reader opens it."""
    head = "".join(f"<th>{escape(name)}</th>" for name in rows[0])
    body = ("".join(f"<td>{escape(_format(value))}</td>" for value in row.values()) for row in rows)
    table = "\n".join(("<table>", f"<tr>{head}</tr>", *(f"<tr>{cells}</tr>" for cells in body), "</table>"))
    return f"<details><summary>The rows behind it ({len(rows)})</summary>\n{table}\n</details>\n"


def _format(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else "" if value is None else str(value)
