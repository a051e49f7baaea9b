"""Kernels placed on a hardware: where their work goes, and how long units, memory and launches take.

The host launches every kernel in `eager`, once for all of them in the other runtimes, whose latency is the device's:

    launch = fixed cost + calls x host launch                        where the host waits for each kernel
    launch = max(fixed cost, calls x host launch - device time)      where it runs ahead of the device

There it has one batch at a time in hand, so that none overlap.

No kernel is faster than the roofline of the datasheet, whatever the coefficients are:

    launch + compute >= 2 MACs / peak          launch + memory >= bytes off chip / bandwidth

Where batches overlap, a class says besides what a batch takes of units that always have work (`Overlap`), and
`pipeline` how long it is from one batch to the next.
"""

from __future__ import annotations

import math
from typing import Any, Final, Self, TypeVar

import attrs
import numpy as np

from joulemap.domain.configuration import FLOPS_PER_MAC
from joulemap.domain.hardware import Hardware
from joulemap.model.kernel import KernelColumns
from joulemap.model.workload import Booleans, Floats, Work
from joulemap.system.record import frozen

ROOFLINE_TOLERANCE: Final = 1e-9
"""Share of the least time of a kernel up to which it is as long as that: sums differ by their rounding."""


@frozen(kw_only=True, eq=False)
class Overlap:
    """What a batch takes of units that always have work, on a chip where batches overlap. Per operator."""

    limit: str
    """What the units are, in `run.THROUGHPUT_LIMITS`."""
    compute_s: Floats
    memory_s: Floats
    """Of a memory path that each unit has for itself."""
    launch_s: Floats
    """Per kernel."""
    shared_s: Floats
    """Of the memory that all units share."""

    def scaled(self, device: Floats | float, launch: Floats | float) -> Self:
        """Return it with the times of units and memory, and those of launches, times factors.

        A factor of several numbers has one for each point, operator or kernel.
        """
        return attrs.evolve(
            self,
            compute_s=self.compute_s * device,
            memory_s=self.memory_s * device,
            launch_s=self.launch_s * launch,
            shared_s=self.shared_s * device,
        )


