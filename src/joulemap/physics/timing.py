"""Kernels placed, counted and timed under the power cap.

    kernels ─► place ─► count ─► power cap ─► times

A chip whose runtime accepts at most `samples_at_once` samples runs a larger batch in equal sequential parts, each of
which reads the weights again. Its memory holds the samples of one part; the others wait in the host. An engine whose
class states `engine_part` runs a batch as a whole or in parts. It tries parts of 1, 2, 4 … times that many samples, and
equal parts of 3, 6, 12 … times. It uses the size with the least time under the cap, because the next kernel finds a
small part's data in the last cache. A last part with fewer samples takes their share of a whole one. Passes of language
models are not cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs
import numpy as np

from joulemap.physics.architecture import Architecture, find_architecture
from joulemap.physics.column import decide, is_one
from joulemap.physics.communication import KIND as COLLECTIVE, add_links, count_links, hide_exchange, overlap_parts
from joulemap.physics.kernel import KernelColumns
from joulemap.physics.law import Evaluated, find_broken
from joulemap.physics.ledger import Counts, order_counts, split_j, with_unattributed
from joulemap.physics.overhead import add_overhead, count_overhead, count_waits
from joulemap.physics.pace import SAME, Pace
from joulemap.physics.placement import Overlap, Placed, Placement, add_host
from joulemap.physics.power import PowerLaw
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.record.workload import CAUSAL
from joulemap.physics.run import POWER_CAP
from joulemap.physics.step import SUPPRESSION, all_weight_bytes, of_one_step, repeat_step, take_step
from joulemap.physics.stream import (
    DIVIDED,
    add_stream,
    add_transfers,
    choose_shorter,
    count_streams,
    find_share,
    leave_out_transfers,
    overlap_streams,
)
from joulemap.physics.workload import IN_PLACE, Floats, Integers, Texts
from joulemap.system.errors import UnsupportedError
from joulemap.system.record import define, vary

ENGINE_PART: Final = "engine_part"
"""Name of a coefficient: minimum samples per part, for classes whose engines run a batch in parts."""


@define(kw_only=True, eq=False)
class Timing:
    """Times and action counts of placed kernels, with the clock under the power cap."""

    kernels: KernelColumns
    placement: Placement
    """Placement with the times under the power cap."""
    counts: Counts
    """Action counts without static power and regulator losses."""
    kernel_s: Floats
    interval_s: Floats
    """Interval between batches, per workload."""
    throughput_limit: Texts
    """Throughput limit per workload, one of `run.THROUGHPUT_LIMITS`."""
    clock_fraction: Floats
    """Clock under the cap as a fraction of the full clock, per workload."""
    voltage_factor: Floats
    """Energy of an on-chip action at the capped clock, relative to the full voltage of the die, per workload."""
    uncapped_power_w: Floats
    """Power at the full clock, per workload."""
    broken_laws: Integers
    """Laws that each workload breaks, as in `law.find_broken`."""

    @property
    def suppressed_s(self) -> Floats:
        """Time of each workload in non-maximum suppressions."""
        is_suppression = self.kernels.work.of_operation(SUPPRESSION)
        if not is_suppression.any():
            return np.zeros(1)
        leads = self.kernels.per_kernel(np.where(is_suppression, 1.0, 0.0)) > 0.0
        return self.kernels.sum_kernels(np.where(leads, self.kernel_s, 0.0))

    @property
    def row_factor(self) -> Floats:
        """Voltage factor of each operator's workload."""
        return self.kernels.of_workload(self.voltage_factor)


def time_kernels(kernels: KernelColumns, hardware: Hardware, parts: Floats | None = None) -> Timing:
    """Return the times and action counts of kernels, with the power cap applied to each workload separately.

    An engine runs the batch of each workload in `parts` parts; None selects the fastest numbers, on one chip only.
    """
    architecture: Architecture[Placement] = find_architecture(hardware.architecture)
    kernels = leave_out_transfers(name_families(kernels, hardware), hardware)
    part, times = split(kernels, hardware)

    def time(trial: Floats) -> Timing:
        if trial is times:
            return _time_parts(kernels, part, times, hardware, architecture)
        return _time_parts(kernels, called_once(kernels, trial, times), trial, hardware, architecture)

    if parts is None:
        parts = find_parts(kernels, hardware)
    if (parts == 1.0).all():
        return time(times)
    each = kernels.of_workload(parts)
    return time(np.where(each == 1.0, times, each))


