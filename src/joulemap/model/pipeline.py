"""Runs of a workload: place, time, cap, count, price.

    form kernels ─► place ─► count ─► power cap ─► latency ─► price ─► ledger
         └─ the same once more with a kernel per call: what each operator would cost on its own

    kernel time = launch + max(sum of compute / clock, sum of memory)      sums over its operators; of a GPU their norm
    latency     = sum of kernel times                                      kernels run one after another

    interval    = latency                                                  where a batch starts after the one before
                = min(latency, max(units, shared, roofline))               where batches overlap: see `Overlap`
    units       = sum of launch + max(sum of compute, sum of memory)       of units that always have work
    shared      = sum of bytes off chip / rate                             which all units share

The interval is the time from one batch to the next, repeated without a pause; the throughput is batch / interval. The
clock is the share of the full one that the power cap leaves such a run, and the voltage factor what an action on the
chip then costs: see `power`. Static power is drawn for the interval, since overlapping batches share it. The latency is
that of a batch which has the chip to itself, at the clock that the cap leaves batches one by one.

A chip whose runtime takes no more than `samples_at_once` samples at once runs a larger batch in equal parts, one after
the other, each with weights of its own to read. Its memory holds the samples of one part: others wait in the host. An
engine, where its class states `engine_part`, runs a batch in 1, 2, 4 … equal parts of at least so many samples, as many
as take the least time under the cap: what a part leaves in the last cache the next kernel finds there.

Latencies are rounded to integer femtoseconds per kernel and split exactly over operators, in proportion to what bounds
the kernel, so that operators sum to subgraphs and subgraphs to the run. The interval is split over all operators in
proportion to their latencies. What an operator costs on its own is rounded in the same way, so that nothing is saved
where nothing is fused.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Self

import attrs
import numpy as np

from joulemap.domain.configuration import MERGING, Configuration
from joulemap.domain.hardware import Hardware
from joulemap.model.architecture import Architecture, find_architecture
from joulemap.model.column import decide, gather, is_one, skeleton
from joulemap.model.communication import KIND as COLLECTIVE, add_links, count_links, hide_exchange
from joulemap.model.kernel import KernelColumns, form_kernels, share_exactly
from joulemap.model.kind import Kinds
from joulemap.model.ledger import (
    MAX_LINE_FJ,
    Counts,
    close_counts,
    operator_fj,
    order_counts,
    price,
    split_j,
    with_unattributed,
)
from joulemap.model.placement import Overlap, Placed, Placement, add_host, balance, unbalance
from joulemap.model.power import PowerLaw
from joulemap.model.run import (
    BANDWIDTH,
    ONE_BY_ONE,
    POWER_CAP,
    LedgerColumns,
    OperatorColumns,
    RunColumns,
    SubgraphColumns,
)
from joulemap.model.step import all_weight_bytes, of_one_step, repeat_step, take_step
from joulemap.model.stream import count_streams, find_share, overlap_streams
from joulemap.model.workload import Booleans, Floats, Integers, Texts, Work, WorkloadColumns, sum_by
from joulemap.system.errors import JoulemapError, UnsupportedError
from joulemap.system.record import define, frozen
from joulemap.system.units import FS_PER_S

if TYPE_CHECKING:
    from joulemap.domain.compiler import Compiler

ENGINE_PART: Final = "engine_part"
"""Coefficient of the classes whose engines run a batch in parts: the fewest samples of one."""

Asked = tuple[Hardware, Configuration]
"""What a workload is evaluated on."""

SEPARATE: Final = "graph"
"""The runtime that says what each ATen call takes by itself."""

TOGETHER: Final = 8192
"""Operators of all hardware that are evaluated at once: more gain nothing and leave the processor's caches."""

SAME: Final = 1e-9
"""Share up to which two times are the same."""

ROUNDING: Final = 2.0**-50
"""Share that is left to the first kernel where a whole is divided, so that no share is rounded above it."""


@define(kw_only=True, eq=False)
class Timing:
    """Kernels placed, timed and counted."""

    kernels: KernelColumns
    placement: Placement
    """With the times under the cap."""
    counts: Counts
    """Without the lines of leakage and of what regulators lose."""
    kernel_s: Floats
    interval_s: Floats
    """Per workload: from one batch to the next."""
    throughput_limit: Texts
    """Per workload: in `run.THROUGHPUT_LIMITS`."""
    clock_fraction: Floats
    """Per workload."""
    voltage_factor: Floats
    """Per workload."""
    uncapped_power_w: Floats
    """Per workload."""

    @property
    def row_factor(self) -> Floats:
        """The voltage factor of each operator's workload."""
        return self.kernels.of_workload(self.voltage_factor)


