"""Survey of designs: evaluation, limits, the Pareto front and the band tied with it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import attrs
import numpy as np

from joulemap.physics import Booleans, Floats, Integers
from joulemap.system import define, frozen
from joulemap.wing.explore.design.front import SIGNIFICANT, find_band, find_front, merge_equal
from joulemap.wing.explore.design.outcome import (
    Bound,
    Objective,
    Outcomes,
    evaluate_designs,
    evaluate_values,
    find_excess,
)
from joulemap.wing.explore.design.task import Group, survey_lake


@define(kw_only=True, eq=False)
class Watch:
    """Progress report of designs under evaluation."""

    say: Callable[[str], None]
    move: Callable[[int, int], None] | None
    """Callback with (designs done, designs to do); an exception from it ends the survey."""
    _front: Floats | None = None
    """Costs of the front found so far [design, objective]."""
    _reported: int = attrs.field(default=0, init=False)
    """Number of designs at the last report."""
    began_s: float = attrs.field(factory=time.perf_counter, init=False)

    def see(self, costs: Floats) -> None:
        """Update the front with the costs of a block of designs."""
        whole = costs if self._front is None else np.concatenate([self._front, costs])
        self._front = whole[find_front(whole)]

    def report(self, done: int, total: int, known: int = 0) -> None:
        """Report the number of designs done and the evaluation rate; `known` designs existed before and do not count.

        An exception from the listener ends the survey.
        """
        if done > self._reported:
            self._reported = done
            rate = (done - known) / max(time.perf_counter() - self.began_s, 1e-9)
            front = "" if self._front is None else f"; {len(self._front):,} on the Pareto front so far"
            before = f", {known:,} of them before," if known else ","
            self.say(f"{done:,} of {total:,} designs{before} {rate:,.0f} per second{front}")
        if self.move is not None:
            self.move(done, total)


FIRST_BLOCK: Final = 1_024
LARGEST_BLOCK: Final = 65_536
BLOCK_S: Final = 2.0
"""Target duration of a block of designs; progress is reported after each block."""

KEPT: Final = 1_000_000
"""Maximum designs of a survey that keeps outcomes in memory; a larger survey evaluates them again on demand."""


@frozen(kw_only=True)
class Difference:
    """Squared half-widths of the logarithm of the ratio of two designs, in latency and in energy."""

    latency_square: float
    energy_square: float


@define(kw_only=True, eq=False)
class Survey:
    """Designs of some groups in one sequence of rows, with their costs and, if memory suffices, their outcomes."""

    groups: tuple[Group, ...]
    objectives: tuple[Objective, ...]
    bounds: tuple[Bound, ...]
    costs: Floats = attrs.field(init=False)
    """Logarithms to minimize [design, objective]; infinite if a limit is exceeded."""
    is_evaluated: Booleans = attrs.field(init=False)
    seconds: float = 0.0
    """Duration of the evaluation in seconds."""
    evaluated_count: int = 0
    """Designs evaluated in this survey; the results of the other designs came from a lake."""
    nearest_miss: int | None = None
    """Row of the design with the least excess over the limits; None if no design runs."""
    front: Booleans = attrs.field(init=False)
    band: Booleans = attrs.field(init=False)
    nearest: Integers = attrs.field(init=False)
    _done: int = 0
    _least: float = np.inf
    """Ratio by which `nearest_miss` exceeds the limits."""
    _reasons: Counter[str] = attrs.field(factory=Counter)
    _whole: list[Outcomes] = attrs.field(factory=list)

    def __attrs_post_init__(self) -> None:
        count = sum(len(one.numbers) for one in self.groups)
        self.costs, self.is_evaluated = np.empty((count, len(self.objectives))), np.empty(count, dtype=bool)

    def __len__(self) -> int:
        return len(self.costs)

    @property
    def parameters(self) -> list[str]:
        """Names of the varied constants of all groups."""
        return list(dict.fromkeys(one.name for group in self.groups for one in group.space.parameters))

    @cached_property
    def group(self) -> Integers:
        """Index of the group of each design."""
        return np.repeat(np.arange(len(self.groups), dtype=np.int32), [len(one.numbers) for one in self.groups])

    @cached_property
    def numbers(self) -> Integers:
        """Number of each design in its space."""
        first, *others = (one.numbers for one in self.groups)
        return np.concatenate([first, *others]) if others else first

    @property
    def is_within(self) -> Booleans:
        """Mask of the designs within the limits."""
        mask: Booleans = self.costs[:, 0] < np.inf
        return mask

    def add(self, outcomes: Outcomes) -> Floats:
        """Add the outcomes of the next designs; return the costs of designs within the limits."""
        is_within, excess = find_excess(outcomes, self.bounds)
        part = slice(self._done, self._done + len(outcomes))
        costs = np.stack([one.sign * np.log(outcomes.value(one)) for one in self.objectives], axis=1)
        self.costs[part] = np.where(is_within[:, None], costs, np.inf)
        self.is_evaluated[part] = outcomes.is_evaluated
        least = int(np.argmin(excess))
        if excess[least] < self._least:
            self.nearest_miss, self._least = part.start + least, float(excess[least])
        for text, count in Counter(outcomes.refusal[~outcomes.is_evaluated].tolist()).items():
            self._reasons["static power is not below the tdp" if text.startswith("static_power:") else text] += count
        if len(self) <= KEPT:
            self._whole.append(outcomes)
        self._done = part.stop
        return costs[is_within]

    def outcomes_at(self, rows: Sequence[int]) -> Outcomes:
        """Return the outcomes of the designs in these rows; a large survey evaluates them again."""
        wanted = np.asarray(rows, dtype=np.int64)
        if len(self) <= KEPT:
            self._whole = [Outcomes.join(self._whole)]
            return self._whole[0].take(wanted)
        order = np.argsort(self.group[wanted], kind="stable")
        groups, starts = np.unique(self.group[wanted[order]], return_index=True)
        parts = [
            evaluate_designs(self.groups[group].space, self.numbers[some], self.groups[group].models)
            for group, mine in zip(groups.tolist(), np.split(wanted[order], starts[1:]), strict=True)
            for some in np.split(mine, range(LARGEST_BLOCK, len(mine), LARGEST_BLOCK))
        ]
        return Outcomes.join(parts).take(np.argsort(order))

    def judge(self, doubt: Mapping[tuple[int, int], Difference]) -> None:
        """Find the Pareto front of the designs within the limits, and the designs statistically tied with it.

        `doubt` is (group, group) -> uncertainty of the difference of their designs; a missing pair has no uncertainty.
        """
        none = Difference(latency_square=0.0, energy_square=0.0)
        thresholds = [
            [self._find_threshold(doubt.get((each, other), none)) for other in range(len(self.groups))]
            for each in range(len(self.groups))
        ]
        self.front = merge_equal(self.costs, find_front(self.costs))
        self.band, self.nearest = find_band(self.costs, self.front, self.group, thresholds)

    def _find_threshold(self, pair: Difference) -> Floats:
        """Return by how much logarithms must differ in each objective for two designs to be significantly different."""
        squares = pair.latency_square, pair.energy_square
        return SIGNIFICANT * np.array([one.half_width(*squares) for one in self.objectives])

    def order(self, is_wanted: Booleans, objective: Objective) -> Integers:
        """Return the rows of the selected designs, best first by an objective."""
        rows = np.flatnonzero(is_wanted)
        return rows[np.argsort(self.costs[rows, self.objectives.index(objective)], kind="stable")]

    def find_best(self, objective: Objective) -> int:
        """Return the row of the front's best design by an objective; no design is better by more than 0.1 %."""
        rows = np.flatnonzero(self.front) if self.front.any() else np.arange(len(self.front))
        return int(rows[np.argmin(self.costs[rows, self.objectives.index(objective)])])

    def count_tied(self, row: int, objective: Objective, doubt: Mapping[tuple[int, int], Difference]) -> int:
        """Return the number of other designs within the limits that are tied with a design in an objective."""
        column = self.objectives.index(objective)
        cost = self.costs[:, column]
        widest = np.zeros(len(self.groups))
        for each in range(len(self.groups)):
            if (pair := doubt.get((each, int(self.group[row])))) is not None:
                widest[each] = self._find_threshold(pair)[column]
        return int((cost - cost[row] <= widest[self.group]).sum()) - 1

    def values_at(self, row: int) -> dict[str, float]:
        """Return parameter -> value of the design in a row."""
        space = self.groups[int(self.group[row])].space
        return {name: float(one[0]) for name, one in space.values_at(self.numbers[row : row + 1]).items()}

    def changes_at(self, row: int) -> dict[str, float]:
        """Return constant -> value in SI units, for the constants in which a design differs from its base chip."""
        space = self.groups[int(self.group[row])].space
        values = space.values_at(self.numbers[row : row + 1])
        return {one.name: one.value for one in space.law.change_at(space.law.follow(values), 0)} if values else {}

    def count_refusals(self) -> list[tuple[str, int]]:
        """Return (reason of refusal, number of designs), most frequent first."""
        return self._reasons.most_common()

    def list_status(self, rows: Sequence[int]) -> list[str]:
        """Return the status of each design: front, band, other, missed or unsupported."""
        words = np.full(len(rows), "missed", dtype="<U11")
        words[self.is_within[rows]] = "other"
        words[self.band[rows]] = "band"
        words[self.front[rows]] = "front"
        words[~self.is_evaluated[rows]] = "unsupported"
        return [str(one) for one in words]

    def columns(self, parameters: Sequence[str], rows: Sequence[int]) -> dict[str, Any]:
        """Return name -> values of columns for the designs in these rows: base chip, dimensions and parameters."""
        group, numbers = self.group[rows], self.numbers[rows]
        columns: dict[str, Any] = {"hardware": np.array([one.hardware for one in self.groups])[group]}
        for name in self.groups[0].dimensions:
            columns[name] = np.array([one.dimensions[name] for one in self.groups])[group]
        columns["batch"] = np.array([one.batch for one in self.groups])[group]
        for name in parameters:
            column = np.full(len(group), np.nan)
            for index, one in enumerate(self.groups):
                mine = group == index
                column[mine] = one.space.values_at(numbers[mine])[name]
            columns[name] = column
        return columns