def name_families(kernels: KernelColumns, hardware: Hardware) -> KernelColumns:
    """Return the kernels with the families of the engine that the chip is under in the variants of their operators."""
    if not hardware.kernels:
        return kernels
    key = ("families", hardware.kernels)
    renamed = kernels.memo.get(key)
    if not isinstance(renamed, KernelColumns):
        work = kernels.work
        variant = work.variant
        for operation, words in hardware.families.items():
            named = np.char.strip(np.char.add(np.char.add(work.variant, " "), words))
            variant = np.where(work.of_operation(operation), named, variant)
        renamed = kernels.memo[key] = attrs.evolve(kernels, work=attrs.evolve(work, variant=variant, origin=None))
    return renamed


def find_parts(kernels: KernelColumns, hardware: Hardware) -> Floats:
    """Return the number of parts in which each chip's engine runs the batch of each workload. Workloads are the last
    axis. Other runtimes run a batch whole, whatever its smallest part.
    """
    whole = np.ones(kernels.workload_count)
    if not (kernels.runtime.is_built and kernels.kernel_count):
        return whole
    least = hardware.coefficients.get(ENGINE_PART)
    if least is not None and isinstance(least.value, np.ndarray) and least.value.size > 1:
        sizes, parts = np.reshape(least.value, (-1, 1)), np.ones((np.size(least.value), kernels.workload_count))
        for size in np.unique(sizes):
            coefficients = {**hardware.coefficients, ENGINE_PART: attrs.evolve(least, value=float(size))}
            alike = find_parts(kernels, vary(hardware, coefficients=coefficients))
            parts = np.where(sizes == size, alike, parts)
        return parts
    counts = [] if least is None else list_parts(kernels, float(np.ravel(least.value)[0]))
    if not counts:
        return whole
    kernels = leave_out_transfers(kernels, hardware)
    times = split(kernels, hardware)[1]
    trials = [times, *(np.where(one == 1.0, times, one) for one in map(kernels.of_workload, counts))]
    best = np.argmin(_time_trials(kernels, trials, times, hardware), axis=0)
    fastest: Floats = np.array([whole, *counts])[best, np.arange(len(whole))]
    return fastest


def _time_trials(kernels: KernelColumns, trials: Sequence[Floats], times: Floats, hardware: Hardware) -> Floats:
    """Return the latency of each workload under the power cap for each trial; axis 0 is the trial.

    A trial gives, per operator, the number of parts that the batch is cut into.

    All trials are timed together, as workloads of their own. With collectives, trials are timed one by one, because
    overlap depends on position.
    """
    architecture: Architecture[Placement] = find_architecture(hardware.architecture)
    if kernels.work.of_kind(COLLECTIVE).any():
        alone = [called_once(kernels, trial, times) for trial in trials]
        timings = (
            _time_parts(kernels, part, trial, hardware, architecture) for part, trial in zip(alone, trials, strict=True)
        )
        return np.array(np.broadcast_arrays(*(kernels.sum_kernels(one.kernel_s) for one in timings)))
    copies = kernels.memo.get(key := ("copies", str(len(trials))))
    if not isinstance(copies, KernelColumns):
        copies = kernels.memo[key] = kernels.copies(len(trials))
    trial = np.concatenate(trials)
    part = called_once(copies, trial, np.tile(times, len(trials)))
    seconds = copies.sum_kernels(_time_parts(copies, part, trial, hardware, architecture).kernel_s)
    each: Floats = np.moveaxis(seconds.reshape(*seconds.shape[:-1], len(trials), kernels.workload_count), -2, 0)
    return each


def list_parts(kernels: KernelColumns, smallest: float) -> list[Floats]:
    """Return the numbers of parts that an engine tries besides 1, per workload; 1 where a batch stays whole.

    `smallest` is the minimum number of samples of a part.
    """
    batch = _find_batch(kernels)
    counts: list[Floats] = []
    for step in range(int(np.ceil(np.log2(max(1.0, float(np.max(batch)) / smallest))))):
        for factor in (1.0, 3.0):
            count = batch / (factor * smallest * 2.0**step)
            is_tried = (count > 1.0) & ((factor == 1.0) | (count % 1.0 == 0.0))
            if is_tried.any():
                counts.append(np.where(is_tried, count, 1.0))
    return counts


def _find_batch(kernels: KernelColumns) -> Floats:
    """Return the batch of each workload that an engine may cut: 1 for a language model, whose engine runs all sequences
    in one pass.
    """
    batch = np.ravel(kernels.batch)[:1] if kernels.workload_count == 1 else kernels.largest(kernels.batch)
    is_shared = kernels.work.has_word(CAUSAL, IN_PLACE)
    if not is_shared.any():
        return batch
    shared = np.bincount(kernels.workload_index[is_shared].astype(np.intp), minlength=kernels.workload_count) > 0
    return np.where(shared, 1.0, batch)


