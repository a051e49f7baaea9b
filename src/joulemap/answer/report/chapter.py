"""Compose the chapters of a report on one model: figures, sentences, and the query behind each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, Final

import attrs

from joulemap.answer.answer import Answer
from joulemap.answer.explain.table import lay_categories
from joulemap.answer.part.figure import draw_roof
from joulemap.answer.report.finding import ModelFinding
from joulemap.answer.report.part import list_parts
from joulemap.answer.run import CATEGORIES
from joulemap.domain.table import Table
from joulemap.figure.spec import FigureName
from joulemap.present.cell import join_names, show_count, show_doubt, show_quantity, show_share
from joulemap.present.document import Grid, Lines, Section, Steps, Text, grid
from joulemap.row.report import EnergyLeaf, NumberSource, PredictionStanding
from joulemap.system.record import frozen
from joulemap.system.units import FJ_PER_J
from joulemap.webpage.report import Badge, Badges, Block, Branch, Chapter, Choice, Exhibit, Fold, Leaf, Source, Trees

GRADES: Final = {"this hardware": "good", "its class": "fair", "other classes": "poor"}
"""Standing of a prediction -> grade of its badge."""

LEAST_FRACTION: Final = 0.005
"""Share of the run below which actions are merged into one leaf."""

SHOWN_PARTS: Final = 30
"""Maximum subgraphs in the table across hardware; the data has all."""

SHOWN_LINES: Final = 6
"""Maximum sentences of a list shown unfolded."""

SHOWN_SOURCES: Final = 200

SHOWN_USERS: Final = 4
"""Maximum hardware named with a source."""

SHOWN_NAMES: Final = 90
"""Maximum characters of the names of numbers listed with a source."""


def list_chapters(found: ModelFinding, prefix: str) -> tuple[Chapter, ...]:
    """Return the chapters on one model; `prefix` starts the name of each and distinguishes models."""
    drawn = Drawn(found, prefix)
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


def list_badges(found: ModelFinding) -> tuple[Badge, ...]:
    """Return badges for the accuracy of predictions like those of the winner."""
    return tuple(
        _grade(row, found.compare.scope.mark(row.hardware)) for row in found.accuracy if row.run_id == found.best.run_id
    )


def _grade(row: PredictionStanding, name: str) -> Badge:
    return Badge(
        label=f"{row.quantity} on {name}",
        text=f"{show_doubt(row.half_width)}, {_tell_standing(row)}",
        grade=GRADES[row.standing],
    )


def _tell_standing(row: PredictionStanding) -> str:
    if row.standing == "other classes" or row.measurement_count is None:
        return "its class was never measured: from other classes, widened"
    what = "this hardware" if row.standing == "this hardware" else "hardware of its class"
    return f"scored on {show_count(row.measurement_count, 'measurement')} of {what}"


@frozen
class Drawn:
    """Findings on one model, drawn as chapters."""

    found: ModelFinding
    prefix: str

    def compare(self) -> Chapter:
        """Return the chapter that compares all hardware."""
        compared = self.found.compare
        document = compared.document(limit=len(compared.rows))
        exhibits = self._exhibit("comparison", [("", compared)])
        use = self._exhibit("utilization", [("", self.found.utilization)])
        used = self.found.utilization.document(limit=len(compared.rows))
        return self._chapter(
            "compare",
            "Every hardware side by side",
            (
                *exhibits,
                *_fold(document.sections, Source(table=compared.rows)),
                *use,
                *_list(self.found.utilization.reasons(), "flags"),
                *_fold(used.details[:1], Source(table=self.found.utilization.rows)),
            ),
        )

    def energy(self) -> Chapter:
        """Return the chapter on energy, with trees to expand level by level."""
        scope = self.found.compare.scope
        name = f"{self.prefix}tree"
        exhibits = self._exhibit("breakdown", [("", self.found.runs), ("", self.found.compare)], opens=name)
        made = [
            _make_tree(scope.mark(leaves[0].hardware), leaves[0].hardware, leaves)
            for _, group in groupby(self.found.tree, lambda row: row.run_id)
            for leaves in [tuple(group)]
        ]
        most = max((row.energy_j or 0.0 for row in self.found.answered), default=0.0)
        energies = {row.hardware: row.energy_j or 0.0 for row in self.found.answered}
        trees = tuple(attrs.evolve(tree, fraction=energies[tree.key] / most if most else 0.0) for tree in made)
        drill = Trees(
            name=name, caption="Look into it: hardware, category, action, subgraphs", trees=trees, table=self.found.tree
        )
        return self._chapter("energy", "Where the energy goes", (*exhibits, drill))

    def pareto(self) -> Chapter | None:
        """Return the chapter on latency against energy."""
        answer = self.found.pareto
        if answer is None:
            return None
        tables = [(answer.document().sections[:1], answer.rows)]
        return self.tell("pareto", "Latency against energy", "pareto", answer, (), tables)

    def roofline(self) -> Chapter:
        """Return the chapter on the rooflines of each hardware."""
        scope = self.found.compare.scope
        names = [self._mark(row.hardware) for row in self.found.answered]
        choices = tuple(
            Choice(label=name, figure=draw_roof(table, f"{scope.bounded(scope.title)}: {name}"))
            for name, table in zip(names, self.found.roofs, strict=True)
        )
        exhibit = Exhibit(
            name=f"{self.prefix}roofline", choices=choices, chooses="hardware" if len(choices) > 1 else ""
        )
        together = self._exhibit("rooflines", [("", self.found.utilization)]) if len(choices) > 1 else ()
        return self._chapter("roofline", "Under the roof of each hardware", (*together, exhibit))

    def parts(self) -> Chapter | None:
        """Return the chapter on the best hardware for each subgraph."""
        answer = self.found.parts
        if answer is None:
            return None
        tables = [(answer.document(limit=SHOWN_PARTS).sections, answer.rows)]
        told = (Lines(answer.sentences()),)
        return self.tell("parts", "Which hardware is best for which part", "heatmap", answer, told, tables)

    def edp(self) -> Chapter:
        """Return the chapter on energy x delay per hardware."""
        asked = [(self._mark(one.total.hardware), one) for one in self.found.edp]
        told = tuple(
            Fold(title=f"What it says of {name}", blocks=(Lines(one.insights()), Source(table=one.bounds)))
            for name, one in asked
        )
        return self._chapter("edp", "What makes up energy x delay", (*self._exhibit("edp", asked), *told[:1]))

    def sweep(self) -> Chapter | None:
        """Return the chapter on the effect of the batch size."""
        answer = self.found.sweep
        if answer is None:
            return None
        tables = [(answer.document(limit=len(answer.series)).sections, answer.series)]
        told = _list([*answer.changes(), *answer.overtakings()], "crossings")
        return self.tell("sweep", "What the batch changes", "sweep", answer, told, tables)

    def explain(self) -> Chapter:
        """Return the chapter on the differences between the best hardware and each other one."""
        asked = [(" to ".join(map(self._mark, one.names)), one) for one in self.found.explain]
        told = tuple(
            Fold(title=f"From {name}", blocks=(Lines(one.sentences()), lay_categories(one))) for name, one in asked
        )
        first = told[0].blocks if told else ()
        return self._chapter(
            "explain",
            "Why they differ",
            (*self._exhibit("waterfall", asked, "from one hardware to another"), *first, *told[1:]),
        )

    def flip(self) -> Chapter | None:
        """Return the chapter on constants that would reverse the order."""
        answer = self.found.flip
        if answer is None:
            return None
        told, tables = (Lines(answer.sentences()),), [(answer.document().details, answer.rows)]
        return self.tell("flip", "What would flip it", "flip", answer, told, tables)

    def cost(self) -> Chapter | None:
        """Return the chapter on the cost of a million inferences, and its assumptions."""
        answer = self.found.cost
        if answer is None:
            return None
        made_of, prices, *_, assumed = answer.document().details
        tables: list[tuple[Sequence[Section], Table[Any]]] = [
            ((made_of, prices), answer.rows), ((assumed,), answer.assumptions)
        ]  # fmt: skip
        told = (Lines(answer.describe_break_even()),)
        return self.tell("cost", "What a million inferences cost", "cost", answer, told, tables)

    def added(self, *, is_first: bool) -> Iterator[Chapter]:
        """Yield the chapters of wings: those before the core's chapters, or those among them."""
        for one in list_parts():
            if one.is_first == is_first and one.name in self.found.added:
                yield one.draw(self, self.found.added[one.name])

    def accuracy(self) -> Chapter:
        """Return the chapter on the accuracy of predictions for each hardware."""
        rows = self.found.accuracy
        drawn = grid(
            rows,
            (
                ("hardware", "hardware"),
                ("quantity", "quantity"),
                ("80 % interval", lambda row: show_doubt(row.half_width)),
                ("scored on", "standing"),
                ("measurements", lambda row: "" if row.measurement_count is None else f"{row.measurement_count:,}"),
                ("groups", lambda row: "" if row.group_count is None else f"{row.group_count:,}"),
                ("follows from", "basis"),
                ("calibration", "calibration"),
            ),
            projected=self.found.compare.scope.projected,
        )
        badges = tuple(_grade(row, self._mark(row.hardware)) for row in rows)
        return self._chapter(
            "accuracy",
            "How predictions for this hardware have scored",
            (
                Text(
                    "four times in five what is measured lies within the interval; a badge says what the measurements "
                    "behind it are of"
                ),
                Badges(badges=badges),
                Fold(title="Scores as a table", blocks=(drawn,)),
                Source(table=rows),
            ),
        )

    def sources(self) -> Chapter:
        """Return the chapter with every note, assumption and source."""
        document = self.found.compare.document()
        return self._chapter(
            "sources",
            "Assumptions and sources",
            (
                Lines(document.insights),
                Lines(document.notes, is_numbered=True),
                Lines([f"{name}: {share} of the energy at assumed prices" for name, share in self._list_assumed()]),
                Fold(title=self._title_sources(), blocks=(self._draw_sources(),)),
                Source(table=self.found.sources),
            ),
        )

    def _list_assumed(self) -> Iterator[tuple[str, str]]:
        """Yield each hardware, with the share of its energy that rests on assumptions."""
        for _, group in groupby(self.found.sources, lambda row: row.run_id):
            rows = tuple(group)
            assumed = sum(row.run_fraction or 0.0 for row in rows if row.basis in ("assumed", "recalled"))
            yield self._mark(rows[0].hardware), show_share(assumed)

    def _title_sources(self) -> str:
        count = len(self._list_sources())
        rest = f", {count - SHOWN_SOURCES:,} more in the data" if count > SHOWN_SOURCES else ""
        return f"{count:,} sources, what prices most energy first{rest}"

    def _list_sources(self) -> dict[tuple[str, str], list[NumberSource]]:
        """Return (basis, source) -> its rows, sorted by the energy that a source prices, largest first."""
        groups: dict[tuple[str, str], list[NumberSource]] = {}
        for row in self.found.sources:
            groups.setdefault((row.basis, row.source), []).append(row)
        return dict(sorted(groups.items(), key=lambda item: -sum(row.run_fraction or 0.0 for row in item[1])))

    def _draw_sources(self) -> Grid:
        return Grid(
            headings=("source", "basis", "numbers", "for"),
            rows=tuple(
                (source, basis, _shorten(rows[0].numbers, rows[0].number_count), self._list_users(rows))
                for (basis, source), rows in list(self._list_sources().items())[:SHOWN_SOURCES]
            ),
        )

    def _list_users(self, rows: Sequence[NumberSource]) -> str:
        """Return the hardware whose numbers come from a source, sorted by the share of energy, largest first."""
        ranked = sorted(rows, key=lambda row: -(row.run_fraction or 0.0))
        named = [f"{self._mark(row.hardware)} {_show_fraction(row.run_fraction)}".rstrip() for row in ranked]
        rest = len(named) - SHOWN_USERS
        return ", ".join([*named[:SHOWN_USERS], *([f"{rest} more"] if rest > 0 else [])])

    def _mark(self, name: str) -> str:
        return self.found.compare.scope.mark(name)

    def _chapter(self, name: str, title: str, blocks: Iterable[Block]) -> Chapter:
        return Chapter(name=f"{self.prefix}{name}", title=title, blocks=tuple(blocks))

    def tell(
        self,
        name: str,
        title: str,
        figure: FigureName,
        answer: Answer,
        told: Iterable[Block],
        tables: Iterable[tuple[Sequence[Section], Table[Any]]],
    ) -> Chapter:
        """Return the chapter of one answer: its figure, its sentences, and its tables with their queries."""
        folds = (fold for sections, table in tables for fold in _fold(sections, Source(table=table)))
        return self._chapter(name, title, (*self._exhibit(figure, [("", answer)]), *told, *folds))

    def _exhibit(
        self, name: FigureName, asked: Sequence[tuple[str, Answer]], chooses: str = "hardware", opens: str = ""
    ) -> tuple[Exhibit, ...]:
        """Return one exhibit of the answers' figures with this name; empty if there are none."""
        choices = tuple(
            Choice(label=label or self._mark(figure.title.rpartition(": ")[2]), figure=figure)
            for label, answer in asked
            for figure in answer.figures()
            if figure.name == name
        )
        if not choices:
            return ()
        return (
            Exhibit(
                name=f"{self.prefix}{name}", choices=choices, chooses=chooses if len(choices) > 1 else "", opens=opens
            ),
        )


