"""Compose one page, a report on models and several chips, from the answers to other questions."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.answer.base import Answer
from joulemap.answer.report.chapter import join_exhibits, list_chapters, read_blocks
from joulemap.answer.report.finding import ModelFinding, find_out
from joulemap.answer.report.part import TABLE, list_parts
from joulemap.ask import answer as asked
from joulemap.ask.contest import ModelsAnswer, compare_models
from joulemap.domain.default import SETTINGS
from joulemap.domain.settings import Settings, check_name
from joulemap.domain.table import Table
from joulemap.plan.source import Source
from joulemap.show.figure.spec import find_spec
from joulemap.show.present.document import TRUST, WHY, Document, Grid, Lines, Section, Steps, Text
from joulemap.show.present.template import Template
from joulemap.show.webpage.page import write_page
from joulemap.show.webpage.report import (
    Block as Part,
    Chapter,
    Choice,
    Exhibit,
    Fold,
    Labelled,
    Labels,
    Report,
    Source as Behind,
    unify_colours,
)
from joulemap.store.connection import keeping_open
from joulemap.system.errors import UsageError
from joulemap.system.file import write_file
from joulemap.system.name import is_module_name
from joulemap.system.record import frozen
from joulemap.system.resource import package_version

if TYPE_CHECKING:
    from joulemap.physics.record.hardware import Hardware
    from joulemap.show.figure.figure import Figure
    from joulemap.show.figure.spec import ShownName


PAGE_TITLE: Final = Template("Which hardware for {models:and}?")
MADE: Final = Template("joulemap {version}, {time}")
OF_MODEL: Final = Template("{model}: {line}")
MODELS: Final = "Models side by side"
FOLD: Final = Template("{title}: {fold}")


def report_answer(answer: asked.Answer, document: Document, *, command: str = "") -> Report:
    """Return the page of an answer from its document, with a chapter for each kind of figure.

    `command` reproduces the page. The page holds every row of every table; tables without a figure are listed with
    their queries at the end.
    """
    exhibits = list(_list_exhibits(answer))
    made = Report(
        title=document.answer or document.title,
        decision=document.answer,
        subject=document.title,
        lead=tuple(attrs.evolve(one, has_finding=False) for one in exhibits[:1]),
        reasons=_list_reasons(document),
        chapters=tuple(_list_chapters(document, exhibits[1:])),
        made=_describe_making(),
        command=command,
    )
    return unify_colours(made)


def _describe_making() -> str:
    return MADE(version=package_version("joulemap"), time=f"{datetime.now().astimezone():%Y-%m-%d %H:%M %Z}")


def _list_reasons(document: Document, before: Sequence[Labelled] = ()) -> tuple[Labelled, ...]:
    """Return the labelled lines below a decision: `before`, the reasons and the line on trust."""
    own = ((document.reason_label or WHY, document.insights), (TRUST, (document.sure,) if document.sure else ()))
    return (*before, *((label, lines) for label, lines in own if lines))


def form_chapter(name: str, title: str, answer: Answer, document: Document) -> Chapter:
    """Return an answer as one chapter of a longer report, whose head states the decision.

    Tables of details and queries are folded. Notes are those that the answer has beyond its line on trust.
    """
    tables = tuple(block for section in document.sections for block in read_blocks(section))
    folds = tuple(Fold(title=one.title or TABLE, blocks=read_blocks(one)) for one in document.details if one.texts)
    notes = Fold(title="Notes and assumptions", blocks=(Lines(document.notes, is_numbered=True),))
    exhibits = (attrs.evolve(one, name=f"{name}-{one.name}", has_finding=False) for one in _list_exhibits(answer))
    blocks = (*exhibits, Labels(_list_reasons(document)), *tables, *folds, notes, _list_queries(document))
    return Chapter(name=name, title=title, blocks=blocks)


def _list_exhibits(answer: asked.Answer) -> Iterator[Exhibit]:
    """Yield the figures of an answer, one exhibit for each kind."""
    drawn: dict[ShownName, list[Figure]] = {}
    for figure in answer.figures():
        drawn.setdefault(figure.name, []).append(figure)
    for name, figures in drawn.items():
        choices = tuple(Choice(label=figure.about or figure.title, figure=figure) for figure in figures)
        yield Exhibit(name=name, choices=choices, chooses="of" if len(choices) > 1 else "")


def _list_queries(document: Document) -> Fold:
    return Fold(title="Queries", blocks=tuple(Behind(table=table) for table in document.tables if table.rows))


def _list_chapters(document: Document, exhibits: Sequence[Exhibit]) -> Iterator[Chapter]:
    """Yield the main tables, a chapter for each kind of figure, tables of details, and notes with the queries."""
    blocks = tuple(block for section in document.sections for block in read_blocks(section))
    if blocks:
        yield Chapter(name="answer", title="Side by side", blocks=blocks)
    for exhibit in exhibits:
        yield Chapter(name=exhibit.name, title=find_spec(exhibit.choices[0].figure.name).title, blocks=(exhibit,))
    for index, section in enumerate(one for one in document.details if one.texts):
        yield Chapter(name=f"table-{index}", title=section.title or TABLE, blocks=read_blocks(section))
    rest = (Lines(document.notes, is_numbered=True), Steps(document.steps), _list_queries(document))
    yield Chapter(name="sources", title="Assumptions and next questions", blocks=rest)


@frozen(kw_only=True, repr=False)
class ReportAnswer(Answer):
    """Report on models and several chips, from the verdict to the sources; `html` returns the page."""

    findings: tuple[ModelFinding, ...]
    """Answers to all questions of the report, one record per model."""
    models: ModelsAnswer | None
    """Comparison of the models; None for a single model."""
    report: Report

    @property
    def tables(self) -> tuple[Table[Any], ...]:
        """Query results behind the report."""
        own = self.models.tables if self.models else ()
        return (*own, *self.report.tables)

    def data(self) -> dict[str, Any]:
        """Return the data for machine formats: every row of every table."""
        return {
            "title": self.report.title,
            "answer": self.report.decision,
            "reasons": {label: list(lines) for label, lines in self.report.reasons},
            "models": self.models.data() if self.models else None,
            "reports": {one.model: _collect(one) for one in self.findings},
        }

    def document(self) -> Document:
        """Return the document: the decision and the chapters, with the comparison as its table."""
        report = self.report
        reasons = [Section(label, Lines(lines)) for label, lines in report.reasons]
        shown = [part for chapter in report.chapters for part in _read_sections(chapter.title, chapter.blocks)]
        return Document(
            title=report.subject,
            answer=report.decision,
            sections=(*reasons, *shown),
            data=self.data(),
            table=self.models.rows if self.models else self.findings[0].compare.rows,
            tables=self.tables,
        )

    def html(self) -> str:
        """Return one page that needs no network; figures fall back to text if vl-convert-python is missing."""
        return write_page(self.report)

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write the page to a file; UsageError if the file holds anything that joulemap did not write."""
        page = self.html()
        write_file(Path(path), lambda draft: draft.write_text(page, encoding="utf-8"), (), force=force)


