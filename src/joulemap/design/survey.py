"""A survey of designs: every one evaluated, those that keep the limits found, the best of them and their like."""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
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
    from joulemap.design.watch import Watch
    from joulemap.model.workload import Booleans, Floats, Integers

FIRST_BLOCK: Final = 1_024
LARGEST_BLOCK: Final = 65_536
BLOCK_S: Final = 2.0
"""How long a block of designs may take: then it is told how many are done."""

MOST_HELD: Final = 1_000_000
"""Designs that are held in memory with all that is known of them: 150 bytes each."""

JUDGED: Final = 1 << 20
"""Designs that are compared with the front at once."""

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
    """Every design of some groups, one behind the other: what it costs, and where else is known of it.

    Of a design it holds the logarithms that it is judged by; all else is in the parts that it was evaluated in, which
    a lake may keep.
    """

    groups: tuple[Group, ...]
    objectives: tuple[Objective, ...]
    bounds: tuple[Bound, ...]
    costs: Floats = attrs.field(init=False)
    """Design x objective: its logarithm, less is better; not a number where it cannot run."""
    keeps: Booleans = attrs.field(init=False)
    """Which designs keep every limit."""
    front: Booleans = attrs.field(init=False)
    band: Booleans = attrs.field(init=False)
    """Those of the front, and those that cannot be told from one of them."""
    nearest: Integers = attrs.field(init=False)
    """Design of the front that each of the band cannot be told from; -1 for others."""
    seconds: float = 0.0
    """That evaluating took."""
    evaluated_count: int = 0
    """Designs that were evaluated now: a lake may have had others."""
    _nearest_miss: tuple[float, int] = (np.inf, -1)
    """How many times over its limits the design is that misses them least, and its place."""
    _refusals: Counter[str] = attrs.field(factory=Counter)
    _ends: list[int] = attrs.field(factory=lambda: [0])
    """Designs before each part, and of all of them."""
    parts: list[Callable[[], Outcomes]] = attrs.field(factory=list)
    """What returns each part again."""
    beside: Any = None
    """What its lake is in, where nobody named one: it goes when the survey does."""

    def __attrs_post_init__(self) -> None:
        self.costs = np.full((len(self), len(self.objectives)), np.nan)
        self.keeps, self.front, self.band = (np.zeros(len(self), dtype=bool) for _ in range(3))
        self.nearest = np.full(len(self), -1)

    def __len__(self) -> int:
        return sum(len(one.numbers) for one in self.groups)

    def add(self, outcomes: Outcomes, load: Callable[[], Outcomes]) -> Floats:
        """Take in the next designs, of which `load` returns all that is known; return costs of those in limits."""
        start, end = self._ends[-1], self._ends[-1] + len(outcomes)
        self._ends.append(end)
        self.parts.append(load)
        rows = slice(start, end)
        keeps, excess = find_excess(outcomes, self.bounds)
        self.keeps[rows] = keeps
        self.costs[rows] = np.stack([one.sign * np.log(outcomes.value(one)) for one in self.objectives], axis=1)
        least = int(np.argmin(excess))
        self._nearest_miss = min(self._nearest_miss, (float(excess[least]), start + least))
        self._refusals.update(outcomes.refusal[~outcomes.is_evaluated].tolist())
        return self.costs[rows][keeps]

    def take(self, rows: Sequence[int]) -> Outcomes:
        """Return all that is known of some designs, in the order in which they are named."""
        wanted = np.asarray(rows, dtype=np.int64)
        part = np.searchsorted(self._ends, wanted, side="right") - 1
        mine = {one: np.flatnonzero(part == one) for one in np.unique(part).tolist()}
        found = [self.parts[one]().take(wanted[at] - self._ends[one]) for one, at in mine.items()]
        return Outcomes.join(found).take(np.argsort(np.concatenate(list(mine.values()))))

    def judge(self, doubt: Mapping[tuple[int, int], Difference]) -> None:
        """Find the front of what keeps the limits, and its band; `doubt` is of pairs of groups, without one nothing."""
        none = Difference(latency_square=0.0, energy_square=0.0, joint_square=0.0)
        places = range(len(self.groups))
        thresholds = [
            [
                np.array([_find_threshold(one, doubt.get((each, other), none)) for one in self.objectives])
                for other in places
            ]
            for each in places
        ]
        parts = [np.flatnonzero(self.keeps[start : start + JUDGED]) + start for start in range(0, len(self), JUDGED)]
        some = np.concatenate([rows[find_front(self.costs[rows])] for rows in parts])
        front = some[find_front(self.costs[some])]
        self.front[front] = True
        for rows in parts:
            is_near, nearest = find_band(
                self.costs[rows], self.group_of(rows), self.costs[front], self.group_of(front), thresholds
            )
            self.band[rows] = is_near
            self.nearest[rows] = np.where(is_near, front[nearest], -1)
        self.band[front], self.nearest[front] = True, front

    def order(self, is_wanted: Booleans, objective: Objective, limit: int | None = None) -> list[int]:
        """Return the designs that are wanted, the best of an objective first, `limit` of them at most."""
        rows = np.flatnonzero(is_wanted)
        cost = self._cost(objective)[rows]
        if limit is not None and len(rows) > limit:
            few = np.flatnonzero(cost <= np.partition(cost, limit)[limit])
            rows, cost = rows[few], cost[few]
        return [int(row) for row in rows[np.lexsort((rows, cost))][:limit]]

    def find_best(self, objective: Objective) -> int:
        """Return the design that is best of those that keep the limits."""
        return int(np.argmin(np.where(self.keeps, self._cost(objective), np.inf)))

    def count_like(self, row: int, objective: Objective, doubt: Mapping[tuple[int, int], Difference]) -> int:
        """Return how many others that keep the limits cannot be told from one in an objective."""
        cost, (own,) = self._cost(objective), self.group_of([row])
        count = -1
        for start in range(0, len(self), JUDGED):
            rows = np.flatnonzero(self.keeps[start : start + JUDGED]) + start
            pairs = (doubt.get((place, int(own))) for place in range(len(self.groups)))
            widest = np.array([0.0 if pair is None else _find_threshold(objective, pair) for pair in pairs])
            count += int((cost[rows] - cost[row] <= widest[self.group_of(rows)]).sum())
        return count

    def _cost(self, objective: Objective) -> Floats:
        return self.costs[:, self.objectives.index(objective)]

    def find_nearest_miss(self) -> int | None:
        """Return the design that misses its limits least; None where none can be run."""
        excess, row = self._nearest_miss
        return row if np.isfinite(excess) else None

    def group_of(self, rows: Sequence[int] | Integers) -> Integers:
        """Return the places of the groups of designs."""
        ends = np.cumsum([len(one.numbers) for one in self.groups])
        return np.searchsorted(ends, np.asarray(rows), side="right")

    def find_group(self, row: int) -> Group:
        """Return the group of a design."""
        return self.groups[int(self.group_of([row])[0])]

    def number_of(self, rows: Sequence[int]) -> Integers:
        """Return the numbers of designs in the spaces of their groups."""
        place, wanted = self.group_of(rows), np.asarray(rows, dtype=np.int64)
        starts = np.cumsum([0, *(len(one.numbers) for one in self.groups)])
        found = np.zeros(len(wanted), dtype=np.int64)
        for one in np.unique(place).tolist():
            mine = place == one
            found[mine] = self.groups[one].numbers[wanted[mine] - starts[one]]
        return found

    def values_at(self, row: int) -> dict[str, float]:
        """Return the parameters of a design."""
        space = self.find_group(row).space
        return {name: float(one[0]) for name, one in space.values_at(self.number_of([row])).items()}

    def changes_at(self, row: int) -> dict[str, float]:
        """Return the values of all constants in which a design differs from its chip, in SI."""
        space = self.find_group(row).space
        values = space.values_at(self.number_of([row]))
        return {one.name: one.value for one in space.law.change_at(space.law.follow(values), 0)} if values else {}

    def count_refusals(self) -> list[tuple[str, int]]:
        """Return why designs cannot run, each reason without its numbers, with how many: the commonest first."""
        counts: Counter[str] = Counter()
        for text, count in self._refusals.items():
            counts["static power is not below the tdp" if text.startswith("static_power:") else text] += count
        return counts.most_common()

    def tell_status(self, rows: Sequence[int]) -> list[str]:
        """Return what each of some designs is, in a word."""
        words = np.full(len(rows), "missed", dtype="<U11")
        words[self.keeps[rows]] = "other"
        words[self.band[rows]] = "band"
        words[self.front[rows]] = "front"
        words[np.isnan(self.costs[rows, 0])] = "unsupported"
        return [str(one) for one in words]

    def columns(self, parameters: Sequence[str], rows: Sequence[int]) -> dict[str, Any]:
        """Return some designs as arrays: what they are like, and their parameters."""
        group, numbers = self.group_of(rows), self.number_of(rows)
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
    objectives: tuple[Objective, ...],
    bounds: tuple[Bound, ...],
    watch: Watch,
    lake: Path | None = None,
    jobs: int = 1,
    cluster: str = "",
) -> Survey:
    """Return every design of groups, evaluated in blocks: by several processes, and kept in a lake, if one is named.

    `watch` is shown each block before it is told of it. Several processes, and more designs than are held in memory,
    have a lake of their own.
    """
    began = time.perf_counter()
    done = Survey(groups=tuple(groups), objectives=objectives, bounds=bounds)
    if lake is None and (jobs > 1 or cluster or len(done) > MOST_HELD):
        done.beside = tempfile.TemporaryDirectory(prefix="joulemap-")
        lake = Path(done.beside.name) / "lake"

    def add(outcomes: Outcomes, load: Callable[[], Outcomes]) -> None:
        watch.see(done.add(outcomes, load))

    if lake is not None:
        from joulemap.design.task import survey_lake

        done.evaluated_count = survey_lake(lake, groups, jobs, cluster, watch.tell, add)
    else:
        watch.tell(0, len(done))
        for numbers, one in _cut(groups):
            found = evaluate_designs(one.space, numbers, one.loads).intern()
            done.evaluated_count += len(numbers)
            add(found, partial(_give, found))
            watch.tell(done.evaluated_count, len(done))
    done.seconds = time.perf_counter() - began
    return done


def _give(outcomes: Outcomes) -> Outcomes:
    return outcomes


def _find_threshold(objective: Objective, pair: Difference) -> float:
    """Return by how much the logarithm of an objective may be worse without being told apart."""
    return TOLD_SHARE * objective.half_width(pair.latency_square, pair.energy_square, pair.joint_square)


def _cut(groups: Sequence[Group]) -> Iterator[tuple[Integers, Group]]:
    """Yield the designs of groups in blocks that take about as long as it may be until something is told."""
    size = FIRST_BLOCK
    for one in groups:
        start = 0
        while start < len(one.numbers):
            began = time.perf_counter()
            yield one.numbers[start : start + size], one
            start += size
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
