"""Compose the chapters of a report on one model: figures, sentences, and the query behind each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, Final

import attrs

from joulemap.answer.part.analyze import draw_roof
from joulemap.answer.report.finding import ModelFinding
from joulemap.answer.report.part import TABLE, list_parts
from joulemap.ask.answer import Answer
from joulemap.domain.table import Table
from joulemap.generated.report import EnergyLeaf, NumberSource, PredictionStanding
from joulemap.show.caveat import list_notes
from joulemap.show.edp import EDP
from joulemap.show.explain import list_reasons as list_causes
from joulemap.show.figure.spec import FigureName
from joulemap.show.layout import lay
from joulemap.show.page import add_marks
from joulemap.show.pair import lay_categories
from joulemap.show.present.category import name_category
from joulemap.show.present.cell import join_names, mark_projected, show_quantity, show_share
from joulemap.show.present.document import Document, Grid, Lines, Section, Steps, Text
from joulemap.show.present.template import Template
from joulemap.show.run import find_conditions, title_runs
from joulemap.show.title import bind
from joulemap.show.webpage.report import (
    Badge,
    Badges,
    Block,
    Branch,
    Chapter,
    Choice,
    Exhibit,
    Fold,
    Leaf,
    Source,
    Trees,
)
from joulemap.system.record import frozen
from joulemap.system.units import FJ_PER_J

BADGE: Final = Template("{quantity} on {name}")
STANDING: Final = Template("{half_width:±}, {standing}")
SCORED: Final = Template("scored on {measurement_count:n measurement} of {subject}")
SUBJECTS: Final = {"this hardware": "this chip", "its class": "chips of its class"}
UNSCORED: Final = "no measurements of its class, so the interval comes from other classes and is wider"
COMPARE_TITLE: Final = "All chips side by side"
ENERGY_TITLE: Final = "Where the energy goes"
OTHER_SUBGRAPHS: Final = Template("{count:n other subgraph}")
SMALLER_ACTIONS: Final = Template("{count:n smaller action}")
EDP_OF: Final = Template("Findings on {name}")
EXPLAIN_TITLE: Final = "Why the chips differ"
PAIR: Final = Template("{a} to {b}")
FROM: Final = Template("From {a} to {b}")
MORE_NAMES: Final = Template("{count} more")
ACCURACY: Final = "Accuracy on these chips"
ACCURACY_MEANING: Final = (
    "80 % of the measurements should fall inside the interval. Each badge says which measurements it was scored on."
)
SCORES: Final = "Scores as a table"
SCORE_COLUMNS: Final = (
    "hardware | quantity | 80 % interval ±half_width | scored on standing | measurements measurement_count | "
    "groups group_count | basis | calibration"
)
SOURCE_TABLE: Final = Template("{count:#} sources, by the energy that depends on them[; {rest:#} more in the data]")
SOURCE_COLUMNS: Final = ("source", "basis", "numbers", "hardware")

GRADES: Final = {"this hardware": "good", "its class": "fair", "other classes": "poor"}
"""Measured hardware that supports a prediction -> grade of its badge."""

LEAST_FRACTION: Final = 0.005
"""Share of the run's energy below which actions are merged into one leaf of the energy tree."""

SHOWN_PARTS: Final = 30
"""Maximum subgraphs in the table across hardware; the data of the page contains all."""

SHOWN_LINES: Final = 6
"""Maximum sentences of a list that are visible before the reader expands it."""

SHOWN_SOURCES: Final = 200

SHOWN_USERS: Final = 4
"""Maximum chips listed beside a source."""

SHOWN_NAMES: Final = 90
"""Maximum characters of the names of numbers listed with a source."""


def list_chapters(finding: ModelFinding, prefix: str) -> tuple[Chapter, ...]:
    """Return the chapters on one model. The name of each starts with `prefix`, which distinguishes models."""
    drawn = Drawn(finding, prefix)
    made = (
        *drawn.added(is_first=True),
        drawn.compare(),
        drawn.energy(),
        drawn.pareto(),
        drawn.roofline(),
        drawn.parts(),
        drawn.edp(),
        drawn.sweep(),
        drawn.explain(),
        drawn.flip(),
        drawn.cost(),
        *drawn.added(is_first=False),
        drawn.accuracy(),
        drawn.sources(),
    )
    return tuple(one for one in made if one is not None and one.blocks)