def _time_parts(
    kernels: KernelColumns,
    part: KernelColumns,
    times: Floats,
    hardware: Hardware,
    architecture: Architecture[Placement],
) -> Timing:
    """Return the timing of kernels in equal sequential parts: `part`, repeated `times` times."""
    kernels, placement, counts = _count(kernels, part, times, hardware, architecture)
    spinning = {row: counts[row] for row in hardware.reference.running if row in counts}
    law = PowerLaw.of(hardware)
    pace = Pace(kernels, hardware, placement, law)
    clock = alone = full = np.ones(kernels.workload_count)
    if placement.host is not None:
        counts = count_waits(counts, hardware, kernels.at_leader(pace.host_s(full)))
    chip_j, memory_j = (kernels.sum_workload(column) for column in split_j(counts, hardware))
    factor = law.energy_factor(clock)
    full_s = interval_s = pace.interval_s(clock)
    if spinning:
        spin_j, awake_j = (kernels.sum_workload(column) for column in split_j(spinning, hardware))
        chip_j, memory_j = chip_j - spin_j, memory_j - awake_j
        taken_s = np.where(full_s > 0.0, full_s, 1.0)
        law = attrs.evolve(law, static_w=law.static_w + awake_j / taken_s, spin_w=spin_j / taken_s)
        pace = Pace(kernels, hardware, placement, law)
    uncapped_w = law.power(clock, full_s, chip_j, memory_j)
    if (uncapped_w > law.limit_w).any():
        clock, factor = pace.find_steady_clock(pace.interval_s, chip_j, memory_j)
        alone = clock if placement.overlap is None else pace.find_steady_clock(pace.latency_s, chip_j, memory_j)[0]
        interval_s = pace.interval_s(clock)
        longer = interval_s / np.where(full_s > 0.0, full_s, 1.0)
        fewer, longer = kernels.of_workload(clock * longer), kernels.of_workload(longer)
        on_chip = hardware.reference.on_chip
        counts = {**counts, **{row: one * (fewer if on_chip[row] else longer) for row, one in spinning.items()}}
    if placement.host is not None and alone is not full:
        counts = count_waits(counts, hardware, kernels.at_leader(pace.host_s(alone)))
    kernel_s = pace.kernel_s(alone)
    evaluated = Evaluated(
        kernels=kernels,
        placement=placement,
        counts=counts,
        hardware=hardware,
        kernel_s=kernel_s if alone is full or is_one(alone) else pace.kernel_s(np.ones_like(alone)),
        interval_s=full_s,
        uncapped_power_w=uncapped_w,
    )
    return Timing(
        kernels=kernels,
        placement=pace.placed(alone),
        counts=counts,
        kernel_s=kernel_s,
        interval_s=interval_s,
        throughput_limit=np.where(interval_s > full_s * (1.0 + SAME), POWER_CAP, pace.limit(clock)),
        clock_fraction=clock,
        voltage_factor=factor,
        uncapped_power_w=uncapped_w,
        broken_laws=find_broken(evaluated),
    )


def count_parts(samples: Floats | float, hardware: Hardware) -> Floats:
    """Return the number of sequential parts in which the runtime passes a batch of `samples` samples to the chip."""
    largest = hardware.geometry.get("samples_at_once")
    parts: Floats = np.ceil(samples / largest.value) if largest is not None else np.ones(np.shape(samples))
    return parts


def find_activations(kernels: KernelColumns, hardware: Hardware) -> float:
    """Return the peak of live activation bytes for the samples of one workload that run at once."""
    return float(kernels.peak_activation_bytes) / float(count_parts(np.array(kernels.batch), hardware))


def split(kernels: KernelColumns, hardware: Hardware) -> tuple[KernelColumns, Floats]:
    """Return the kernels of one part of the batch that the runtime passes to the chip, and the number of parts.

    The number of parts is per operator; 1 everywhere if the batch is not split. If a pipeline runs operators several
    times, a part has one run of each.
    """
    each = count_parts(kernels.batch, hardware)
    rows = each.reshape(-1, each.shape[-1])[0] if isinstance(kernels.batch, np.ndarray) else np.asarray(each.flat[0])
    times = np.broadcast_to(rows, kernels.work.operator_count)
    once = kernels.one_run
    return (once.part(times) if (times > 1.0).any() else once), times


def called_once(kernels: KernelColumns, trial: Floats, times: Floats) -> KernelColumns:
    """Return the kernels of one part of a batch that is cut into `trial` parts.

    The host launches each part if there are `times` parts, otherwise all parts at once.
    """
    part = kernels.one_run.part(trial)
    return attrs.evolve(part, host_launch_count=part.host_launch_count / np.where(trial == times, 1.0, trial))


