"""A survey of designs: every one evaluated, those that keep the limits found, the best of them and their like."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import attrs
import numpy as np

from joulemap.design.front import TOLD_SHARE, find_band, find_front
from joulemap.design.group import Group
from joulemap.design.limit import Bound, find_excess
from joulemap.design.outcome import Objective, Outcomes, evaluate_designs, evaluate_values
from joulemap.system.record import define, frozen

if TYPE_CHECKING:
    from joulemap.model.workload import Booleans, Floats, Integers

Tell = Callable[[int, int], None]
"""Told (designs done, designs to do); what it raises ends the survey."""

FIRST_BLOCK: Final = 1_024
LARGEST_BLOCK: Final = 65_536
BLOCK_S: Final = 2.0
"""How long a block of designs may take: then it is told how many are done."""

STEP: Final = 0.01
"""Of a parameter, for what it does at the margin; one where it counts something."""


@frozen(kw_only=True)
class Difference:
    """Squares of the half-widths of what two designs differ by; see `explore.doubt`."""

    latency_square: float
    energy_square: float
    joint_square: float


@define(kw_only=True, eq=False)
class Survey:
    """Every design of some groups, one behind the other."""

    groups: tuple[Group, ...]
    group: Integers
    """Place of each design's group."""
    numbers: Integers
    outcomes: Outcomes
    seconds: float
    """That evaluating took."""
    keeps: Booleans = attrs.field(init=False)
    excess: Floats = attrs.field(init=False)
    front: Booleans = attrs.field(init=False)
    band: Booleans = attrs.field(init=False)
    nearest: Integers = attrs.field(init=False)

    def judge(
        self,
        objectives: Sequence[Objective],
        bounds: tuple[Bound, ...],
        doubt: Mapping[tuple[int, int], Difference],
    ) -> None:
        """Find the front of what keeps the limits, and its band; `doubt` is of pairs of groups, without one nothing."""
        self.keeps, self.excess = find_excess(self.outcomes, bounds)
        rows = np.flatnonzero(self.keeps)
        costs = np.stack([one.sign * np.log(self.outcomes.value(one)[rows]) for one in objectives], axis=1)
        none = Difference(latency_square=0.0, energy_square=0.0, joint_square=0.0)
        thresholds = [
            [
                np.array(
                    [
                        TOLD_SHARE * one.half_width(pair.latency_square, pair.energy_square, pair.joint_square)
                        for one in objectives
                    ]
                )
                for other in range(len(self.groups))
                for pair in [doubt.get((each, other), none)]
            ]
            for each in range(len(self.groups))
        ]
        front = find_front(costs)
        band, nearest = find_band(costs, front, self.group[rows], thresholds)
        self.front, self.band = np.zeros(len(self.group), dtype=bool), np.zeros(len(self.group), dtype=bool)
        self.nearest = np.full(len(self.group), -1)
        self.front[rows], self.band[rows] = front, band
        self.nearest[rows] = np.where(nearest >= 0, rows[nearest], -1) if len(rows) else nearest

    def order(self, is_wanted: Booleans, objective: Objective) -> list[int]:
        """Return the designs that are wanted, the best of an objective first."""
        rows = np.flatnonzero(is_wanted)
        cost = objective.sign * self.outcomes.value(objective)[rows]
        return [int(row) for row in rows[np.lexsort((rows, cost))]]

    def find_best(self, objective: Objective) -> int:
        """Return the design that is best of those that keep the limits."""
        return self.order(self.keeps, objective)[0]

    def count_like(self, row: int, objective: Objective, doubt: Mapping[tuple[int, int], Difference]) -> int:
        """Return how many others that keep the limits cannot be told from one in an objective."""
        value = np.log(self.outcomes.value(objective))
        behind = objective.sign * (value - value[row])
        widest = np.zeros(len(self.groups))
        for place in range(len(self.groups)):
            if (pair := doubt.get((place, int(self.group[row])))) is not None:
                widest[place] = TOLD_SHARE * objective.half_width(
                    pair.latency_square, pair.energy_square, pair.joint_square
                )
        return int((self.keeps & (behind <= widest[self.group])).sum()) - 1

    def find_nearest_miss(self) -> int | None:
        """Return the design that misses its limits least; None where none can be run."""
        row = int(np.argmin(self.excess))
        return row if np.isfinite(self.excess[row]) else None

    def values_at(self, row: int) -> dict[str, float]:
        """Return the parameters of a design."""
        space = self.groups[int(self.group[row])].space
        return {name: float(one[0]) for name, one in space.values_at(self.numbers[row : row + 1]).items()}

    def changes_at(self, row: int) -> dict[str, float]:
        """Return the values of all constants in which a design differs from its chip, in SI."""
        space = self.groups[int(self.group[row])].space
        values = space.values_at(self.numbers[row : row + 1])
        return {one.name: one.value for one in space.law.change_at(space.law.follow(values), 0)} if values else {}

    def count_refusals(self) -> list[tuple[str, int]]:
        """Return why designs cannot run, each reason without its numbers, with how many: the commonest first."""
        counts: Counter[str] = Counter()
        texts, found = np.unique(self.outcomes.refusal, return_counts=True)
        for text, count in zip(texts.tolist(), found.tolist(), strict=True):
            if text:
                counts["static power is not below the tdp" if text.startswith("static_power:") else text] += count
        return counts.most_common()

    def tell_status(self, rows: Sequence[int]) -> list[str]:
        """Return what each of some designs is, in a word."""
        words = np.full(len(rows), "missed", dtype="<U11")
        words[self.keeps[rows]] = "other"
        words[self.band[rows]] = "band"
        words[self.front[rows]] = "front"
        words[~self.outcomes.is_evaluated[rows]] = "unsupported"
        return [str(one) for one in words]

    def columns(self, parameters: Sequence[str], rows: Sequence[int]) -> dict[str, Any]:
        """Return some designs as arrays: what they are like, and their parameters."""
        group, numbers = self.group[rows], self.numbers[rows]
        found: dict[str, Any] = {"hardware": np.array([one.hardware for one in self.groups])[group]}
        for name in self.groups[0].dimensions:
            found[name] = np.array([one.dimensions[name] for one in self.groups])[group]
        found["batch"] = np.array([one.batch for one in self.groups])[group]
        for name in parameters:
            column = np.full(len(group), np.nan)
            for place, one in enumerate(self.groups):
                mine = group == place
                column[mine] = one.space.values_at(numbers[mine])[name]
            found[name] = column
        return found


