"""Content of a report: decision, chapters and data."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import attrs

from joulemap.domain.table import Table
from joulemap.show.figure.figure import Figure, Paint, choose_colours, paint, write_value
from joulemap.show.figure.spec import find_spec
from joulemap.show.present.cell import plain
from joulemap.show.present.document import Grid, Lines, Steps, Text
from joulemap.show.present.sketch import Bars, Chart, Heat
from joulemap.system.record import frozen


@frozen(kw_only=True)
class Choice:
    """One figure of an exhibit, with the label by which a reader chooses it."""

    label: str
    """Hardware in the figure, or the two chips that it compares."""
    figure: Figure


@frozen(kw_only=True)
class Exhibit:
    """Figures of one kind. With JavaScript, a reader sees the chosen figure; without it, all of them."""

    name: str
    """Name of the exhibit in links."""
    choices: tuple[Choice, ...]
    chooses: str = ""
    """Word before the list from which a reader chooses a figure; empty for a single figure."""
    opens: str = ""
    """Name of the trees that open on a click on a figure; empty if none do."""
    has_finding: bool = True
    """False if sentences beside the figures state their findings."""


@frozen(kw_only=True)
class Leaf:
    """Amount that is not split further, at the end of a tree."""

    label: str
    amount: str
    share: str


@frozen(kw_only=True)
class Branch:
    """Amount that is split into parts, in a tree."""

    label: str
    amount: str
    share: str
    fraction: float
    """Length of the bar, from 0 to 1: the share in the tree's total. For the total itself, its ratio to the largest
    total.
    """
    key: str = ""
    """Name of the amount in figures, so that a click there opens this branch."""
    parts: tuple[Branch | Leaf, ...]


@frozen(kw_only=True)
class Trees:
    """Amounts that a reader opens level by level, with the table that they are from."""

    name: str
    caption: str
    trees: tuple[Branch, ...]
    table: Table[Any]


@frozen(kw_only=True)
class Fold:
    """Blocks that are hidden until a reader opens them."""

    title: str = attrs.field(validator=attrs.validators.min_len(1))
    """Text that opens the blocks; never empty, because a reader clicks on it."""
    blocks: tuple[Block, ...]


@frozen(kw_only=True)
class Source:
    """Table behind the blocks above, whose rows are in the data of the page."""

    table: Table[Any]


Labelled = tuple[str, tuple[str, ...]]
"""Label and its sentences, such as the reasons of a decision."""


@frozen
class Labels:
    """Sentences under labels, such as reasons and the line on trust."""

    lines: tuple[Labelled, ...]


Block = Labels | Grid | Lines | Steps | Text | Bars | Chart | Heat | Exhibit | Trees | Fold | Source


@frozen(kw_only=True)
class Chapter:
    """Blocks under one title; links on the page lead to it by `name`."""

    name: str
    title: str
    blocks: tuple[Block, ...]


@frozen(kw_only=True)
class Report:
    """Report about models on hardware."""

    title: str
    """Name of the page in a browser."""
    decision: str
    """Answer in one sentence; empty for a page without a decision."""
    subject: str
    """Models and settings of the runs."""
    lead: tuple[Block, ...]
    """Table or picture of the decision."""
    reasons: tuple[Labelled, ...]
    """Why, and how far to trust the decision."""
    chapters: tuple[Chapter, ...]
    made: str
    """Version that made the report, the time, and the source of its numbers."""
    command: str
    """Command that makes the report again; empty if no command can."""

    @property
    def blocks(self) -> Iterator[Block]:
        """All blocks, including those in folds."""
        yield from _unfold(self.lead)
        for chapter in self.chapters:
            yield from _unfold(chapter.blocks)

    @property
    def figures(self) -> dict[str, Figure]:
        """Name on the page -> figure."""
        return {
            name_figure(one, index): choice.figure
            for one in self.blocks
            if isinstance(one, Exhibit)
            for index, choice in enumerate(one.choices)
        }

    @property
    def tables(self) -> tuple[Table[Any], ...]:
        """Tables behind figures, trees and sources, each once."""
        tables: dict[int, Table[Any]] = {}
        for one in self.blocks:
            if isinstance(one, Exhibit):
                tables |= {id(choice.figure.table): choice.figure.table for choice in one.choices}
            elif isinstance(one, Trees | Source):
                tables[id(one.table)] = one.table
        return tuple(tables.values())

    def columns(self, table: Table[Any]) -> tuple[str, ...]:
        """Return the columns of a table that the report shows: all if a tree or source shows the table, else those in
        figures.
        """
        drawn: set[str] = set()
        for one in self.blocks:
            if isinstance(one, Trees | Source) and one.table is table:
                return table.names
            if isinstance(one, Exhibit):
                figures = (choice.figure for choice in one.choices if choice.figure.table is table)
                drawn.update(*(find_spec(figure.name).columns for figure in figures))
        return tuple(name for name in table.names if name in drawn)


def unify_colours(report: Report) -> Report:
    """Return a report in which each chip has one colour and one shape in all figures."""
    colours = choose_colours(chip for figure in report.figures.values() for chip in figure.chips.values())
    chapters = (attrs.evolve(one, blocks=_paint(one.blocks, colours)) for one in report.chapters)
    return attrs.evolve(report, lead=_paint(report.lead, colours), chapters=tuple(chapters))


def _paint(blocks: tuple[Block, ...], colours: Mapping[str, Paint]) -> tuple[Block, ...]:
    painted: list[Block] = []
    for block in blocks:
        if isinstance(block, Exhibit):
            choices = (attrs.evolve(one, figure=paint(one.figure, colours)) for one in block.choices)
            painted.append(attrs.evolve(block, choices=tuple(choices)))
        elif isinstance(block, Fold):
            painted.append(attrs.evolve(block, blocks=_paint(block.blocks, colours)))
        else:
            painted.append(block)
    return tuple(painted)


def name_figure(exhibit: Exhibit, index: int) -> str:
    """Return the name of one figure of an exhibit on the page."""
    return f"{exhibit.name}-{index}"


def _unfold(blocks: tuple[Block, ...]) -> Iterator[Block]:
    for block in blocks:
        yield block
        if isinstance(block, Fold):
            yield from _unfold(block.blocks)


def list_content(report: Report, themes: Mapping[str, Any]) -> str:
    """Return the data of a report as JSON: its texts, tables, figures and themes.

    A table is stored once, column by column, with its query. Of a table that only figures use, only the columns in
    figures are stored. A figure, under its name on the page, refers to its specification and table.
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
        "answer": report.decision,
        "reasons": dict(report.reasons),
        "made": report.made,
        "command": report.command,
        "tables": [_describe(table, report.columns(table)) for table in tables],
        "figures": figures,
        "specifications": [json.loads(view) for view in views],
        "themes": themes,
    }
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))


def compress(text: str) -> str:
    """Return a text compressed by gzip and encoded as Base64, which is safe in HTML. Equal texts give equal results."""
    return base64.b64encode(gzip.compress(text.encode(), compresslevel=9, mtime=0)).decode()


def _strip(figure: Figure) -> dict[str, Any]:
    """Return the specification of a figure without title, description and rows, so that figures of one kind share
    it.
    """
    datasets = {name: rows for name, rows in figure.spec.get("datasets", {}).items() if name != "rows"}
    kept = {name: part for name, part in figure.spec.items() if name not in ("title", "description", "datasets")}
    return {**kept, "datasets": datasets}


def _describe(table: Table[Any], names: Collection[str]) -> dict[str, Any]:
    """Return a table with these columns as JSON values, column by column. This compresses to two thirds of the size by
    rows.
    """
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
