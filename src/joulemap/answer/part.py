"""Energy of each subgraph or operator of runs, by category or action, exactly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar, get_args

import attrs

from joulemap.answer.answer import RunAnswer
from joulemap.answer.run import find_doubt, prove
from joulemap.answer.scope import SHOWN_FRACTION, holding_scope
from joulemap.domain.default import SETTINGS
from joulemap.domain.settings import EnergyDivision, ModelDivision, RunDivision, check_name
from joulemap.domain.table import Table
from joulemap.plan.run import plan_runs, plan_selected
from joulemap.plan.selection import select_one
from joulemap.present.cell import show_quantity, show_share
from joulemap.present.document import Document, Grid, Section, Text, say_rest
from joulemap.row.breakdown import PartAction, PartCategory
from joulemap.store.query import fetch
from joulemap.store.run import find_subgraphs
from joulemap.system.errors import UnknownNameError, UnsupportedError
from joulemap.system.record import frozen
from joulemap.system.units import FJ_PER_J

if TYPE_CHECKING:
    from joulemap.domain.hardware import Hardware
    from joulemap.domain.settings import Settings
    from joulemap.figure.figure import Drawing
    from joulemap.plan.run import Plan
    from joulemap.plan.source import Source

SMALL_FRACTION: Final = 0.005
"""Of a part: what is less is told in one line with its like, unless one subgraph alone is looked into."""

SHOWN_TREES: Final = 60
"""Parts whose categories or actions people see; programs get all."""

SHOWN_HARDWARE: Final = 4
"""Hardware that a headline names."""

FRACTIONS: Final = ("share_fraction", "run_fraction")
"""Fields of a row that add up over rows."""


Row = TypeVar("Row", PartCategory, PartAction)


@frozen(kw_only=True)
class PartAnswer(RunAnswer):
    """The energy of each subgraph or operator of runs; the rows of a run sum to it exactly."""

    level: ModelDivision
    by: EnergyDivision
    subgraph: str
    """The one that is looked into; empty for all."""
    categories: Table[PartCategory] | None
    """Run by run and part by part, most energy first; None by action."""
    actions: Table[PartAction] | None
    """Run by run and part by part, most energy first; None by category."""

    @property
    def rows(self) -> Table[PartCategory] | Table[PartAction]:
        """The table that was asked for."""
        table = self.categories if self.categories is not None else self.actions
        assert table is not None
        return table

    def data(self) -> dict[str, Any]:
        """Return what programs get."""
        return {**super().data(), "level": self.level, "by": self.by, "subgraph": self.subgraph or None}

    def sketched(self, _by: RunDivision, /) -> tuple[Drawing, ...]:
        """Return a stacked bar for each run, or for each part of the only one, that with most energy first."""
        from joulemap.figure.figure import make_drawing

        is_single = len({row.run_id for row in self.rows}) == 1
        texts = {
            "part": "{category}" if self.by == "category" else "{component}.{action}",
            "by": self.by,
            "group": "part_index" if is_single else "run_id",
            "order": "value" if is_single else "",
            "label": "{name}" if is_single else "{model} on {hardware}" if len(self.scope.models) > 1 else "{hardware}",
            "what": "{name}" if self.subgraph else f"each {self.level}" if is_single else "each run",
            "nouns": f"{self.level}s" if is_single else "runs",
        }
        return (make_drawing("parts", self.rows, texts),)

    def document(self, *, limit: int = 10, repeated: Sequence[str] = ()) -> Document:
        """Return it with the `limit` parts of most energy; programs get all."""
        runs = {run_id: [row for row in self.rows if row.run_id == run_id] for run_id in self.scope.evaluated_ids}
        names = [self.scope.mark(rows[0].hardware) for rows in runs.values() if rows]
        shown, trees = [], []
        for model in dict.fromkeys(row.model for row in self.rows):
            several = len(self.scope.models) > 1
            mine = {run_id: rows for run_id, rows in runs.items() if rows and rows[0].model == model}
            of = f" of {model}" if several else ""
            whole = Section(f"Energy of each {self.level} by {self.by}{of}", (*self._tree(mine), *self._proofs(mine)))
            largest = self._first(whole, limit) if self.subgraph else self._largest(mine, limit)
            title = whole.title if self.subgraph else f"Largest {self.level}s{of}"
            shown.append(Section(title, largest))
            trees.append(whole)
        what = f", subgraph {self.subgraph}" if self.subgraph else ""
        return self._compose(
            f"{self.scope.title} on {', '.join(dict.fromkeys(names))}{what}",
            [attrs.evolve(one, blocks=(*one.blocks, *self.scope.say_left_out()), is_tight=True) for one in shown],
            self.rows,
            answer=self._tell_largest(),
            details=trees,
            notes=self.scope.explain_marks(names) + self.scope.describe_refusals() + self.scope.describe(),
            steps=self._steps(repeated),
        )

    def _tell_largest(self) -> str:
        """Return the category or action that takes most of the parts, and the part that takes most of a run."""
        rows: Sequence[PartCategory | PartAction] = self.rows.rows
        sums: dict[tuple[str, str], int] = {}
        for row in rows:
            sums[row.hardware, name_part(row)] = sums.get((row.hardware, name_part(row)), 0) + row.energy_fj
        told = []
        for hardware in dict.fromkeys(row.hardware for row in rows):
            mine = {name: energy for (owner, name), energy in sums.items() if owner == hardware}
            most = max(mine, key=lambda name: mine[name])
            told.append(f"{self.scope.mark(hardware)}: {most}, {show_share(mine[most] / (sum(mine.values()) or 1))}")
        what = self.subgraph or f"the {self.level}s"
        return f"What takes most of {what}: {'; '.join(told[:SHOWN_HARDWARE])}."

    def _first(self, whole: Section, limit: int) -> tuple[Grid | Text, ...]:
        """Return the first rows below the one part that is looked into."""
        drawn = whole.blocks[0]
        assert isinstance(drawn, Grid)
        noun = "categories" if self.by == "category" else "actions"
        return attrs.evolve(drawn, rows=drawn.rows[: limit + 1]), *say_rest(len(drawn.rows) - 1, limit, noun)

    def _largest(self, runs: dict[int, list[Any]], limit: int) -> tuple[Grid | Text, ...]:
        """Return a row for each part of most energy: its energy in each run, and in the only one what takes most."""
        parts = _rank_parts(runs)
        single = len(runs) == 1
        cells = []
        for part in parts[:limit]:
            mine = [[row for row in rows if row.part_index == part] for rows in runs.values()]
            first = next(row for rows in mine for row in rows)
            energies = [show_quantity(sum(row.energy_fj for row in rows) / FJ_PER_J, "J") for rows in mine]
            largest = max(mine[0], key=lambda row: row.energy_fj, default=first)
            share = sum(row.run_fraction or 0.0 for row in mine[0])
            more = (show_share(share), f"{name_part(largest)}, {show_share(largest.share_fraction)}") if single else ()
            cells.append(
                (first.name, *energies, *more, first.fusion_pattern if self._noun == "pattern" else first.kind)
            )
        names = ["energy"] if single else [self.scope.mark(rows[0].hardware) for rows in runs.values()]
        more = ("of run", "mostly") if single else ()
        drawn = Grid(headings=(self.level, *names, *more, self._noun), rows=tuple(cells), keep=(*names, *more))
        return drawn, *say_rest(len(parts), limit, f"{self.level}s")

    def _tree(self, runs: dict[int, list[Any]]) -> tuple[Grid | Text, ...]:
        """Return a row for each part, below it one for each category or action, with a column per run."""
        parts = _rank_parts(runs)
        shown = sorted(parts[:SHOWN_TREES])
        single = len(runs) == 1
        cells: list[tuple[str, ...]] = []
        for part in shown:
            mine = {run_id: [row for row in rows if row.part_index == part] for run_id, rows in runs.items()}
            first = next(row for rows in mine.values() for row in rows)
            pattern = first.fusion_pattern if self.level == "subgraph" else first.kind
            sums = [sum(row.energy_fj for row in rows) for rows in mine.values()]
            energies = [show_quantity(value / FJ_PER_J, "J") for value in sums]
            if single:
                of_run = sum(row.run_fraction or 0.0 for rows in mine.values() for row in rows)
                filling = [*[""] * (len(self._details) - 3), pattern]
                cells.append((first.name, energies[0], show_share(1.0), show_share(of_run), *filling))
                cells += self._leaves(next(iter(mine.values())))
            else:
                cells.append((first.name, *energies, pattern))
                cells += self._rows_side_by_side(list(mine.values()))
        names = [self.scope.mark(rows[0].hardware) for rows in runs.values()]
        headings = (self.level, "energy", *self._details) if single else (self.level, *names, self._noun)
        keep = ("energy", "share", "count", "energy of one", "mostly", "per", "of it", "basis") if single else names
        drawn = Grid(headings=headings, rows=tuple(cells), is_tree=True, keep=tuple(keep))
        rest = len(parts) - SHOWN_TREES
        return drawn, *((Text(f"{rest} more {self.level}s; --format json has all"),) if rest > 0 else ())

    @property
    def _details(self) -> tuple[str, ...]:
        """Headings beside the energy, where one run is told."""
        if self.by == "category":
            return ("share", "of run", "mostly", "of it", "in common", self._noun)
        return ("share", "of run", "count", "per", "energy of one", "basis", "category", self._noun)

    @property
    def _noun(self) -> str:
        return "pattern" if self.level == "subgraph" else "kind"

    def _leaves(self, rows: Sequence[Any]) -> list[tuple[str, ...]]:
        """Return a row for each category or action of one part, what is small in one."""
        told, small = _part_small(rows, self.subgraph)
        cells = [
            (
                f"  {name_part(row)}",
                show_quantity(row.energy_j, "J"),
                show_share(row.share_fraction),
                show_share(row.run_fraction),
                *self._describe(row),
            )
            for row in told
        ]
        if small:
            energy = show_quantity(sum(row.energy_fj for row in small) / FJ_PER_J, "J")
            shares = [show_share(sum(getattr(row, name) or 0.0 for row in small)) for name in FRACTIONS]
            cells.append((f"  {len(small)} smaller", energy, *shares, *[""] * (len(self._details) - 2)))
        return cells

    def _describe(self, row: Any) -> tuple[str, ...]:
        if isinstance(row, PartCategory):
            return row.largest_action, show_share(row.largest_action_fraction), row.common_categories, ""
        in_time = row.per == "s"
        return (
            show_quantity(row.action_count, "s" if in_time else ""),
            "" if in_time else row.per,
            show_quantity(row.energy_per_action_j, "W" if in_time else "J"),
            row.basis,
            row.category,
            "",
        )

    def _rows_side_by_side(self, runs: Sequence[Sequence[Any]]) -> list[tuple[str, ...]]:
        """Return a row for each category or action of one part with a column per run, what is small in one."""
        told = {name_part(row) for rows in runs for row in _part_small(rows, self.subgraph)[0]}
        sums: dict[str, list[int]] = {}
        for index, rows in enumerate(runs):
            for row in rows:
                label = name_part(row) if name_part(row) in told else ""
                sums.setdefault(label, [0] * len(runs))[index] += row.energy_fj
        small = len({name_part(row) for rows in runs for row in rows} - told)
        ordered = sorted(sums.items(), key=lambda item: (item[0] == "", -sum(item[1])))
        return [
            (
                f"  {label or f'{small} smaller'}",
                *(show_quantity(value / FJ_PER_J, "J") if value else "" for value in values),
                "",
            )
            for label, values in ordered
        ]

    def _proofs(self, runs: dict[int, list[Any]]) -> tuple[Text, ...]:
        """Return a sentence for each run that compares what its rows add up to with it."""
        noun = "categories" if self.by == "category" else "actions"
        what = "subgraph" if self.subgraph else "run"
        lines = []
        for rows in runs.values():
            on = f" on {self.scope.mark(rows[0].hardware)}" if len(runs) > 1 else ""
            energy = (sum(row.energy_fj for row in rows), rows[0].whole_energy_fj, "fJ")
            lines.append(prove(noun, f"the {what}{on}", energy))
        return tuple(lines)

    def _steps(self, repeated: Sequence[str]) -> list[list[str]]:
        model = self.scope.model
        hardware = list(dict.fromkeys(self.scope.spell(row.hardware) for row in self.rows))
        steps = []
        if not self.subgraph and self.level == "subgraph":
            rows: Sequence[PartCategory | PartAction] = self.rows.rows
            largest = max(rows, key=lambda row: row.energy_fj)
            inside = ["--subgraph", largest.name, "--by", "action"]
            steps.append(["analyze", model, self.scope.spell(largest.hardware), *inside, *repeated])
        elif self.level == "subgraph":
            inside = ["--level", "operator", "--subgraph", self.subgraph, "--by", "category"]
            steps.append(["analyze", model, hardware[0], *inside, *repeated])
        if len(hardware) > 1:
            inside = ["--subgraph", self.subgraph] if self.subgraph else []
            steps.append(["explain", model, *hardware[:2], "--level", "subgraph", *inside, *repeated])
        return steps


def _rank_parts(runs: dict[int, list[Any]]) -> list[int]:
    """Return the parts of runs of one model, those first that take most of their runs."""
    weights: dict[int, float] = {}
    for rows in runs.values():
        for row in rows:
            weights[row.part_index] = weights.get(row.part_index, 0.0) + (row.run_fraction or 0.0)
    return sorted(weights, key=lambda part: (-weights[part], part))


def _part_small(rows: Sequence[Row], subgraph: str) -> tuple[list[Row], list[Row]]:
    """Return what is told of a part, and what is too small for it unless it alone is looked into."""
    least = SHOWN_FRACTION if subgraph else SMALL_FRACTION
    small = [row for row in rows if (row.share_fraction or 0.0) < least]
    if len(small) < 2:
        return list(rows), []
    return [row for row in rows if (row.share_fraction or 0.0) >= least], small


def break_down(
    source: Source,
    model: str,
    hardware: str | Hardware,
    settings: Settings = SETTINGS,
    *,
    level: ModelDivision = "subgraph",
    by: EnergyDivision = "category",
    subgraph: str = "",
) -> PartAnswer:
    """Return what each subgraph or operator of one run spends its energy on, summing to the run exactly.

    Categories are the architecture's own. `subgraph` names one to look inside. Raises as `analyze`;
    UnknownNameError for a subgraph that the model does not have.
    """
    _check(settings, "analyze", level, by)
    plan = plan_selected((model,), settings, select_one(hardware, settings))
    return _break_down(source, plan, level=level, by=by, subgraph=subgraph, is_common=False)


def compare_breakdowns(
    source: Source,
    models: Sequence[str],
    settings: Settings = SETTINGS,
    *,
    level: ModelDivision = "subgraph",
    by: EnergyDivision = "category",
    subgraph: str = "",
) -> PartAnswer:
    """Return what each subgraph or operator spends its energy on, on each hardware.

    Categories are those that all architectures share. `subgraph` names one to look inside. Raises as `compare`;
    UnknownNameError for a subgraph that no model has.
    """
    _check(settings, "compare", level, by)
    plan = plan_runs(models, settings)
    return _break_down(source, plan, level=level, by=by, subgraph=subgraph, is_common=True)


def _check(settings: Settings, question: str, level: ModelDivision, by: EnergyDivision) -> None:
    check_name("level", level, get_args(ModelDivision))
    check_name("division", by, get_args(EnergyDivision))
    settings.check_single(question)


def _break_down(
    source: Source, plan: Plan, *, level: ModelDivision, by: EnergyDivision, subgraph: str, is_common: bool
) -> PartAnswer:
    with holding_scope(source, plan) as (scope, connection, ids):
        if subgraph and subgraph not in (known := find_subgraphs(connection, ids)):
            raise UnknownNameError("subgraph", subgraph, known)
        given = {"run_ids": ids, "level": level, "subgraph": subgraph}
        is_by_category = by == "category"
        answer = PartAnswer(
            scope=scope,
            level=level,
            by=by,
            subgraph=subgraph,
            categories=fetch(connection, PartCategory, **given, is_common=is_common) if is_by_category else None,
            actions=None if is_by_category else fetch(connection, PartAction, **given),
            doubt=find_doubt(connection, ids),
        )
    if not answer.rows.rows:
        raise UnsupportedError(f"{subgraph}: none of its operators runs as a kernel, so that it takes no energy")
    return answer


def name_part(row: PartCategory | PartAction) -> str:
    """Return what a row is called in a table."""
    return row.category if isinstance(row, PartCategory) else f"{row.component}.{row.action}"
