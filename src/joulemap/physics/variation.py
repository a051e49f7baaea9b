"""One workload on variations of a chip: its totals, without a ledger, and the constants that it uses.

    kernels ─► time ─► count ─► price ─► sums          the totals of `pipeline`, not rounded

Kernels are formed once, and timed once for all variations on which formulas branch alike, with their numbers as
columns. If a variation changes only energies of actions and the power cap is not active, its energy follows from the
parts in `Totals.action_j`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal, TypeVar

import attrs
import numpy as np

from joulemap.physics.column import gather, skeleton
from joulemap.physics.fallback import choose_host_precision, find_fallen, split_work
from joulemap.physics.kernel import KernelColumns, form_kernels
from joulemap.physics.kind import Kinds
from joulemap.physics.outcome import Timed
from joulemap.physics.pipeline import TOGETHER, decides
from joulemap.physics.power import PowerLaw
from joulemap.physics.record.configuration import NO_HOST
from joulemap.physics.record.constant import STATIC
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.record.reference import HOST_ACTION, LOSS_ACTION, STATIC_ACTION, UNATTRIBUTED
from joulemap.physics.sum import Sums
from joulemap.physics.timing import find_parts
from joulemap.physics.workload import Booleans, Floats, WorkloadColumns
from joulemap.system.errors import JoulemapError
from joulemap.system.record import define, frozen
from joulemap.system.units import FJ_PER_J

if TYPE_CHECKING:
    from joulemap.physics.record.compiler import Compiler

Value = TypeVar("Value")

FAILURES: Final = (ValueError, KeyError, ArithmeticError, JoulemapError)
"""Exceptions that formulas raise for numbers that a chip cannot have."""


@frozen(kw_only=True)
class Totals:
    """Totals of a workload on one chip."""

    latency_s: float
    interval_s: float
    """Interval between batches in steady state."""
    energy_j: float
    action_j: Mapping[str, float]
    """Energy-per-action constant -> joules that are proportional to it, at this clock. They include regulator losses
    and, at the boundary `system`, what is consumed around the board for them.

    Losses are also listed under their own constants, so the parts exceed the total by that amount.
    """
    counted: frozenset[str]
    """Energy-per-action constants of actions that occur, even if their energy is outside this boundary."""
    spare_w: float
    """Power limit minus power at the full clock; negative if the cap is active."""
    cap_fraction: float
    """Watts by which the power limit rises per watt of static power."""


class _Watched(dict[str, Value]):
    """Mapping that records the keys that are read."""

    def __init__(self, values: Mapping[str, Value]) -> None:
        super().__init__(values)
        self.asked: set[str] = set()

    def __getitem__(self, key: str) -> Value:
        self.asked.add(key)
        return super().__getitem__(key)

    def get(self, key: str, default: Value | None = None) -> Value | None:  # type: ignore[override]
        if key in self:
            self.asked.add(key)
        return super().get(key, default)

    def __iter__(self) -> Iterator[str]:
        self.asked |= set(self.keys())
        return super().__iter__()


def watch_asked(hardware: Hardware) -> tuple[Hardware, Callable[[], frozenset[str]]]:
    """Return a chip that records which of its constants are read, and a function that returns their names."""
    kept = {"coefficient": _Watched(hardware.coefficients), "geometry": _Watched(hardware.geometry)}
    peaks = _Watched(hardware.peaks)
    watched = attrs.evolve(hardware, coefficients=kept["coefficient"], geometry=kept["geometry"], peaks=peaks)
    noted = {"coefficient": kept["coefficient"].asked, "geometry": kept["geometry"].asked, "peak": peaks.asked}
    return watched, lambda: frozenset(f"{kind}.{name}" for kind, names in noted.items() for name in names)


@define(eq=False)
class Varied:
    """Kernels of a workload at one precision and runtime, evaluated on variations of a chip."""

    kernels: KernelColumns
    work: WorkloadColumns
    weight_precision: str = ""
    _parts: dict[tuple[Compiler, str], tuple[Varied, Totals | None] | None] = attrs.field(factory=dict, init=False)

    @classmethod
    def of(cls, work: WorkloadColumns, precision: str, runtime: str, weight_precision: str = "") -> Varied:
        """Return an instance with the kernels that a runtime launches for a workload."""
        return cls(form_kernels(work, precision, runtime, weight_precision), work, weight_precision)

    def find_asked(self, hardware: Hardware) -> frozenset[str]:
        """Return the coefficients, geometry constants and peaks of a chip that its run uses."""
        watched, asked = watch_asked(hardware)
        self.evaluate(watched)
        return asked()

    def evaluate(self, hardware: Hardware) -> Totals:
        """Return the totals of the workload on a chip. Raises like `pipeline.evaluate`."""
        if (parts := self._split(hardware)) is not None:
            chip, host = parts
            totals = chip.evaluate(attrs.evolve(hardware, compiler=None))
            return totals if host is None else _add_host(totals, host, hardware)
        (result,) = _list_totals(Timed.of(self.kernels, hardware), 1)
        return result

    def evaluate_all(self, hardware: Sequence[Hardware]) -> list[Totals | None]:
        """Return the result of `evaluate` for each chip, or None if it raises. Equivalent chips are evaluated once."""
        own = [(self, None) if (parts := self._split(one)) is None else parts for one in hardware]
        results: list[Totals | None] = [None] * len(hardware)
        for chip in dict.fromkeys(chip for chip, _ in own):
            numbers = [number for number, (one, _) in enumerate(own) if one is chip]
            some = [hardware[number] for number in numbers]
            some = some if chip is self else [attrs.evolve(one, compiler=None) for one in some]
            for number, totals in zip(numbers, chip._evaluate_alone(some), strict=True):
                host = own[number][1]
                results[number] = (
                    totals if totals is None or host is None else _add_host(totals, host, hardware[number])
                )
        return results

    def _evaluate_alone(self, hardware: Sequence[Hardware]) -> list[Totals | None]:
        """Return the totals on each chip that runs all operators, or None if that raises. Equivalent hardware is timed
        once.
        """
        alike: dict[Hashable, list[int]] = {}
        for number, one in enumerate(hardware):
            alike.setdefault(self._key(one, number), []).append(number)
        most = max(1, TOGETHER // max(1, Kinds.of(self.kernels).kernels.work.operator_count))
        waiting = [some[start : start + most] for some in alike.values() for start in range(0, len(some), most)]
        values: list[Totals | None] = [None] * len(hardware)
        while waiting:
            some = waiting.pop()
            # In a group, an invalid division means that one member is wrong; for one chip, its sums show it.
            wrong: Literal["raise", "ignore"] = "raise" if len(some) > 1 else "ignore"
            try:
                with np.errstate(all="ignore", divide=wrong, invalid=wrong):
                    for mine, timed in self._time([hardware[number] for number in some]):
                        for index, totals in zip(mine, _list_totals(timed, len(mine)), strict=True):
                            values[some[index]] = totals
            except FAILURES:
                half = len(some) // 2
                waiting += [some[:half], some[half:]] if half else []
        return values

    def _key(self, hardware: Hardware, number: int) -> Hashable:
        """Return all properties of a chip on which formulas branch, or a unique number if formulas raise an error."""
        precision, batch = self.kernels.precision, self.work.batch * self.work.inner_batch
        try:
            decided = decides(hardware, self.work, precision, batch)
        except FAILURES:
            return number
        return skeleton(hardware, precision), decided, tuple(hardware.links)

    def _time(self, hardware: Sequence[Hardware]) -> Iterator[tuple[list[int], Timed]]:
        """Yield (indices, timed kernels) of equivalent hardware whose engines cut a batch into equally many parts."""
        whole = gather(hardware, self.kernels.precision)
        parts = np.broadcast_to(find_parts(Kinds.of(self.kernels).kernels, whole)[..., 0], len(hardware))
        for count in np.unique(parts).tolist():
            mine = np.flatnonzero(parts == count).tolist()
            cut = whole if len(mine) == len(hardware) else gather([hardware[n] for n in mine], self.kernels.precision)
            yield mine, Timed.of(self.kernels, cut, np.array([count]))

    def _split(self, hardware: Hardware) -> tuple[Varied, Totals | None] | None:
        """Return (chip's part, totals of the host's part), or None if the compiler runs all operators.

        The totals are None for a device alone, which leaves out the host's part.
        """
        compiler, helper = hardware.compiler, hardware.helper
        if compiler is None or (helper is None and hardware.host != NO_HOST):
            return None
        key = compiler, NO_HOST if helper is None else helper.digest
        if key not in self._parts:
            fallen = find_fallen(self.work, compiler)
            self._parts[key] = self._make_parts(helper, fallen) if fallen.any() else None
        return self._parts[key]

    def _make_parts(self, helper: Hardware | None, fallen: Booleans) -> tuple[Varied, Totals | None]:
        own = self.kernels.precision, self.weight_precision
        theirs = own if helper is None else choose_host_precision(helper, *own, self.work.operation[fallen])
        chip, host = (
            Varied(form_kernels(work, precision, self.kernels.runtime.name, weights).called_at(stretch), work, weights)
            for (work, stretch), (precision, weights) in zip(split_work(self.work, fallen), (own, theirs), strict=True)
        )
        return chip, None if helper is None else host.evaluate(helper)


def _list_totals(timed: Timed, points: int) -> list[Totals]:
    """Return the totals of each of several chips timed together. Raises ArithmeticError if one is not finite."""

    def each(column: Floats | float) -> Floats:
        return np.broadcast_to(np.ravel(column), points)

    timing, hardware, reference = timed.timing, timed.hardware, timed.hardware.reference
    sums = Sums(timed=timed, rounded=False)
    spent = {row: each(joules) for row, joules in sums.energies.items()}
    lost = spent[row] if (row := reference.position(LOSS_ACTION)) in spent else 0.0
    with_loss = np.where(np.greater(lost, 0.0), 1.0 + each(reference.loss_j), 1.0)
    with_around = 1.0 + sum((each(reference.prices_fj[row] / FJ_PER_J) for row in reference.around), np.zeros(points))
    numbers = {
        "latency_s": each(sums.latency),
        "interval_s": each(sums.interval),
        "energy_j": sum(spent.values(), np.zeros(points)),
        "spare_w": each(PowerLaw.of(hardware).limit_w) - each(timing.uncapped_power_w),
        "cap_fraction": 1.0 - each(hardware.coefficient("cap_share")),
    }
    if not np.isfinite([*numbers.values()]).all():
        raise ArithmeticError(f"{hardware.id}: its numbers have no finite time and energy")
    action_j, often = dict[str, list[float]](), dict[str, list[float]]()
    for row, joules in spent.items():
        action = reference.actions[row]
        name = STATIC if action.key == STATIC_ACTION else ".".join(action.key)
        is_delivered = action.category == UNATTRIBUTED or action.common_category not in (
            "board",
            UNATTRIBUTED,
            "host",
            "static",
        )
        is_board = row not in reference.around and action.key != HOST_ACTION
        joules = joules * with_loss if is_delivered else joules
        action_j[name] = (joules * with_around if is_board else joules).tolist()
    for row, count in sums.open_counts.items():
        often[".".join(reference.actions[row].key)] = each(count).tolist()
    return [
        Totals(
            action_j={name: column[point] for name, column in action_j.items() if column[point] > 0.0},
            counted=frozenset(name for one in (action_j, often) for name, column in one.items() if column[point] > 0.0),
            **{name: float(column[point]) for name, column in numbers.items()},
        )
        for point in range(points)
    ]


def _add_host(chip: Totals, host: Totals, hardware: Hardware) -> Totals:
    """Return the totals of both parts, one after the other. The chip, and a host whose energy counts, draw static power
    in both.

    The host's own energy is in the total, but is not attributed to any constant of the chip.
    """
    static = {STATIC: hardware.static_power.value}
    position = hardware.reference.position(HOST_ACTION)
    if position is not None:
        static[".".join(HOST_ACTION)] = hardware.reference.prices_fj[position] / FJ_PER_J
    leaked = {name: watts * host.interval_s for name, watts in static.items()}
    own_j = host.energy_j - host.action_j.get(STATIC, 0.0)
    return attrs.evolve(
        chip,
        latency_s=chip.latency_s + host.latency_s,
        interval_s=chip.interval_s + host.interval_s,
        energy_j=chip.energy_j + own_j + sum(leaked.values()),
        action_j={**chip.action_j, **{name: chip.action_j.get(name, 0.0) + joules for name, joules in leaked.items()}},
    )
