"""Pareto front of configurations in two metrics: its ends, how surely they are on it, and what lacks a price."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.ask.candidate import (
    CandidateAnswer,
    fetch_candidates,
    find_lost,
    lack_price,
    list_ids,
    plan_candidates,
    read_usage,
)
from joulemap.ask.fact import Caveat, Choice, Entry, Facts, Front, Quantity
from joulemap.ask.rule import find_caveats
from joulemap.ask.scope import opening_scope
from joulemap.domain.default import CANDIDATES, USAGE, price_at_wall
from joulemap.domain.metric import METRIC, METRIC_NAMES, MetricName
from joulemap.domain.settings import Settings, Usage, check_name
from joulemap.domain.table import Table
from joulemap.generated.pareto import ParetoPoint
from joulemap.physics.interval.error_scale import TOLD_APART
from joulemap.plan.source import Source
from joulemap.system.errors import UsageError
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.ask.check import CheckedRow

EVEN: Final = 0.5
"""Probability of being on the front from which a dominated configuration counts as a likely member."""

WEIGHED: Final = 12
"""Number of configurations of the front whose caveats are found; its ends are added."""


@frozen(kw_only=True)
class ParetoAnswer(CandidateAnswer):
    """Every configuration of a model in two metrics: the front, and the configurations that it dominates."""

    x: MetricName
    y: MetricName
    rows: Table[ParetoPoint]
    """One row per configuration, with the front first."""

    @property
    def front(self) -> Table[ParetoPoint]:
        """Configurations that no other beats in both metrics, best in the first one first."""
        return self.select("front")

    @property
    def projections(self) -> Table[ParetoPoint]:
        """Configurations of unavailable hardware that would be on the front."""
        return self.select("projection")

    @property
    def dominated(self) -> Table[ParetoPoint]:
        """Configurations that another one beats."""
        return self.select("dominated")

    @property
    def checked(self) -> Sequence[CheckedRow]:
        """Runs on the front."""
        return self.front.rows

    def data(self) -> dict[str, Any]:
        """Return the data for machine formats, including the names of both metrics."""
        metrics = {"x": self.x, "x_meaning": METRIC[self.x].meaning, "y": self.y, "y_meaning": METRIC[self.y].meaning}
        return {**metrics, **super().data()}


def find_facts(answer: ParetoAnswer) -> Facts:
    """Return the facts of a front: the front and its ends, the configurations of unavailable hardware that would be on
    it, its rows, and caveats, whose weights refer to its ends in the second metric.
    """
    scope, rows = answer.scope, answer.rows.rows
    front, others = answer.front.rows, answer.projections.rows
    count = sum(row.x_value is not None and row.y_value is not None for row in rows)
    fronts = [
        Front(runs=list_ids(some), metrics=(answer.x, answer.y), count=count, is_available=some is front)
        for some in (front, others)
        if some
    ]
    ends = [front[-1], front[0]] if len(front) > 1 else front
    entries = {row.run_id: _enter(row, answer) for row in (*front, *others)}
    choices = [
        Choice(runs=list_ids(some), metric=metric, value=entries[some[0].run_id].values[metric])
        for metric, some in ((answer.y, ends), (answer.x, ends[::-1]))
        if some
    ]
    return Facts(
        asked=(answer.x, answer.y),
        runs=scope.subjects({}),
        facts=(
            *fronts,
            *choices,
            *entries.values(),
            *_find_members(answer),
            *(
                lack_price(reason, alike)
                for reason, alike in find_lost(row for row in answer.select("unplaced") if row.is_available)
            ),
            *find_caveats(scope.narrow(list_ids((*front[:WEIGHED], *ends))), choices, metric=answer.y),
        ),
    )


def _enter(row: ParetoPoint, answer: ParetoAnswer) -> Entry:
    """Return the values of a configuration in both metrics, and its probability of being on the front."""
    values: dict[str, Quantity] = {
        answer.x: Quantity(row.x_value or 0.0, METRIC[answer.x].unit, row.x_half_width),
        answer.y: Quantity(row.y_value or 0.0, METRIC[answer.y].unit, row.y_half_width),
    }
    chance = {} if row.probability_front is None else {"probability_front": Quantity(row.probability_front)}
    return Entry(runs=(row.run_id,), values={**values, **chance})


def _find_members(answer: ParetoAnswer) -> Iterator[Caveat]:
    """Yield how many configurations are not surely on the front, weighed by the front over its expected part."""
    front = answer.front
    chances = [row.probability_front for row in front if row.probability_front is not None]
    unsure = sum(one <= TOLD_APART for one in chances)
    likely = sum((row.probability_front or 0.0) >= EVEN for row in answer.dominated)
    if unsure and len(answer.rows) > 1:
        yield Caveat(
            kind="members",
            runs=list_ids(front),
            values={"count": len(front), "unsure": unsure, "likely": likely or None, "least": TOLD_APART},
            weight=math.log(len(chances) / sum(chances)) if sum(chances) else math.inf,
        )


def pareto(
    source: Source,
    model: str,
    settings: Settings = CANDIDATES,
    *,
    x: MetricName = "latency",
    y: MetricName = "energy_per_inference",
    usage: Usage = USAGE,
) -> ParetoAnswer:
    """Compute the Pareto front of configurations in two metrics, and the configurations that it dominates.

    Combines hardware (the whole catalogue by default), power modes, precisions, runtimes and batch sizes (by default 1,
    8 and 32 on chips for data centres, else 1). Runs that are not stored are evaluated. Raises like `compare`.
    """
    for name in (x, y):
        check_name("metric", name, METRIC_NAMES)
    if x == y:
        raise UsageError(f"both metrics are {x}: a front needs two")
    settings = price_at_wall(settings, (x, y))
    used, pay = read_usage(usage, settings)
    with opening_scope(source, plan_candidates(model, settings), needs_catalogue=True, has_ledger=False) as scope:
        units = {"x_value": METRIC[x].unit, "y_value": METRIC[y].unit}
        given = {"run_ids": list(scope.run_ids), "x": x, "y": y, **used, **pay}
        answer = ParetoAnswer(scope=scope, x=x, y=y, **fetch_candidates(scope, ParetoAnswer, units, **given))
        return attrs.evolve(answer, facts=find_facts(answer))