def _fold(sections: Iterable[Section], source: Source) -> tuple[Fold, ...]:
    """Return the tables of an answer as folds, with the query behind them."""
    return tuple(Fold(title=one.title, blocks=(*read_blocks(one), source)) for one in sections if one.texts)


def read_blocks(section: Section) -> tuple[Block, ...]:
    """Return the blocks of a section that a page shows: all but text drawings, which its figures replace."""
    return tuple(block for block in section.blocks if isinstance(block, Grid | Lines | Steps | Text))


def _list(texts: Sequence[str], title: str) -> tuple[Block, ...]:
    """Return sentences as lines, with those after the first few folded."""
    rest = texts[SHOWN_LINES:]
    folded = (Fold(title=f"{len(rest)} more {title}", blocks=(Lines(rest),)),) if rest else ()
    return (Lines(texts[:SHOWN_LINES]), *folded) if texts else ()


def _make_tree(name: str, hardware: str, leaves: Sequence[EnergyLeaf]) -> Branch:
    """Return the energy tree of a run: categories, actions, and the subgraphs with the most energy per action."""
    whole = sum(leaf.energy_fj for leaf in leaves)

    def tell(label: str, energy_fj: int) -> Leaf:
        share = _show_fraction(energy_fj / whole if whole else None)
        return Leaf(label=label, amount=show_quantity(energy_fj / FJ_PER_J, "J"), share=share)

    def divide(label: str, energy_fj: int, parts: Iterable[Branch | Leaf], key: str = "") -> Branch:
        fraction = energy_fj / whole if whole else 0.0
        return Branch(**attrs.asdict(tell(label, energy_fj)), fraction=fraction, key=key, parts=tuple(parts))

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
                tell(leaf.subgraph or show_count(leaf.subgraph_count, "other subgraph"), leaf.energy_fj)
                for leaf in acting
            )
            actions.append(divide(action, acting[0].action_fj, parts))
        if small:
            count = show_count(len({leaf.action for leaf in small}), "smaller action")
            actions.append(tell(count, sum(leaf.energy_fj for leaf in small)))
        categories.append(divide(CATEGORIES.get(category, category), total, actions, category))
    return attrs.evolve(divide(name, whole, categories, hardware), share="", fraction=1.0)


def _show_fraction(fraction: float | None) -> str:
    return "" if not fraction else show_share(fraction)


def _shorten(numbers: str, count: int) -> str:
    if len(numbers) <= SHOWN_NAMES:
        return numbers
    kept = numbers[:SHOWN_NAMES].rpartition(", ")[0]
    rest = count - kept.count(", ") - 1
    return join_names([kept, f"{rest} more"]) if kept and rest > 0 else numbers
