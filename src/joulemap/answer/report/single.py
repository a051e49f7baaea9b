"""The page of one answer: what it says first, its figures, its tables, and the queries behind them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING

import attrs

from joulemap.answer.answer import Answer
from joulemap.answer.report.chapter import read_blocks
from joulemap.figure.spec import find_spec
from joulemap.present.document import Document, Lines, Steps
from joulemap.system.resource import package_version
from joulemap.webpage.report import Chapter, Choice, Exhibit, Fold, Report, Source

if TYPE_CHECKING:
    from joulemap.figure.figure import Figure
    from joulemap.figure.spec import ShownName


def report_answer(answer: Answer, document: Document, *, subject: str, command: str = "") -> Report:
    """Return the page of an answer from its document, a chapter for each kind of figure.

    `subject` says above the title what was asked, `command` what makes the page again. The page holds every row of
    every table; those behind no figure are named with their query at the end.
    """
    sure = (f"How sure: {document.sure}",) if document.sure else ()
    return Report(
        title=document.title,
        subject=subject,
        verdict=tuple(filter(None, (document.answer, *document.insights, *sure))),
        chapters=tuple(_list_chapters(answer, document)),
        made=f"joulemap {package_version('joulemap')}, {datetime.now().astimezone():%Y-%m-%d %H:%M %Z}",
        command=command,
    )


def form_chapter(name: str, title: str, answer: Answer, document: Document) -> Chapter:
    """Return an answer as one chapter of a longer report: what it says, what decides, figures, all else folded away."""
    told = (*document.insights, *((f"How sure: {document.sure}",) if document.sure else ()))
    tables = tuple(block for section in document.sections for block in read_blocks(section))
    folds = tuple(Fold(title=one.title, blocks=read_blocks(one)) for one in document.details if one.texts)
    notes = Fold(title="What is assumed", blocks=(Lines(document.notes, is_numbered=True),))
    exhibits = tuple(attrs.evolve(one, name=f"{name}-{one.name}") for one in _list_exhibits(answer))
    blocks = (Lines((document.answer, *told)), *tables, *exhibits, *folds, notes, _list_queries(document))
    return Chapter(name=name, title=title, blocks=blocks)


def _list_exhibits(answer: Answer) -> Iterator[Exhibit]:
    """Yield the figures of an answer, one exhibit for each kind."""
    drawn: dict[ShownName, list[Figure]] = {}
    for figure in answer.figures():
        drawn.setdefault(figure.name, []).append(figure)
    for name, figures in drawn.items():
        choices = tuple(Choice(label=figure.title.rpartition(": ")[2], figure=figure) for figure in figures)
        yield Exhibit(name=name, choices=choices, chooses="of" if len(choices) > 1 else "")


def _list_queries(document: Document) -> Fold:
    return Fold(title="Queries", blocks=tuple(Source(table=table) for table in document.tables if table.rows))


def _list_chapters(answer: Answer, document: Document) -> Iterator[Chapter]:
    """Yield the tables that decide, a chapter for each kind of figure, tables of details, notes with the queries."""
    blocks = tuple(block for section in document.sections for block in read_blocks(section))
    if blocks:
        yield Chapter(name="answer", title="Side by side", blocks=blocks)
    for exhibit in _list_exhibits(answer):
        yield Chapter(name=exhibit.name, title=find_spec(exhibit.choices[0].figure.name).title, blocks=(exhibit,))
    for index, section in enumerate(one for one in document.details if one.texts):
        yield Chapter(name=f"table-{index}", title=section.title, blocks=read_blocks(section))
    rest = (Lines(document.notes, is_numbered=True), Steps(document.steps), _list_queries(document))
    yield Chapter(name="sources", title="What is assumed, and what to ask next", blocks=rest)
