"""One workload on variations of a hardware: what it takes in all, without a ledger, and which constants it asks for.

    kernels ─► time ─► count ─► price ─► sums          the totals of `pipeline`, not rounded

Kernels are formed once, and placed once for all variations that change nothing but power. A variation that changes
energies of actions alone takes what its ledger says as long as the power cap stays out of it; `Totals.action_j` are
these parts.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

import attrs

from joulemap.domain.configuration import Configuration
from joulemap.domain.constant import STATIC
from joulemap.domain.hardware import Hardware
from joulemap.domain.reference import HOST_ACTION, LOSS_ACTION, STATIC_ACTION
from joulemap.model.architecture import Architecture, find_architecture
from joulemap.model.column import gather, skeleton
from joulemap.model.fallback import choose_precision, find_fallen, split_work
from joulemap.model.kernel import KernelColumns, form_kernels
from joulemap.model.kind import Kinds
from joulemap.model.ledger import ActionCounts, close_counts
from joulemap.model.outcome import Asked, Timed, cut_runs
from joulemap.model.pipeline import TOGETHER, decides, describe_shortage
from joulemap.model.placement import Placement
from joulemap.model.power import PowerLaw
from joulemap.model.run import RunColumns
from joulemap.model.timing import ENGINE_PART
from joulemap.model.workload import Booleans, Work, WorkloadColumns
from joulemap.system.errors import JoulemapError, UnsupportedError
from joulemap.system.record import define, frozen
from joulemap.system.units import FJ_PER_J

if TYPE_CHECKING:
    from joulemap.domain.compiler import Compiler

Value = TypeVar("Value")

POWER: Final = (
    STATIC, "tdp", "clock_die", "coefficient.voltage_floor", "coefficient.voltage_knee", "coefficient.cap_share",
    "coefficient.cap_delay",
)  # fmt: skip
"""Constants, beside prices, that no placement and no count depends on."""


def is_power(name: str, kind: str) -> bool:
    """Whether a constant changes nothing but what actions cost and what the power limit leaves of the clock."""
    return kind == "price" or name in POWER


@frozen(kw_only=True)
class Totals:
    """What a workload takes in all on one hardware."""

    latency_s: float
    interval_s: float
    """From one batch to the next."""
    energy_j: float
    action_j: Mapping[str, float]
    """Constant that is a price -> joules that are in proportion to it, at this clock: with what regulators lose of
    them. What regulators lose is in proportion to their loss too, so that the parts add up to more by that."""
    counted: frozenset[str]
    """Constants that are prices of what happens, whether they are in the energy at this boundary or not."""
    spare_w: float
    """Power below the limit, what it would draw at the full clock taken away: below 0 where the cap holds it."""
    cap_fraction: float
    """What a watt of static power adds to the limit."""


class _Watched(dict[str, Value]):
    """A mapping that notes which of its keys are asked for."""

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
    """Return a hardware that notes which constants in its mappings are asked for, and what returns their names."""
    kept = {"coefficient": _Watched(hardware.coefficients), "geometry": _Watched(hardware.geometry)}
    peaks = _Watched(hardware.peaks)
    watched = attrs.evolve(hardware, coefficients=kept["coefficient"], geometry=kept["geometry"], peaks=peaks)
    noted = {"coefficient": kept["coefficient"].asked, "geometry": kept["geometry"].asked, "peak": peaks.asked}
    return watched, lambda: frozenset(f"{kind}.{name}" for kind, names in noted.items() for name in names)


@define(eq=False)
class _Remembered:
    """An architecture class that places and counts as it did the first time, for hardware that differs in power alone.

    A batch in parts, and streams, are placed several times for one answer: what came of each call is kept in its order.
    """

    architecture: Architecture[Placement]
    _placements: list[Placement] = attrs.field(factory=list, init=False)
    _counts: list[ActionCounts] = attrs.field(factory=list, init=False)
    _placed: int = attrs.field(default=0, init=False)
    _counted: int = attrs.field(default=0, init=False)

    def from_the_first(self) -> Self:
        """Return it before the first call of an answer."""
        self._placed = self._counted = 0
        return self

    def decides(self, hardware: Hardware, work: Work, precision: str, /) -> tuple[Any, ...]:
        """Return what its formulas decide by."""
        return self.architecture.decides(hardware, work, precision)

    def place(self, kernels: KernelColumns, hardware: Hardware) -> Placement:
        """Return where the work goes, as it went at this call the first time."""
        if self._placed == len(self._placements):
            self._placements.append(self.architecture.place(kernels, hardware))
        self._placed += 1
        return self._placements[self._placed - 1]

    def count(self, kernels: KernelColumns, placement: Placement, hardware: Hardware) -> ActionCounts:
        """Return how often each action happens, as it did at this call the first time."""
        if self._counted == len(self._counts):
            self._counts.append(self.architecture.count(kernels, placement, hardware))
        self._counted += 1
        return self._counts[self._counted - 1]


@define(eq=False)
class Varied:
    """The kernels of a workload at one precision and runtime."""

    kernels: KernelColumns
    work: WorkloadColumns
    weight_precision: str = ""
    _remembered: dict[str, _Remembered] = attrs.field(factory=dict, init=False)
    _parts: dict[tuple[Compiler, str], tuple[Varied, Totals] | None] = attrs.field(factory=dict, init=False)

    @classmethod
    def of(cls, work: WorkloadColumns, precision: str, runtime: str, weight_precision: str = "") -> Varied:
        """Return the kernels that a runtime launches for a workload."""
        return cls(form_kernels(work, precision, runtime, weight_precision), work, weight_precision)

    def find_asked(self, hardware: Hardware) -> frozenset[str]:
        """Return the constants in mappings of a hardware that its run asks for: coefficients, geometry and peaks."""
        watched, asked = watch_asked(hardware)
        self.evaluate(watched)
        return asked()

    def evaluate(self, hardware: Hardware, like: str = "") -> Totals:
        """Return what the workload takes on a hardware; raises as `pipeline.evaluate`.

        `like` is the digest of one that it differs from in power alone, if there is one.
        """
        if hardware.compiler is not None and (parts := self._split(hardware)) is not None:
            chip, host = parts
            return _add_host(chip.evaluate(attrs.evolve(hardware, compiler=None), like), host, hardware)
        timing = self._time(hardware, like).timing
        reference = hardware.reference
        counts = {place: timing.kernels.sum_workload(count) for place, count in timing.counts.items()}
        closed = close_counts(counts, hardware, timing.interval_s, timing.voltage_factor)
        spent = {
            place: float(count[0]) * reference.prices_fj[place] / FJ_PER_J
            * (float(timing.voltage_factor[0]) if reference.on_chip[place] else 1.0)
            for place, count in closed.items()
        }  # fmt: skip
        lost = reference.position(LOSS_ACTION)
        is_lossy = lost is not None and spent.get(lost, 0.0) > 0.0
        part: dict[str, float] = {}
        counted = {".".join(reference.actions[place].key) for place in counts}
        for place, joules in spent.items():
            action = reference.actions[place]
            is_delivered = action.common_category not in ("board", "static")
            name = STATIC if action.key == STATIC_ACTION else ".".join(action.key)
            if joules > 0.0:
                part[name] = joules * (1.0 + reference.loss_j) if is_delivered and is_lossy else joules
        law = PowerLaw.of(hardware)
        return Totals(
            latency_s=float(timing.kernels.sum_kernels(timing.kernel_s)[0]),
            interval_s=float(timing.interval_s[0]),
            energy_j=sum(spent.values()),
            action_j=part,
            counted=frozenset(counted | part.keys()),
            spare_w=float(law.limit_w) - float(timing.uncapped_power_w[0]),
            cap_fraction=1.0 - hardware.coefficient("cap_share"),
        )

    def run(self, hardware: Hardware, configuration: Configuration, like: str = "") -> RunColumns:
        """Return its run on a hardware that computes all of it, each operator by itself as in its kernel.

        UnsupportedError where it does not fit its memory; else raises as `evaluate`, and `like` is as there.
        """
        (run,) = _cut([(hardware, configuration)], self._time(hardware, like))
        shortage = describe_shortage(
            hardware.id, run.weight_bytes + run.activation_bytes, hardware.memory_capacity.value
        )
        if shortage:
            raise UnsupportedError(shortage)
        return run

    def run_all(self, asked: Sequence[Asked]) -> dict[str, RunColumns]:
        """Return digest of a hardware -> its run as `run` has it, alike ones together; none where it may raise."""
        alike: dict[Hashable, list[Asked]] = {}
        precision, batch = self.kernels.precision, self.work.batch * self.work.inner_batch
        for hardware, configuration in asked:
            if self.kernels.runtime != "engine" or ENGINE_PART not in hardware.coefficients:
                decided = decides(hardware, self.work, precision, batch)
                key = skeleton(hardware, precision), decided, tuple(hardware.links)
                alike.setdefault(key, []).append((hardware, configuration))
        most = max(1, TOGETHER // max(1, Kinds.of(self.kernels).kernels.work.operator_count))
        waiting = [some[start : start + most] for some in alike.values() for start in range(0, len(some), most)]
        found: dict[str, RunColumns] = {}
        while waiting:
            some = waiting.pop()
            try:
                whole = gather([hardware for hardware, _ in some], precision)
                runs = _cut(some, self._time(whole, "", 1.0))
            except (ValueError, KeyError, ArithmeticError, JoulemapError):
                half = len(some) // 2
                waiting += [some[:half], some[half:]] if half else []
                continue
            for run in runs:
                if run.weight_bytes + run.activation_bytes <= run.hardware.memory_capacity.value:
                    found[run.hardware.digest] = run
        return found

    def _time(self, hardware: Hardware, like: str, parts: float = 0.0) -> Timed:
        architecture: Architecture[Placement] | None = None
        if like:
            first = _Remembered(find_architecture(hardware.architecture))
            architecture = self._remembered.setdefault(like, first).from_the_first()
        return Timed.of(self.kernels, hardware, parts, architecture)

    def _split(self, hardware: Hardware) -> tuple[Varied, Totals] | None:
        """Return the chip's part and what the host takes for its own; None where the compiler runs all."""
        compiler, helper = hardware.compiler, hardware.helper
        if compiler is None or helper is None:
            return None
        key = compiler, helper.digest
        if key not in self._parts:
            fallen = find_fallen(self.work, compiler)
            self._parts[key] = self._make_parts(helper, fallen) if fallen.any() else None
        return self._parts[key]

    def _make_parts(self, helper: Hardware, fallen: Booleans) -> tuple[Varied, Totals]:
        own = self.kernels.precision, self.weight_precision
        chip, host = (
            Varied(form_kernels(work, precision, self.kernels.runtime, weights).called_at(stretch), work, weights)
            for (work, stretch), (precision, weights) in zip(
                split_work(self.work, fallen), (own, choose_precision(helper, *own)), strict=True
            )
        )
        return chip, host.evaluate(helper)


def _cut(asked: Sequence[Asked], timed: Timed) -> list[RunColumns]:
    """Return the runs of what was timed on several hardware as one."""
    whole, places = (timed, len(asked)), range(len(asked))
    return cut_runs(whole, places, whole, places, asked)


def _add_host(chip: Totals, host: Totals, hardware: Hardware) -> Totals:
    """Return what both parts take, one after the other, with the leakage of the chip, and of a host that is counted.

    What the host takes by itself is no constant of the chip.
    """
    leakage = {STATIC: hardware.static_power.value}
    position = hardware.reference.position(HOST_ACTION)
    if position is not None:
        leakage[".".join(HOST_ACTION)] = hardware.reference.prices_fj[position] / FJ_PER_J
    leaked = {name: watts * host.interval_s for name, watts in leakage.items()}
    own_j = host.energy_j - host.action_j.get(STATIC, 0.0)
    return attrs.evolve(
        chip,
        latency_s=chip.latency_s + host.latency_s,
        interval_s=chip.interval_s + host.interval_s,
        energy_j=chip.energy_j + own_j + sum(leaked.values()),
        action_j={**chip.action_j, **{name: chip.action_j.get(name, 0.0) + joules for name, joules in leaked.items()}},
    )
