"""Sums of timed kernels: the totals of their ledger, to the femtojoule, without a row for each operator.

    kinds of kernels, timed ─► patterns of subgraphs, each once ─► sums over all subgraphs

The same sums serve one run, many gathered hardware, and a grid of varied numbers.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from joulemap.physics.column import find_rows
from joulemap.physics.kernel import KernelColumns
from joulemap.physics.kind import Kinds
from joulemap.physics.ledger import Counts, check_range, close_counts, energies_fj
from joulemap.physics.outcome import Asked, Timed, list_facts, split_launch
from joulemap.physics.record.configuration import FLOPS_PER_MAC
from joulemap.physics.run import BOTTLENECKS, BOUNDS, BUSY, RunTotals
from joulemap.physics.workload import Booleans, Floats, Integers, pick, sum_by
from joulemap.system.record import define, frozen
from joulemap.system.units import FJ_PER_J, FS_PER_S

EXACT: Final = 2.0**53
"""Bound below which sums of whole numbers are exact in fp64."""

MOST: Final = 2.0**60
"""Femtoseconds or femtojoules above which sums need more than 64 bits, so that a run is stored with its ledger."""

HALF: Final = 26
"""Number of low bits at which a latency is split, so that its product with a number of units fits 64 bits."""


@define(kw_only=True, eq=False)
class Patterns:
    """Patterns of subgraphs; subgraphs with the same kinds of operators in the same order share one pattern."""

    row: Integers
    """Row of the kind of each operator in a pattern, concatenated over patterns."""
    owner: Integers
    """Index of the pattern that each element of `row` belongs to."""
    starts: Integers
    """Index of the first element of each pattern in `row`."""
    times: Integers
    """Number of subgraphs of each pattern in the workload; a row for each pattern and a column for each workload if
    several are joined.
    """

    @classmethod
    def of(cls, kernels: KernelColumns) -> Patterns:
        """Return the patterns of a workload's kernels, cached."""
        patterns = kernels.memo.get(("patterns",))
        if isinstance(patterns, cls):
            return patterns
        row, owner = Kinds.of(kernels).row, kernels.work.subgraph_index
        order = np.argsort(owner, kind="stable")
        starts = np.flatnonzero(np.append(True, np.diff(owner[order]) != 0)) if len(order) else order
        counts = Counter(tuple(one.tolist()) for one in np.split(row[order], starts[1:]) if len(one))
        lengths = [len(pattern) for pattern in counts]
        patterns = kernels.memo["patterns",] = cls(
            row=np.array([index for pattern in counts for index in pattern], dtype=np.int64),
            owner=np.repeat(np.arange(len(counts)), lengths),
            starts=np.cumsum([0, *lengths])[:-1].astype(np.int64),
            times=np.array(list(counts.values()), dtype=np.int64),
        )
        return patterns

    @classmethod
    def join(cls, each: Sequence[KernelColumns]) -> KernelColumns:
        """Return the kernels of workloads one after another, with their kinds and patterns, which are cached."""
        kernels, own = Kinds.join(each), [cls.of(one) for one in each]
        rows = [Kinds.of(one).kernels.work.operator_count for one in each]
        times = np.zeros((sum(len(one.times) for one in own), len(each)), dtype=np.int64)
        columns: list[tuple[Integers, ...]] = []
        row = owner = start = 0
        for number, (one, count) in enumerate(zip(own, rows, strict=True)):
            columns.append((one.row + row, one.owner + owner, one.starts + start))
            times[owner : owner + len(one.times), number] = one.times
            row, owner, start = row + count, owner + len(one.times), start + len(one.row)
        joined = [np.concatenate(column) for column in zip(*columns, strict=True)]
        kernels.memo["patterns",] = cls(row=joined[0], owner=joined[1], starts=joined[2], times=times)
        return kernels