def survey(
    groups: Sequence[Group],
    objectives: Sequence[Objective],
    bounds: tuple[Bound, ...],
    watch: Watch,
    lake: Path | None = None,
    jobs: int = 1,
    cluster: str = "",
) -> Survey:
    """Evaluate all designs of some groups in blocks and return the survey.

    With a lake, results are stored there and processes work in parallel. `watch` receives the costs of each block
    before its progress is reported.
    """
    result = Survey(groups=tuple(groups), objectives=tuple(objectives), bounds=bounds)
    if lake is not None:
        result.evaluated_count = survey_lake(
            lake, groups, jobs, cluster, watch.report, lambda outcomes: watch.see(result.add(outcomes))
        )
    else:
        watch.report(0, len(result))
        for numbers, one in _cut(groups):
            watch.see(result.add(one.outcomes or evaluate_designs(one.space, numbers, one.models)))
            result.evaluated_count += len(numbers)
            watch.report(result.evaluated_count, len(result))
    result.seconds = time.perf_counter() - watch.began_s
    return result


def _cut(groups: Sequence[Group]) -> Iterator[tuple[Integers, Group]]:
    """Yield designs of groups in blocks that take about `BLOCK_S` each."""
    size = FIRST_BLOCK
    for one in groups:
        if one.outcomes is not None:
            yield one.numbers, one
            continue
        start = 0
        while start < len(one.numbers):
            began = time.perf_counter()
            end = one.end_block(start, size)
            yield one.numbers[start:end], one
            start = end
            if time.perf_counter() - began < BLOCK_S:
                size = min(2 * size, LARGEST_BLOCK)


def evaluate_rows(group: Group, rows: Sequence[Mapping[str, float]]) -> Outcomes:
    """Return the outcomes of designs; each row of `rows` is parameter -> value."""
    columns = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    return evaluate_values(group.space, columns, group.models, len(rows))