@frozen(kw_only=True, eq=False)
class Placement:
    """Kernels placed on a hardware. Per-operator arrays unless said otherwise.

    A class adds what its counts need besides.
    """

    compute_s: Floats
    """Time of the units, padded tiles and partial waves included."""
    memory_s: Floats
    """Time of the slowest memory level for the operator's share of its kernel's traffic."""
    launch_s: Floats
    """Per kernel: fixed cost."""
    host_call_count: Floats | float = 1.0
    """Per kernel: calls that the host makes for it in `eager`."""
    host_runs_ahead: bool = False
    """Whether the device works on while the host makes further calls."""
    dram_read_bytes: Floats
    dram_write_bytes: Floats
    pass_bytes: Floats | float = 0.0
    """What passes that the runtime adds to the operator's kernel read and write again, at any level: in none of the
    bytes that cross the kernel's boundary, and in those of DRAM where the last level does not hold it."""
    tile_count: Floats
    wave_count: Floats
    units_used: Floats
    """Units that have work in the fullest wave."""
    units_total: int
    """Units that have this precision; of several hardware a column of them."""
    executed_macs: Floats
    """MAC slots of the tiles, padding to their shape included: never fewer than the MACs, and the MACs themselves where
    no tile has a shape. Units without a tile, fill and drain are not in it."""

    computed_macs: Floats | None = None
    """Where a mask leaves some of the operators' MACs out, or an algorithm saves some: those that are computed."""

    overlap: Overlap | None = None
    """None where a batch starts after the one before it has ended."""

    sharpness: float = math.inf
    """How abruptly the longer time of a kernel, of units or of memory, takes over: see `balance`. Infinite where no
    other is in it."""

    @property
    def busy_s(self) -> tuple[Floats, Floats]:
        """What units and memory are busy for in a batch of the steady state, (compute, memory), at the full clock.

        Where batches overlap, what a batch waits for others is theirs.
        """
        overlap = self.overlap
        if overlap is None:
            return self.compute_s, self.memory_s
        shared_s = np.maximum(overlap.memory_s, overlap.shared_s)
        return np.minimum(overlap.compute_s, self.compute_s), np.minimum(shared_s, self.memory_s)

    @property
    def dram_bytes(self) -> Floats:
        """Read and written off chip."""
        return self.dram_read_bytes + self.dram_write_bytes

    def real_macs(self, kernels: KernelColumns) -> Floats:
        """Return the MACs that are computed: those of the operators, but for what an algorithm or a mask saves."""
        return kernels.work.mac_count if self.computed_macs is None else self.computed_macs

    def with_whole_bytes(self) -> Self:
        """Return it with whole bytes off chip and of passes, which tiles and shares of passes may cut."""
        return attrs.evolve(
            self,
            dram_read_bytes=np.rint(self.dram_read_bytes),
            dram_write_bytes=np.rint(self.dram_write_bytes),
            pass_bytes=np.rint(self.pass_bytes),
        )

    def scaled(self, device: Floats | float, launch: Floats | float) -> Self:
        """Return it with the times of units and memory, and those of launches, times factors.

        A factor of several numbers has one for each point, operator or kernel.
        """
        return attrs.evolve(
            self,
            compute_s=self.compute_s * device,
            memory_s=self.memory_s * device,
            launch_s=self.launch_s * launch,
            overlap=self.overlap.scaled(device, launch) if self.overlap else None,
        )

    def hiding(self, hidden: Booleans) -> Self:
        """Return it where some operators take no time of the units: what others take hides it."""
        if not hidden.any():
            return self
        kept = np.where(hidden, 0.0, 1.0)
        overlap = self.overlap
        if overlap is not None:
            overlap = attrs.evolve(overlap, compute_s=overlap.compute_s * kept)
        return attrs.evolve(self, compute_s=self.compute_s * kept, overlap=overlap)

    def repeated(self, times: Floats, kernels: KernelColumns) -> Self:
        """Return it where all of this happens several times, one after the other; `times` is per operator."""
        of_kernel = kernels.of_leader(times)
        return attrs.evolve(
            self,
            compute_s=self.compute_s * times,
            memory_s=self.memory_s * times,
            launch_s=self.launch_s * of_kernel,
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
        """Return what the MACs of each workload take at the peak, and its bytes off chip at the bandwidth."""
        peak = hardware.peaks[hardware.product_precision(kernels.precision)].rate.value
        return (
            kernels.sum_workload(self.real_macs(kernels)) * (FLOPS_PER_MAC / peak),
            kernels.sum_workload(self.dram_bytes) / hardware.memory_bandwidth.value,
        )

    def above_roofline(self, kernels: KernelColumns, hardware: Hardware) -> Self:
        """Return it with each kernel at least as long as its MACs take at the peak and its bytes at the bandwidth."""
        peak = hardware.peaks[hardware.product_precision(kernels.precision)].rate.value
        least_compute = self.real_macs(kernels) * (FLOPS_PER_MAC / peak)
        least_memory = self.dram_bytes / hardware.memory_bandwidth.value
        return attrs.evolve(
            self,
            compute_s=_at_least(least_compute, self.compute_s, self.launch_s, kernels),
            memory_s=_at_least(least_memory, self.memory_s, self.launch_s, kernels),
        )


def _at_least(least: Floats, seconds: Floats, launch_s: Floats, kernels: KernelColumns) -> Floats:
    """Return times of operators such that, with its fixed cost, no kernel takes less than the sum of `least`.

    What is missing is shared in proportion to `least`.
    """
    needed = kernels.per_kernel(least)
    missing = needed - launch_s - kernels.per_kernel(seconds)
    is_short = missing > ROOFLINE_TOLERANCE * needed
    if not is_short.any():
        return seconds
    share = np.divide(missing, needed, out=np.zeros(missing.shape), where=is_short)
    return seconds + kernels.per_operator(share) * least


Placed = TypeVar("Placed", bound=Placement)


class Indifferent:
    """A class whose formulas decide by nothing beside what a hardware has."""

    def decides(self, _hardware: Hardware, _work: Work, _precision: str, /) -> tuple[Any, ...]:
        """Return nothing."""
        return ()


def add_host(placement: Placed, kernels: KernelColumns, hardware: Hardware) -> Placed:
    """Return the placement with what the host costs; see the module's formulas."""
    if kernels.runtime != "eager":
        return placement
    placement = attrs.evolve(placement, overlap=None)
    host_s = placement.host_call_count * hardware.coefficient("host_launch")
    if not placement.host_runs_ahead:
        return attrs.evolve(placement, launch_s=placement.launch_s + host_s)
    device_s = np.maximum(kernels.per_kernel(placement.compute_s), kernels.per_kernel(placement.memory_s))
    return attrs.evolve(placement, launch_s=np.maximum(placement.launch_s, host_s - device_s))


def p_norm(first: Floats, second: Floats, sharpness: float) -> Floats:
    """Return the p-norm of two times: near the larger, and somewhat above it where they are alike."""
    most = np.maximum(first, second)
    larger = np.maximum(most, 1e-30)
    total: Floats = larger * (most / larger + _power(np.minimum(first, second) / larger, sharpness)) ** (
        1.0 / sharpness
    )
    return total


def _power(share: Floats, exponent: float) -> Floats:
    """Return a power, that of 2.5 by a root, which takes a fifth of the time."""
    power: Floats = share * share * np.sqrt(share) if exponent == 2.5 else share**exponent
    return power


def balance(compute_s: Floats, memory_s: Floats, sharpness: float) -> tuple[Floats, Floats]:
    """Return two times that overlap such that the larger is their p-norm: what is above it belongs to it."""
    if sharpness == math.inf:
        return compute_s, memory_s
    whole, is_busy = p_norm(compute_s, memory_s, sharpness), compute_s >= memory_s
    return np.where(is_busy, whole, compute_s), np.where(is_busy, memory_s, whole)


def unbalance(compute_s: Floats, memory_s: Floats, sharpness: float) -> tuple[Floats, Floats]:
    """Return the two times of which `balance` makes these."""
    if sharpness == math.inf:
        return compute_s, memory_s
    whole, is_busy = np.maximum(np.maximum(compute_s, memory_s), 1e-30), compute_s >= memory_s
    bare = whole * (1.0 - _power(np.minimum(compute_s, memory_s) / whole, sharpness)) ** (1.0 / sharpness)
    return np.where(is_busy, bare, compute_s), np.where(is_busy, memory_s, bare)


def overlap_engines(kernels: KernelColumns, first_s: Floats, second_s: Floats) -> Floats:
    """Return compute time per operator where two engines work side by side within a kernel.

    A kernel takes as long as its busier engine; its operators share that time in proportion to what they ask of both.
    """
    together = kernels.per_kernel(first_s + second_s)
    busier = np.maximum(kernels.per_kernel(first_s), kernels.per_kernel(second_s))
    share = np.divide(busier, together, out=np.zeros(together.shape), where=together > 0)
    return (first_s + second_s) * kernels.per_operator(share)
