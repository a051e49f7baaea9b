"""Kernels placed on hardware: the resources that they use, and the times of units, memory and launches.

In `eager`, the host launches every kernel. In other runtimes it launches once for all kernels, and latency is the
device's. In `eager`:

    launch = fixed cost + calls x host launch                        where the host waits for each kernel
    launch = max(fixed cost, calls x host launch - device time)      where it runs ahead of the device

In `eager`, the host processes one batch at a time, so batches do not overlap. Where a chip states `host_result`, the
host takes that time for each byte of maps, results of products, that leaves the model: transfer, dequantization,
decoding of boxes.

No kernel is faster than the datasheet's roofline, regardless of the coefficients:

    launch + compute >= 2 MACs / peak          launch + memory >= bytes off chip / bandwidth
    launch + compute >= EW / lane rate         launch + compute >= SF / special function rate

If batches overlap, the class also states the time that a batch takes of permanently busy units (`Overlap`); `pace`
derives the interval between batches.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Final, Self, TypeVar

import attrs
import numpy as np

from joulemap.physics.kernel import KernelColumns
from joulemap.physics.record.configuration import FLOPS_PER_MAC
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.workload import Booleans, Floats, Work
from joulemap.system.record import frozen

HOST_RESULT: Final = "host_result"
"""Name of a coefficient: host seconds per byte of maps, for chips whose measurements include the host."""

ROOFLINE_TOLERANCE: Final = 1e-9
"""Relative tolerance for a kernel's minimum time, because rounding makes sums differ."""


@frozen(kw_only=True, eq=False)
class Overlap:
    """Times of one batch on continuously busy units, for chips where batches overlap; arrays are per operator."""

    limit: str
    """Throughput limit that these units set, one of `run.THROUGHPUT_LIMITS`."""
    compute_s: Floats
    memory_s: Floats
    """Time of the private memory path of each unit."""
    launch_s: Floats
    """Launch time per kernel."""
    shared_s: Floats
    """Time of the memory that all units share."""

    def scaled(self, device: Floats | float, launch: Floats | float) -> Self:
        """Return the overlap with times of units and memory multiplied by `device`, and times of launches by `launch`.

        A factor may be an array with one value per point, operator or kernel.
        """
        return attrs.evolve(
            self,
            compute_s=self.compute_s * device,
            memory_s=self.memory_s * device,
            launch_s=self.launch_s * launch,
            shared_s=self.shared_s * device,
        )


@frozen(kw_only=True, eq=False)
class HostTime:
    """Times of a host that software overhead adds to a pass, in seconds per kernel."""

    overlapped_s: Floats
    """Time that overlaps with all kernels of the workload."""
    serial_s: Floats


