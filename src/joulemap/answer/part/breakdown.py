"""Break down the energy of each subgraph or operator by category or action; the parts sum to the run exactly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, get_args

import attrs

from joulemap.answer.part.part import PLURALS, PartsAnswer
from joulemap.ask.fact import Facts
from joulemap.ask.part import check_subgraph, find_largest, opening_parts
from joulemap.ask.scope import Scope, opening_scope
from joulemap.domain.default import SETTINGS
from joulemap.domain.settings import EnergyDivision, ModelDivision, RunDivision, Settings, check_name
from joulemap.domain.table import Table
from joulemap.generated.breakdown import PartAction, PartCategory
from joulemap.plan.run import plan_runs
from joulemap.plan.source import Source
from joulemap.show.layout import lay_across
from joulemap.show.page import Drawings
from joulemap.show.part import describe_parts, describe_ranges
from joulemap.show.present.category import name_category
from joulemap.show.present.cell import show_quantity, show_share
from joulemap.show.present.document import Document, Grid, Section, Text
from joulemap.show.present.template import Template
from joulemap.show.run import prove, title_runs
from joulemap.store.query import fetch
from joulemap.system.errors import UnsupportedError
from joulemap.system.record import frozen
from joulemap.system.units import FJ_PER_J

if TYPE_CHECKING:
    from joulemap.physics.record.hardware import Hardware

ON_HARDWARE: Final = Template("on {hardware:list}")
OF_SUBGRAPH: Final = Template("subgraph {subgraph}")
EVERY: Final = Template("the {level}s")
INSIDE_TABLE: Final = Template("Energy of {subgraph} by {by}[, {model}]")
PARTS_TABLE: Final = Template("Largest {level}s[, {model}]")
WHOLE: Final = "all"
LARGEST_PARTS: Final = ("run share", "largest share")
LARGEST_PART: Final = Template("{largest}, {share:%}")
KINDS: Final[Mapping[ModelDivision, str]] = {"subgraph": "pattern", "operator": "kind"}
EACH_TABLE: Final = Template("Energy of each {level} by {by}")
EACH_COLUMNS: Final[Mapping[EnergyDivision, str]] = {
    "category": "*part name | *category | *energy energy_j | *share share_fraction | @hardware | "
    "*run share run_fraction | largest action largest_action | share of category largest_action_fraction | "
    "common categories common_categories | pattern fusion_pattern",
    "action": "*part name | *component | *action | *energy energy_j | *share share_fraction | @hardware | "
    "*run share run_fraction | count action_count | per | energy each energy_per_action_j | basis | category",
}
INTO_LARGEST: Final = Template("analyze {model} {largest} --subgraph {largest_part} --by action")
INTO_OPERATORS: Final = Template("analyze {model} {hardware} --level operator --subgraph {part} --by category")
INTO_PAIR: Final = Template("explain {model} {a} {b} --level subgraph[ --subgraph {part}]")

SHOWN_ROWS: Final = 200
"""Maximum rows in the detailed table for display; machine formats contain all rows."""

Rows = Sequence[PartCategory | PartAction]


@frozen(kw_only=True)
class PartAnswer(PartsAnswer):
    """Energy of each subgraph or operator of one or several runs; the rows of a run sum to its energy exactly."""

    level: ModelDivision
    by: EnergyDivision
    subgraph: str
    """Requested subgraph; empty for all subgraphs."""
    categories: Table[PartCategory] | None
    """Energy of each part of each run by category, largest first; None if divided by action."""
    actions: Table[PartAction] | None
    """Energy of each part of each run by action, largest first; None if divided by category."""
    facts: Facts
    """Parts of each run, largest first, and caveats, from which all sentences are made."""

    @property
    def rows(self) -> Table[PartCategory] | Table[PartAction]:
        """Table of the requested division: `categories` or `actions`."""
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
        """Return the document with the `limit` parts that use most energy; machine formats contain all parts."""
        rows: Rows = self.rows.rows
        runs = {run_id: [row for row in rows if row.run_id == run_id] for run_id in self.scope.evaluated_ids}
        runs = {run_id: parts for run_id, parts in runs.items() if parts}
        subject = {"by": self.by, "level": self.level, "subgraph": self.subgraph}
        shown = []
        for model in dict.fromkeys(row.model for row in rows):
            mine = [parts for parts in runs.values() if parts[0].model == model]
            title = INSIDE_TABLE if self.subgraph else PARTS_TABLE
            named = title(**subject, model=model if len(self.scope.models) > 1 else "")
            drawn = (self._lay_inside if self.subgraph else self._lay_parts)(mine, limit)
            shown.append(Section(named, (drawn, *self._count_left_out()), is_tight=True))
        divided = self.subgraph or EVERY(level=self.level)
        return self._compose_facts(
            self.facts,
            shown,
            self.rows,
            title=attrs.evolve(
                title_runs(self.scope),
                beside=(
                    ON_HARDWARE(hardware=list(dict.fromkeys(map(self._name, runs.values())))),
                    *([OF_SUBGRAPH(subgraph=self.subgraph)] if self.subgraph else []),
                ),
            ),
            answer=describe_parts(self.facts, self.by, divided),
            trust=describe_ranges(self.facts),
            details=(Section(EACH_TABLE(**subject), (self._lay_each(), *self._prove_runs(runs))),),
            steps=self._list_steps(rows, repeated),
        )

    def _name(self, rows: Rows) -> str:
        return self._mark(rows[0].hardware)

    def _lay_each(self) -> Grid:
        """Return a grid of all rows, up to `SHOWN_ROWS`."""
        drawn = self._lay(self.rows, EACH_COLUMNS[self.by], limit=SHOWN_ROWS)
        return attrs.evolve(drawn, way="--format json")

    def _lay_inside(self, runs: Sequence[Rows], limit: int) -> Grid:
        """Return a grid of one part, with a row per category or action and a column per run."""
        sums: dict[str, list[int]] = {WHOLE: [0] * len(runs)}
        for index, rows in enumerate(runs):
            for row in rows:
                for name in (WHOLE, name_part(row)):
                    sums.setdefault(name, [0] * len(runs))[index] += row.energy_fj
        whole, *ordered = sorted(sums.items(), key=lambda item: -sum(item[1]))
        lines = [
            (
                name_category(name),
                *(_show(value) if value else "" for value in values),
                show_share(values[0] / (whole[1][0] or 1)),
            )
            for name, values in (whole, *ordered[:limit])
        ]
        names = [*map(self._name, runs)]
        headings = (self.by, *names, "share")
        if len(runs) > 1:
            headings, lines = headings[:-1], [cells[:-1] for cells in lines]
        return Grid(headings=headings, rows=tuple(lines), keep=tuple(names)).out_of(
            len(ordered), limit, PLURALS[self.by]
        )

    def _lay_parts(self, runs: Sequence[Rows], limit: int) -> Grid:
        """Return a grid of the parts with the most energy, with a column per run.

        A single run has its largest category in a further column.
        """
        weights: dict[int, float] = {}
        for row in (row for rows in runs for row in rows):
            weights[row.part_index] = weights.get(row.part_index, 0.0) + (row.run_fraction or 0.0)
        parts = sorted(weights, key=lambda part: (-weights[part], part))
        is_single, lines = len(runs) == 1, []
        for part in parts[:limit]:
            mine = [[row for row in rows if row.part_index == part] for rows in runs]
            first = next(row for rows in mine for row in rows)
            cells = [_show(sum(row.energy_fj for row in rows)) for rows in mine]
            if is_single:
                largest = max(mine[0], key=lambda row: row.energy_fj)
                share = LARGEST_PART(largest=name_category(name_part(largest)), share=largest.share_fraction)
                cells += [show_share(sum(row.run_fraction or 0.0 for row in mine[0])), share]
            lines.append((first.name, *cells, first.fusion_pattern if self.level == "subgraph" else first.kind))
        names = ["energy", *LARGEST_PARTS] if is_single else [*map(self._name, runs)]
        headings = (self.level, *names, KINDS[self.level])
        return lay_across(headings, lines, len(parts), f"{self.level}s", names)

    def _prove_runs(self, runs: Mapping[int, Rows]) -> Iterator[Text]:
        """Yield the check that the parts of a run sum to its energy, for each run."""
        whole = "the subgraph" if self.subgraph else "the run"
        for rows in runs.values():
            sums = (sum(row.energy_fj for row in rows), rows[0].whole_energy_fj, "fJ")
            yield prove(PLURALS[self.by], f"{whole} on {self._name(rows)}" if len(runs) > 1 else whole, sums)

    def _list_steps(self, rows: Rows, repeated: Sequence[str]) -> list[list[str]]:
        hardware = list(dict.fromkeys(self.scope.spell(row.hardware) for row in rows))
        largest = max(rows, key=lambda row: row.energy_fj)
        inside = (INTO_OPERATORS if self.subgraph else INTO_LARGEST,) if self.level == "subgraph" else ()
        return self._fill_steps(
            (*inside, *((INTO_PAIR,) if len(hardware) > 1 else ())),
            None,
            repeated,
            model=self.scope.model,
            part=self.subgraph,
            hardware=hardware[0],
            largest=self.scope.spell(largest.hardware),
            largest_part=largest.name,
            a=hardware[0],
            b=hardware[:2][-1],
        )


def _show(energy_fj: int) -> str:
    return show_quantity(energy_fj / FJ_PER_J, "J")


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

    Categories are those of the chip's architecture. `subgraph` restricts the answer to one subgraph or its operators.
    Raises like `analyze`; UnknownNameError for a subgraph that the model does not have.
    """
    _check(level, by)
    with opening_parts(source, "analyze", model, hardware, settings, subgraph=subgraph) as scope:
        answer = _fetch(scope, level=level, by=by, subgraph=subgraph, is_common=False)
    return _check_energy(answer)