@frozen(kw_only=True, eq=False)
class Timed:
    """Kinds of kernels timed on one hardware, or on several that were gathered."""

    timing: Timing
    hardware: Hardware
    kernels: KernelColumns
    """All of them, before a batch is cut in parts."""
    operator_fs: Integers
    interval_fs: Integers

    @classmethod
    def of(cls, kernels: KernelColumns, hardware: Hardware, parts: float = 0.0) -> Self:
        """Return the kernels timed on a hardware, or several that were gathered; `parts` and raises: `time_kernels`."""
        timing = time_kernels(Kinds.of(kernels).kernels, hardware, find_architecture(hardware.architecture), parts)
        operator_fs = share_latency(timing, hardware)
        return cls(
            timing=timing,
            hardware=hardware,
            kernels=kernels,
            operator_fs=operator_fs,
            interval_fs=share_interval(timing, operator_fs),
        )

    def expand(self, column: Floats | Integers | float, points: int) -> Any:
        """Return a column of the kinds' operators as one of all, point after point."""
        rows = Kinds.of(self.kernels).row
        each = self.timing.kernels.each(column)[..., rows]
        return each.ravel() if each.size == points * len(rows) else np.tile(each, points)

    @cached_property
    def closed_counts(self) -> Counts:
        """With what follows from time and energy."""
        timing = self.timing
        return close_counts(timing.counts, self.hardware, self.interval_fs / FS_PER_S, timing.row_factor)

    @cached_property
    def operator_fj(self) -> Integers:
        """What each operator of a kind takes."""
        return operator_fj(self.closed_counts, self.hardware, self.timing.row_factor)