def place_parts(part: KernelColumns, times: Floats, hardware: Hardware, architecture: Architecture[Placed]) -> Placed:
    """Return the placement of all parts of a batch together, given one part from `split`."""
    return place(part, hardware, architecture).repeated(times * part.work.run_count, part)


def _count(
    kernels: KernelColumns,
    part: KernelColumns,
    times: Floats,
    hardware: Hardware,
    architecture: Architecture[Placement],
) -> tuple[KernelColumns, Placement, Counts]:
    """Return (kernels, placement, action counts) of all parts of a batch; all parts' reads of weights are included."""
    step = take_step(part, hardware)
    one, placement = _place(part, step, hardware, architecture)
    compute_s, memory_s = one.busy_s
    counted = with_unattributed(
        {**architecture.count(step, one, hardware), **count_links(step, hardware)},
        hardware,
        part.precision,
        part.work.has_macs,
        compute_s,
        np.where(part.work.of_kind(COLLECTIVE), 0.0, memory_s),
    )
    counts = order_counts(count_overhead(counted, step, hardware), hardware)
    if step is kernels:
        return kernels, placement, counts
    runs = times * part.work.run_count
    kernels = attrs.evolve(kernels, weight_bytes=all_weight_bytes(step) * runs)
    repeats = runs * step.repeat_count
    return kernels, placement.repeated(runs, part), {row: one * repeats for row, one in counts.items()}


def place(kernels: KernelColumns, hardware: Hardware, architecture: Architecture[Placed]) -> Placed:
    """Return the placement, including the host's part, scaled by `device_time_scale` and `launch_time_scale` of a
    calibration.

    Off-chip and pass bytes are rounded to whole bytes here, before they are counted. No kernel is faster than the
    roofline. Dequantization of weights overlaps with GEMMs and memory traffic: it takes energy, but no time of its own.
    """
    return _place(kernels, take_step(kernels, hardware), hardware, architecture)[1]


def _place(
    kernels: KernelColumns, step: KernelColumns, hardware: Hardware, architecture: Architecture[Placed]
) -> tuple[Placed, Placed]:
    """Return (placement of one step of each recurrence, placement of all steps); actions are counted on the first.

    Raise UnsupportedError for an inference engine of another class.
    """
    if kernels.runtime.of_class not in ("", hardware.architecture):
        text = f"{hardware.id} does not run {kernels.runtime.name}, an engine of {kernels.runtime.of_class.upper()}s"
        raise UnsupportedError(text, code="runtime", hardware=hardware.id)
    simple = step.without_dequantization
    one = architecture.place(simple, hardware).hiding(step.feeds)
    linked = add_links(repeat_step(one, simple, hardware), kernels, hardware)
    linked = add_stream(linked, kernels, hardware)
    placement = add_host(add_transfers(linked, kernels, hardware), kernels, hardware).with_whole_bytes()
    streams = count_streams(hardware, kernels.runtime)
    if decide(np.greater(streams, 1.0)):
        placement = attrs.evolve(placement, overlap=_overlap_streams(kernels, step, hardware, architecture))
    device, launch = hardware.coefficient("device_time_scale"), hardware.coefficient("launch_time_scale")
    if not (is_one(device) and is_one(launch)):
        placement = placement.scaled(device, launch)
    placement = add_overhead(placement, kernels, hardware)
    placement = overlap_parts(hide_exchange(placement, kernels), kernels, hardware).above_roofline(kernels, hardware)
    return of_one_step(placement, one, step), placement


def _overlap_streams(
    kernels: KernelColumns, step: KernelColumns, hardware: Hardware, architecture: Architecture[Placed]
) -> Overlap:
    """Return the times of a batch in streams that each take whole batches.

    If each unit takes its own requests, streams take parts of 1, 2, 4 … samples where that is faster.
    """
    share = find_share(hardware)

    def stream(size: float) -> Overlap:
        parts = kernels.each(np.maximum(1.0, kernels.batch / size))
        is_whole = size == np.inf or (parts == 1.0).all()
        part, part_step = (kernels, step) if is_whole else (kernels.part(parts), step.part(parts))
        simple = part_step.without_dequantization
        on_share = repeat_step(architecture.place(simple, share).hiding(part_step.feeds), simple, share)
        placement = overlap_streams(add_host(add_links(on_share, part, share), part, share), part, hardware)
        return placement if is_whole else placement.scaled(parts, kernels.of_leader(parts))

    best = stream(np.inf)
    largest = float(np.max(kernels.batch)) if DIVIDED in hardware.geometry and kernels.runtime.is_built else 1.0
    for power in range(int(np.ceil(np.log2(max(1.0, largest))))):
        best = choose_shorter(best, stream(2.0**power), kernels)
    return best
