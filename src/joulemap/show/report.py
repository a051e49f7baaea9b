"""Pages of reports: the answers on one or several models as chapters of figures, sentences and tables."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import groupby
from typing import Any, Final

import attrs

from joulemap.ask.answer import Answer
from joulemap.ask.report import ModelFinding, ReportAnswer, list_parts
from joulemap.domain.figure import FigureName
from joulemap.domain.table import Table, group
from joulemap.generated.report import EnergyLeaf, NumberSource, PredictionStanding
from joulemap.show.analyze import draw_roof
from joulemap.show.caveat import list_notes
from joulemap.show.column import lay_columns
from joulemap.show.figure.spec import find_spec
from joulemap.show.page import Asked, Page, add_marks
from joulemap.show.pair import lay_categories
from joulemap.show.present.category import name_category
from joulemap.show.present.cell import join_names, mark_projected, show_quantity, show_share
from joulemap.show.present.document import TRUST, WHY, Document, Grid, Lines, Section, Steps, Text
from joulemap.show.present.template import Template
from joulemap.show.run import find_conditions, title_runs
from joulemap.show.term import list_reasons as list_causes
from joulemap.show.title import bind
from joulemap.show.view import draw, draw_figures
from joulemap.show.webpage.page import write_page as write_page
from joulemap.show.webpage.report import (
    Block,
    Branch,
    Chapter,
    Choice,
    Exhibit,
    Fold,
    Labelled,
    Labels,
    Leaf,
    Report,
    Source,
    Trees,
    unify_colours,
)
from joulemap.show.win import describe_parts
from joulemap.system.name import is_module_name
from joulemap.system.record import frozen
from joulemap.system.resource import package_version
from joulemap.system.units import FJ_PER_J

PAGE_TITLE: Final = Template("Which hardware for {models:and}?")
MADE: Final = Template("joulemap {version}, {time}")
OF_MODEL: Final = Template("{model}: {line}")
FOLD: Final = Template("{title}: {fold}")
TABLE: Final = "As a table"
COMPARE_TITLE: Final = "All chips side by side"
ENERGY_TITLE: Final = "Where the energy goes"
OTHER_SUBGRAPHS: Final = Template("{count:n other subgraph}")
SMALLER_ACTIONS: Final = Template("{count:n smaller action}")
EXPLAIN_TITLE: Final = "Why the chips differ"
PAIR: Final = Template("{a} to {b}")
FROM: Final = Template("From {a} to {b}")
ACCURACY: Final = "Accuracy on these chips"
ACCURACY_MEANING: Final = (
    "80 % of the measurements should fall inside the interval. It is wider for hardware that was not measured itself."
)
SOURCE_TABLE: Final = Template("{count:#} sources, by the energy that depends on them[; {rest:#} more in the data]")
SOURCE_COLUMNS: Final = ("source", "basis", "numbers", "hardware")

LEAST_FRACTION: Final = 0.005
"""Share of the run's energy below which actions are merged into one leaf of the energy tree."""

SHOWN_SOURCES: Final = 200

SHOWN_USERS: Final = 4
"""Maximum chips listed beside a source."""

SHOWN_NAMES: Final = 90
"""Maximum characters of the names of numbers listed with a source."""


@frozen(kw_only=True)
class Told:
    """Chapter that has the decision, the figure, the reasons and the tables of one answer of a report."""

    name: FigureName
    """Name of the answer and of its figure."""
    title: str
    tables: Sequence[tuple[str, slice, str]]
    """Sections of the document, `sections` or `details`, and the table of the answer behind them."""
    limit: str = ""
    """Table of the answer whose rows the document shows all; empty for the usual number of rows."""

    def draw(self, drawn: Drawn) -> Chapter | None:
        """Return the chapter; None without an answer."""
        answer = getattr(drawn.finding, self.name)
        if answer is None:
            return None
        return drawn.make(self.name, self.title, self.list_blocks(drawn, answer))

    def list_blocks(self, drawn: Drawn, answer: Answer) -> tuple[Block, ...]:
        """Return the blocks of the chapter."""
        document = draw(answer, limit=len(getattr(answer, self.limit)) if self.limit else None)
        tables = [(getattr(document, kind)[some], getattr(answer, table)) for kind, some, table in self.tables]
        return drawn.list_blocks(self.name, answer, document, tables)


