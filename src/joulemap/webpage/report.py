"""Report in memory: its verdict, its chapters and its data."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from joulemap.domain.table import Table
from joulemap.figure.figure import Figure, write_value
from joulemap.figure.spec import find_spec
from joulemap.present.cell import plain
from joulemap.present.document import Grid, Lines, Steps, Text
from joulemap.present.sketch import Bars, Chart, Heat
from joulemap.system.record import frozen


@frozen(kw_only=True)
class Choice:
    """One figure of an exhibit."""

    label: str
    """Hardware that the figure shows, or a pair of it."""
    figure: Figure


@frozen(kw_only=True)
class Exhibit:
    """Figures of one kind; a reader with JavaScript sees the chosen one, all others see all."""

    name: str
    """Name in links."""
    choices: tuple[Choice, ...]
    chooses: str = ""
    """Property that distinguishes the figures; empty for one figure."""
    opens: str = ""
    """Trees that a click on a figure opens; empty if there is none."""


@frozen(kw_only=True)
class Leaf:
    """Leaf of a tree: amount without parts."""

    label: str
    amount: str
    share: str


@frozen(kw_only=True)
class Branch:
    """Amount with parts."""

    label: str
    amount: str
    share: str
    fraction: float
    """Length of the bar: share of the tree's total; of a total, its ratio to the largest total."""
    key: str = ""
    """Name in figures."""
    parts: tuple[Branch | Leaf, ...]


@frozen(kw_only=True)
class Trees:
    """Amounts to open level by level, with the table behind them."""

    name: str
    caption: str
    trees: tuple[Branch, ...]
    table: Table[Any]


@frozen(kw_only=True)
class Fold:
    """Blocks that stay closed until a reader opens them."""

    title: str
    blocks: tuple[Block, ...]


@frozen(kw_only=True)
class Badge:
    """Grade of one aspect of the numbers, in a few words."""

    label: str
    """Graded aspect."""
    text: str
    grade: str
    """`good`, `fair` or `poor`; decides the colour and the mark."""


@frozen(kw_only=True)
class Badges:
    """Badges side by side."""

    badges: tuple[Badge, ...]


@frozen(kw_only=True)
class Source:
    """Query behind the block above."""

    table: Table[Any]


Block = Grid | Lines | Steps | Text | Bars | Chart | Heat | Exhibit | Trees | Fold | Badges | Source


@frozen(kw_only=True)
class Chapter:
    """Blocks under a title that links lead to."""

    name: str
    title: str
    blocks: tuple[Block, ...]


@frozen(kw_only=True)
class Report:
    """Report on models on hardware."""

    title: str
    subject: str
    """Settings of the runs."""
    verdict: tuple[str, ...]
    """Best hardware, confidence and reasons; the first sentence is the answer."""
    chapters: tuple[Chapter, ...]
    made: str
    """Version that made the report, the time, and the source of its numbers."""
    command: str
    """Command that makes the report again; empty if no command can."""

    @property
    def blocks(self) -> Iterator[Block]:
        """All blocks, also those inside folds."""
        for chapter in self.chapters:
            yield from _unfold(chapter.blocks)

    @property
    def figures(self) -> dict[str, Figure]:
        """Figures by their names on the page."""
        return {
            name_figure(one, index): choice.figure
            for one in self.blocks
            if isinstance(one, Exhibit)
            for index, choice in enumerate(one.choices)
        }

    @property
    def tables(self) -> tuple[Table[Any], ...]:
        """Tables of figures, trees and sources, each once."""
        found: dict[int, Table[Any]] = {}
        for one in self.blocks:
            if isinstance(one, Exhibit):
                found |= {id(choice.figure.table): choice.figure.table for choice in one.choices}
            elif isinstance(one, Trees | Source):
                found[id(one.table)] = one.table
        return tuple(found.values())

    def columns(self, table: Table[Any]) -> tuple[str, ...]:
        """Return the columns of a table that the report uses: those that figures draw, or all of a tree or source."""
        drawn: set[str] = set()
        for one in self.blocks:
            if isinstance(one, Trees | Source) and one.table is table:
                return table.names
            if isinstance(one, Exhibit):
                figures = (choice.figure for choice in one.choices if choice.figure.table is table)
                drawn.update(*(find_spec(figure.name).columns for figure in figures))
        return tuple(name for name in table.names if name in drawn)


def name_figure(exhibit: Exhibit, index: int) -> str:
    """Return the name on the page of one figure of an exhibit."""
    return f"{exhibit.name}-{index}"


def _unfold(blocks: tuple[Block, ...]) -> Iterator[Block]:
    for block in blocks:
        yield block
        if isinstance(block, Fold):
            yield from _unfold(block.blocks)


def list_content(report: Report, themes: Mapping[str, Any]) -> str:
    """Return the data of a report as JSON: tables, and figures by their names on the page.

    Each table is there once, with its query and the values of each column. A table behind figures alone has only the
    columns that they draw. A figure has a specification, the table whose rows it draws, and its texts.
    """
    tables = report.tables
    places = {id(table): index for index, table in enumerate(tables)}
    views: dict[str, int] = {}
    figures = {}
    for name, figure in report.figures.items():
        view = json.dumps(_strip(figure), ensure_ascii=False, sort_keys=True)
        figures[name] = {
            "specification": views.setdefault(view, len(views)),
            "table": places[id(figure.table)],
            "columns": find_spec(figure.name).columns,
            "title": figure.spec["title"],
            "description": figure.description,
            "query": figure.query,
        }
    content = {
        "title": report.title,
        "subject": report.subject,
        "verdict": report.verdict,
        "made": report.made,
        "command": report.command,
        "tables": [_describe(table, report.columns(table)) for table in tables],
        "figures": figures,
        "specifications": [json.loads(view) for view in views],
        "themes": themes,
    }
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))


def compress(text: str) -> str:
    """Return a text as Base64 of gzip, which is safe in HTML; equal texts give equal results."""
    return base64.b64encode(gzip.compress(text.encode(), compresslevel=9, mtime=0)).decode()


def _strip(figure: Figure) -> dict[str, Any]:
    """Return a specification without the parts that differ between figures of its kind."""
    datasets = {name: rows for name, rows in figure.spec.get("datasets", {}).items() if name != "rows"}
    kept = {name: part for name, part in figure.spec.items() if name not in ("title", "description", "datasets")}
    return {**kept, "datasets": datasets}


def _describe(table: Table[Any], names: Collection[str]) -> dict[str, Any]:
    """Return a table column by column, which compresses to two thirds of its size by rows."""
    values = list(zip(*table.cells, strict=True)) or [()] * len(table.columns)
    return {
        "query": table.title,
        "parameters": plain(dict(table.parameters)),
        "row_count": len(table),
        "columns": [
            {
                "name": one.name,
                "type": one.type,
                "unit": one.unit,
                "meaning": one.meaning,
                "values": list(map(write_value, values[index])),
            }
            for index, one in enumerate(table.columns)
            if one.name in names
        ],
    }
