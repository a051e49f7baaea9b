"""Voltage, which decreases with the clock down to a floor, and clock under a power cap.

With x the clock as a share of the die's highest clock, phi as a share of the board's highest, r = x / phi:

    v(x)   = max(floor, floor + (1 - floor) (x - knee) / (1 - knee))      voltage as a share of the highest
    E(x)   = static power T(x) + off-chip memory + v(x)^2 (chip + phi spin T(x))      energies hold at the full voltage
    T(x)   = sum over kernels of launch + max(compute r / x, memory)      from the knee up: memory has its own clock
    T(x)   = T(knee) knee / x                                             below it all slows alike
    clock  = the highest phi <= 1 with E / T <= static power + share (cap - static power)

Spin is the power at the full clock of cycles that units of a GPU count over time. Where memory alone takes the time,
there are fewer of them at a lower clock. Memory awake draws its power whatever it moves, as static power.

For a GPU, the p-norm of compute and memory replaces their maximum. A run repeats without a pause, so that the cap is in
effect. If batches overlap, T is the interval between batches; the latency is then the time of one batch alone. Single
kernels are timed like benchmarks, before the cap takes effect: see `at_first`.

Power only falls as the clock falls, so the highest clock is unique. Below the knee an action costs the same as at the
knee, and only time changes. With a floor and a knee of 1 the voltage is fixed, and all time is divided by phi. If the
clock of a chip is raised above the highest of its die, r and v exceed 1 on the same line: an assumption.

Source: NVIDIA A100 PCIe 40 GB at four to eight locked clocks, energaizer (ISPASS 2026).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Self

import numpy as np

from joulemap.physics.record.hardware import Hardware
from joulemap.physics.workload import Floats
from joulemap.system.record import frozen

TOLERANCE: Final = 1e-10
"""Relative tolerance on the power that the cap allows."""

LEAST_FACTOR: Final = 0.5
"""Minimum energy of an action in a short kernel, as a fraction of its energy in steady state."""

LEAST_CLOCK: Final = 0.01
"""Least clock below the knee that is tried, as a fraction of the clock without a host."""

STEPS: Final = 100
"""Maximum iterations to find the clock."""


@frozen(kw_only=True)
class PowerLaw:
    """Parameters of voltage and power cap of a chip at its power mode; arrays for several chips."""

    floor: Floats | float
    """Lowest voltage, as a share of the highest."""
    knee: Floats | float
    """Clock below which the voltage stays at its floor, as a share of the die's highest clock."""
    reach: Floats | float
    """Full clock of the board, as a share of the die's highest clock; above 1 for a raised clock."""
    static_w: Floats | float
    limit_w: Floats | float
    """Maximum power that the cap allows in steady state."""
    delay_s: Floats | float
    """Time over which the cap takes effect; 0 for an immediate cap."""
    spin_w: Floats | float = 0.0
    """Power of cycles that units count over time, at the full clock and voltage of the die."""

    @classmethod
    def of(cls, hardware: Hardware, static_w: float | None = None) -> Self:
        """Return the power law of a chip; a file may state its own `voltage_floor`, `voltage_knee` and `cap_share`.

        `static_w`, if given, replaces the chip's static power.
        """
        static = hardware.static_power.value if static_w is None else static_w
        full = hardware.full_clock
        return cls(
            floor=hardware.coefficient("voltage_floor"),
            knee=hardware.coefficient("voltage_knee"),
            reach=full.value / (hardware.clock_die or full).value,
            static_w=static,
            limit_w=static + hardware.coefficient("cap_share") * (hardware.tdp.value - static),
            delay_s=delay.value if (delay := hardware.coefficients.get("cap_delay")) else 0.0,
        )

    @property
    def turning(self) -> Floats | float:
        """Clock of the knee as a share of the board's full clock, at most 1; below it, memory and launches slow down
        too.
        """
        lowest: Floats | float = np.minimum(1.0, self.knee / self.reach)
        return lowest

    def energy_factor(self, clock: Floats) -> Floats:
        """Return the energy of an on-chip action at these clocks, relative to the full voltage of the die."""
        above = np.maximum(clock * self.reach - self.knee, 0.0)
        slope = (1.0 - self.floor) / np.where(np.less(self.knee, 1.0), 1.0 - self.knee, np.inf)
        highest = np.where(np.greater(self.reach, 1.0), np.inf, 1.0)
        factor: Floats = np.square(np.minimum(self.floor + slope * above, highest))
        return factor

    def at_first(
        self, steady: Floats, seconds_at: Callable[[Floats], Floats], chip_j: Floats, memory_j: Floats
    ) -> tuple[Floats, Floats]:
        """Return (clock, energy factor of on-chip actions) of single kernels, given their clock in steady state.

        The cap takes effect over a delay, so a short kernel ends before its clock has fallen. Single operators are
        timed this way. Averaged over the time around the kernel, power stays at the limit. An action therefore costs
        less than in steady state, in proportion to the saved time, down to LEAST_FACTOR. If that is not enough, the
        clock is lower, at least the clock in steady state. Source: bf16 GEMMs on H200 and B200, each timed alone and
        repeated for a second (aiconfigurator, vLLM 0.24 and 0.22): alone, those of 0.3 ms are 15 % faster, those of 3
        ms 4 %.
        """
        factor = self.energy_factor(steady)
        if not np.any(self.delay_s):
            return steady, factor
        slow = seconds_at(steady)
        clock = np.where(np.greater(self.delay_s, 0.0), 1.0 - (1.0 - steady) * slow / (slow + self.delay_s), steady)
        room_w = self.limit_w - self.static_w

        def missing_at(clock: Floats) -> Floats:
            seconds = seconds_at(clock)
            spent_j = chip_j + self.spin_w * clock * seconds
            return (LEAST_FACTOR * factor * spent_j + memory_j) / room_w - seconds

        missing = missing_at(clock)
        if (missing > 0.0).any():
            between = _find_root(missing_at, steady, clock, missing_at(steady), missing, TOLERANCE * slow)
            clock = np.where(missing > 0.0, between, clock)
        seconds = seconds_at(clock)
        room, spent_j = room_w * seconds - memory_j, chip_j + self.spin_w * clock * seconds
        allowed = np.divide(room, spent_j, out=np.ones(room.shape), where=spent_j > 0.0)
        return clock, np.minimum(allowed, factor)

    def stretch(self, clock: Floats) -> Floats:
        """Return the factor on memory and launch times at these clocks. The factor on compute times is 1 / clock."""
        factor: Floats = np.maximum(clock, self.turning) / clock
        return factor

    def power(self, clock: Floats, seconds: Floats, chip_j: Floats, memory_j: Floats) -> Floats:
        """Return the power in watts of work that takes `seconds` at these clocks; energies are given at the full
        voltage.
        """
        dynamic_j = memory_j + self.energy_factor(clock) * (chip_j + self.spin_w * clock * seconds)
        is_long = seconds > 0.0
        watts = np.where(is_long, dynamic_j / np.where(is_long, seconds, 1.0), 0.0)
        total: Floats = self.static_w + watts
        return total

    def clock_under_cap(self, seconds_at: Callable[[Floats], Floats], chip_j: Floats, memory_j: Floats) -> Floats:
        """Return the clock of each workload under the cap, repeated without a pause, as a share of the full clock.

        `seconds_at` maps one clock per workload to one time per workload. Energies are those of on-chip and off-chip
        actions at the full voltage.
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
        # Below the knee, dynamic power is proportional to the clock, or falls less if the chip waits for a host.
        drawn_w = np.maximum(excess_low + self.limit_w - self.static_w, np.finfo(float).tiny)
        below = low * np.minimum((self.limit_w - self.static_w) / drawn_w, 1.0)
        tolerance = TOLERANCE * self.limit_w
        if (excess_low > 0.0).any() and (excess_at(below) > tolerance).any():
            least = below * LEAST_CLOCK
            below = _find_root(excess_at, least, low, excess_at(least), excess_low, tolerance)
        between = _find_root(excess_at, low, full, excess_low, excess, tolerance)
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
    """Return the root of each increasing function between `low` and `high`, or a point below it within the tolerance.

    Elements without a sign change return `low`. Source: regula falsi, the Illinois rule.
    """
    is_open = (at_low <= -tolerance) & (at_high > 0.0)
    root, side = low, np.zeros_like(low)
    for _ in range(STEPS):
        if not is_open.any():
            break
        step = np.divide(at_high * (high - low), at_high - at_low, out=np.zeros_like(low), where=is_open)
        middle = high - step
        height = function(middle) + tolerance / 2.0
        is_above = height > 0.0
        is_near = np.abs(height) <= tolerance / 2.0
        root = np.where(is_open & (is_near | ~is_above), middle, root)
        at_low = np.where(is_above, np.where(side > 0.0, at_low / 2.0, at_low), height)
        at_high = np.where(is_above, height, np.where(side < 0.0, at_high / 2.0, at_high))
        low, high = np.where(is_above, low, middle), np.where(is_above, middle, high)
        side = np.where(is_above, 1.0, -1.0)
        is_open = is_open & ~is_near
    return root