@frozen
class Drawn:
    """Findings on one model, and what draws its chapters."""

    finding: ModelFinding
    prefix: str
    """Prefix of the names of all chapters on the model; it distinguishes models."""

    def list_chapters(self) -> tuple[Chapter, ...]:
        """Return the chapters that have content."""
        made = (*self.add(is_first=True), *(one(self) for one in CHAPTERS[:-2]), *self.add(is_first=False),
                *(one(self) for one in CHAPTERS[-2:]))  # fmt: skip
        return tuple(one for one in made if one is not None and one.blocks)

    def add(self, *, is_first: bool) -> Iterator[Chapter]:
        """Yield the chapters of optional extensions: those placed first if `is_first`, otherwise the others."""
        for one in list_parts():
            if one.is_first == is_first and one.name in self.finding.added:
                yield one.draw(self, self.finding.added[one.name])

    def make(self, name: str, title: str, blocks: Iterable[Block]) -> Chapter:
        """Return a chapter of these blocks."""
        return Chapter(name=f"{self.prefix}{name}", title=title, blocks=tuple(blocks))

    def list_blocks(
        self,
        figure: FigureName,
        answer: Answer,
        document: Document,
        tables: Iterable[tuple[Sequence[Section], Table[Any]]],
    ) -> tuple[Block, ...]:
        """Return the decision, figure and reasons of an answer, and its tables."""
        folds = (fold for sections, table in tables for fold in _fold(sections, Source(table=table)))
        drawn = join_exhibits(self.prefix, figure, [("", answer)], "hardware", has_finding=False)
        return (Text(document.answer), *drawn, Lines(document.insights), *folds)

    def make_whole(self, name: str, title: str, answer: Answer) -> Chapter:
        """Return an answer as one chapter, whose decision is in the head of the report.

        Tables of details are folded. Notes are those that the answer has beyond its line on trust.
        """
        document, name = draw(answer), f"{self.prefix}{name}"
        tables = (block for section in document.sections for block in read_blocks(section))
        folds = (Fold(title=one.title or TABLE, blocks=read_blocks(one)) for one in document.details if one.texts)
        notes = Fold(title="Notes and assumptions", blocks=(Lines(document.notes, is_numbered=True),))
        exhibits = (attrs.evolve(one, name=f"{name}-{one.name}", has_finding=False) for one in _list_exhibits(answer))
        blocks = (*exhibits, Labels(_list_reasons(document)), *tables, *folds, notes, *_list_sources(document))
        return Chapter(name=name, title=title, blocks=blocks)

    def exhibit(self, name: FigureName, asked: Sequence[tuple[str, Answer]], opens: str = "") -> tuple[Exhibit, ...]:
        """Return one exhibit with the figures of this name from all answers, to choose from; empty if there is none."""
        named = [(self.mark(label) if label else "", answer) for label, answer in asked]
        return join_exhibits(self.prefix, name, named, "hardware", opens=opens)

    def mark(self, name: str) -> str:
        """Return the name of a chip, marked if it is not available."""
        return mark_projected(name, self.finding.compare.projected)


def draw_compare(drawn: Drawn) -> Chapter | None:
    """Return the chapter that compares all hardware; None for the only model, whose comparison heads the page."""
    rows = drawn.finding.compare.rows
    document = draw(drawn.finding.compare, limit=len(rows))
    return drawn.make("compare", COMPARE_TITLE, _list_tables(document, rows)) if drawn.prefix else None


def draw_energy(drawn: Drawn) -> Chapter:
    """Return the chapter on energy, with trees to expand level by level."""
    finding, name = drawn.finding, f"{drawn.prefix}tree"
    energies = {row.hardware: row.energy_j or 0.0 for row in finding.answered}
    most = max(energies.values(), default=0.0)
    trees = []
    for _, part in groupby(finding.tree, lambda row: row.run_id):
        leaves = tuple(part)
        chip = leaves[0].hardware
        tree = _make_tree(drawn.mark(chip), chip, leaves)
        trees.append(attrs.evolve(tree, fraction=energies[chip] / most if most else 0.0))
    caption = "Energy by hardware, category, action and subgraph"
    drill = Trees(name=name, caption=caption, trees=tuple(trees), table=finding.tree)
    exhibits = drawn.exhibit("breakdown", [("", finding.runs)], opens=name)
    return drawn.make("energy", ENERGY_TITLE, (*exhibits, drill))


