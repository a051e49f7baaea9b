"""Facts of a Pareto front: its configurations and ends, how surely they are on it, and what lacks a price."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

from joulemap.ask.fact import Caveat, Choice, Entry, Facts, Front, Quantity
from joulemap.ask.rule import find_caveats
from joulemap.ask.scope import Scope
from joulemap.domain.hardware_ref import HardwareRef
from joulemap.domain.metric import METRIC, MetricName
from joulemap.generated.pareto import ParetoPoint
from joulemap.physics.interval.error_scale import TOLD_APART

EVEN: Final = 0.5
"""Probability of being on the front from which a dominated configuration counts as a likely member."""

WEIGHED: Final = 12
"""Number of configurations of the front whose caveats are found; its ends are added."""


def find_facts(scope: Scope, rows: Sequence[ParetoPoint], x: MetricName, y: MetricName) -> Facts:
    """Return the facts of a front in the metrics `x` and `y`: the front and its ends, the configurations of unavailable
    hardware that would be on it, its rows, and caveats, whose weights refer to its ends in `y`.
    """
    front = [row for row in rows if row.status == "front"]
    others = [row for row in rows if row.status == "projection"]
    count = sum(row.x_value is not None and row.y_value is not None for row in rows)
    fronts = [
        Front(runs=tuple(row.run_id for row in some), metrics=(x, y), count=count, is_available=is_available)
        for some, is_available in ((front, True), (others, False))
        if some
    ]
    ends = [front[-1], front[0]] if len(front) > 1 else front
    choices = [
        *(_lead(ends, y, row.y_value, row.y_half_width) for row in ends[:1]),
        *(_lead(ends[::-1], x, row.x_value, row.x_half_width) for row in ends[-1:]),
    ]
    shown = {row.run_id for row in (*front[:WEIGHED], *ends)}
    weighed = scope.narrow(shown)
    return Facts(
        asked=(x, y),
        runs=scope.subjects({}),
        facts=(
            *fronts,
            *choices,
            *(_enter(row, x, y) for row in (*front, *others)),
            *_find_members(front, rows),
            *_find_unplaced(rows),
            *find_caveats(weighed, choices, metric=y),
        ),
    )


def _lead(ends: Sequence[ParetoPoint], metric: MetricName, value: float | None, half_width: float | None) -> Choice:
    """Return one end of the front as the best in a metric, before the other end."""
    quantity = Quantity(value or 0.0, METRIC[metric].unit, half_width)
    return Choice(runs=tuple(row.run_id for row in ends), metric=metric, value=quantity)


def _enter(row: ParetoPoint, x: MetricName, y: MetricName) -> Entry:
    """Return the values of a configuration in both metrics, and its probability of being on the front."""
    values: dict[str, Quantity] = {
        x: Quantity(row.x_value or 0.0, METRIC[x].unit, row.x_half_width),
        y: Quantity(row.y_value or 0.0, METRIC[y].unit, row.y_half_width),
    }
    chance = {} if row.probability_front is None else {"probability_front": Quantity(row.probability_front)}
    return Entry(runs=(row.run_id,), values={**values, **chance})


def _find_members(front: Sequence[ParetoPoint], rows: Sequence[ParetoPoint]) -> Iterator[Caveat]:
    """Yield how many configurations are not surely on the front, weighed by the front over its expected part."""
    chances = [row.probability_front for row in front if row.probability_front is not None]
    unsure = sum(one <= TOLD_APART for one in chances)
    likely = [row for row in rows if row.status == "dominated" and (row.probability_front or 0.0) >= EVEN]
    if unsure and len(rows) > 1:
        yield Caveat(
            kind="members",
            runs=tuple(row.run_id for row in front),
            values={"count": len(front), "unsure": unsure, "likely": len(likely) or None, "least": TOLD_APART},
            weight=math.log(len(chances) / sum(chances)) if sum(chances) else math.inf,
        )


def _find_unplaced(rows: Sequence[ParetoPoint]) -> Iterator[Caveat]:
    """Yield the available chips that a missing price leaves out, by reason."""
    reasons: dict[str, dict[str, int]] = {}
    for row in rows:
        if row.status == "unplaced" and row.is_available:
            chips = reasons.setdefault("" if row.is_elsewhere else row.reason, {})
            chips.setdefault(HardwareRef.read(row.hardware).label, row.run_id)
    for reason, chips in reasons.items():
        yield Caveat(
            kind="unpriced" if reason else "elsewhere",
            runs=tuple(chips.values()),
            values={"reason": reason, "value": None},
        )