@frozen(kw_only=True, eq=False)
class Placement:
    """Kernels placed on hardware; arrays are per operator unless stated otherwise.

    A class adds fields that its own action counts need.
    """

    compute_s: Floats
    """Time of the units, including padded tiles and partial waves."""
    memory_s: Floats
    """Time of the slowest memory level for the operator's share of its kernel's traffic."""
    launch_s: Floats
    """Fixed cost per kernel, including the passes of `pass_s`."""
    pass_s: Floats | float = 0.0
    """Part of `launch_s` in which passes that the runtime adds read and write memory again."""
    host_call_count: Floats | float = 1.0
    """Host calls per kernel in `eager`."""
    host_runs_ahead: bool = False
    """True if the device keeps working while the host makes further calls."""
    dram_read_bytes: Floats
    dram_write_bytes: Floats
    pass_bytes: Floats | float = 0.0
    """Bytes that passes added by the runtime read and write again, at any memory level.

    Bytes that cross the kernel's boundary exclude them; DRAM bytes include them if the last level does not hold them.
    """
    tile_count: Floats
    wave_count: Floats
    units_used: Floats
    """Number of units with work in the fullest wave."""
    units_total: int
    """Number of units that support this precision; an array if there are several versions of the hardware."""
    executed_macs: Floats
    """MAC slots of the tiles, including padding to the tile shape; excludes units without a tile, fill and drain.

    Never fewer than the MACs, and equal to them if tiles have no fixed shape.
    """

    computed_macs: Floats | None = None
    """MACs that are computed, if a mask or an algorithm omits some of the operators' MACs; None if all are computed."""

    host: HostTime | None = None
    """Times of a host that launches the pass; None without overhead (`overhead`)."""

    overlap: Overlap | None = None
    """Times of overlapping batches; None if a batch starts only after the previous one has ended."""

    lane_rate: Floats | float = math.inf
    """Elementwise operations per second of all units; infinite if `compute_s` counts each of them."""

    special_rate: Floats | float = math.inf
    """Special functions per second of all units; infinite if `compute_s` counts each of them."""

    sharpness: float = math.inf
    """Exponent of the p-norm of a kernel's compute and memory times (see `balance`); infinite for their maximum."""

    @property
    def busy_s(self) -> tuple[Floats, Floats]:
        """(compute, memory) busy times of one batch in steady state, at the full clock.

        If batches overlap, the time that a batch waits for other batches is not included.
        """
        overlap = self.overlap
        if overlap is None:
            return self.compute_s, self.memory_s
        shared_s = np.maximum(overlap.memory_s, overlap.shared_s)
        return np.minimum(overlap.compute_s, self.compute_s), np.minimum(shared_s, self.memory_s)

    @property
    def dram_bytes(self) -> Floats:
        """Bytes read and written off chip."""
        return self.dram_read_bytes + self.dram_write_bytes

    def own_s(self, kernels: KernelColumns) -> Floats:
        """Return each operator's time on the resource that bounds its kernel, in seconds; launches are not included."""
        is_busy = kernels.per_kernel(self.compute_s) >= kernels.per_kernel(self.memory_s)
        return np.where(kernels.per_operator(is_busy), self.compute_s, self.memory_s)

    def real_macs(self, kernels: KernelColumns) -> Floats:
        """Return the computed MACs of each operator, without those that an algorithm or a mask omits."""
        return kernels.work.mac_count if self.computed_macs is None else self.computed_macs

    def with_whole_bytes(self) -> Self:
        """Return the placement with off-chip and pass bytes rounded to whole bytes; tiles may leave fractions."""
        return attrs.evolve(
            self,
            dram_read_bytes=np.rint(self.dram_read_bytes),
            dram_write_bytes=np.rint(self.dram_write_bytes),
            pass_bytes=np.rint(self.pass_bytes),
        )

    def scaled(self, device: Floats | float, launch: Floats | float) -> Self:
        """Return the placement with times of units and memory multiplied by `device`, and times of launches by
        `launch`.

        A factor may be an array with one value per point, operator or kernel.
        """
        return attrs.evolve(
            self,
            compute_s=self.compute_s * device,
            memory_s=self.memory_s * device,
            launch_s=self.launch_s * launch,
            pass_s=self.pass_s * launch,
            overlap=self.overlap.scaled(device, launch) if self.overlap else None,
        )

    def hiding(self, hidden: Booleans) -> Self:
        """Return the placement with zero compute time for the operators in `hidden`, which overlap with others."""
        if not hidden.any():
            return self
        kept = np.where(hidden, 0.0, 1.0)
        overlap = self.overlap
        if overlap is not None:
            overlap = attrs.evolve(overlap, compute_s=overlap.compute_s * kept)
        return attrs.evolve(self, compute_s=self.compute_s * kept, overlap=overlap)

    def repeated(self, times: Floats, kernels: KernelColumns) -> Self:
        """Return the placement with all work repeated sequentially; `times` is per operator."""
        of_kernel = kernels.of_leader(times)
        return attrs.evolve(
            self,
            compute_s=self.compute_s * times,
            memory_s=self.memory_s * times,
            launch_s=self.launch_s * of_kernel,
            pass_s=self.pass_s * of_kernel,
            overlap=self.overlap.scaled(times, of_kernel) if self.overlap else None,
            dram_read_bytes=self.dram_read_bytes * times,
            dram_write_bytes=self.dram_write_bytes * times,
            pass_bytes=self.pass_bytes * times,
            tile_count=self.tile_count * times,
            wave_count=self.wave_count * times,
            executed_macs=np.maximum(self.executed_macs, kernels.work.mac_count) * times,
            computed_macs=None if self.computed_macs is None else self.computed_macs * times,
        )

    def least_interval_s(self, kernels: KernelColumns, hardware: Hardware) -> tuple[Floats, Floats]:
        """Return the minimum (compute, memory) times of each workload: MACs at the peak, off-chip bytes at the
        bandwidth.
        """
        peak = hardware.product_rate(kernels.precision, kernels.weight_precision, kernels.runtime.name)
        return (
            kernels.sum_workload(self.real_macs(kernels)) * (FLOPS_PER_MAC / peak),
            kernels.sum_workload(self.dram_bytes) / hardware.memory_bandwidth.value,
        )

    def above_roofline(self, kernels: KernelColumns, hardware: Hardware) -> Self:
        """Return the placement with no kernel faster than its MACs at the peak, its bytes at the bandwidth, its
        elementwise operations at the rate of the lanes, or its special functions at the rate of their units.
        """
        work = kernels.work
        peak = hardware.product_rate(kernels.precision, kernels.weight_precision, kernels.runtime.name)
        rates = (work.elementwise_count, self.lane_rate), (work.special_count, self.special_rate)
        least_compute = [self.real_macs(kernels) * (FLOPS_PER_MAC / peak)]
        least_compute += [self.seen(count) / rate for count, rate in rates if np.isfinite(rate).all()]
        least_memory = self.dram_bytes / hardware.memory_bandwidth.value
        return attrs.evolve(
            self,
            compute_s=_at_least(least_compute, self.compute_s, self.launch_s, kernels),
            memory_s=_at_least([least_memory], self.memory_s, self.launch_s, kernels),
        )

    def seen(self, count: Floats) -> Floats:
        """Return the operations of `count` that run; a class whose masks skip some overrides this."""
        return count