@frozen(kw_only=True, eq=False)
class Sums:
    """Sums over timed kernels, by workload or by pattern of subgraphs; arrays have the axes of the hardware's numbers.

    If `rounded`, times and energies are whole femtoseconds and femtojoules, as in a ledger. Otherwise they are seconds
    and joules, from which slopes can be computed. Sums per workload have workloads as the last axis; sums over
    subgraphs require a single workload.
    """

    timed: Timed
    rounded: bool = True

    @property
    def _kinds(self) -> KernelColumns:
        return self.timed.timing.kernels

    @cached_property
    def patterns(self) -> Patterns:
        """Patterns of the subgraphs of the single workload."""
        return Patterns.of(self.timed.kernels)

    @cached_property
    def latency(self) -> Any:
        """Latency of each workload."""
        if self.rounded:
            return self.timed.sum_exactly(self.timed.operator_fs)
        return self._kinds.sum_kernels(self.timed.timing.kernel_s)

    @cached_property
    def interval(self) -> Any:
        """Interval between batches of each workload."""
        return self.timed.sum_exactly(self.timed.interval_fs) if self.rounded else self.timed.timing.interval_s

    @cached_property
    def open_counts(self) -> Counts:
        """Row of the reference table -> count of its action in each workload, before `close_counts`."""
        return {row: self._over_operators(count) for row, count in self.timed.timing.counts.items()}

    @cached_property
    def counts(self) -> Counts:
        """Row of the reference table -> count of its action in each workload."""
        if self.rounded:
            return {row: self._over_operators(count) for row, count in self.timed.closed_counts.items()}
        timed, timing = self.timed, self.timed.timing
        return close_counts(self.open_counts, timed.hardware, timing.interval_s, timing.voltage_factor)

    @cached_property
    def energies(self) -> dict[int, Any]:
        """Row of the reference table -> energy of each workload; femtojoules are exact if their total is below 2^63."""
        if not self.rounded:
            return {row: self._price(row, count) for row, count in self.counts.items()}
        if self.most_fj < EXACT:
            return {row: energy.astype(np.int64) for row, energy in self._rough_fj.items()}
        return {row: self.timed.sum_exactly(energy.astype(np.int64)) for row, energy in self._energies()}

    @property
    def energy_fj(self) -> list[int]:
        """Energy of each workload on one chip, exact at any size."""
        if self.most_fj < MOST:
            return self._sum_actions(list(self.energies.values()))
        self.check_range()
        parts = [energy.astype(np.int64) for _, energy in self._energies()]
        high = self._sum_actions([self.timed.sum_exactly(one >> HALF) for one in parts])
        low = self._sum_actions([self.timed.sum_exactly(one & (2**HALF - 1)) for one in parts])
        return [(one << HALF) + other for one, other in zip(high, low, strict=True)]

    def _sum_actions(self, energies: Sequence[Integers]) -> list[int]:
        totals: list[int] = sum(energies, np.zeros(self._kinds.workload_count, dtype=np.int64)).tolist()
        return totals

    @cached_property
    def most_fj(self) -> float:
        """Approximate maximum energy of any workload in femtojoules."""
        return float(np.max(sum(self._rough_fj.values(), np.zeros(1)), initial=0.0))

    def check_range(self) -> None:
        """Raise UnsupportedError for a ledger line that no store can hold."""
        for _, energy in self._energies() if self.most_fj >= MOST else ():
            check_range(energy, self.timed.hardware, "one ledger line")

    def is_beyond(self) -> bool:
        """Return whether a total may exceed 64 bits."""
        latency = self.pattern_fs.astype(np.float64) @ self.patterns.times
        return max(self.most_fj, float(np.max(latency, initial=0.0))) >= MOST

    @cached_property
    def dram_bytes(self) -> Floats:
        """Bytes that each workload reads and writes off chip."""
        return self._over_operators(self.timed.timing.placement.dram_bytes)

    @cached_property
    def moved_bytes(self) -> Floats:
        """Bytes of each workload that cross kernel boundaries at any level."""
        return self._over_operators(self._kinds.moved_bytes)

    @cached_property
    def pattern_fs(self) -> Integers:
        """Latency of one subgraph of each pattern."""
        return self._reduce(np.add, self.timed.operator_fs)

    @cached_property
    def bounds_s(self) -> tuple[Floats, Floats, Floats, Floats]:
        """(compute, memory, launch, pass) times of one subgraph of each pattern, broadcast to one shape."""
        placement = self.timed.timing.placement
        launch, passes = split_launch(placement, self._kinds)
        each = [self._of_pattern(one) for one in (placement.compute_s, placement.memory_s, launch)]
        compute, memory, start, again = np.broadcast_arrays(
            *each, self._of_pattern(passes) if np.any(passes) else np.zeros(1)
        )
        return compute, memory, start, again

    @cached_property
    def share_fs(self) -> Integers:
        """Latency divided into compute, memory and launch time, in the order of `BOTTLENECKS`."""
        compute, memory, launch, again = self.bounds_s
        launch_fs = np.minimum(np.rint(launch * FS_PER_S), self.pattern_fs)
        pass_fs = np.minimum(np.rint(again * FS_PER_S), self.pattern_fs - launch_fs)
        busy_fs = self.pattern_fs - launch_fs - pass_fs
        is_compute: Booleans = compute >= memory
        shares = np.where(is_compute, busy_fs, 0.0), np.where(is_compute, 0.0, busy_fs) + pass_fs, launch_fs
        return self._over(np.stack(shares, axis=-2))

    @cached_property
    def _bottleneck(self) -> Integers:
        compute, memory, launch, again = self.bounds_s
        code: Integers = np.argmax(np.stack([compute, memory + again, launch]), axis=0)
        return code

    @cached_property
    def bottleneck_fs(self) -> Integers:
        """Latency of the subgraphs that each of `BOTTLENECKS` bounds."""
        return self._by_code(self._bottleneck, BOTTLENECKS)

    @cached_property
    def bound_fs(self) -> Integers:
        """Latency of the subgraphs that each of `BOUNDS` bounds."""
        kinds, timed = self._kinds, self.timed
        compute_s, *_ = self.bounds_s
        executed = self._of_pattern(timed.timing.placement.executed_macs)
        peak = timed.hardware.product_rate(kinds.precision, kinds.weight_precision, kinds.runtime.name)
        waits = (executed > 0.0) & (FLOPS_PER_MAC * executed / peak < BUSY * compute_s)
        named = np.array([BOUNDS.index(name) for name in BOTTLENECKS])[self._bottleneck]
        named = np.where((self._bottleneck == 0) & waits, BOUNDS.index("operands"), named)
        talks = self._of_pattern(kinds.work.of_kind("communication").astype(np.float64)) > 0.0
        return self._by_code(np.where(talks, BOUNDS.index("communication"), named), BOUNDS)

    @cached_property
    def unit_parts(self) -> tuple[Integers, Integers]:
        """Sum of units used x latency over subgraphs, as (multiples of 2^`HALF` fs, remaining fs)."""
        units = self._reduce(np.maximum, self.timed.timing.placement.units_used).astype(np.int64)
        return self._over(units * (self.pattern_fs >> HALF)), self._over(units * (self.pattern_fs & (2**HALF - 1)))

    @cached_property
    def computed_mac_count(self) -> Integers:
        """MACs that the chip computes, rounded down to a whole number in each subgraph."""
        return self._over(np.floor(self._of_pattern(self.timed.timing.placement.real_macs(self._kinds))))

    @cached_property
    def _rough_fj(self) -> dict[int, Floats]:
        """Row of the reference table -> its energy in fp64, exact if the sum of all is below `EXACT`."""
        return {row: self._over_operators(energy) for row, energy in self._energies()}

    def _energies(self) -> Iterator[tuple[int, Floats]]:
        timed = self.timed
        return energies_fj(timed.closed_counts, timed.hardware, timed.timing.row_factor)

    def _price(self, row: int, count: Floats) -> Floats:
        """Return the energy in joules of the action at row `place` of the reference table, for this count."""
        reference, factor = self.timed.hardware.reference, self.timed.timing.voltage_factor
        joules: Floats = count * reference.prices_fj[row] / FJ_PER_J * (factor if reference.on_chip[row] else 1.0)
        return joules

    def _by_code(self, code: Integers, names: Sequence[str]) -> Integers:
        is_mine = code[..., None, :] == np.arange(len(names))[:, None]
        return self._over(np.where(is_mine, self.pattern_fs[..., None, :], 0))

    def _of_pattern(self, per_operator: Floats) -> Floats:
        return sum_by(self.patterns.owner, self._each(per_operator), len(self.patterns.times))

    def _each(self, per_operator: NDArray[Any]) -> NDArray[Any]:
        """Return a column with one value per operator of each pattern."""
        return pick(self._kinds.each(per_operator), self.patterns.row)

    def _reduce(self, add: np.ufunc, per_operator: NDArray[Any]) -> NDArray[Any]:
        """Return one value per pattern, from those of its operators."""
        each, starts = self._each(per_operator), self.patterns.starts.astype(np.intp)
        return add.reduceat(each, starts, axis=-1) if len(starts) else each

    def _over(self, per_pattern: Floats | Integers) -> Integers:
        """Return the exact sum over all subgraphs, given whole numbers per pattern."""
        total: Integers = per_pattern.astype(np.int64) @ self.patterns.times
        return total

    @cached_property
    def _row_times(self) -> Floats:
        return np.array(np.broadcast_to(self._kinds.row_times, self._kinds.work.operator_count))

    def _over_operators(self, per_operator: Floats) -> Floats:
        """Return the sum over the operators of each workload.

        Sums of whole numbers below 2^53 do not depend on the order of addition. A slope is a small difference of two
        sums, so both must be added in the same order, regardless of the workloads evaluated together.
        """
        kinds, times = self._kinds, self._row_times
        if kinds.workload_count > len(kinds.starts) or not self.rounded:
            return kinds.sum_workload(per_operator)
        each = kinds.each(per_operator)
        if kinds.workload_count == 1:
            total: Floats = each @ times
            return total[..., None]
        rows = itertools.pairwise([*kinds.starts, None])
        return np.stack([each[..., start:end] @ times[start:end] for start, end in rows], axis=-1)