@define
class Evaluator:
    """A workload to be evaluated on any number of configurations.

    Kernels depend on precision and runtime alone, so they are formed once for all hardware.
    """

    work: WorkloadColumns
    stretch: Integers | None = None
    """Which stretch that the host calls by itself each operator is of; None where it calls the whole once."""
    _kernels: dict[tuple[str, str, str], KernelColumns] = attrs.field(factory=dict, init=False)
    _parts: dict[Compiler, tuple[Booleans, tuple[Evaluator, ...]]] = attrs.field(factory=dict, init=False)
    """Compiler -> the operators that it leaves to a host, and what evaluates its part and the host's, if it does."""
    _gathered: dict[tuple[str | int, ...], tuple[list[Hardware], Hardware]] = attrs.field(factory=dict, init=False)
    """Precision and hardware by identity -> these, which keeps them so, and all of them as one."""

    def __reduce__(self) -> tuple[type[Evaluator], tuple[WorkloadColumns, Integers | None]]:
        """Return it as another process gets it: without what was formed, which holds functions, and is formed anew."""
        return Evaluator, (self.work, self.stretch)

    def evaluate(self, hardware: Hardware, configuration: Configuration) -> RunColumns:
        """Return the run of the workload on a hardware; raises as `evaluate`."""
        (found,) = self.evaluate_all([(hardware, configuration)])
        if isinstance(found, Exception):
            raise found
        return found

    def evaluate_all(self, asked: Sequence[Asked]) -> list[RunColumns | UnsupportedError | KeyError]:
        """Return the run of each configuration, or what `evaluate` raises of it because of its hardware.

        Those whose hardware are alike are evaluated together, so that many cost hardly more than a few.
        """
        found: dict[int, RunColumns | UnsupportedError | KeyError] = {}
        alike: dict[Hashable, list[int]] = {}
        shapes: dict[tuple[int, str], Hashable] = {}
        exchanges = bool(self.work.of_kind("communication").any())
        for number, (hardware, configuration) in enumerate(asked):
            try:
                if (run := self._evaluate_parts(hardware, configuration)) is not None:
                    found[number] = run
                    continue
                self._check(hardware, configuration)
                if len(asked) == 1:
                    return list(self._evaluate_alike(asked))
                precision = configuration.precision
                if (id(hardware), precision) not in shapes:
                    links = tuple(hardware.links) if exchanges else ()
                    shapes[id(hardware), precision] = skeleton(hardware, precision), links
                decided = decides(hardware, self.work, precision, self.work.batch * self.work.inner_batch)
                key = shapes[id(hardware), precision], decided, configuration.weight_precision
                alike.setdefault((*key, precision), []).append(number)
            except (UnsupportedError, KeyError) as error:
                found[number] = error
        most = max(1, TOGETHER // max(1, self.work.operator_count))
        for numbers in alike.values():
            chips = list(dict.fromkeys(id(asked[number][0]) for number in numbers))
            for start in range(0, len(chips), most):
                some = frozenset(chips[start : start + most])
                mine = [number for number in numbers if id(asked[number][0]) in some]
                found |= zip(mine, self._evaluate_alike([asked[number] for number in mine]), strict=True)
        return [found[number] for number in range(len(asked))]

    def falls_back(self, hardware: Hardware) -> bool:
        """Whether the compiler of a hardware leaves operators to a host."""
        if hardware.compiler is None:
            return False
        if hardware.compiler not in self._parts:
            from joulemap.model.fallback import find_fallen, split_work

            mask = find_fallen(self.work, hardware.compiler)
            works = split_work(self.work, mask) if mask.any() else ()
            self._parts[hardware.compiler] = mask, tuple(Evaluator(*part) for part in works)
        return bool(self._parts[hardware.compiler][1])

    def _evaluate_parts(self, hardware: Hardware, configuration: Configuration) -> RunColumns | None:
        """Return the run of what a host computes a part of; None where the compiler runs all. Raises as `evaluate`."""
        if not self.falls_back(hardware) or hardware.compiler is None:
            return None
        from joulemap.model.fallback import check_host, configure_host, merge_runs

        mask, parts = self._parts[hardware.compiler]
        helper = check_host(self.work, hardware, mask)
        chip, host = parts
        return merge_runs(
            chip.evaluate(attrs.evolve(hardware, compiler=None), configuration),
            host.evaluate(helper, configure_host(helper, configuration)),
            hardware,
        )

    def _evaluate_alike(self, asked: Sequence[Asked]) -> Sequence[RunColumns | UnsupportedError | KeyError]:
        try:
            return self._evaluate_together(asked)
        except (JoulemapError, KeyError) as error:
            if len(asked) == 1 and isinstance(error, UnsupportedError | KeyError):
                return [error]
            if len(asked) == 1:
                raise
        return [run for one in asked for run in self._evaluate_alike([one])]

    def _evaluate_together(self, asked: Sequence[Asked]) -> list[RunColumns]:
        """Return the runs of configurations at one precision, of hardware that are alike."""
        chips = {id(hardware): hardware for hardware, _ in asked}
        timed: dict[tuple[str, int], tuple[Timed, int, int]] = {}

        def time(runtime: str, names: Sequence[int]) -> None:
            """Time the kernels of a runtime on chips, those together whose engines cut the batch alike."""
            kernels = self.form(asked[0][1], runtime)
            key: tuple[str | int, ...] = (kernels.precision, *names)
            if key not in self._gathered:
                mine = [chips[one] for one in names]
                self._gathered[key] = mine, gather(mine, kernels.precision)
            whole = self._gathered[key][1]
            if len(names) == 1:
                timed[runtime, names[0]] = Timed.of(kernels, whole), 0, 1
                return
            parts = np.broadcast_to(find_parts(Kinds.of(kernels).kernels, whole), len(names))
            for count in np.unique(parts).tolist():
                cut = [name for name, part in zip(names, parts.tolist(), strict=True) if part == count]
                some = whole if len(cut) == len(names) else gather([chips[one] for one in cut], kernels.precision)
                found = Timed.of(kernels, some, count)
                timed.update(((runtime, name), (found, place, len(cut))) for place, name in enumerate(cut))

        runtimes = dict.fromkeys(configuration.runtime for _, configuration in asked)
        for runtime in runtimes:
            time(runtime, list(dict.fromkeys(id(chip) for chip, one in asked if one.runtime == runtime)))
        merged = dict.fromkeys(id(chip) for chip, one in asked if one.runtime in MERGING)
        if apart := [name for name in merged if (SEPARATE, name) not in timed]:
            time(SEPARATE, apart)
        cuts: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
        for number, (chip, one) in enumerate(asked):
            own, place, _ = timed[one.runtime, id(chip)]
            alone, other, _ = timed[SEPARATE if one.runtime in MERGING else one.runtime, id(chip)]
            cuts.setdefault((id(own), id(alone)), []).append((number, place, other))
        by_id = {id(one): (one, count) for one, _, count in timed.values()}
        found: dict[int, RunColumns] = {}
        for (own_id, alone_id), each in cuts.items():
            numbers, places, beside = zip(*each, strict=True)
            runs = cut_runs(by_id[own_id], places, by_id[alone_id], beside, [asked[number] for number in numbers])
            found |= zip(numbers, runs, strict=True)
        return [found[number] for number in range(len(asked))]

    def _check(self, hardware: Hardware, configuration: Configuration) -> None:
        """Raise UnsupportedError for a precision that the hardware lacks, or a model that does not fit its memory."""
        if configuration.precision not in hardware.peaks:
            raise UnsupportedError(describe_precision(hardware, configuration.precision))
        kernels = self.form(configuration, configuration.runtime)
        required = float(kernels.total_weight_bytes) + _activation_bytes(kernels, hardware)
        shortage = describe_shortage(hardware.id, required, hardware.memory_capacity.value)
        if shortage:
            raise UnsupportedError(shortage)

    def form(self, configuration: Configuration, runtime: str) -> KernelColumns:
        """Return the kernels of a runtime, formed once for all hardware."""
        key = configuration.precision, runtime, configuration.weight_precision
        formed = self._kernels.get(key)
        if formed is None:
            formed = form_kernels(self.work, *key)
            if self.stretch is not None:
                formed = formed.called_at(self.stretch)
            self._kernels[key] = formed
        return formed


def evaluate(work: WorkloadColumns, hardware: Hardware, configuration: Configuration) -> RunColumns:
    """Return the run of a workload on a hardware.

    Raises UnsupportedError for a precision that the hardware lacks, for a model that does not fit its memory, or
    for a run beyond the store's range; UnpricedActionError for an action without a price.
    """
    return Evaluator(work).evaluate(hardware, configuration)


def decides(hardware: Hardware, work: Work, precision: str, batch: float) -> tuple[Any, ...]:
    """Return what formulas decide by of a hardware, or of each of several, beside what it has: numbers, or arrays."""
    return (
        *find_architecture(hardware.architecture).decides(hardware, work, precision),
        np.greater(hardware.reference.loss_j, 0.0),
        np.greater(count_streams(hardware, "engine"), 1.0),
        count_parts(batch, hardware)[()],
    )


def cut_runs(
    timed: tuple[Timed, int],
    places: Sequence[int],
    apart: tuple[Timed, int],
    beside: Sequence[int],
    asked: Sequence[Asked],
) -> list[RunColumns]:
    """Return the runs of what was timed on so many hardware, each at its place in it.

    `apart` is the same with a kernel per ATen call.
    """
    own, points = timed
    alone, others = apart
    timing, kernels = own.timing, own.kernels
    count = kernels.work.operator_count
    row = np.searchsorted(alone.kernels.operator_index, kernels.operator_index)
    ledger = price(own.closed_counts, own.hardware, timing.row_factor, Kinds.of(kernels).row, points)
    lines = np.searchsorted(ledger.operator_index, np.arange(points + 1) * count)
    ledger = attrs.evolve(ledger, operator_index=np.tile(kernels.operator_index, points)[ledger.operator_index])
    subgraphs, shown = _subgraphs(own, points)
    leads, led_apart = kernels.leads.astype(np.int64), alone.kernels.leads.astype(np.int64)
    columns = {
        "latency_fs": own.expand(own.operator_fs, points),
        "interval_fs": own.expand(own.interval_fs, points),
        "dram_bytes": own.expand(timing.placement.dram_bytes, points),
        "moved_bytes": own.expand(timing.kernels.moved_bytes, points),
        "pass_bytes": own.expand(timing.placement.pass_bytes, points),
    }
    separate = {
        "separate_latency_fs": alone.expand(alone.operator_fs, others),
        "separate_energy_fj": alone.expand(alone.operator_fj, others),
        "separate_dram_bytes": alone.expand(alone.timing.placement.dram_bytes, others),
        "separate_moved_bytes": alone.expand(alone.timing.kernels.moved_bytes, others),
        "separate_pass_bytes": alone.expand(alone.timing.placement.pass_bytes, others),
    }
    macs = int(kernels.work.mac_count.sum())
    numbers = timing.placement.units_total, timing.clock_fraction, timing.voltage_factor, timing.uncapped_power_w
    units, clocks, factors, watts = [np.asarray(one).ravel() for one in numbers]
    limits, clocks_apart = timing.throughput_limit.ravel(), alone.timing.clock_fraction.ravel()
    found = []
    for place, other, (hardware, configuration) in zip(places, beside, asked, strict=True):
        mine, theirs = slice(place * count, (place + 1) * count), row + other * alone.kernels.work.operator_count
        some, rows = slice(*lines[place : place + 2]), slice(*shown[place : place + 2])
        clock = float(clocks[place % len(clocks)])
        found.append(
            RunColumns(
                configuration=configuration,
                hardware=hardware,
                units_total_count=int(units[place % len(units)]) if count else hardware.units,
                peak_ops_per_s=hardware.peaks[configuration.precision].rate.value,
                memory_bandwidth_bytes_per_s=hardware.memory_bandwidth.value,
                weight_bytes=round(float(kernels.total_weight_bytes)),
                activation_bytes=round(_activation_bytes(kernels, hardware)),
                mac_count=macs,
                clock_fraction=clock,
                clock_hz=clock * hardware.full_clock.value,
                voltage_factor=float(factors[place % len(factors)]),
                uncapped_power_w=float(watts[place % len(watts)]),
                throughput_limit=str(limits[place % len(limits)]),
                separate_clock_fraction=float(clocks_apart[other % len(clocks_apart)]),
                subgraphs=SubgraphColumns(**{name: column[rows] for name, column in subgraphs.items()}),
                operators=OperatorColumns(
                    operator_index=kernels.operator_index,
                    subgraph_index=kernels.work.subgraph_index,
                    kernel_count=leads,
                    separate_kernel_count=led_apart[row],
                    **{name: column[mine] for name, column in columns.items()},
                    **{name: column[theirs] for name, column in separate.items()},
                ),
                ledger=LedgerColumns(
                    operator_index=ledger.operator_index[some],
                    action_index=ledger.action_index[some],
                    action_count=ledger.action_count[some],
                    energy_fj=ledger.energy_fj[some],
                ),
            )
        )
    return found


def _activation_bytes(kernels: KernelColumns, hardware: Hardware) -> float:
    """Return the peak of live activations of the samples that run at once, of one workload."""
    return float(kernels.peak_activation_bytes) / float(count_parts(np.array(kernels.batch), hardware))


def describe_precision(hardware: Hardware, precision: str) -> str:
    """Return that a hardware does not have a precision."""
    return f"{hardware.id} has no {precision}; it has {', '.join(hardware.peaks)}"


def describe_shortage(name: str, required: float, capacity: float) -> str:
    """Return why so many bytes do not fit the memory of a hardware; empty where they do."""
    if required <= capacity:
        return ""
    return f"{name} has {capacity / 1e9:.3g} GB of memory; this configuration needs {required / 1e9:.1f} GB"


def to_fs(seconds: Floats, hardware: Hardware) -> Integers:
    """Return times as whole femtoseconds; UnsupportedError for one that the store cannot hold."""
    rounded = np.rint(seconds * FS_PER_S)
    if rounded.size and not float(rounded.max()) < float(MAX_LINE_FJ):
        raise UnsupportedError(
            f"{hardware.id}: the latency of one kernel exceeds what the store can hold; use a smaller batch"
        )
    return rounded.astype(np.int64)


def time_kernels(
    kernels: KernelColumns, hardware: Hardware, architecture: Architecture[Placement], parts: float = 0.0
) -> Timing:
    """Return how long kernels take under the power cap, of each workload by itself, and what they count.

    An engine takes each batch in so many parts; for 0 in those that take it least time, on one hardware.
    """
    part, times = split(kernels, hardware)

    def time(trial: Floats) -> Timing:
        if trial is times:
            return _time_parts(kernels, part, times, hardware, architecture)
        return _time_parts(kernels, _called_once(kernels, trial, times), trial, hardware, architecture)

    if parts:
        return time(times if parts == 1.0 else np.full(len(times), parts))
    counts = _list_parts(kernels, hardware)
    trials = [times, *(np.where(_may_cut(kernels, hardware, count), count, times) for count in counts)]
    found = [time(trial) for trial in trials]
    best = np.argmin([kernels.sum_kernels(one.kernel_s) for one in found], axis=0)
    if (best == best[0]).all():
        return found[int(best[0])]
    return time(np.choose(best[kernels.workload_index], trials))


def find_parts(kernels: KernelColumns, hardware: Hardware) -> Floats:
    """Return in how many parts the engines of several hardware run a batch, of each; 1 of all where none cuts it."""
    architecture = find_architecture(hardware.architecture)
    counts = _list_parts(kernels, hardware)
    seconds: list[Floats] = []
    for count in (1.0, *counts) if counts else ():
        whole = kernels.sum_kernels(time_kernels(kernels, hardware, architecture, count).kernel_s)
        seconds.append(np.where((count == 1.0) | _may_cut(kernels, hardware, count)[..., :1], whole, np.inf))
    if not seconds:
        return np.ones(1)
    best: Floats = np.array([1.0, *counts])[np.argmin(np.broadcast_arrays(*seconds), axis=0)]
    return best[..., 0]


def _list_parts(kernels: KernelColumns, hardware: Hardware) -> list[float]:
    """Return in how many parts an engine tries to run a batch, beside one."""
    least = hardware.coefficients.get(ENGINE_PART)
    counts: list[float] = []
    if kernels.runtime == "engine" and least is not None:
        while np.any(kernels.batch >= (count := 2.0 ** (len(counts) + 1)) * least.value):
            counts.append(count)
    return counts


def _may_cut(kernels: KernelColumns, hardware: Hardware, count: float) -> Booleans:
    """Return whether an engine may run the batch of each operator's workload in so many parts."""
    least, batch = hardware.coefficients[ENGINE_PART], kernels.batch
    mask: Booleans = kernels.each(np.equal(np.mod(batch, count), 0.0) & np.greater_equal(batch, count * least.value))
    return mask


def _time_parts(
    kernels: KernelColumns,
    part: KernelColumns,
    times: Floats,
    hardware: Hardware,
    architecture: Architecture[Placement],
) -> Timing:
    """Return how long kernels take in equal parts, one after the other: `part` so many times."""
    kernels, placement, counts = _count(kernels, part, times, hardware, architecture)
    chip_j, memory_j = (kernels.sum_workload(column) for column in split_j(counts, hardware))
    law = PowerLaw.of(hardware)
    pace = _Pace(kernels, hardware, placement, law)
    clock = alone = np.ones(kernels.workload_count)
    factor = law.energy_factor(clock)
    full_s = interval_s = pace.interval_s(clock)
    uncapped_w = law.power(clock, full_s, chip_j, memory_j)
    if (uncapped_w > law.limit_w).any():
        clock, factor = pace.settle(pace.interval_s, chip_j, memory_j)
        alone = clock if placement.overlap is None else pace.settle(pace.latency_s, chip_j, memory_j)[0]
        interval_s = pace.interval_s(clock)
    return Timing(
        kernels=kernels,
        placement=pace.placed(alone),
        counts=counts,
        kernel_s=pace.kernel_s(alone),
        interval_s=interval_s,
        throughput_limit=np.where(interval_s > full_s * (1.0 + SAME), POWER_CAP, pace.limit(clock)),
        clock_fraction=clock,
        voltage_factor=factor,
        uncapped_power_w=uncapped_w,
    )


@frozen(eq=False)
class _Pace:
    """How long placed kernels and workloads take at a clock of each workload."""

    kernels: KernelColumns
    hardware: Hardware
    placement: Placement
    law: PowerLaw
    _last: list[Any] = attrs.field(factory=list, init=False)
    """Times and clock that were asked about last, and the answer: a clock that was found is asked about again."""

    def settle(self, seconds_at: Callable[[Floats], Floats], chip_j: Floats, memory_j: Floats) -> tuple[Floats, Floats]:
        """Return the clock that the cap leaves each workload that takes so long, and what an action then costs it."""
        steady = self.law.clock_under_cap(seconds_at, chip_j, memory_j)
        factor = self.law.energy_factor(steady)
        is_lone = self.kernels.sum_kernels(np.ones(self.kernels.kernel_count)) == 1.0
        if not is_lone.any():
            return steady, factor
        first, first_factor = self.law.at_first(steady, seconds_at, chip_j, memory_j)
        return np.where(is_lone, first, steady), np.where(is_lone, first_factor, factor)

    def placed(self, clock: Floats) -> Placement:
        """Return the placement with its times at these clocks."""
        if (clock == 1.0).all():
            return self.placement
        placement, kernels = self.placement, self.kernels
        before = kernels.per_kernel(placement.compute_s), kernels.per_kernel(placement.memory_s)
        is_slower = kernels.of_workload(clock) < 1.0
        compute, memory = (
            np.where(is_slower, one, 1.0) for one in map(kernels.growth, before, self._times_at(placement, clock))
        )
        return attrs.evolve(
            placement,
            compute_s=placement.compute_s * compute,
            memory_s=placement.memory_s * memory,
            launch_s=placement.launch_s * kernels.kernel_workload(self.law.stretch(clock)),
        )

    def kernel_s(self, clock: Floats) -> Floats:
        """Return what each kernel takes."""
        return self._busy_s(self.placement, clock)

    def latency_s(self, clock: Floats) -> Floats:
        """Return what a batch of each workload takes that has the chip to itself."""
        return self.kernels.sum_kernels(self.kernel_s(clock))

    def interval_s(self, clock: Floats) -> Floats:
        """Return the time from one batch of each workload to the next."""
        latency = self.latency_s(clock)
        if self.placement.overlap is None:
            return latency
        shortest: Floats = np.minimum(latency, np.maximum(*self._bounds(self.placement.overlap, clock)))
        return shortest

    def limit(self, clock: Floats) -> Texts:
        """Return what the interval of each workload is, but for the power cap."""
        overlap = self.placement.overlap
        if overlap is None:
            return np.full(np.shape(clock), ONE_BY_ONE)
        units, shared = self._bounds(overlap, clock)
        latency = self.latency_s(clock)
        busy, memory = (self.kernels.per_kernel(column) for column in (overlap.compute_s, overlap.memory_s))
        waits = self.kernels.sum_kernels(np.where(memory > busy, memory, 0.0))
        bound = np.where((shared > units) | (waits > units / 2.0), BANDWIDTH, overlap.limit)
        return np.where(np.maximum(units, shared) < latency * (1.0 - SAME), bound, ONE_BY_ONE)

    def _bounds(self, overlap: Overlap, clock: Floats) -> tuple[Floats, Floats]:
        """Return what a batch takes of the units, and of what they share: neither less than the datasheet allows."""
        least_units, least_shared = self.placement.least_interval_s(self.kernels, self.hardware)
        units = self.kernels.sum_kernels(self._busy_s(overlap, clock))
        shared = self.kernels.sum_workload(overlap.shared_s) * self.law.stretch(clock)
        return np.maximum(units, least_units / clock), np.maximum(shared, least_shared)

    def _busy_s(self, times: Placement | Overlap, clock: Floats) -> Floats:
        """Return launch + max(compute, memory) of each kernel."""
        stretch = self.kernels.kernel_workload(self.law.stretch(clock))
        seconds: Floats = times.launch_s * stretch + np.maximum(*self._times_at(times, clock))
        return seconds

    def _times_at(self, times: Placement | Overlap, clock: Floats) -> tuple[Floats, Floats]:
        """Return what units and memory of each kernel take at these clocks, of which the longer counts."""
        if not self._last or self._last[0] is not times or self._last[1] is not clock:
            compute, memory = self._own_times if times is self.placement else self._times_of(times)
            each, stretch = map(self.kernels.kernel_workload, (clock, self.law.stretch(clock)))
            self._last[:] = times, clock, balance(compute / each, memory * stretch, self.placement.sharpness)
        found: tuple[Floats, Floats] = self._last[2]
        return found

    @cached_property
    def _own_times(self) -> tuple[Floats, Floats]:
        return self._times_of(self.placement)

    def _times_of(self, times: Placement | Overlap) -> tuple[Floats, Floats]:
        """Return what units and memory of each kernel take at the full clock, each by itself."""
        compute, memory = self.kernels.per_kernel(times.compute_s), self.kernels.per_kernel(times.memory_s)
        return unbalance(compute, memory, self.placement.sharpness)


def count_parts(samples: Floats | float, hardware: Hardware) -> Floats:
    """Return in how many parts, one after the other, the runtime hands batches of so many samples to the chip."""
    largest = hardware.geometry.get("samples_at_once")
    parts: Floats = np.ceil(samples / largest.value) if largest is not None else np.ones(np.shape(samples))
    return parts


def split(kernels: KernelColumns, hardware: Hardware) -> tuple[KernelColumns, Floats]:
    """Return the kernels of a part of the batch that the runtime hands to the chip at once, and the number of parts.

    Parts are counted per operator; all 1 where the batch is not split.
    """
    each = count_parts(kernels.batch, hardware)
    each = each if isinstance(kernels.batch, np.ndarray) else np.asarray(each.flat[0])
    times = np.broadcast_to(each, kernels.work.operator_count)
    return (kernels.part(times) if (times > 1.0).any() else kernels), times


def _called_once(kernels: KernelColumns, trial: Floats, times: Floats) -> KernelColumns:
    """Return a part of the kernels where the host calls all parts once; where they are `times`, each."""
    part = kernels.part(trial)
    return attrs.evolve(part, host_launch_count=part.host_launch_count / np.where(trial == times, 1.0, trial))


def place_parts(part: KernelColumns, times: Floats, hardware: Hardware, architecture: Architecture[Placed]) -> Placed:
    """Return the placement of all parts of a batch together, of which `split` gives one."""
    return place(part, hardware, architecture).repeated(times, part)


def _count(
    kernels: KernelColumns,
    part: KernelColumns,
    times: Floats,
    hardware: Hardware,
    architecture: Architecture[Placement],
) -> tuple[KernelColumns, Placement, Counts]:
    """Return the kernels, with the weights that they read for each part of the batch, placed and counted."""
    step = take_step(part, hardware)
    one, placement = _place(part, step, hardware, architecture)
    compute_s, memory_s = one.busy_s
    counted = with_unattributed(
        {**architecture.count(step, one, hardware), **count_links(step, hardware)},
        hardware,
        part.precision,
        compute_s,
        np.where(part.work.of_kind(COLLECTIVE), 0.0, memory_s),
    )
    counts = order_counts(counted, hardware)
    if step is kernels:
        return kernels, placement, counts
    repeats = times * step.repeat_count
    kernels = attrs.evolve(kernels, weight_bytes=all_weight_bytes(step) * times)
    return kernels, placement.repeated(times, part), {place: one * repeats for place, one in counts.items()}


def place(kernels: KernelColumns, hardware: Hardware, architecture: Architecture[Placed]) -> Placed:
    """Return the placement, the host's part included, under the two factors that a calibration may put on all times.

    Bytes off chip and of passes are made whole here, before they are counted and priced. No kernel is faster than the
    roofline. Weights that are stored narrow are made wide while units multiply and memory streams: that takes energy,
    and no time of its own.
    """
    return _place(kernels, take_step(kernels, hardware), hardware, architecture)[1]


def _place(
    kernels: KernelColumns, step: KernelColumns, hardware: Hardware, architecture: Architecture[Placed]
) -> tuple[Placed, Placed]:
    """Return the placements of one step of each recurrence, for its counts, and of all."""
    simple = step.without_dequantization
    one = architecture.place(simple, hardware).hiding(step.feeds)
    linked = add_links(repeat_step(one, simple, hardware), kernels, hardware)
    placement = add_host(linked, kernels, hardware).with_whole_bytes()
    streams = count_streams(hardware, kernels.runtime)
    if decide(np.greater(streams, 1.0)):
        share = find_share(hardware)
        on_share = repeat_step(architecture.place(simple, share).hiding(step.feeds), simple, share)
        on_share = add_host(add_links(on_share, kernels, share), kernels, share)
        placement = attrs.evolve(placement, overlap=overlap_streams(on_share, kernels, hardware))
    device, launch = hardware.coefficient("device_time_scale"), hardware.coefficient("launch_time_scale")
    if not (is_one(device) and is_one(launch)):
        placement = placement.scaled(device, launch)
    placement = hide_exchange(placement, kernels).above_roofline(kernels, hardware)
    return of_one_step(placement, one, step), placement


def _subgraphs(own: Timed, points: int) -> tuple[dict[str, Any], list[int]]:
    """Return the rows of the subgraphs that run, by name, and where those of each hardware begin and end.

    What belongs to a kernel as a whole, its start, is of its leader's subgraph, where an engine joins several.
    """
    timing, kernels, placement = own.timing, own.kernels, own.timing.placement
    kinds, work = timing.kernels, kernels.work
    row, owner, count = Kinds.of(kernels).row, work.subgraph_index, work.subgraph_count
    shown = np.unique(owner)

    def summed(per_operator: Floats) -> Floats:
        """Return the sums over subgraphs, point after point."""
        sums = sum_by(owner, kinds.each(per_operator)[..., row], count)[..., shown]
        return sums.ravel() if sums.size == points * len(shown) else np.tile(sums, points)

    used = np.zeros((count, points))
    np.maximum.at(used, owner, own.expand(placement.units_used, points).reshape(points, -1).T)
    latency_fs = np.zeros((count, points), dtype=np.int64)
    np.add.at(latency_fs, owner, own.expand(own.operator_fs, points).reshape(points, -1).T)
    kernel_count = np.bincount(owner[kernels.leader], minlength=count)
    bounds = [summed(placement.compute_s), summed(placement.memory_s), summed(at_leaders(kinds, placement.launch_s))]
    return {
        "subgraph_index": np.tile(shown, points),
        "latency_fs": latency_fs[shown].T.ravel(),
        "compute_s": bounds[0],
        "memory_s": bounds[1],
        "launch_s": bounds[2],
        "dram_bytes": summed(placement.dram_bytes),
        "moved_bytes": summed(kinds.moved_bytes),
        "pass_bytes": summed(np.asarray(placement.pass_bytes, dtype=np.float64)),
        "tile_count": summed(placement.tile_count),
        "wave_count": summed(placement.wave_count),
        "executed_mac_count": summed(placement.executed_macs),
        "computed_mac_count": np.floor(summed(placement.real_macs(kinds))).astype(np.int64),
        "units_used_count": used[shown].T.ravel().astype(np.int64),
        "kernel_count": np.tile(kernel_count[shown], points),
        "bottleneck": np.argmax(np.stack(bounds), axis=0),
    }, (np.arange(points + 1) * len(shown)).tolist()


def at_leaders(kernels: KernelColumns, values: Floats) -> Floats:
    """Give each kernel's value to its leader, where one number may stand for all kernels of a point."""
    return kernels.at_leader(kernels.each_kernel(values))


def share_latency(timing: Timing, hardware: Hardware) -> Integers:
    """Return each operator's exact share of its kernel's latency: its own time, the launch at the leader."""
    kernel_fs = to_fs(timing.kernels.each_kernel(timing.kernel_s), hardware)
    if timing.kernels.is_plain:
        return kernel_fs
    return share_exactly(kernel_fs, _own_seconds(timing), timing.kernels.kernel_index)


def share_interval(timing: Timing, operator_fs: Integers) -> Integers:
    """Return each operator's exact share of its workload's interval, in proportion to its latency.

    `operator_fs` are those latencies: the shares themselves where no batches overlap. What rounding leaves is of the
    operator that leads the workload's first kernel, so that alike operators have alike shares.
    """
    kernels = timing.kernels
    latency_s = kernels.sum_kernels(timing.kernel_s)
    is_shorter = timing.interval_s < latency_s * (1.0 - SAME)
    if not is_shorter.any():
        return operator_fs
    latency_fs = sum_exactly(kernels, operator_fs)
    interval_fs = np.minimum(np.rint(timing.interval_s * FS_PER_S).astype(np.int64), latency_fs)
    ratio = np.where(is_shorter, interval_fs / np.maximum(latency_fs, 1) * (1.0 - ROUNDING), 1.0)
    shares = np.floor(operator_fs * kernels.of_workload(ratio)).astype(np.int64)
    left = interval_fs - sum_exactly(kernels, shares)
    first = kernels.leader[np.unique(kernels.workload_index[kernels.leader], return_index=True)[1]]
    shares[..., first] += left
    return np.where(kernels.of_workload(is_shorter), shares, operator_fs)


def sum_exactly(kernels: KernelColumns, values: Integers) -> Integers:
    """Return the sum of whole numbers of operators over each workload, those of a kind as often as there are."""
    times = np.asarray(kernels.row_times, dtype=np.int64)
    starts = np.searchsorted(kernels.workload_index, np.arange(kernels.workload_count))
    total: Integers = np.add.reduceat(kernels.each(values) * times, starts, axis=-1)
    return total


def _own_seconds(timing: Timing) -> Floats:
    """Return each operator's part of what bounds its kernel, and the launch at the leader."""
    kernels, placement = timing.kernels, timing.placement
    compute = kernels.per_operator(kernels.per_kernel(placement.compute_s))
    memory = kernels.per_operator(kernels.per_kernel(placement.memory_s))
    own = np.where(compute >= memory, placement.compute_s, placement.memory_s)
    return own + at_leaders(kernels, placement.launch_s)
