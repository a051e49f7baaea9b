"""Break down the energy of each subgraph or operator by category or action, exactly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, get_args

import attrs

from joulemap.answer.answer import Drawings, RunAnswer
from joulemap.answer.run import prove
from joulemap.answer.scope import holding_scope
from joulemap.domain.default import SETTINGS
from joulemap.domain.settings import EnergyDivision, ModelDivision, RunDivision, Settings, check_name
from joulemap.domain.table import Table
from joulemap.plan.run import Plan, plan_runs, plan_selected
from joulemap.plan.selection import select_one
from joulemap.plan.source import Source
from joulemap.present.cell import show_quantity, show_share
from joulemap.present.document import Document, Grid, Section, Text
from joulemap.row.breakdown import PartAction, PartCategory
from joulemap.store.query import fetch
from joulemap.store.run import find_subgraphs
from joulemap.system.errors import UnknownNameError, UnsupportedError
from joulemap.system.record import frozen
from joulemap.system.units import FJ_PER_J

if TYPE_CHECKING:
    from joulemap.domain.hardware import Hardware

SHOWN_ROWS: Final = 200
"""Maximum rows shown of the whole table; machine formats hold all."""

SHOWN_HARDWARE: Final = 4
"""Maximum hardware named in a headline."""

COLUMNS: Final[dict[EnergyDivision, tuple[str, ...]]] = {
    "category": (
        "name", "category", "energy_j", "share_fraction", "hardware", "run_fraction", "largest_action",
        "largest_action_fraction", "common_categories", "fusion_pattern",
    ),
    "action": (
        "name", "component", "action", "energy_j", "share_fraction", "hardware", "run_fraction", "action_count", "per",
        "energy_per_action_j", "basis", "category",
    ),
}  # fmt: skip
"""Columns shown of all rows."""


@frozen(kw_only=True)
class PartAnswer(RunAnswer):
    """Energy of each subgraph or operator of runs; the rows of a run sum to it exactly."""

    level: ModelDivision
    by: EnergyDivision
    subgraph: str
    """Subgraph to look inside; empty for all."""
    categories: Table[PartCategory] | None
    """Rows by run and part, then by energy, largest first; None if divided by action."""
    actions: Table[PartAction] | None
    """Rows by run and part, then by energy, largest first; None if divided by category."""

    @property
    def rows(self) -> Table[PartCategory] | Table[PartAction]:
        """Requested table."""
        table = self.categories if self.categories is not None else self.actions
        assert table is not None
        return table

    def data(self) -> dict[str, Any]:
        """Return the data for machine formats."""
        return {**super().data(), "level": self.level, "by": self.by, "subgraph": self.subgraph or None}

    def sketched(self, _by: RunDivision, /) -> Drawings:
        """Return a stacked bar for each run, or for each part of a single run, largest energy first."""
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
        return (self._sketch("parts", self.rows, texts),)

    def document(self, *, limit: int = 10, repeated: Sequence[str] = ()) -> Document:
        """Return the document with the `limit` parts of the most energy; machine formats hold all."""
        runs = {run_id: [row for row in self.rows if row.run_id == run_id] for run_id in self.scope.evaluated_ids}
        names = [self.scope.mark(rows[0].hardware) for rows in runs.values() if rows]
        shown = []
        for model in dict.fromkeys(row.model for row in self.rows):
            of = f" of {model}" if len(self.scope.models) > 1 else ""
            mine = {run_id: rows for run_id, rows in runs.items() if rows and rows[0].model == model}
            title = f"Energy of {self.subgraph} by {self.by}{of}" if self.subgraph else f"Largest {self.level}s{of}"
            drawn = (self._inside if self.subgraph else self._largest)(mine, limit)
            shown.append(Section(title, (*drawn, *self.scope.say_left_out()), is_tight=True))
        what = f", subgraph {self.subgraph}" if self.subgraph else ""
        return self._compose(
            f"{self.scope.title} on {', '.join(dict.fromkeys(names))}{what}",
            shown,
            self.rows,
            answer=self._tell_largest(),
            details=(Section(f"Energy of each {self.level} by {self.by}", self._whole(runs)),),
            steps=self._steps(repeated),
        )

    def _whole(self, runs: dict[int, list[Any]]) -> tuple[Grid | Text, ...]:
        """Return every row, and the check of the sum."""
        rows: Table[Any] = self.rows
        drawn = self._show(attrs.evolve(rows, rows=rows.rows[:SHOWN_ROWS]), COLUMNS[self.by], keep=COLUMNS[self.by][1:])
        rest = len(rows) - SHOWN_ROWS
        return (
            drawn,
            *((Text(f"{rest} more rows; --format json has all"),) if rest > 0 else ()),
            *self._proofs({run_id: rows for run_id, rows in runs.items() if rows}),
        )

    def _inside(self, runs: dict[int, list[Any]], limit: int) -> tuple[Grid | Text, ...]:
        """Return a grid with a row for each category or action of one part, and a column per run."""
        noun = "categories" if self.by == "category" else "actions"
        sums: dict[str, list[int]] = {}
        for index, rows in enumerate(runs.values()):
            for row in rows:
                sums.setdefault(name_part(row), [0] * len(runs))[index] += row.energy_fj
        wholes = [sum(column) for column in zip(*sums.values(), strict=True)]
        ordered = sorted(sums.items(), key=lambda item: -sum(item[1]))
        names = [self.scope.mark(rows[0].hardware) for rows in runs.values()]
        shares = ("share",) if len(runs) == 1 else ()
        cells = [
            (
                name,
                *(show_quantity(value / FJ_PER_J, "J") if value else "" for value in values),
                *(show_share(values[0] / (wholes[0] or 1)) for _ in shares),
            )
            for name, values in [("all", wholes), *ordered[:limit]]
        ]
        drawn = Grid(headings=(self.by, *names, *shares), rows=tuple(cells), keep=tuple(names))
        return (drawn.out_of(len(ordered), limit, noun),)

    def _tell_largest(self) -> str:
        """Return the category or action with the most energy on each hardware."""
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
        return f"Largest {self.by} of {what}: {'; '.join(told[:SHOWN_HARDWARE])}."

    def _largest(self, runs: dict[int, list[Any]], limit: int) -> tuple[Grid | Text, ...]:
        """Return a grid of the largest parts: their energy per run, and for a single run its largest category."""
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
        return (drawn.out_of(len(parts), limit, f"{self.level}s"),)

    @property
    def _noun(self) -> str:
        return "pattern" if self.level == "subgraph" else "kind"

    def _proofs(self, runs: dict[int, list[Any]]) -> tuple[Text, ...]:
        """Return the sentence for each run that checks the sum of its rows."""
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
    """Return the parts of runs of one model, sorted by their share of the runs, largest first."""
    weights: dict[int, float] = {}
    for rows in runs.values():
        for row in rows:
            weights[row.part_index] = weights.get(row.part_index, 0.0) + (row.run_fraction or 0.0)
    return sorted(weights, key=lambda part: (-weights[part], part))


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
    """Break down the energy of each subgraph or operator of one run, summing to the run exactly.

    Categories are the architecture's own. `subgraph` selects one to look inside. Raises as `analyze`; UnknownNameError
    for a subgraph that the model does not have.
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
    """Break down the energy of each subgraph or operator on each hardware.

    Categories are those common to all architectures. `subgraph` selects one to look inside. Raises as `compare`;
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
        )
    if not answer.rows.rows:
        raise UnsupportedError(f"{subgraph}: none of its operators runs as a kernel, so that it takes no energy")
    return answer


def name_part(row: PartCategory | PartAction) -> str:
    """Return the name of a row in a table."""
    return row.category if isinstance(row, PartCategory) else f"{row.component}.{row.action}"