def compare_breakdowns(
    source: Source,
    models: Sequence[str],
    settings: Settings = SETTINGS,
    *,
    level: ModelDivision = "subgraph",
    by: EnergyDivision = "category",
    subgraph: str = "",
) -> PartAnswer:
    """Break down the energy of each subgraph or operator on each chip.

    Categories are those common to all architectures. `subgraph` restricts the answer to one subgraph or its operators.
    Raises like `compare`; UnknownNameError for a subgraph that no model has.
    """
    _check(level, by)
    settings.check_single("compare")
    with opening_scope(source, plan_runs(models, settings)) as scope:
        scope.check_evaluated()
        check_subgraph(scope, subgraph)
        answer = _fetch(scope, level=level, by=by, subgraph=subgraph, is_common=True)
    return _check_energy(answer)


def _check(level: ModelDivision, by: EnergyDivision) -> None:
    check_name("level", level, get_args(ModelDivision))
    check_name("division", by, get_args(EnergyDivision))


def _fetch(scope: Scope, *, level: ModelDivision, by: EnergyDivision, subgraph: str, is_common: bool) -> PartAnswer:
    given = {"run_ids": list(scope.run_ids), "level": level, "subgraph": subgraph}
    connection, is_by_category = scope.connection, by == "category"
    categories = fetch(connection, PartCategory, **given, is_common=is_common) if is_by_category else None
    actions = None if is_by_category else fetch(connection, PartAction, **given)
    table = actions if categories is None else categories
    facts = find_largest(scope, by, table or (), name_part)
    return PartAnswer(
        scope=scope, level=level, by=by, subgraph=subgraph, categories=categories, actions=actions, facts=facts
    )


def _check_energy(answer: PartAnswer) -> PartAnswer:
    """Return the answer unchanged; raise UnsupportedError if it has no rows, because the operators run in no kernel."""
    if not answer.rows.rows:
        raise UnsupportedError(f"no operator of {answer.subgraph} runs as a kernel, so it takes no energy")
    return answer


def name_part(row: PartCategory | PartAction) -> str:
    """Return the category of a row, or its component and action."""
    return row.category if isinstance(row, PartCategory) else f"{row.component}.{row.action}"
