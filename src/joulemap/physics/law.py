"""Laws that every evaluated workload must obey, whatever was measured.

    counts, times and power of kernels, at the full clock ─► excess over what exists ─► bits of the broken laws

A workload that breaks a law has a fault in a formula or in a number of its chip. Its run is kept and names the law, and
its intervals are as wide as `interval.half_width.BROKEN`. With `JOULEMAP_LAWS=raise`, evaluation raises LawError.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Final, Literal

import numpy as np

from joulemap.physics.communication import KIND as COLLECTIVE
from joulemap.physics.kernel import KernelColumns
from joulemap.physics.ledger import Counts
from joulemap.physics.placement import Placement
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.record.reference import MEMORY_ACTION, ActionKey, cycle_action
from joulemap.physics.run import RunFacts
from joulemap.physics.step import find_private, has_steps
from joulemap.physics.workload import Booleans, Floats, Integers
from joulemap.system.errors import LawError
from joulemap.system.record import frozen
from joulemap.system.units import FJ_PER_J

VARIABLE: Final = "JOULEMAP_LAWS"
RAISE: Final = "raise"
"""Environment variable, and its value that makes evaluation raise LawError for a broken law."""


@frozen(kw_only=True, eq=False, slots=False)
class Evaluated:
    """One evaluation of workloads on chips, as the laws see it: times and counts at the full clock."""

    kernels: KernelColumns
    placement: Placement
    counts: Counts
    hardware: Hardware
    kernel_s: Floats
    """Time of each kernel."""
    interval_s: Floats
    """Interval between batches, per workload."""
    uncapped_power_w: Floats
    """Power before the cap, per workload."""

    @cached_property
    def least_s(self) -> tuple[Floats, Floats]:
        """Minimum (compute, memory) time of each workload: MACs at the peak, off-chip bytes at the bandwidth."""
        return self.placement.least_interval_s(self.kernels, self.hardware)

    def list_counts(self, per: str) -> list[tuple[ActionKey, Floats]]:
        """Return (action, count per operator) of each counted action whose unit is `per`."""
        actions = self.hardware.reference.actions
        return [(actions[row].key, count) for row, count in self.counts.items() if actions[row].per == per]


Compared = tuple[Floats, Floats | float]
"""(values, bounds) of a law."""


@frozen(kw_only=True)
class Law:
    """Statement about one evaluation that holds for any chip, model and setting."""

    name: str
    sentence: str
    tolerance: float
    """Largest ratio of a value to its bound that counts as obeyed."""
    reason: str
    """Reason for the tolerance."""
    grain: Literal["workload", "kernel", "operator"]
    """Meaning of one value."""
    compare: Callable[[Evaluated], Iterator[Compared]]


def _compare_cycles(one: Evaluated) -> Iterator[Compared]:
    for key, count in one.list_counts("cycle"):
        if key != MEMORY_ACTION and key[1] != IDLE:
            units = one.hardware.clock.value * np.rint(one.hardware.unit_count.value)
            yield one.kernels.per_kernel(count), one.kernel_s * units


def _compare_peak(one: Evaluated) -> Iterator[Compared]:
    yield one.least_s[0], one.interval_s


def _compare_bandwidth(one: Evaluated) -> Iterator[Compared]:
    yield one.least_s[1], one.interval_s


def _compare_power(one: Evaluated) -> Iterator[Compared]:
    limit, watts = one.hardware.tdp.value, one.uncapped_power_w
    if (watts > limit).any():  # a launch is work of the host, which the limit of a small accelerator does not contain
        reference = one.hardware.reference
        launched = (count * reference.prices_fj[row] for row, count in one.counts.items() if reference.of_host[row])
        joules = one.kernels.sum_workload(sum(launched, np.zeros(1)) / FJ_PER_J) * (1.0 + reference.loss_j)
        watts = watts - np.divide(joules, one.interval_s, out=np.zeros_like(watts), where=one.interval_s > 0.0)
    yield watts, limit


def _compare_products(one: Evaluated) -> Iterator[Compared]:
    own = cycle_action(one.kernels.precision)
    cycles = (pair for pair in one.list_counts("cycle") if pair[0] == own)
    for _, count in (*one.list_counts("MAC"), *cycles):
        yield np.where(one.kernels.work.mac_count > 0.0, 0.0, count), 0.0


def _compare_waits(one: Evaluated) -> Iterator[Compared]:
    placement, kernels, hardware = one.placement, one.kernels, one.hardware
    rate = hardware.memory_bandwidth.value
    for level in hardware.memory_levels:
        if level.per == "chip":
            least = hardware.unit_count.value * hardware.clock.value
            rate = np.minimum(rate, least if level.bandwidth is None else level.bandwidth.value)
    moved = kernels.moved_bytes + placement.dram_read_bytes + placement.dram_write_bytes + placement.pass_bytes
    waited = np.where(kernels.work.of_kind(COLLECTIVE), 0.0, placement.memory_s)
    yield kernels.per_kernel(waited), kernels.per_kernel(moved) / rate + SETTLED_S


def _compare_steps(one: Evaluated) -> Iterator[Compared]:
    kernels, hardware = one.kernels, one.hardware
    if not has_steps(kernels):
        return
    own = kernels.per_kernel(kernels.own_weight_bytes * kernels.stored_share)
    is_loop = kernels.of_leader(np.where(kernels.loops, 1.0, 0.0)) > 0.0
    weights = np.where(is_loop, own / kernels.step_count, own)
    again = np.where(kernels.step_count > 1.0, kernels.step_count - 1.0, 0.0)
    held = find_private(hardware)
    for level in hardware.memory_levels:
        if level.per == "chip":
            if level.bandwidth is not None:
                rate = np.maximum(level.bandwidth.value, hardware.memory_bandwidth.value)
                yield again * np.maximum(weights - held, 0.0) / rate, one.kernel_s
            held = np.maximum(held, level.capacity.value)
    yield again * np.maximum(weights - held, 0.0) / hardware.memory_bandwidth.value, one.kernel_s


SEPARATOR: Final = ", "

IDLE: Final = "idle_cycle"
"""Action of a multiplier that has no MAC in a clock: a unit has many."""

ROUNDING: Final = "rounding of sums"

SETTLED_S: Final = 1e-7
"""Seconds that a kernel may wait for no bytes: the latency of a memory."""

LAWS: Final = (
    Law(
        name="cycles exist",
        sentence="The cycles that a kernel counts are at most its units x clock x time.",
        tolerance=1.001,
        reason=ROUNDING,
        grain="kernel",
        compare=_compare_cycles,
    ),
    Law(
        name="peak",
        sentence="A batch takes at least its computed MACs at the peak of the chip.",
        tolerance=1.001,
        reason=ROUNDING,
        grain="workload",
        compare=_compare_peak,
    ),
    Law(
        name="bandwidth",
        sentence="A batch takes at least its off-chip bytes at the bandwidth of the memory.",
        tolerance=1.001,
        reason="off-chip bytes are rounded to whole bytes after they are timed",
        grain="workload",
        compare=_compare_bandwidth,
    ),
    Law(
        name="busy power",
        sentence="The power before the cap is at most what the busy units of the board can draw.",
        tolerance=48.0,
        reason="a projected chip may draw twelve times its limit at full rate, and a calibration scales that by four",
        grain="workload",
        compare=_compare_power,
    ),
    Law(
        name="products",
        sentence="An operator without MACs counts no MAC and no clock of a unit that multiplies.",
        tolerance=1.0,
        reason="exact",
        grain="operator",
        compare=_compare_products,
    ),
    Law(
        name="waits",
        sentence="A kernel waits for memory at most as long as its bytes take at the bandwidth of the slowest memory.",
        tolerance=8.0,
        reason="60 chips reach at least 0.24 of their bandwidth; an unknown one counts as a byte per clock and unit",
        grain="kernel",
        compare=_compare_waits,
    ),
    Law(
        name="steps",
        sentence="A chain of steps reads in each step the weights that no smaller memory has room for.",
        tolerance=1.001,
        reason=ROUNDING,
        grain="kernel",
        compare=_compare_steps,
    ),
)
"""All laws of one evaluation; the number of a law is its bit in `find_broken`."""


def find_broken(one: Evaluated) -> Integers:
    """Return the laws that each workload breaks, as a sum of 2^number; 0 for none.

    Raises LawError for a broken law if the environment asks for it.
    """
    broken = np.zeros(one.kernels.workload_count, dtype=np.int64)
    for number, law in enumerate(LAWS):
        for values, bounds in law.compare(one):
            is_broken = ~(values <= bounds * law.tolerance)  # also where a value is no number
            if is_broken.any():
                broken = broken | (_per_workload(one.kernels, law, is_broken) << number)
    if broken.any() and os.environ.get(VARIABLE) == RAISE:
        raise LawError(f"{one.hardware.id}: breaks {name_broken(int(np.bitwise_or.reduce(broken.ravel())))}")
    return broken


def _per_workload(kernels: KernelColumns, law: Law, is_broken: Booleans) -> Integers:
    """Return 1 for each workload that has a mark, itself or on one of its kernels or operators; 0 for others."""
    marks = np.where(is_broken, 1.0, 0.0)
    if law.grain != "workload":
        marks = kernels.sum_kernels(marks) if law.grain == "kernel" else kernels.sum_workload(marks)
    return (marks > 0.0).astype(np.int64)


def name_broken(broken: int) -> str:
    """Return the names of laws, joined by commas, from the sum of `find_broken`."""
    return SEPARATOR.join(law.name for number, law in enumerate(LAWS) if broken >> number & 1)


def join_laws(runs: Iterable[RunFacts]) -> str:
    """Return the names of the laws that any of the runs breaks, joined by commas."""
    return SEPARATOR.join(
        dict.fromkeys(name for one in runs if one.broken_laws for name in one.broken_laws.split(SEPARATOR))
    )
