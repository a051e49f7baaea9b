"""Times of placed kernels and workloads at a clock, and their clock under a power cap.

    kernel time = launch + max(sum of compute / clock, sum of memory)      sums over its operators; p-norm for a GPU
    latency     = sum of kernel times                                      kernels run one after another

    with a host = ‖sum of kernel times, host‖ + serial                     if software adds overhead: see `overhead`

    interval    = latency                                                  if batches do not overlap
                = min(latency, max(units, shared, roofline))               if batches overlap: see `Overlap`
    units       = sum of launch + max(sum of compute, sum of memory)       on units that always have work
    shared      = sum of bytes off chip / rate                             for memory that all units share

The interval is the time from one batch to the next, repeated without a pause. The clock is a share of the full clock.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Final

import attrs
import numpy as np

from joulemap.physics.kernel import KernelColumns
from joulemap.physics.placement import Overlap, Placement, balance, p_norm, unbalance
from joulemap.physics.power import PowerLaw
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.run import BANDWIDTH, ONE_BY_ONE
from joulemap.physics.stream import find_stream_ratio, slow_stream
from joulemap.physics.workload import Floats, Texts
from joulemap.system.record import frozen

HOST_NORM: Final = 2.5
"""Exponent of the norm that combines the times of a device and of the host that launches its work. Source: see
`overhead`.
"""

SAME: Final = 1e-9
"""Relative difference up to which two times count as equal."""


@frozen(eq=False)
class Pace:
    """Times of placed kernels and workloads, given a clock per workload."""

    kernels: KernelColumns
    hardware: Hardware
    placement: Placement
    law: PowerLaw
    _last: list[Any] = attrs.field(factory=list, init=False)
    """Cache of the last times, clock and result, because a clock that was found is queried again."""

    def find_steady_clock(
        self, seconds_at: Callable[[Floats], Floats], chip_j: Floats, memory_j: Floats
    ) -> tuple[Floats, Floats]:
        """Return (clock, energy factor of on-chip actions) of each workload under the power cap.

        `seconds_at` maps one clock per workload to one time per workload. The only kernel of a workload is timed before
        the cap takes effect.
        """
        steady = self.law.clock_under_cap(seconds_at, chip_j, memory_j)
        factor = self.law.energy_factor(steady)
        is_lone = self.kernels.sum_kernels(np.ones(self.kernels.kernel_count)) == 1.0
        if not is_lone.any():
            return steady, factor
        first, first_factor = self.law.at_first(steady, seconds_at, chip_j, memory_j)
        return np.where(is_lone, first, steady), np.where(is_lone, first_factor, factor)

    def placed(self, clock: Floats) -> Placement:
        """Return the placement with its times at these clocks; launches include the wait for a host."""
        placement = self._placed(clock)
        if placement.host is None:
            return placement
        return attrs.evolve(placement, launch_s=placement.launch_s + self.host_s(clock))

    def _placed(self, clock: Floats) -> Placement:
        placement, kernels = self.placement, self.kernels
        if (clock == 1.0).all():
            return placement
        before = kernels.per_kernel(placement.compute_s), kernels.per_kernel(placement.memory_s)
        is_slower = kernels.of_workload(clock) < 1.0
        compute, memory = (
            np.where(is_slower, one, 1.0) for one in map(kernels.growth, before, self._times_at(placement, clock))
        )
        stretch = kernels.kernel_workload(self.law.stretch(clock))
        return attrs.evolve(
            placement,
            compute_s=placement.compute_s * compute,
            memory_s=placement.memory_s * memory,
            launch_s=placement.launch_s * stretch,
            pass_s=placement.pass_s * stretch,
        )

    def kernel_s(self, clock: Floats) -> Floats:
        """Return the time of each kernel at these clocks, with its wait for a host."""
        seconds = self._busy_s(self.placement, clock)
        return seconds if self.placement.host is None else seconds + self.host_s(clock)

    def host_s(self, clock: Floats) -> Floats:
        """Return the time in seconds that a host adds to each kernel at these clocks; 0 without overhead."""
        host, kernels = self.placement.host, self.kernels
        if host is None:
            return np.zeros(kernels.kernel_count)
        device_s = kernels.sum_kernels(self._busy_s(self.placement, clock))
        host_s = kernels.sum_kernels(host.overlapped_s)
        added_s = p_norm(device_s, host_s, HOST_NORM) - device_s
        share = np.divide(
            added_s, host_s, out=np.zeros(np.broadcast_shapes(added_s.shape, host_s.shape)), where=host_s > 0.0
        )
        return host.overlapped_s * kernels.kernel_workload(share) + host.serial_s

    def latency_s(self, clock: Floats) -> Floats:
        """Return the latency of a batch of each workload that runs alone on the chip, at these clocks."""
        return self.kernels.sum_kernels(self.kernel_s(clock))

    def interval_s(self, clock: Floats) -> Floats:
        """Return the interval between batches of each workload at these clocks."""
        latency = self.latency_s(clock)
        if self.placement.overlap is None:
            return latency
        shortest: Floats = np.minimum(latency, np.maximum(*self._bounds(self.placement.overlap, clock)))
        return shortest

    def limit(self, clock: Floats) -> Texts:
        """Return the throughput limit of each workload, ignoring the power cap."""
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
        """Return the times of a batch on (units, shared memory), each at least the datasheet's minimum."""
        least_units, least_shared = self.placement.least_interval_s(self.kernels, self.hardware)
        units = self.kernels.sum_kernels(self._busy_s(overlap, clock))
        shared = np.maximum(self.kernels.sum_workload(overlap.shared_s), least_shared) * self.law.stretch(clock)
        return np.maximum(units, least_units / clock), shared

    def _busy_s(self, times: Placement | Overlap, clock: Floats) -> Floats:
        """Return launch + max(compute, memory) of each kernel at these clocks."""
        stretch = self.kernels.kernel_workload(self.law.stretch(clock))
        seconds: Floats = times.launch_s * stretch + np.maximum(*self._times_at(times, clock))
        return seconds

    def _times_at(self, times: Placement | Overlap, clock: Floats) -> tuple[Floats, Floats]:
        """Return the compute and memory time of each kernel at these clocks; the longer one counts."""
        if not self._last or self._last[0] is not times or self._last[1] is not clock:
            compute, memory = self._own_times if times is self.placement else self._times_of(times)
            slower = self.law.stretch(clock) * self._slow_stream(clock)
            each, stretch = map(self.kernels.kernel_workload, (clock, slower))
            self._last[:] = times, clock, balance(compute / each, memory * stretch, self.placement.sharpness)
        last_times: tuple[Floats, Floats] = self._last[2]
        return last_times

    def _slow_stream(self, clock: Floats) -> Floats | float:
        """Return the factor on memory times at these clocks where units limit the rate of memory; below the knee, all
        times slow alike.
        """
        ratio = find_stream_ratio(self.hardware)
        return slow_stream(ratio, np.maximum(clock, self.law.turning)) / slow_stream(ratio)

    @cached_property
    def _own_times(self) -> tuple[Floats, Floats]:
        return self._times_of(self.placement)

    def _times_of(self, times: Placement | Overlap) -> tuple[Floats, Floats]:
        """Return the compute and memory time of each kernel at the full clock, as if they did not overlap."""
        compute, memory = self.kernels.per_kernel(times.compute_s), self.kernels.per_kernel(times.memory_s)
        return unbalance(compute, memory, self.placement.sharpness)