def draw_rooflines(drawn: Drawn) -> Chapter:
    """Return the chapter on utilization and the rooflines of each chip."""
    scope, use = drawn.finding.compare.scope, drawn.finding.utilization
    names = [drawn.mark(row.hardware) for row in drawn.finding.answered]
    titles = (bind(attrs.evolve(title_runs(scope), about=name), find_conditions(scope)) for name in names)
    made = zip(names, titles, drawn.finding.roofs, strict=True)
    choices = tuple(Choice(label=name, figure=draw_roof(table, title)) for name, title, table in made)
    chooses = "hardware" if len(choices) > 1 else ""
    each = Exhibit(name=f"{drawn.prefix}roofline", choices=choices, chooses=chooses)
    together = drawn.exhibit("rooflines", [("", use)]) if chooses else ()
    return drawn.make("roofline", UTILIZATION.title, (*UTILIZATION.list_blocks(drawn, use), *together, each))


def draw_parts(drawn: Drawn) -> Chapter | None:
    """Return the chapter on the best hardware for each subgraph, with a picture if it is not always the same; None
    without an answer.
    """
    answer = drawn.finding.parts
    if answer is None:
        return None
    has_turns = len({row.winner for row in answer.rows}) > 1
    shown = drawn.exhibit("heatmap", [("", answer)]) if has_turns else (Text(describe_parts(answer.facts)),)
    return drawn.make("parts", "Best chip for each subgraph", (*shown, Source(table=answer.rows)))


def draw_edp(drawn: Drawn) -> Chapter:
    """Return the chapter on energy x delay per chip."""
    asked = [(drawn.mark(one.total.hardware), one) for one in drawn.finding.edp]
    sources = (Source(table=one.bounds) for one in drawn.finding.edp)
    return drawn.make("edp", "Energy-delay product by subgraph", (*drawn.exhibit("edp", asked), *sources))


def draw_explain(drawn: Drawn) -> Chapter:
    """Return the chapter on the differences between the best chip and each other chip."""
    pairs = [(dict(zip("ab", map(drawn.mark, one.names), strict=True)), one) for one in drawn.finding.explain]
    asked = [(PAIR(**names), one) for names, one in pairs]
    blocks = [(Lines(list_causes(one.facts)), lay_categories(one)) for _, one in pairs]
    folds = (Fold(title=FROM(**names), blocks=own) for (names, _), own in zip(pairs, blocks, strict=True))
    exhibits = join_exhibits(drawn.prefix, "waterfall", asked, "pair of chips", has_finding=False)
    return drawn.make("explain", EXPLAIN_TITLE, (*exhibits, *(blocks[0] if len(blocks) == 1 else folds)))


def draw_accuracy(drawn: Drawn) -> Chapter:
    """Return the chapter on the accuracy of predictions for each chip."""
    rows = drawn.finding.accuracy
    table = lay_columns(drawn.finding.compare, rows, PredictionStanding.table)
    return drawn.make("accuracy", ACCURACY, (Text(ACCURACY_MEANING), table, Source(table=rows)))


def draw_sources(drawn: Drawn) -> Chapter:
    """Return the chapter with every note and source; the line on trust in the head has the heaviest caveats."""
    compared = drawn.finding.compare
    groups = group(drawn.finding.sources, lambda row: (row.basis, row.source))
    ordered = sorted(groups.items(), key=lambda item: -sum(row.run_fraction or 0.0 for row in item[1]))
    lines = tuple(
        (source, basis, _shorten(rows[0].numbers, rows[0].number_count), _list_users(drawn, rows))
        for (basis, source), rows in ordered[:SHOWN_SOURCES]
    )
    title = SOURCE_TABLE(count=len(ordered), rest=max(0, len(ordered) - SHOWN_SOURCES) or None)
    notes = Lines(add_marks(list_notes(compared.facts, is_beyond_trust=True), draw(compared).sections))
    table = Fold(title=title, blocks=(Grid(headings=SOURCE_COLUMNS, rows=lines),))
    return drawn.make("sources", "Assumptions and sources", (notes, table, Source(table=drawn.finding.sources)))


def _list_users(drawn: Drawn, rows: Sequence[NumberSource]) -> str:
    """Return the chips that use numbers from a source, each with its share of energy, largest share first."""
    ranked = sorted(rows, key=lambda row: -(row.run_fraction or 0.0))
    named = [f"{drawn.mark(row.hardware)} {_show_fraction(row.run_fraction)}".rstrip() for row in ranked]
    rest = len(named) - SHOWN_USERS
    return ", ".join([*named[:SHOWN_USERS], *([f"{rest} more"] if rest > 0 else [])])