def survey(
    groups: Sequence[Group],
    tell: Tell,
    see: Callable[[Outcomes], None],
    lake: Path | None = None,
    jobs: int = 1,
    cluster: str = "",
) -> Survey:
    """Return every design of groups, evaluated in blocks: by several processes, and kept in a lake, if one is named.

    `see` is shown each block before `tell` is told of it.
    """
    began = time.perf_counter()
    if lake is not None:
        from joulemap.design.task import survey_lake

        parts = survey_lake(lake, groups, jobs, cluster, tell, see)
    else:
        parts = _evaluate_all(groups, tell, see)
    return Survey(
        groups=tuple(groups),
        group=np.concatenate([np.full(len(one.numbers), place) for place, one in enumerate(groups)]),
        numbers=np.concatenate([one.numbers for one in groups]),
        outcomes=Outcomes.join(parts),
        seconds=time.perf_counter() - began,
    )


def _evaluate_all(groups: Sequence[Group], tell: Tell, see: Callable[[Outcomes], None]) -> list[Outcomes]:
    total = sum(len(one.numbers) for one in groups)
    done = 0
    parts: list[Outcomes] = []
    tell(0, total)
    for numbers, one in _cut(groups):
        parts.append(evaluate_designs(one.space, numbers, one.loads))
        done += len(numbers)
        see(parts[-1])
        tell(done, total)
    return parts


def _cut(groups: Sequence[Group]) -> Iterator[tuple[Integers, Group]]:
    """Yield the designs of groups in blocks that take about as long as it may be until something is told."""
    size = FIRST_BLOCK
    for one in groups:
        start = 0
        while start < len(one.numbers):
            began = time.perf_counter()
            end = one.end_block(start, size)
            yield one.numbers[start:end], one
            start = end
            if time.perf_counter() - began < BLOCK_S:
                size = min(2 * size, LARGEST_BLOCK)


def find_slopes(
    group: Group, values: Mapping[str, float], objectives: Sequence[Objective]
) -> dict[str, tuple[float | None, ...]]:
    """Return of each parameter of a design, with all that follows it, d ln objective / d ln parameter."""
    names = list(values)
    rows = [dict(values)]
    for name in names:
        is_whole = group.space.law.constants[name].is_whole
        for sign in (-1.0, 1.0):
            value = values[name] + sign if is_whole else values[name] * (1.0 + sign * STEP)
            rows.append({**values, name: max(value, 1.0) if is_whole else value})
    columns = {name: np.array([row[name] for row in rows]) for name in names}
    found = evaluate_values(group.space, columns, group.loads, len(rows))
    slopes: dict[str, tuple[float | None, ...]] = {}
    for place, name in enumerate(names):
        ends = [row if found.refusal[row] == "" else 0 for row in (2 * place + 1, 2 * place + 2)]
        span = float(np.log(columns[name][ends[1]] / columns[name][ends[0]]))
        slopes[name] = tuple(
            float(np.log(found.value(one)[ends[1]] / found.value(one)[ends[0]])) / span if span else None
            for one in objectives
        )
    return slopes


def evaluate_one(group: Group, values: Mapping[str, float]) -> Outcomes:
    """Return what one design takes."""
    columns = {name: np.array([value]) for name, value in values.items()}
    return evaluate_values(group.space, columns, group.loads, 1)
