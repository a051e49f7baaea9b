"""Points on their way: numbers of a hardware as arrays, evaluated in blocks, and what each block adds up to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final, NamedTuple, Self

import attrs
import numpy as np
from numpy.typing import NDArray

from joulemap.domain.change import SOURCE
from joulemap.domain.hardware import CLOCK_SPREAD, Hardware
from joulemap.domain.point import Path, point_hardware, read_number, set_numbers
from joulemap.domain.reference import STATIC_ACTION, EnergyAction
from joulemap.model.kernel import KernelColumns
from joulemap.model.kind import Kinds
from joulemap.model.ledger import MAX_LINE_FJ, energies_fj
from joulemap.model.pipeline import (
    Timed,
    at_leaders,
    count_parts,
    decides,
    describe_shortage,
    find_parts,
    sum_exactly,
)
from joulemap.model.run import BOTTLENECKS, THROUGHPUT_LIMITS
from joulemap.model.workload import Booleans, Floats, Integers, sum_by
from joulemap.system.errors import ConservationError, UnsupportedError
from joulemap.system.heap import keep_freed
from joulemap.system.record import define
from joulemap.system.units import FJ_PER_J, FS_PER_S

TOGETHER: Final = 32768
"""Rows of kinds of all points that are evaluated at once: fewer leave more to calls, more leave the caches."""

WIDE: Final = ("bound_fs", "share_fs")
"""Columns with a number for each bottleneck."""

LIMIT: Final = f"<U{max(map(len, THROUGHPUT_LIMITS))}"
"""Type of a throughput limit."""

EXACT: Final = 2.0**53
"""Whole numbers below it are sums of doubles without rounding."""


class Spent(NamedTuple):
    """What energy is of, as intervals are made of it."""

    common_category: str
    basis: str
    """Of its prices."""
    is_own: bool
    """Whether its prices are the hardware's own, without a range of the class, and nobody set them."""