UTILIZATION: Final = Told(
    name="utilization", title="Utilization and rooflines", tables=[("details", slice(1), "rows")], limit="rows"
)
PARETO: Final = Told(name="pareto", title="Pareto front of latency and energy", tables=[("sections", slice(1), "rows")])
SWEEP: Final = Told(
    name="sweep",
    title="Effect of the batch size",
    tables=[("sections", slice(None), "series"), ("details", slice(-1, None), "crossings")],
    limit="series",
)
FLIP: Final = Told(name="flip", title="What could reverse the order", tables=[("details", slice(None), "rows")])
COST: Final = Told(
    name="cost",
    title="Cost of a million inferences",
    tables=[("details", slice(2), "rows"), ("details", slice(-1, None), "assumptions")],
)

CHAPTERS: Final[tuple[Callable[[Drawn], Chapter | None], ...]] = (
    draw_compare,
    draw_energy,
    PARETO.draw,
    draw_rooflines,
    draw_parts,
    draw_edp,
    SWEEP.draw,
    draw_explain,
    FLIP.draw,
    COST.draw,
    draw_accuracy,
    draw_sources,
)
"""Chapters on a model, in order; those of optional extensions come first or before the last two."""


def report_answer(answer: Answer, document: Document, *, command: str = "") -> Report:
    """Return the page of an answer from its document, with a chapter for each kind of figure.

    `command` reproduces the page, which holds every row of every table in its data.
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


def _list_exhibits(answer: Answer) -> Iterator[Exhibit]:
    """Yield the figures of an answer, one exhibit for each kind."""
    for name, figures in group(draw_figures(answer), lambda figure: figure.name).items():
        choices = tuple(Choice(label=figure.about or figure.title, figure=figure) for figure in figures)
        yield Exhibit(name=name, choices=choices, chooses="of" if len(choices) > 1 else "")


def _list_sources(document: Document) -> tuple[Source, ...]:
    return tuple(Source(table=table) for table in document.tables if table.rows)


def _list_chapters(document: Document, exhibits: Sequence[Exhibit]) -> Iterator[Chapter]:
    """Yield the main tables, a chapter for each kind of figure, tables of details, and notes."""
    blocks = tuple(block for section in document.sections for block in read_blocks(section))
    if blocks:
        yield Chapter(name="answer", title="Side by side", blocks=blocks)
    for exhibit in exhibits:
        yield Chapter(name=exhibit.name, title=find_spec(exhibit.choices[0].figure.name).title, blocks=(exhibit,))
    for index, section in enumerate(one for one in document.details if one.texts):
        yield Chapter(name=f"table-{index}", title=section.title or TABLE, blocks=read_blocks(section))
    rest: tuple[Block, ...] = (Lines(document.notes, is_numbered=True), Steps(document.steps))
    rest += _list_sources(document)
    yield Chapter(name="sources", title="Assumptions and next questions", blocks=rest)


def compose_report(answer: ReportAnswer) -> Report:
    """Return the page of a report: the decision, and the chapters on each model."""
    findings, rows = answer.findings, answer.rows
    several = answer.models is not None
    document = draw(answer.models or findings[0].compare, limit=len(rows))
    chapters: list[Chapter] = []
    for index, finding in enumerate(findings, 1):
        listed = Drawn(finding, f"m{index}-" if several else "").list_chapters()
        titled = (attrs.evolve(one, title=OF_MODEL(finding, line=one.title)) for one in listed)
        chapters += titled if several else listed
    added = [
        (OF_MODEL(finding, line=one.label) if several else one.label, (draw(finding.added[one.name]).answer,))
        for finding in findings
        for one in list_parts()
        if one.label and one.name in finding.added
    ]
    is_held = any(map(is_module_name, answer.names))
    made = Report(
        title=PAGE_TITLE(models=answer.names),
        decision=document.answer,
        subject=document.title,
        lead=_list_tables(document, rows),
        reasons=_list_reasons(document, added),
        chapters=tuple(chapters),
        made=_describe_making(),
        command="" if is_held else shlex.join(["joulemap", "report", *answer.names, *answer.repeated]),
    )
    return unify_colours(made)


def _list_tables(document: Document, rows: Table[Any]) -> tuple[Block, ...]:
    """Return the main tables of a document, and those of its details in folds; `rows` are the rows behind them."""
    tables = (block for section in document.sections for block in read_blocks(section))
    return (*tables, *_fold(document.details, Source(table=rows)))


def join_exhibits(
    prefix: str,
    name: FigureName,
    asked: Sequence[tuple[str, Answer]],
    chooses: str,
    *,
    opens: str = "",
    has_finding: bool = True,
) -> tuple[Exhibit, ...]:
    """Return one exhibit with the figures of this name from the answers, to choose from by label; empty if there is
    none.
    """
    choices = tuple(
        Choice(label=label or figure.about or figure.title, figure=figure)
        for label, answer in asked
        for figure in draw_figures(answer)
        if figure.name == name
    )
    several = chooses if len(choices) > 1 else ""
    made = Exhibit(name=f"{prefix}{name}", choices=choices, chooses=several, opens=opens, has_finding=has_finding)
    return (made,) if choices else ()


def _fold(sections: Iterable[Section], source: Source) -> tuple[Fold, ...]:
    """Return each table of an answer as a collapsed section."""
    return tuple(Fold(title=one.title or TABLE, blocks=(*read_blocks(one), source)) for one in sections if one.texts)


def read_blocks(section: Section) -> tuple[Block, ...]:
    """Return the blocks of a section that a page shows: all but text drawings, which its figures replace."""
    return tuple(block for block in section.blocks if isinstance(block, Grid | Lines | Steps | Text))


def _make_tree(name: str, hardware: str, leaves: Sequence[EnergyLeaf]) -> Branch:
    """Return the energy tree of a run: categories, actions, and the subgraphs with the most energy per action."""
    whole = sum(leaf.energy_fj for leaf in leaves)

    def make_leaf(label: str, energy_fj: int) -> Leaf:
        share = _show_fraction(energy_fj / whole if whole else None)
        return Leaf(label=label, amount=show_quantity(energy_fj / FJ_PER_J, "J"), share=share)

    def divide(label: str, energy_fj: int, parts: Iterable[Branch | Leaf], key: str = "") -> Branch:
        fraction = energy_fj / whole if whole else 0.0
        return Branch(**attrs.asdict(make_leaf(label, energy_fj)), fraction=fraction, key=key, parts=tuple(parts))

    categories = []
    for category, of_category in groupby(leaves, lambda leaf: leaf.common_category):
        actions: list[Branch | Leaf] = []
        small: list[EnergyLeaf] = []
        total = 0
        for action, of_action in groupby(of_category, lambda leaf: leaf.action):
            acting = tuple(of_action)
            total += sum(leaf.energy_fj for leaf in acting)
            if whole and acting[0].action_fj / whole < LEAST_FRACTION:
                small += acting
                continue
            parts = (
                make_leaf(leaf.subgraph or OTHER_SUBGRAPHS(count=leaf.subgraph_count), leaf.energy_fj)
                for leaf in acting
            )
            actions.append(divide(action, acting[0].action_fj, parts))
        if small:
            label = SMALLER_ACTIONS(count=len({leaf.action for leaf in small}))
            actions.append(make_leaf(label, sum(leaf.energy_fj for leaf in small)))
        categories.append(divide(name_category(category), total, actions, category))
    return attrs.evolve(divide(name, whole, categories, hardware), share="", fraction=1.0)


def _show_fraction(fraction: float | None) -> str:
    return "" if not fraction else show_share(fraction)


def _shorten(numbers: str, count: int) -> str:
    if len(numbers) <= SHOWN_NAMES:
        return numbers
    kept = numbers[:SHOWN_NAMES].rpartition(", ")[0]
    rest = count - kept.count(", ") - 1
    return join_names([kept, f"{rest} more"]) if kept and rest > 0 else numbers


def read_sections(title: str, blocks: Iterable[Block]) -> Iterator[Section]:
    """Yield the texts and tables of a chapter: what it shows, then each of its folds under the fold's title."""
    listed = tuple(blocks)
    yield Section(title, tuple(block for block in listed if isinstance(block, Grid | Lines | Steps | Text)))
    for block in listed:
        if isinstance(block, Fold):
            yield from read_sections(FOLD(title=title, fold=block.title), block.blocks)


def draw_report(answer: ReportAnswer, _asked: Asked) -> Document:
    """Return the document of a report: the decision and the chapters, with the comparison as its table."""
    report = answer.report
    reasons = [Section(label, Lines(lines)) for label, lines in report.reasons]
    shown = [part for chapter in report.chapters for part in read_sections(chapter.title, chapter.blocks)]
    return Document(
        title=report.subject,
        answer=report.decision,
        sections=(*reasons, *shown),
        data=answer.data(),
        table=answer.rows,
        tables=answer.tables,
    )


PAGES: Final = {ReportAnswer: Page[ReportAnswer](draw=draw_report)}