def add_up_runs(
    timed: tuple[Timed, int],
    places: Sequence[tuple[int, int]],
    asked: Sequence[Asked],
    forms: Sequence[KernelColumns],
) -> list[RunTotals] | None:
    """Return the totals of each configuration in `asked`, or None if a total exceeds 64 bits.

    `timed` is (kernels timed on several chips, number of chips), and `forms` has the kernels of each of its workloads.
    `places` has (index of the chip, index of the workload) of each configuration. Raises UnsupportedError as the ledger
    does.
    """
    own, points = timed
    sums = Sums(timed=own)
    sums.check_range()
    if sums.is_beyond():
        return None
    works = len(forms)

    def each(column: Any, *inner: int) -> Any:
        """Return a sum with workloads as its last axis as nested lists: chips, workloads, then the axes `inner`."""
        return np.moveaxis(np.broadcast_to(column, (points, *inner, works)), -1, 1).tolist()

    def each_over(column: Integers, *inner: int) -> Any:
        """Return a sum over subgraphs as `each`; those of a single workload lack the axis of workloads."""
        return each(column if works > 1 else column[..., None], *inner)

    high, low = map(each_over, sums.unit_parts)
    columns = {name: each(getattr(sums, name)) for name in ("latency", "interval", "dram_bytes", "moved_bytes")}
    columns["computed_mac_count"] = each_over(sums.computed_mac_count)
    wide = {"share_fs": len(BOTTLENECKS), "bottleneck_fs": len(BOTTLENECKS), "bound_fs": len(BOUNDS)}
    columns |= {name: each_over(getattr(sums, name), count) for name, count in wide.items()}
    energies = sums.energies
    actions = np.array(list(energies), dtype=np.int64)
    counts = np.empty((len(energies), points, works))
    spent = np.empty((len(energies), points, works), dtype=np.int64)
    for row, (action_row, energy) in enumerate(energies.items()):
        counts[row], spent[row] = sums.counts[action_row], energy
    facts = list_facts(own, points, places, asked, forms)
    totals = []
    for (point, number), (hardware, _), given in zip(places, asked, facts, strict=True):
        mine = {name: column[point][number] for name, column in columns.items()}
        happens = np.flatnonzero(counts[:, point, number])
        totals.append(
            RunTotals(
                **given,
                latency_fs=mine["latency"],
                interval_fs=mine["interval"],
                dram_bytes=mine["dram_bytes"],
                moved_bytes=mine["moved_bytes"],
                computed_mac_count=mine["computed_mac_count"],
                **dict(zip(("compute_fs", "memory_fs", "launch_fs"), mine["share_fs"], strict=True)),
                bottleneck_fs=tuple(mine["bottleneck_fs"]),
                bound_fs=tuple(mine["bound_fs"]),
                unit_fs=(high[point][number] << HALF) + low[point][number],
                action_index=find_rows(actions[happens], own.hardware.reference, hardware.reference),
                action_count=counts[happens, point, number],
                action_fj=spent[happens, point, number],
            )
        )
    return totals