def _grade(row: PredictionStanding, name: str) -> Badge:
    is_scored = row.standing in SUBJECTS and row.measurement_count is not None
    standing = SCORED(row, subject=SUBJECTS[row.standing]) if is_scored else UNSCORED
    return Badge(label=BADGE(row, name=name), text=STANDING(row, standing=standing), grade=GRADES[row.standing])


@frozen
class Drawn:
    """Builder of a report's chapters from the findings on one model."""

    finding: ModelFinding
    prefix: str

    def compare(self) -> Chapter:
        """Return the chapter that compares all hardware; the head of the page has its decision and its picture."""
        document = self.finding.compare.document(limit=len(self.finding.compare.rows))
        tables = (block for section in document.sections for block in read_blocks(section))
        blocks = (*tables, *_fold(document.details, Source(table=self.finding.compare.rows)))
        return self._chapter("compare", COMPARE_TITLE, blocks)

    def energy(self) -> Chapter:
        """Return the chapter on energy, with trees to expand level by level."""
        name = f"{self.prefix}tree"
        exhibits = self._exhibit("breakdown", [("", self.finding.runs)], opens=name)
        made = [
            _make_tree(self._mark(leaves[0].hardware), leaves[0].hardware, leaves)
            for _, group in groupby(self.finding.tree, lambda row: row.run_id)
            for leaves in [tuple(group)]
        ]
        energies = {row.hardware: row.energy_j or 0.0 for row in self.finding.answered}
        most = max(energies.values(), default=0.0)
        trees = tuple(attrs.evolve(tree, fraction=energies[tree.key] / most if most else 0.0) for tree in made)
        drill = Trees(
            name=name, caption="Energy by hardware, category, action and subgraph", trees=trees, table=self.finding.tree
        )
        return self._chapter("energy", ENERGY_TITLE, (*exhibits, drill))

    def pareto(self) -> Chapter | None:
        """Return the chapter on the trade-off between latency and energy; None without an answer."""
        answer = self.finding.pareto
        if answer is None:
            return None
        document = answer.document()
        tables = [(document.sections[:1], answer.rows)]
        return self.build_chapter("pareto", "Pareto front of latency and energy", "pareto", answer, document, tables)

    def roofline(self) -> Chapter:
        """Return the chapter on utilization and the rooflines of each chip."""
        scope, use = self.finding.compare.scope, self.finding.utilization
        names = [self._mark(row.hardware) for row in self.finding.answered]
        choices = tuple(
            Choice(
                label=name,
                figure=draw_roof(table, bind(attrs.evolve(title_runs(scope), about=name), find_conditions(scope))),
            )
            for name, table in zip(names, self.finding.roofs, strict=True)
        )
        chooses = "hardware" if len(choices) > 1 else ""
        each = Exhibit(name=f"{self.prefix}roofline", choices=choices, chooses=chooses)
        together = self._exhibit("rooflines", [("", use)]) if chooses else ()
        document = use.document(limit=len(self.finding.compare.rows))
        blocks = self._answer("utilization", use, document, [(document.details[:1], use.rows)])
        return self._chapter("roofline", "Utilization and rooflines", (*blocks, *together, each))

    def parts(self) -> Chapter | None:
        """Return the chapter on the best hardware for each subgraph."""
        answer = self.finding.parts
        if answer is None:
            return None
        folds = _fold(answer.document(limit=SHOWN_PARTS).sections, Source(table=answer.rows))
        return self._chapter(
            "parts", "Best chip for each subgraph", (*self._exhibit("heatmap", [("", answer)]), *folds)
        )

    def edp(self) -> Chapter:
        """Return the chapter on energy x delay per chip."""
        asked = [(self._mark(one.total.hardware), one) for one in self.finding.edp]
        folds = tuple(
            Fold(title=EDP_OF(name=name), blocks=(Lines(EDP.explain(one.facts)), Source(table=one.bounds)))
            for name, one in asked
        )
        return self._chapter("edp", "Energy-delay product by subgraph", (*self._exhibit("edp", asked), *folds))

    def sweep(self) -> Chapter | None:
        """Return the chapter on the effect of the batch size."""
        answer = self.finding.sweep
        if answer is None:
            return None
        document = answer.document(limit=len(answer.series))
        tables: list[tuple[Sequence[Section], Table[Any]]] = [
            (document.sections, answer.series),
            (document.details[-1:], answer.crossings),
        ]
        return self.build_chapter("sweep", "Effect of the batch size", "sweep", answer, document, tables)

    def explain(self) -> Chapter:
        """Return the chapter on the differences between the best chip and each other chip."""
        pairs = [(dict(zip("ab", map(self._mark, one.names), strict=True)), one) for one in self.finding.explain]
        asked = [(PAIR(**names), one) for names, one in pairs]
        blocks = [(Lines(list_causes(one.facts)), lay_categories(one)) for _, one in pairs]
        folds = (Fold(title=FROM(**names), blocks=own) for (names, _), own in zip(pairs, blocks, strict=True))
        drawn = join_exhibits(f"{self.prefix}waterfall", asked, "pair of chips", has_finding=False)
        return self._chapter("explain", EXPLAIN_TITLE, (*drawn, *(blocks[0] if len(blocks) == 1 else folds)))

    def flip(self) -> Chapter | None:
        """Return the chapter on constants that would reverse the order."""
        answer = self.finding.flip
        if answer is None:
            return None
        document = answer.document()
        return self.build_chapter(
            "flip", "What could reverse the order", "flip", answer, document, [(document.details, answer.rows)]
        )

    def cost(self) -> Chapter | None:
        """Return the chapter on the cost of a million inferences, and its assumptions."""
        answer = self.finding.cost
        if answer is None:
            return None
        document = answer.document()
        made_of, prices, *_, assumed = document.details
        tables: list[tuple[Sequence[Section], Table[Any]]] = [
            ((made_of, prices), answer.rows), ((assumed,), answer.assumptions)
        ]  # fmt: skip
        return self.build_chapter("cost", "Cost of a million inferences", "cost", answer, document, tables)

    def added(self, *, is_first: bool) -> Iterator[Chapter]:
        """Yield the chapters of optional extensions: those placed first if `is_first`, otherwise the others."""
        for one in list_parts():
            if one.is_first == is_first and one.name in self.finding.added:
                yield one.draw(self, self.finding.added[one.name])

    def accuracy(self) -> Chapter:
        """Return the chapter on the accuracy of predictions for each chip."""
        rows = self.finding.accuracy
        drawn = lay(rows, SCORE_COLUMNS, projected=self.finding.compare.projected)
        blocks = (
            Text(ACCURACY_MEANING),
            Badges(badges=tuple(_grade(row, self._mark(row.hardware)) for row in rows)),
            Fold(title=SCORES, blocks=(drawn,)),
            Source(table=rows),
        )
        return self._chapter("accuracy", ACCURACY, blocks)

    def sources(self) -> Chapter:
        """Return the chapter with every note and source; the line on trust in the head has the heaviest caveats."""
        compared = self.finding.compare
        groups: dict[tuple[str, str], list[NumberSource]] = {}
        for row in self.finding.sources:
            groups.setdefault((row.basis, row.source), []).append(row)
        ordered = sorted(groups.items(), key=lambda item: -sum(row.run_fraction or 0.0 for row in item[1]))
        lines = [
            (source, basis, _shorten(rows[0].numbers, rows[0].number_count), self._list_users(rows))
            for (basis, source), rows in ordered[:SHOWN_SOURCES]
        ]
        title = SOURCE_TABLE(count=len(ordered), rest=max(0, len(ordered) - SHOWN_SOURCES) or None)
        notes = list_notes(compared.facts, is_beyond_trust=True)
        blocks = (
            Lines(add_marks(notes, compared.document().sections)),
            Fold(title=title, blocks=(Grid(headings=SOURCE_COLUMNS, rows=tuple(lines)),)),
            Source(table=self.finding.sources),
        )
        return self._chapter("sources", "Assumptions and sources", blocks)

    def _list_users(self, rows: Sequence[NumberSource]) -> str:
        """Return the chips that use numbers from a source, each with its share of energy, largest share first."""
        ranked = sorted(rows, key=lambda row: -(row.run_fraction or 0.0))
        named = [f"{self._mark(row.hardware)} {_show_fraction(row.run_fraction)}".rstrip() for row in ranked]
        rest = len(named) - SHOWN_USERS
        return ", ".join([*named[:SHOWN_USERS], *([f"{rest} more"] if rest > 0 else [])])

    def _mark(self, name: str) -> str:
        return mark_projected(name, self.finding.compare.projected)

    def _chapter(self, name: str, title: str, blocks: Iterable[Block]) -> Chapter:
        return Chapter(name=f"{self.prefix}{name}", title=title, blocks=tuple(blocks))

    def build_chapter(
        self,
        name: str,
        title: str,
        figure: FigureName,
        answer: Answer,
        document: Document,
        tables: Iterable[tuple[Sequence[Section], Table[Any]]],
    ) -> Chapter:
        """Return the chapter of one answer: its decision, figure and reasons, and its tables with their queries."""
        return self._chapter(name, title, self._answer(figure, answer, document, tables))

    def _answer(
        self,
        figure: FigureName,
        answer: Answer,
        document: Document,
        tables: Iterable[tuple[Sequence[Section], Table[Any]]],
    ) -> tuple[Block, ...]:
        folds = (fold for sections, table in tables for fold in _fold(sections, Source(table=table)))
        drawn = join_exhibits(f"{self.prefix}{figure}", [("", answer)], "hardware", has_finding=False)
        return (Text(document.answer), *drawn, *_list(document.insights), *folds)

    def _exhibit(self, name: FigureName, asked: Sequence[tuple[str, Answer]], opens: str = "") -> tuple[Exhibit, ...]:
        """Return one exhibit with the figures of this name from all answers, to choose from; empty if there is none."""
        named = [(self._mark(label) if label else "", answer) for label, answer in asked]
        return join_exhibits(f"{self.prefix}{name}", named, "hardware", opens=opens)