@define(kw_only=True, eq=False)
class Points:
    """Points on their way: which are refused, and what was found of the others."""

    kernels: KernelColumns
    hardware: Hardware
    numbers: Mapping[Path, Floats]
    count: int
    whole: Hardware
    """With all numbers as arrays."""
    activation_bytes: Integers
    refusal: list[str]
    columns: dict[str, NDArray[Any]] = attrs.field(factory=dict)
    spent: dict[Spent, Integers] = attrs.field(factory=dict)

    @classmethod
    def of(cls, kernels: KernelColumns, hardware: Hardware, numbers: Mapping[Path, Floats], count: int) -> Self:
        """Return points of a hardware, those refused whose numbers contradict each other or hold no such model."""
        whole = set_numbers(hardware, {path: column[:, None] for path, column in numbers.items()})
        peaks = float(kernels.peak_activation_bytes) / count_parts(float(kernels.batch), whole)
        activations = np.broadcast_to(peaks.ravel(), count)
        found = cls(
            kernels=kernels,
            hardware=hardware,
            numbers=numbers,
            count=count,
            whole=whole,
            activation_bytes=np.rint(activations).astype(np.int64),
            refusal=[""] * count,
        )
        for index in np.flatnonzero(contradicts(whole, count)).tolist():
            try:
                point_hardware(hardware, numbers, index)
            except (ValueError, TypeError) as error:
                found.refusal[index] = str(error)
        required = float(kernels.total_weight_bytes) + activations
        capacity = np.broadcast_to(np.ravel(whole.memory_capacity.value), count)
        for index in np.flatnonzero(required > capacity).tolist():
            small = set_numbers(hardware, {("memory_capacity",): float(capacity[index])})
            found.refusal[index] = found.refusal[index] or describe_shortage(float(required[index]), small)
        return found

    def evaluate(self) -> None:
        """Evaluate the points that nothing speaks against, those together that formulas decide alike of."""
        found = decides(self.whole, self.kernels.work, self.kernels.precision, float(self.kernels.batch))
        decided = [one for one in found if not isinstance(one, str)]
        if self.kernels.work.of_kind("communication").any():
            decided += [column for path, column in self.numbers.items() if path[0] == "links"]
        decided += self.set_prices.values()
        left = np.flatnonzero(np.array(self.refusal) == "")
        group = np.zeros(len(left), dtype=np.int64)
        for one in decided:
            key = np.asarray(one).ravel()
            if len(key) > 1 and (key != key[0]).any():
                values, place = np.unique(key[left], return_inverse=True)
                group = group * len(values) + place
        group = np.unique(group, return_inverse=True)[1] if group.any() else group
        keep_freed()
        most = max(1, TOGETHER // max(1, Kinds.of(self.kernels).kernels.work.operator_count))
        for number in range(int(group.max(initial=-1)) + 1):
            mine = left[group == number]
            for start in range(0, len(mine), most):
                self._evaluate_block(mine[start : start + most], 0.0)

    @cached_property
    def set_prices(self) -> dict[Path, Booleans]:
        """Which points have another price than the hardware, of actions that are varied: others have its basis."""
        return {
            path: column != read_number(self.hardware, path)
            for path, column in self.numbers.items()
            if path[0] == "reference"
        }

    def take(self, points: Integers) -> Hardware:
        """Return the hardware of some points: a number that is the same of all of them as that number."""
        values: dict[Path, Floats | float] = {}
        for path, column in self.numbers.items():
            mine = column[points]
            values[path] = float(mine[0]) if (mine == mine[0]).all() else mine[:, None]
        return set_numbers(self.hardware, values)

    def _evaluate_block(self, points: Integers, parts: float) -> None:
        """Write what some points take; those that no store can hold are found by evaluating ever fewer together."""
        hardware = self.take(points)
        try:
            if not parts:
                each = np.broadcast_to(find_parts(Kinds.of(self.kernels).kernels, hardware), len(points))
                for count in np.unique(each).tolist() if (each != each[0]).any() else ():
                    self._evaluate_block(points[each == count], count)
                if (each != each[0]).any():
                    return
                parts = float(each[0])
            timed = Timed.of(self.kernels, hardware, parts)
            own = {path for path, is_set in self.set_prices.items() if not is_set[points[0]]}
            found, spent = add_up(timed, frozenset(self.numbers) - own)
        except (UnsupportedError, ConservationError) as error:
            if len(points) == 1:
                self.refusal[points[0]] = str(error)
                return
            half = len(points) // 2
            self._evaluate_block(points[:half], parts)
            self._evaluate_block(points[half:], parts)
            return
        for name, column in found.items():
            if name not in self.columns:
                shape = (self.count, column.shape[-1]) if name in WIDE else (self.count,)
                self.columns[name] = np.zeros(shape, dtype=LIMIT if column.dtype.kind == "U" else column.dtype)
            self.columns[name][points] = column
        for key, energy in spent.items():
            self.spent.setdefault(key, np.zeros(self.count, dtype=np.int64))[points] = energy


def contradicts(hardware: Hardware, count: int) -> Booleans:
    """Return the points whose numbers may contradict each other: what the record of each says is told by itself."""
    wrong = [np.greater_equal(hardware.static_power.value, hardware.tdp.value)]
    full = "clock" if hardware.full_clock is hardware.clock else "clock_boost"
    for low, high in (("clock_base", "clock_boost"), (full, "clock_die"), ("idle_power", "tdp")):
        least, most = getattr(hardware, low), getattr(hardware, high)
        if least is not None and most is not None:
            wrong.append(np.greater(least.value, most.value))
    if hardware.power_mode == "default":
        for load in hardware.loads:
            wrong.append(np.less_equal(load.power.value, hardware.static_power.value))
            wrong.append(np.greater(load.power.value, hardware.tdp.value) & (load.covers == "board"))
    units = np.rint(hardware.unit_count.value)
    for peak in hardware.peaks.values():
        ratio = np.divide(peak.clock_hz, hardware.clock.value)
        wrong.append(np.greater(peak.unit_count, units) | np.greater(np.abs(ratio - 1.0), CLOCK_SPREAD))
    wrong.append(
        np.all(np.broadcast_arrays(*(np.less(one.unit_count, units) for one in hardware.peaks.values())), axis=0)
    )
    found = np.zeros(count, dtype=bool)
    for mask in wrong:
        found |= np.broadcast_to(np.ravel(mask), count)
    return found


@define(kw_only=True, eq=False)
class _Patterns:
    """Subgraphs whose operators are of the same kinds, in the same order, once each."""

    row: Integers
    """Of the kinds' operators: those of each, one behind the other."""
    owner: Integers
    """The pattern of each of them."""
    times: Floats
    """Per pattern: how many subgraphs there are of it."""

    @classmethod
    def of(cls, kernels: KernelColumns) -> _Patterns:
        """Return those of a workload's kernels."""
        found = kernels.memo.get(("patterns",))
        if isinstance(found, _Patterns):
            return found
        row, owner = Kinds.of(kernels).row, kernels.work.subgraph_index
        order = np.argsort(owner, kind="stable")
        starts = np.flatnonzero(np.append(True, np.diff(owner[order]) != 0)) if len(order) else order
        counts = Counter(tuple(one.tolist()) for one in np.split(row[order], starts[1:]) if len(one))
        found = kernels.memo["patterns",] = cls(
            row=np.array([place for pattern in counts for place in pattern], dtype=np.int64),
            owner=np.repeat(np.arange(len(counts)), [len(pattern) for pattern in counts]),
            times=np.array(list(counts.values()), dtype=np.float64),
        )
        return found


def add_up(timed: Timed, varied: frozenset[Path]) -> tuple[dict[str, NDArray[Any]], dict[Spent, Integers]]:
    """Return the columns of points that were timed, and what they spend.

    Raises UnsupportedError for energies that no store can hold.
    """
    timing, placement, kinds = timed.timing, timed.timing.placement, timed.timing.kernels
    patterns = _Patterns.of(timed.kernels)
    times = np.broadcast_to(kinds.row_times, kinds.work.operator_count)

    def summed(per_operator: Floats) -> Floats:
        """Return the sum of an operator's whole bytes, which no order of adding changes."""
        total: Floats = (kinds.each(per_operator) * times).sum(axis=-1)
        return total

    def of_pattern(per_operator: Floats) -> Floats:
        return sum_by(patterns.owner, kinds.each(per_operator)[..., patterns.row], len(patterns.times))

    def over_patterns(values: Floats) -> Integers:
        total: Integers = (values.astype(np.int64) * patterns.times.astype(np.int64)).sum(axis=-1)
        return total

    compute, memory = of_pattern(placement.compute_s), of_pattern(placement.memory_s)
    launch = of_pattern(at_leaders(kinds, placement.launch_s))
    latency = np.zeros((*timed.operator_fs.shape[:-1], len(patterns.times)), dtype=np.int64)
    each = kinds.each(timed.operator_fs)[..., patterns.row]
    starts = np.flatnonzero(np.append(True, np.diff(patterns.owner) != 0)) if len(patterns.owner) else patterns.owner
    latency = np.add.reduceat(each, starts, axis=-1) if len(starts) else latency
    compute, memory, launch = np.broadcast_arrays(compute, memory, launch)
    code = np.argmax(np.stack([compute, memory, launch]), axis=0)
    bound = np.stack([over_patterns(np.where(code == one, latency, 0)) for one in range(len(BOTTLENECKS))], axis=-1)
    launch_fs = np.minimum(np.rint(launch * FS_PER_S), latency)
    busy_fs = latency - launch_fs
    shares = [np.where(compute >= memory, busy_fs, 0.0), np.where(compute < memory, busy_fs, 0.0), launch_fs]
    spent = add_spent(timed, varied)
    found: dict[str, NDArray[Any]] = {
        "latency_fs": over_patterns(latency),
        "interval_fs": sum_exactly(kinds, timed.interval_fs)[..., 0],
        "clock_fraction": timing.clock_fraction[..., 0],
        "voltage_factor": np.asarray(timing.voltage_factor)[..., 0],
        "uncapped_power_w": timing.uncapped_power_w[..., 0],
        "dram_bytes": summed(placement.dram_bytes),
        "moved_bytes": summed(kinds.moved_bytes),
        "computed_mac_count": (np.floor(of_pattern(placement.real_macs(kinds))) * patterns.times).sum(axis=-1),
        "bottleneck": np.argmax(bound, axis=-1),
        "bound_fs": bound,
        "share_fs": np.stack([over_patterns(one) for one in shares], axis=-1),
        "throughput_limit": timing.throughput_limit[..., 0],
        "energy_fj": np.asarray(sum(spent.values(), np.zeros(1, dtype=np.int64))),
    }
    return found, spent


def add_spent(timed: Timed, varied: frozenset[Path]) -> dict[Spent, Integers]:
    """Return the femtojoules of each point, exact, by what they are of.

    Raises UnsupportedError for more than 9.2 kJ.
    """
    reference = timed.hardware.reference
    factor = timed.timing.row_factor
    added: dict[Spent, Floats] = {}
    for place, energy in energies_fj(timed.closed_counts, timed.hardware, factor):
        action = reference.actions[place]
        key = name_spent(action, varied)
        added[key] = added[key] + energy if key in added else energy
    times = np.broadcast_to(timed.timing.kernels.row_times, timed.timing.kernels.work.operator_count)
    sums = {key: (timed.timing.kernels.each(energy) * times).sum(axis=-1) for key, energy in added.items()}
    whole = np.max(sum(sums.values(), np.zeros(1)), initial=0.0)
    if whole < EXACT:
        return {key: one.astype(np.int64) for key, one in sums.items()}
    if whole >= float(MAX_LINE_FJ):
        raise UnsupportedError(
            f"{timed.hardware.id}: its energy exceeds {MAX_LINE_FJ / FJ_PER_J:.0f} J, more than a point can hold; "
            "use a smaller batch"
        )
    slow: dict[Spent, Integers] = {}
    count = times.astype(np.int64)
    for place, energy in energies_fj(timed.closed_counts, timed.hardware, factor):
        key = name_spent(reference.actions[place], varied)
        slow[key] = slow.get(key, np.zeros(1, dtype=np.int64)) + (
            timed.timing.kernels.each(energy).astype(np.int64) * count
        ).sum(axis=-1)
    return slow


def name_spent(action: EnergyAction, varied: frozenset[Path]) -> Spent:
    """Return what energy of an action is of, where numbers of the hardware are varied."""
    is_varied = ("reference", ".".join(action.key)) in varied
    is_varied |= action.key == STATIC_ACTION and ("static_power",) in varied
    return Spent(
        common_category=action.common_category,
        basis="assumed" if is_varied else action.basis,
        is_own=action.low_fj is None and not is_varied and not action.source.endswith(SOURCE),
    )