def _read_sections(title: str, blocks: Iterable[Part]) -> Iterator[Section]:
    """Yield the texts and tables of a chapter: what it shows, then each of its folds under the fold's title."""
    listed = tuple(blocks)
    yield Section(title, tuple(block for block in listed if isinstance(block, Grid | Lines | Steps | Text)))
    for block in listed:
        if isinstance(block, Fold):
            yield from _read_sections(FOLD(title=title, fold=block.title), block.blocks)


def _collect(finding: ModelFinding) -> dict[str, Any]:
    single = ("compare", "runs", "pareto", "parts", "sweep", "flip", "cost", "utilization")
    return {
        **{name: answer.data() if (answer := getattr(finding, name)) else None for name in single},
        **{one.name: finding.added[one.name].data() if one.name in finding.added else None for one in list_parts()},
        "edp": [one.data() for one in finding.edp],
        "explain": [one.data() for one in finding.explain],
        "tree": finding.tree.records(),
        "accuracy": finding.accuracy.records(),
        "sources": finding.sources.records(),
    }


@keeping_open()
def report(
    source: Source,
    models: str | Sequence[str],
    settings: Settings = SETTINGS,
    *,
    between: Sequence[str | Hardware] = (),
    asked: Mapping[str, Any] | None = None,
    repeated: Sequence[str] = (),
) -> ReportAnswer:
    """Return a report on models on each chip; its `save` writes one page that needs no network.

    The report asks `compare` and related questions on the same hardware; without given batches, it sweeps the default
    batches of `sweep`. `between` names the two chips to explain, by default the best and each other one. `asked` maps
    further chapters to their requests: "fleet" to a `Demand`, "placed" to a box. `repeated` are the options of the
    page's own command. Raises like `compare`, `fleet` and `place`; UsageError for several batches, precisions or
    runtimes; UnknownNameError for an unknown chapter.
    """
    settings.check_single("report")
    if between and len(between) != 2:
        raise UsageError(f"name two chips to explain, A and B; found {len(between)}")
    names = tuple(dict.fromkeys((models,) if isinstance(models, str) else models))
    known = [one.name for one in list_parts()]
    for name in asked or {}:
        check_name("chapter", name, known)
    findings = tuple(find_out(source, name, settings, between, asked or {}) for name in names)
    beside = compare_models(source, names, settings) if len(names) > 1 else None
    return ReportAnswer(findings=findings, models=beside, report=_compose(findings, beside, names, repeated))


def _compose(
    findings: Sequence[ModelFinding], beside: ModelsAnswer | None, names: Sequence[str], repeated: Sequence[str]
) -> Report:
    several = beside is not None
    prefixes = [f"m{index + 1}-" if several else "" for index in range(len(findings))]
    document = beside.document() if beside is not None else findings[0].compare.document()
    chapters = [_compare_models(beside, document)] if beside is not None else []
    for finding, prefix in zip(findings, prefixes, strict=True):
        listed = list_chapters(finding, prefix)
        titled = (attrs.evolve(one, title=OF_MODEL(finding, line=one.title)) for one in listed)
        chapters += titled if several else listed
    added = [
        (OF_MODEL(finding, line=one.label) if several else one.label, (finding.added[one.name].document().answer,))
        for finding in findings
        for one in list_parts()
        if one.label and one.name in finding.added
    ]
    is_held = any(map(is_module_name, names))
    made = Report(
        title=PAGE_TITLE(models=names),
        decision=document.answer,
        subject=document.title,
        lead=join_exhibits(
            "comparison", [(finding.model, finding.compare) for finding in findings], "model", has_finding=False
        ),
        reasons=_list_reasons(document, added),
        chapters=tuple(chapters),
        made=_describe_making(),
        command="" if is_held else shlex.join(["joulemap", "report", *names, *repeated]),
    )
    return unify_colours(made)


def _compare_models(beside: ModelsAnswer, document: Document) -> Chapter:
    """Return the chapter that compares the models, whose decision and reasons are those of the page."""
    blocks = tuple(block for one in (*document.sections, *document.details) for block in read_blocks(one))
    return Chapter(name="models", title=MODELS, blocks=(*blocks, Behind(table=beside.rows)))
