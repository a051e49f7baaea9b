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
from joulemap.model.column import gather, is_one, members, take
from joulemap.model.communication import KIND as COLLECTIVE, add_links, count_links, hide_exchange
from joulemap.model.kernel import KernelColumns, form_kernels, share_exactly
from joulemap.model.ledger import (
    MAX_LINE_FJ,
    close_counts,
    count_matrix,
    operator_fj,
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
from joulemap.model.workload import Booleans, Floats, Integers, Texts, WorkloadColumns, sum_by
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


@define(kw_only=True, eq=False)
class Timing:
    """Kernels placed, timed and counted."""

    kernels: KernelColumns
    placement: Placement
    """With the times under the cap."""
    counts: Floats
    """Operator x action of the reference table, without the lines of leakage and of what regulators lose."""
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
        return self.voltage_factor[self.kernels.workload_index]


@frozen(kw_only=True, eq=False)
class Timed:
    """Kernels timed on one hardware, or on several of which each has the same rows, one behind the other."""

    timing: Timing
    hardware: Hardware
    kernels: KernelColumns
    """Of one of them, before a batch is cut in parts."""
    operator_fs: Integers
    interval_fs: Integers

    @classmethod
    def of(cls, kernels: KernelColumns, hardware: Hardware) -> Self:
        """Return the kernels timed on a hardware, or several that were gathered; raises as `evaluate`."""
        times = len(members(hardware))
        timing = time_kernels(kernels.several(times), hardware, find_architecture(hardware.architecture))
        operator_fs = share_latency(timing, hardware, times)
        return cls(
            timing=timing,
            hardware=hardware,
            kernels=kernels,
            operator_fs=operator_fs,
            interval_fs=share_interval(timing, operator_fs, times),
        )

    @property
    def members(self) -> tuple[Hardware, ...]:
        """The hardware."""
        return members(self.hardware)

    @cached_property
    def closed_counts(self) -> Floats:
        """Operator x action: with what follows from time and energy."""
        timing = self.timing
        return close_counts(timing.counts, self.hardware, self.interval_fs / FS_PER_S, timing.row_factor)

    @cached_property
    def operator_fj(self) -> Integers:
        """What each operator takes."""
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
        shapes: dict[int, Hashable] = {}
        exchanges = bool(self.work.of_kind("communication").any())
        for number, (hardware, configuration) in enumerate(asked):
            try:
                if (run := self._evaluate_parts(hardware, configuration)) is not None:
                    found[number] = run
                    continue
                self._check(hardware, configuration)
                if id(hardware) not in shapes:
                    shapes[id(hardware)] = _shape(hardware), _links(hardware) if exchanges else ()
                precision = configuration.precision
                decides = find_architecture(hardware.architecture).decides(hardware, precision)
                key = shapes[id(hardware)], decides, precision, configuration.weight_precision
                alike.setdefault(key, []).append(number)
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

    def _evaluate_parts(self, hardware: Hardware, configuration: Configuration) -> RunColumns | None:
        """Return the run of what a host computes a part of; None where the compiler runs all. Raises as `evaluate`."""
        if hardware.compiler is None:
            return None
        from joulemap.model.fallback import check_host, configure_host, find_fallen, merge_runs, split_work

        fallen = self._parts.get(hardware.compiler)
        if fallen is None:
            mask = find_fallen(self.work, hardware.compiler)
            works = split_work(self.work, mask) if mask.any() else ()
            fallen = self._parts[hardware.compiler] = mask, tuple(Evaluator(*part) for part in works)
        mask, parts = fallen
        if not parts:
            return None
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
        runtimes: dict[str, list[int]] = {}
        for number, (_, configuration) in enumerate(asked):
            runtimes.setdefault(configuration.runtime, []).append(number)
        chips = {runtime: [asked[number][0] for number in numbers] for runtime, numbers in runtimes.items()}
        apart = [number for runtime in (SEPARATE, *MERGING) for number in runtimes.get(runtime, [])]
        first = asked[0][1]
        found: dict[int, RunColumns] = {}
        gathered: dict[tuple[int, ...], Hardware] = {}

        def time(runtime: str, hardware: Sequence[Hardware]) -> Timed:
            kernels = self._form(first, runtime)
            key = kernels.work.operator_count, *map(id, hardware)
            if key not in gathered:
                gathered[key] = gather(hardware, kernels.work.operator_count)
            return Timed.of(kernels, gathered[key])

        separate: Timed | None = None
        place_of: dict[int, int] = {}
        if apart:
            different = {id(asked[number][0]): asked[number][0] for number in apart}
            place_of = {name: place for place, name in enumerate(different)}
            separate = time(SEPARATE, list(different.values()))
        for runtime, numbers in runtimes.items():
            configurations = [asked[number][1] for number in numbers]
            if runtime == SEPARATE and separate is not None:
                own, each = separate, [place_of[id(chip)] for chip in chips[runtime]]
            else:
                own, each = time(runtime, chips[runtime]), list(range(len(numbers)))
            if runtime in MERGING and separate is not None:
                alone, beside = separate, [place_of[id(chip)] for chip in chips[runtime]]
            else:
                alone, beside = own, each
            found |= zip(numbers, cut_runs(own, each, alone, beside, configurations), strict=True)
        return [found[number] for number in range(len(asked))]

    def _check(self, hardware: Hardware, configuration: Configuration) -> None:
        """Raise UnsupportedError for a precision that the hardware lacks, or a model that does not fit its memory."""
        if configuration.precision not in hardware.peaks:
            raise UnsupportedError(
                f"{hardware.id} has no {configuration.precision}; it has {', '.join(hardware.peaks)}"
            )
        kernels = self._form(configuration, configuration.runtime)
        shortage = describe_shortage(float(kernels.total_weight_bytes) + _activation_bytes(kernels, hardware), hardware)
        if shortage:
            raise UnsupportedError(shortage)

    def _form(self, configuration: Configuration, runtime: str) -> KernelColumns:
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


def _shape(hardware: Hardware) -> Hashable:
    """Return what formulas decide by of a hardware at any precision: what it has, whatever the numbers are."""
    return (
        hardware.architecture,
        hardware.boundary,
        frozenset(hardware.geometry),
        frozenset(hardware.coefficients),
        tuple((level.name, level.kind, level.per, level.bandwidth is None) for level in hardware.memory_levels),
        tuple(action.key for action in hardware.reference),
        hardware.reference.loss_j > 0.0,
        count_streams(hardware, "engine") > 1,
    )


def _links(hardware: Hardware) -> Hashable:
    """Return what formulas decide by of the links that work between devices takes."""
    return tuple(
        (link.name, link.connects, link.topology, link.domain_size and link.domain_size.value)
        for link in hardware.links
    )


def cut_runs(
    own: Timed, places: Sequence[int], alone: Timed, beside: Sequence[int], configurations: Sequence[Configuration]
) -> list[RunColumns]:
    """Return the runs of what was timed, each at its place in it; `alone` is the same with a kernel per ATen call."""
    timing, kernels = own.timing, own.kernels
    count = kernels.work.operator_count
    row = np.searchsorted(alone.kernels.operator_index, kernels.operator_index)
    apart = alone.timing.kernels
    whole = timing.kernels
    ledger = price(own.closed_counts, own.hardware, timing.row_factor)
    lines = np.searchsorted(ledger.operator_index, np.arange(len(own.members) + 1) * count)
    ledger = attrs.evolve(ledger, operator_index=whole.operator_index[ledger.operator_index])
    subgraphs, shown = _subgraphs(own, len(own.members))
    leads, led_apart = whole.leads.astype(np.int64), apart.leads.astype(np.int64)
    passes, passes_apart = _passes(timing), _passes(alone.timing)
    dram, dram_apart = timing.placement.dram_bytes, alone.timing.placement.dram_bytes
    units = np.broadcast_to(timing.placement.units_total, whole.work.operator_count)
    macs = int(kernels.work.mac_count.sum())
    found = []
    for place, other, configuration in zip(places, beside, configurations, strict=True):
        mine, theirs = slice(place * count, (place + 1) * count), row + other * alone.kernels.work.operator_count
        some, rows = slice(*lines[place : place + 2]), slice(*shown[place : place + 2])
        hardware, clock = own.members[place], float(timing.clock_fraction[place])
        found.append(
            RunColumns(
                configuration=configuration,
                hardware=hardware,
                units_total_count=int(units[place * count]) if count else own.members[place].units,
                peak_ops_per_s=hardware.peaks[configuration.precision].rate.value,
                memory_bandwidth_bytes_per_s=hardware.memory_bandwidth.value,
                weight_bytes=round(float(kernels.total_weight_bytes)),
                activation_bytes=round(_activation_bytes(kernels, hardware)),
                mac_count=macs,
                clock_fraction=clock,
                clock_hz=clock * hardware.full_clock.value,
                voltage_factor=float(timing.voltage_factor[place]),
                uncapped_power_w=float(timing.uncapped_power_w[place]),
                throughput_limit=str(timing.throughput_limit[place]),
                separate_clock_fraction=float(alone.timing.clock_fraction[other]),
                subgraphs=SubgraphColumns(**{name: column[rows] for name, column in subgraphs.items()}),
                operators=OperatorColumns(
                    operator_index=kernels.operator_index,
                    subgraph_index=kernels.work.subgraph_index,
                    kernel_count=leads[mine],
                    latency_fs=own.operator_fs[mine],
                    interval_fs=own.interval_fs[mine],
                    dram_bytes=dram[mine],
                    moved_bytes=whole.moved_bytes[mine],
                    pass_bytes=passes[mine],
                    separate_kernel_count=led_apart[theirs],
                    separate_latency_fs=alone.operator_fs[theirs],
                    separate_energy_fj=alone.operator_fj[theirs],
                    separate_dram_bytes=dram_apart[theirs],
                    separate_moved_bytes=apart.moved_bytes[theirs],
                    separate_pass_bytes=passes_apart[theirs],
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


def describe_shortage(required: float, hardware: Hardware) -> str:
    """Return why so many bytes do not fit a hardware's memory; empty where they do."""
    capacity = hardware.memory_capacity.value
    if required <= capacity:
        return ""
    return f"{hardware.id} has {capacity / 1e9:.3g} GB of memory; this configuration needs {required / 1e9:.1f} GB"


def to_fs(seconds: Floats, hardware: Hardware) -> Integers:
    """Return times as whole femtoseconds; UnsupportedError for one that the store cannot hold."""
    rounded = np.rint(seconds * FS_PER_S)
    if len(rounded) and not float(rounded.max()) < float(MAX_LINE_FJ):
        raise UnsupportedError(
            f"{hardware.id}: the latency of one kernel exceeds what the store can hold; use a smaller batch"
        )
    return rounded.astype(np.int64)


def time_kernels(kernels: KernelColumns, hardware: Hardware, architecture: Architecture[Placement]) -> Timing:
    """Return how long kernels take under the power cap, of each workload by itself, and what they count.

    An engine takes each batch in the parts that take it least time.
    """
    part, times = split(kernels, hardware)
    whole = _time_parts(kernels, part, times, hardware, architecture)
    least = hardware.coefficients.get(ENGINE_PART)
    if kernels.runtime != "engine" or least is None:
        return whole
    batch = np.broadcast_to(kernels.batch, kernels.work.operator_count)
    trials, count = [times], 2.0
    while (batch >= count * least.value).any():
        trials.append(np.where((batch % count == 0.0) & (batch >= count * least.value), count, times))
        count *= 2.0

    def time(trial: Floats) -> Timing:
        return _time_parts(kernels, _called_once(kernels, trial), trial, hardware, architecture)

    found: list[Timing] = [whole, *map(time, trials[1:])]
    best = np.argmin([kernels.sum_kernels(one.kernel_s) for one in found], axis=0)
    if (best == best[0]).all():
        return found[int(best[0])]
    return time(np.choose(best[kernels.workload_index], trials))


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
    law = PowerLaw.of_all(take(hardware, kernels.first_row))
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

    @cached_property
    def owner(self) -> Integers:
        """The workload of each kernel."""
        return self.kernels.workload_index[self.kernels.leader]

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
        compute, memory = map(kernels.growth, before, self._times_at(placement, clock))
        return attrs.evolve(
            placement,
            compute_s=placement.compute_s * compute,
            memory_s=placement.memory_s * memory,
            launch_s=placement.launch_s * self.law.stretch(clock)[self.owner],
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
            return np.full(self.kernels.workload_count, ONE_BY_ONE)
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
        stretch = self.law.stretch(clock)[self.owner]
        seconds: Floats = times.launch_s * stretch + np.maximum(*self._times_at(times, clock))
        return seconds

    def _times_at(self, times: Placement | Overlap, clock: Floats) -> tuple[Floats, Floats]:
        """Return what units and memory of each kernel take at these clocks, of which the longer counts."""
        compute, memory = self._own_times if times is self.placement else self._times_of(times)
        each, stretch = clock[self.owner], self.law.stretch(clock)[self.owner]
        return balance(compute / each, memory * stretch, self.placement.sharpness)

    @cached_property
    def _own_times(self) -> tuple[Floats, Floats]:
        return self._times_of(self.placement)

    def _times_of(self, times: Placement | Overlap) -> tuple[Floats, Floats]:
        """Return what units and memory of each kernel take at the full clock, each by itself."""
        compute, memory = self.kernels.per_kernel(times.compute_s), self.kernels.per_kernel(times.memory_s)
        return unbalance(compute, memory, self.placement.sharpness)


def count_parts(samples: Floats, hardware: Hardware) -> Floats:
    """Return in how many parts, one after the other, the runtime hands batches of so many samples to the chip."""
    largest = hardware.geometry.get("samples_at_once")
    parts: Floats = np.ceil(samples / largest.value) if largest is not None else np.ones_like(samples, dtype=float)
    return parts


def split(kernels: KernelColumns, hardware: Hardware) -> tuple[KernelColumns, Floats]:
    """Return the kernels of a part of the batch that the runtime hands to the chip at once, and the number of parts.

    Parts are counted per operator; all 1 where the batch is not split.
    """
    times = count_parts(np.broadcast_to(kernels.batch, kernels.work.operator_count), hardware)
    return (kernels.part(times) if (times > 1.0).any() else kernels), times


def _called_once(kernels: KernelColumns, times: Floats) -> KernelColumns:
    """Return a part of the kernels where the host calls all parts once."""
    part = kernels.part(times)
    return attrs.evolve(part, host_launch_count=part.host_launch_count / times)


def place_parts(part: KernelColumns, times: Floats, hardware: Hardware, architecture: Architecture[Placed]) -> Placed:
    """Return the placement of all parts of a batch together, of which `split` gives one."""
    return place(part, hardware, architecture).repeated(times, part)


def _count(
    kernels: KernelColumns,
    part: KernelColumns,
    times: Floats,
    hardware: Hardware,
    architecture: Architecture[Placement],
) -> tuple[KernelColumns, Placement, Floats]:
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
    counts = count_matrix(counted, hardware, part.work.operator_count)
    if step is kernels:
        return kernels, placement, counts
    repeats = times * step.repeat_count
    kernels = attrs.evolve(kernels, weight_bytes=all_weight_bytes(step) * times)
    return kernels, placement.repeated(times, part), counts * repeats[:, None]


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
    if np.all(np.greater(streams, 1)):
        share = find_share(hardware)
        on_share = repeat_step(architecture.place(simple, share).hiding(step.feeds), simple, share)
        on_share = add_host(add_links(on_share, kernels, share), kernels, share)
        placement = attrs.evolve(placement, overlap=overlap_streams(on_share, kernels, hardware))
    device, launch = hardware.coefficient("device_time_scale"), hardware.coefficient("launch_time_scale")
    if not (is_one(device) and is_one(launch)):
        placement = placement.scaled(device, take(hardware, kernels.leader).coefficient("launch_time_scale"))
    placement = hide_exchange(placement, kernels).above_roofline(kernels, hardware)
    return of_one_step(placement, one, step), placement


def _subgraphs(own: Timed, times: int) -> tuple[dict[str, Any], list[int]]:
    """Return the rows of the subgraphs that run, by name, and where those of each hardware begin and end.

    What belongs to a kernel as a whole, its start, is of its leader's subgraph, where an engine joins several.
    """
    timing, kernels, placement = own.timing, own.timing.kernels, own.timing.placement
    work = kernels.work
    count = work.subgraph_count

    def summed(per_operator: Floats) -> Floats:
        return sum_by(work.subgraph_index, per_operator, count)

    latency_fs = np.zeros(count, dtype=np.int64)
    np.add.at(latency_fs, work.subgraph_index, own.operator_fs)
    kernel_count = np.bincount(work.subgraph_index[kernels.leader], minlength=count)
    shown = np.unique(work.subgraph_index)
    compute = summed(placement.compute_s)
    memory = summed(placement.memory_s)
    launch = summed(kernels.at_leader(placement.launch_s))
    units = np.zeros(count)
    np.maximum.at(units, work.subgraph_index, placement.units_used)
    bottleneck = np.argmax(np.stack([compute, memory, launch]), axis=0)
    return {
        "subgraph_index": shown % (count // times),
        "latency_fs": latency_fs[shown],
        "compute_s": compute[shown],
        "memory_s": memory[shown],
        "launch_s": launch[shown],
        "dram_bytes": summed(placement.dram_bytes)[shown],
        "moved_bytes": summed(kernels.moved_bytes)[shown],
        "pass_bytes": summed(_passes(timing))[shown],
        "tile_count": summed(placement.tile_count)[shown],
        "wave_count": summed(placement.wave_count)[shown],
        "executed_mac_count": summed(placement.executed_macs)[shown],
        "computed_mac_count": np.floor(summed(placement.real_macs(kernels))).astype(np.int64)[shown],
        "units_used_count": units[shown].astype(np.int64),
        "kernel_count": kernel_count[shown],
        "bottleneck": bottleneck[shown],
    }, np.searchsorted(shown, np.arange(times + 1) * (count // times)).tolist()


def share_latency(timing: Timing, hardware: Hardware, blocks: int = 1) -> Integers:
    """Return each operator's exact share of its kernel's latency: its own time, the launch at the leader.

    Of so many equal blocks of rows none depends on another.
    """
    return share_exactly(to_fs(timing.kernel_s, hardware), _own_seconds(timing), timing.kernels.kernel_index, blocks)


def share_interval(timing: Timing, operator_fs: Integers, blocks: int = 1) -> Integers:
    """Return each operator's exact share of its workload's interval, in proportion to its latency.

    `operator_fs` are those latencies: the shares themselves where no batches overlap.
    """
    kernels = timing.kernels
    owner, count = kernels.workload_index, kernels.workload_count
    latency_fs = np.zeros(count, dtype=np.int64)
    np.add.at(latency_fs, owner, operator_fs)
    latency_s = kernels.sum_kernels(timing.kernel_s)
    is_shorter = timing.interval_s < latency_s * (1.0 - SAME)
    if not is_shorter.any():
        return operator_fs
    interval_fs = np.where(is_shorter, np.rint(timing.interval_s * FS_PER_S).astype(np.int64), latency_fs)
    shares = share_exactly(np.minimum(interval_fs, latency_fs), operator_fs.astype(np.float64), owner, blocks)
    return np.where(is_shorter[owner], shares, operator_fs)


def _passes(timing: Timing) -> Floats:
    """Return the bytes of each operator's passes."""
    return np.broadcast_to(timing.placement.pass_bytes, timing.kernels.work.operator_count).astype(np.float64)


def _own_seconds(timing: Timing) -> Floats:
    """Return each operator's part of what bounds its kernel, and the launch at the leader."""
    kernels, placement = timing.kernels, timing.placement
    compute = kernels.per_operator(kernels.per_kernel(placement.compute_s))
    memory = kernels.per_operator(kernels.per_kernel(placement.memory_s))
    own = np.where(compute >= memory, placement.compute_s, placement.memory_s)
    return own + kernels.at_leader(placement.launch_s)