def _at_least(bounds: Iterable[Floats], seconds: Floats, launch_s: Floats, kernels: KernelColumns) -> Floats:
    """Return operator times, increased until each kernel, with its fixed cost, takes at least the sum of each bound.

    The missing time is shared in proportion to the bound.
    """
    taken = kernels.per_kernel(seconds)
    for least in bounds:
        needed = kernels.per_kernel(least)
        missing = needed - launch_s - taken
        is_short = missing > ROOFLINE_TOLERANCE * needed
        if is_short.any():
            share = np.divide(missing, needed, out=np.zeros(missing.shape), where=is_short)
            seconds = seconds + kernels.per_operator(share) * least
            taken = kernels.per_kernel(seconds)
    return seconds


Placed = TypeVar("Placed", bound=Placement)


class Indifferent:
    """Architecture class whose formulas branch only on the features that `column.skeleton` lists."""

    def decides(self, _hardware: Hardware, _work: Work, _precision: str, /) -> tuple[Any, ...]:
        """Return an empty tuple: the class has no branch conditions of its own."""
        return ()


def add_host(placement: Placed, kernels: KernelColumns, hardware: Hardware) -> Placed:
    """Return the placement with the host's launch cost and its time for results; see the module's formulas."""
    if HOST_RESULT in hardware.coefficients:
        is_map = kernels.per_kernel(kernels.work.mac_count) > 0.0
        result_s = np.where(is_map, kernels.per_kernel(kernels.leaving_bytes), 0.0) * hardware.coefficient(HOST_RESULT)
        placement = attrs.evolve(placement, launch_s=placement.launch_s + result_s)
    if not kernels.runtime.launches_each:
        return placement
    placement = attrs.evolve(placement, overlap=None)
    host_s = placement.host_call_count * hardware.coefficient("host_launch")
    if not placement.host_runs_ahead:
        return attrs.evolve(placement, launch_s=placement.launch_s + host_s)
    device_s = np.maximum(kernels.per_kernel(placement.compute_s), kernels.per_kernel(placement.memory_s))
    return attrs.evolve(placement, launch_s=np.maximum(placement.launch_s, host_s - device_s))


def p_norm(first: Floats, second: Floats, sharpness: float) -> Floats:
    """Return the p-norm of two times: close to the larger time, and above it if both are similar."""
    most = np.maximum(first, second)
    larger = np.maximum(most, 1e-30)
    total: Floats = larger * (most / larger + _power(np.minimum(first, second) / larger, sharpness)) ** (
        1.0 / sharpness
    )
    return total


def _power(share: Floats, exponent: float) -> Floats:
    """Return `share` to the power `exponent`; 2.5 uses a square root, which takes a fifth of the time."""
    power: Floats = share * share * np.sqrt(share) if exponent == 2.5 else share**exponent
    return power


def balance(compute_s: Floats, memory_s: Floats, sharpness: float) -> tuple[Floats, Floats]:
    """Return two overlapping times with the larger replaced by their p-norm."""
    if sharpness == math.inf:
        return compute_s, memory_s
    whole, is_busy = p_norm(compute_s, memory_s, sharpness), compute_s >= memory_s
    return np.where(is_busy, whole, compute_s), np.where(is_busy, memory_s, whole)


def unbalance(compute_s: Floats, memory_s: Floats, sharpness: float) -> tuple[Floats, Floats]:
    """Return the two times for which `balance` returns these times."""
    if sharpness == math.inf:
        return compute_s, memory_s
    whole, is_busy = np.maximum(np.maximum(compute_s, memory_s), 1e-30), compute_s >= memory_s
    bare = whole * (1.0 - _power(np.minimum(compute_s, memory_s) / whole, sharpness)) ** (1.0 / sharpness)
    return np.where(is_busy, bare, compute_s), np.where(is_busy, memory_s, bare)


def overlap_engines(kernels: KernelColumns, first_s: Floats, second_s: Floats) -> Floats:
    """Return the compute time per operator if two engines work in parallel within a kernel.

    A kernel takes as long as its busier engine. Its operators share that time in proportion to their time on both.
    """
    together = kernels.per_kernel(first_s + second_s)
    busier = np.maximum(kernels.per_kernel(first_s), kernels.per_kernel(second_s))
    share = np.divide(busier, together, out=np.zeros(together.shape), where=together > 0)
    seconds: Floats = (first_s + second_s) * kernels.per_operator(share)
    return seconds
