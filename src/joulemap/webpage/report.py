"""A report: what it says first, then chapter by chapter, and its data, before it is known how a page shows it."""

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
    """One of the figures of an exhibit."""

    label: str
    """What is chosen: a hardware, or two."""
    figure: Figure


@frozen(kw_only=True)
class Exhibit:
    """Figures of one kind, of which a reader with JavaScript sees one and all others see all."""

    name: str
    """In a link."""
    choices: tuple[Choice, ...]
    chooses: str = ""
    """What tells the figures apart; empty where there is one."""
    opens: str = ""
    """The trees that a click on a figure looks into; empty for none."""


@frozen(kw_only=True)
class Leaf:
    """An amount that is looked into no further."""

    label: str
    amount: str
    share: str


@frozen(kw_only=True)
class Branch:
    """An amount that is made of others."""

    label: str
    amount: str
    share: str
    fraction: float
    """How long its bar is: of the whole tree, of a tree itself against the largest."""
    key: str = ""
    """What figures call it."""
    parts: tuple[Branch | Leaf, ...]


@frozen(kw_only=True)
class Trees:
    """Amounts to look into, level by level, with the table that they are of."""

    name: str
    caption: str
    trees: tuple[Branch, ...]
    table: Table[Any]


@frozen(kw_only=True)
class Fold:
    """What is shown to who asks for it."""

    title: str
    blocks: tuple[Block, ...]


@frozen(kw_only=True)
class Badge:
    """How far to trust something, in a few words."""

    label: str
    """What."""
    text: str
    grade: str
    """`good`, `fair` or `poor`: how it is coloured, besides a mark."""


@frozen(kw_only=True)
class Badges:
    """Badges beside each other."""

    badges: tuple[Badge, ...]


@frozen(kw_only=True)
class Source:
    """The query behind what stands above it."""

    table: Table[Any]


Block = Grid | Lines | Steps | Text | Bars | Chart | Heat | Exhibit | Trees | Fold | Badges | Source


@frozen(kw_only=True)
class Chapter:
    """Blocks under a title that a link leads to."""

    name: str
    title: str
    blocks: tuple[Block, ...]


@frozen(kw_only=True)
class Report:
    """A report on models on hardware."""

    title: str
    subject: str
    """How they are run."""
    verdict: tuple[str, ...]
    """Which hardware, how sure, why: the first sentence is the answer."""
    chapters: tuple[Chapter, ...]
    made: str
    """By which version, when, from what."""
    command: str
    """What makes it again; empty where no command can."""

    @property
    def blocks(self) -> Iterator[Block]:
        """Every block, those that are folded away included."""
        for chapter in self.chapters:
            yield from _unfold(chapter.blocks)

    @property
    def figures(self) -> dict[str, Figure]:
        """Every figure by the name that the page has for it."""
        return {
            name_figure(one, index): choice.figure
            for one in self.blocks
            if isinstance(one, Exhibit)
            for index, choice in enumerate(one.choices)
        }

    @property
    def tables(self) -> tuple[Table[Any], ...]:
        """The tables of figures, trees and sources, each once."""
        found: dict[int, Table[Any]] = {}
        for one in self.blocks:
            if isinstance(one, Exhibit):
                found |= {id(choice.figure.table): choice.figure.table for choice in one.choices}
            elif isinstance(one, Trees | Source):
                found[id(one.table)] = one.table
        return tuple(found.values())

    def columns(self, table: Table[Any]) -> tuple[str, ...]:
        """Return the columns of a table that the report rests on: those that its figures draw, all where it is told."""
        drawn: set[str] = set()
        for one in self.blocks:
            if isinstance(one, Trees | Source) and one.table is table:
                return table.names
            if isinstance(one, Exhibit):
                figures = (choice.figure for choice in one.choices if choice.figure.table is table)
                drawn.update(*(find_spec(figure.name).columns for figure in figures))
        return tuple(name for name in table.names if name in drawn)


def name_figure(exhibit: Exhibit, index: int) -> str:
    """Return the name of one figure of an exhibit on its page."""
    return f"{exhibit.name}-{index}"


def _unfold(blocks: tuple[Block, ...]) -> Iterator[Block]:
    for block in blocks:
        yield block
        if isinstance(block, Fold):
            yield from _unfold(block.blocks)


def list_content(report: Report, themes: Mapping[str, Any]) -> str:
    """Return the data as JSON: tables, and figures by their names on the page.

    A table is there once, with its query and the values of each column, of those that nothing but figures are made of
    the columns that they draw. A figure has a specification, the table whose rows it draws, and its texts.
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
    """Return a text in gzip's format, in letters that HTML leaves alone; the same for the same text."""
    return base64.b64encode(gzip.compress(text.encode(), compresslevel=9, mtime=0)).decode()


def _strip(figure: Figure) -> dict[str, Any]:
    """Return a specification without what it does not share with others of its kind."""
    datasets = {name: rows for name, rows in figure.spec.get("datasets", {}).items() if name != "rows"}
    kept = {name: part for name, part in figure.spec.items() if name not in ("title", "description", "datasets")}
    return {**kept, "datasets": datasets}


def _describe(table: Table[Any], names: Collection[str]) -> dict[str, Any]:
    """Return a table column by column, which packs to two thirds of what its rows do."""
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
