"""Voltage, which falls with the clock down to a floor, and the clock that a power cap leaves.

With x the clock as a share of the highest of the die, phi as a share of the highest of the board, r = x / phi:

    v(x)   = max(floor, floor + (1 - floor) (x - knee) / (1 - knee))      voltage as a share of the highest
    E(x)   = static power T(x) + off-chip memory + v(x)^2 chip            energies of actions hold at the full voltage
    T(x)   = sum over kernels of launch + max(compute r / x, memory)      from the knee up: memory has its own clock
    T(x)   = T(knee) knee / x                                             below it all slows alike
    clock  = the highest phi <= 1 with E / T <= static power + share (cap - static power)

Of a GPU the p-norm of the two stands in place of their maximum. A run is repeated without a pause, so that the cap has
taken hold; where batches overlap, T is the time from one to the next, and for latencies that of one by itself. A single
kernel is timed as benchmarks time it, over a delay: see `at_first`.

Power only falls with the clock, so that the highest clock is unique. Below the knee an action costs what it costs at
the knee and only time is left to give. With a floor and a knee of 1 the voltage is fixed, all time is divided by phi.

Source: NVIDIA A100 PCIe 40 GB at four to eight locked clocks, energaizer (ISPASS 2026).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Self

import numpy as np

from joulemap.domain.hardware import Hardware
from joulemap.model.workload import Floats
from joulemap.system.record import frozen

TOLERANCE: Final = 1e-10
"""Of the power that the cap allows."""

LEAST_FACTOR: Final = 0.5
"""Of what an action costs in a steady state: the least that a kernel pays which is over sooner."""

STEPS: Final = 100
"""At most, to find the clock."""


@frozen(kw_only=True)
class PowerLaw:
    """What decides the voltage and the power cap of a hardware at its power mode; of several, a number of each."""

    floor: Floats | float
    """Lowest voltage, as a share of the highest."""
    knee: Floats | float
    """Clock below which the voltage stays there, as a share of the highest of the die."""
    reach: Floats | float
    """Full clock of the board, as a share of the highest of the die."""
    static_w: Floats | float
    limit_w: Floats | float
    """Power that the cap holds a steady state at."""
    delay_s: Floats | float
    """Time over which the cap takes hold."""

    @classmethod
    def of(cls, hardware: Hardware, static_w: float | None = None) -> Self:
        """Return the law of a hardware; a file may state `voltage_floor`, `voltage_knee`, `cap_share` of its own.

        `static_w` takes the place of its static power.
        """
        static = hardware.static_power.value if static_w is None else static_w
        full = hardware.full_clock
        return cls(
            floor=hardware.coefficient("voltage_floor"),
            knee=hardware.coefficient("voltage_knee"),
            reach=np.minimum(1.0, full.value / (hardware.clock_die or full).value),
            static_w=static,
            limit_w=static + hardware.coefficient("cap_share") * (hardware.tdp.value - static),
            delay_s=delay.value if (delay := hardware.coefficients.get("cap_delay")) else 0.0,
        )

    @property
    def turning(self) -> Floats | float:
        """Clock of the knee as a share of the board's, at most 1: below it everything slows."""
        lowest: Floats | float = np.minimum(1.0, self.knee / self.reach)
        return lowest

    def energy_factor(self, clock: Floats) -> Floats:
        """Return what an action on the chip costs at these clocks, relative to the full voltage of the die."""
        above = np.maximum(clock * self.reach - self.knee, 0.0)
        slope = (1.0 - self.floor) / np.where(np.less(self.knee, 1.0), 1.0 - self.knee, np.inf)
        factor: Floats = np.square(np.minimum(self.floor + slope * above, 1.0))
        return factor

    def at_first(
        self, steady: Floats, seconds_at: Callable[[Floats], Floats], chip_j: Floats, memory_j: Floats
    ) -> tuple[Floats, Floats]:
        """Return the clock of a single kernel, given that of a steady state, and what an action on the chip costs it.

        The cap takes hold over a delay, so that a short kernel is over before its clock has fallen. That is how single
        operators are timed. The mean power of what surrounds it stays at the limit: an action costs less than in a
        steady state by the time that the kernel is faster, down to LEAST_FACTOR of that, which a clock between the
        two leaves.
        Source: bf16 products on H200 and B200, the same timed one by one and repeated for a second (aiconfigurator,
        vLLM 0.24 and 0.22): 15 % faster at 0.3 ms, 4 % at 3 ms.
        """
        factor = self.energy_factor(steady)
        if not np.any(self.delay_s):
            return steady, factor
        slow = seconds_at(steady)
        clock = np.where(np.greater(self.delay_s, 0.0), 1.0 - (1.0 - steady) * slow / (slow + self.delay_s), steady)
        room_w = self.limit_w - self.static_w
        least_s = (LEAST_FACTOR * factor * chip_j + memory_j) / room_w

        def missing_at(clock: Floats) -> Floats:
            return least_s - seconds_at(clock)

        missing = missing_at(clock)
        if (missing > 0.0).any():
            between = _find_root(missing_at, steady, clock, least_s - slow, missing, TOLERANCE * slow)
            clock = np.where(missing > 0.0, between, clock)
        room = room_w * seconds_at(clock) - memory_j
        allowed = np.divide(room, chip_j, out=np.ones(room.shape), where=chip_j > 0.0)
        return clock, np.minimum(allowed, factor)

    def stretch(self, clock: Floats) -> Floats:
        """Return the factor on the times of memory and launches at these clocks; computing takes 1 / clock."""
        factor: Floats = np.maximum(clock, self.turning) / clock
        return factor

    def power(self, clock: Floats, seconds: Floats, chip_j: Floats, memory_j: Floats) -> Floats:
        """Return the power at these clocks, of what then takes `seconds`, with energies at the full voltage."""
        dynamic_j = memory_j + self.energy_factor(clock) * chip_j
        is_long = seconds > 0.0
        watts = np.where(is_long, dynamic_j / np.where(is_long, seconds, 1.0), 0.0)
        total: Floats = self.static_w + watts
        return total

    def energy_at(self, seconds: Floats, chip_j: Floats, memory_j: Floats) -> Floats:
        """Return the energy of what was measured to take `seconds`, in joules: at the full clock, or as the cap allows.

        The cap lowers the voltage of what would draw more in that time; how far the clock fell is in the time itself.
        """
        room = (self.limit_w - self.static_w) * seconds - memory_j
        allowed = np.divide(room, chip_j, out=np.ones(np.shape(room)), where=chip_j > 0.0)
        highest = self.energy_factor(np.ones_like(chip_j))
        total: Floats = self.static_w * seconds + memory_j + np.clip(allowed, self.floor**2, highest) * chip_j
        return total

    def clock_under_cap(self, seconds_at: Callable[[Floats], Floats], chip_j: Floats, memory_j: Floats) -> Floats:
        """Return the share of the board's full clock that the cap leaves each workload, repeated without a pause.

        `seconds_at` gives the latency of each at a clock of each; energies are those of its actions at the full
        voltage, on the chip and off it.
        """
        at_full = seconds_at(np.ones_like(chip_j))
        full = np.ones(np.broadcast_shapes(chip_j.shape, np.shape(self.limit_w), np.shape(at_full)))

        def excess_at(clock: Floats) -> Floats:
            return self.power(clock, seconds_at(clock), chip_j, memory_j) - self.limit_w

        excess = self.power(full, at_full, chip_j, memory_j) - self.limit_w
        if not (excess > 0.0).any():
            return full
        low = full * self.turning
        excess_low = excess_at(low) if np.any(np.less(self.turning, 1.0)) else excess
        # below the knee power is in proportion to the clock
        drawn_w = np.maximum(excess_low + self.limit_w - self.static_w, np.finfo(float).tiny)
        below = low * np.minimum((self.limit_w - self.static_w) / drawn_w, 1.0)
        between = _find_root(excess_at, low, full, excess_low, excess, TOLERANCE * self.limit_w)
        clock: Floats = np.where(excess <= 0.0, 1.0, np.where(excess_low > 0.0, below, between))
        return clock