def join_exhibits(
    name: str, asked: Sequence[tuple[str, Answer]], chooses: str, *, opens: str = "", has_finding: bool = True
) -> tuple[Exhibit, ...]:
    """Return one exhibit with the figures of the answers, to choose from by label; empty if there is none.

    `name` ends with the name of the figures.
    """
    choices = tuple(
        Choice(label=label or figure.about or figure.title, figure=figure)
        for label, answer in asked
        for figure in answer.figures()
        if figure.name == name.rpartition("-")[2]
    )
    several = chooses if len(choices) > 1 else ""
    made = Exhibit(name=name, choices=choices, chooses=several, opens=opens, has_finding=has_finding)
    return (made,) if choices else ()


def _fold(sections: Iterable[Section], source: Source) -> tuple[Fold, ...]:
    """Return each table of an answer as a collapsed section, with the query behind it."""
    return tuple(Fold(title=one.title or TABLE, blocks=(*read_blocks(one), source)) for one in sections if one.texts)


def read_blocks(section: Section) -> tuple[Block, ...]:
    """Return the blocks of a section that a page shows: all but text drawings, which its figures replace."""
    return tuple(block for block in section.blocks if isinstance(block, Grid | Lines | Steps | Text))


def _list(lines: Sequence[str]) -> tuple[Block, ...]:
    """Return sentences as a list; all after the first `SHOWN_LINES` are collapsed."""
    rest = lines[SHOWN_LINES:]
    folded = (Fold(title=MORE_NAMES(count=len(rest)), blocks=(Lines(rest),)),) if rest else ()
    return (Lines(lines[:SHOWN_LINES]), *folded) if lines else ()


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