def _find_root(
    function: Callable[[Floats], Floats],
    low: Floats,
    high: Floats,
    at_low: Floats,
    at_high: Floats,
    tolerance: Floats | float,
) -> Floats:
    """Return where an increasing function of each is 0 or less by the tolerance, between a place below and one above 0.

    What has no such places comes back at the lower one. Source: regula falsi, the Illinois rule.
    """
    is_open = (at_low <= -tolerance) & (at_high > 0.0)
    root, side = low, np.zeros_like(low)
    for _ in range(STEPS):
        if not is_open.any():
            break
        step = np.divide(at_high * (high - low), at_high - at_low, out=np.zeros_like(low), where=is_open)
        middle = high - step
        found = function(middle) + tolerance / 2.0
        is_above = found > 0.0
        is_near = np.abs(found) <= tolerance / 2.0
        root = np.where(is_open & (is_near | ~is_above), middle, root)
        at_low = np.where(is_above, np.where(side > 0.0, at_low / 2.0, at_low), found)
        at_high = np.where(is_above, found, np.where(side < 0.0, at_high / 2.0, at_high))
        low, high = np.where(is_above, low, middle), np.where(is_above, middle, high)
        side = np.where(is_above, 1.0, -1.0)
        is_open = is_open & ~is_near
    return root
