"""Half-widths of the 80 % intervals of predictions, for many at once.

    latency  ‖errors of its group, own numbers‖          own numbers: those that bound each part of the latency
    price    ‖parts of one basis summed, separate bases, static energy with the time‖
    energy   ‖E, growth (1 - host's share), host (host's share)‖      the last two at the boundary `system`
    E        ((n (errors^2 + own prices^2) + m price^2) / (n + m))^(1/2)      n groups of errors, m = FULL_GROUPS
             max(‖errors, price‖, latency)      of a class without measured energies, unless a load was measured

Errors of other hardware do not include the uncertainty of this hardware's own numbers, which is added. Held-out errors
of a calibration replace the errors of a group. Values that a question sets are taken as exact. docs/doubt.md states the
source of the numbers and their measured coverage.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from joulemap.domain.doubt import CORRELATION, FULL_GROUPS
from joulemap.system.record import frozen
from joulemap.uncertainty.probability import Floats
from joulemap.uncertainty.scale import CLASS_LEVEL, OWN_LEVEL


@frozen(kw_only=True)
class Errors:
    """Errors of one quantity that predictions like each one had, one row per prediction."""

    half_width: Floats
    level: Floats
    """Level of the group of measurements; not a number without one."""
    group_count: Floats
    held_out: Floats
    """Half-width that its calibration left for held-out model families; not a number without one."""

    @property
    def is_foreign(self) -> NDArray[np.bool_]:
        """True for errors of other hardware."""
        return np.asarray(np.isnan(self.held_out) & (self.level != OWN_LEVEL))


@frozen(kw_only=True)
class Spent:
    """Parts of the latency and energy of predictions, one row per prediction, and the numbers that limit or price
    them.
    """

    latency_fs: Floats
    bound_fs: Floats
    """Latency bound by compute, memory and launches, one column each."""
    own_number: Floats
    """Half-widths of the hardware's numbers that bound these parts."""
    basis_square: Floats
    """Squared half-width of the energy from its prices, parts of one basis summed."""
    own_square: Floats
    """Squared half-width from prices that the hardware's own file gives, beyond those of scored hardware."""
    static_share: Floats
    """Share of static energy."""
    has_load: NDArray[np.bool_]
    """True where a load of the whole board was measured."""
    host_share: Floats
    """Share of the static power of a host."""
    growth_half_width: Floats
    """Half-width of the energy at the wall plug per energy of the board; 0 unless the boundary is `system`."""
    host_half_width: Floats
    """Half-width of the host's power at the wall plug; 0 unless the boundary is `system`."""


@frozen(kw_only=True)
class HalfWidths:
    """Half-widths of 80 % intervals of natural logarithms, one row per prediction."""

    latency: Floats
    latency_own: Floats
    """Part of it from the hardware's own numbers."""
    price: Floats
    """Half-width of the energy by its prices alone."""
    energy: Floats
    energy_own: Floats
    edp: Floats
    power: Floats


def combine_errors(latency: Errors, energy: Errors, spent: Spent) -> HalfWidths:
    """Return the half-widths of predictions; not a number where no errors are known."""
    with np.errstate(divide="ignore", invalid="ignore"):
        own = np.sqrt(np.square(spent.bound_fs * spent.own_number).sum(axis=1)) / spent.latency_fs
        own = np.where(latency.is_foreign, own, 0.0 * own)
        scored = np.where(np.isnan(latency.held_out), latency.half_width, latency.held_out)
        width = np.sqrt(np.square(scored) + np.square(own))
        price_square = spent.basis_square + np.square(spent.static_share * width)
        own_square = np.where(
            energy.is_foreign, spent.own_square + np.square(spent.static_share * own), 0.0 * spent.own_square
        )
        errors = energy.group_count * (np.square(energy.half_width) + own_square)
        grouped = np.sqrt((errors + FULL_GROUPS * price_square) / (energy.group_count + FULL_GROUPS))
        beside = np.where(spent.has_load, 0.0, np.square(energy.half_width))
        # without a measured energy of the class, energy is power times a latency that is itself unsure
        unmeasured = np.maximum(np.sqrt(beside + price_square), np.where(spent.has_load, 0.0, width))
        found = np.where(energy.level < CLASS_LEVEL, unmeasured, grouped)
        found = np.where(np.isnan(energy.held_out), found, energy.held_out)
        around_square = np.square(spent.growth_half_width * (1.0 - spent.host_share))
        around_square = around_square + np.square(spent.host_half_width * spent.host_share)
        found = np.sqrt(np.square(found) + around_square)
        both = np.square(width) + np.square(found)
        joint = 2.0 * CORRELATION * width * found
        return HalfWidths(
            latency=width,
            latency_own=own,
            price=np.sqrt(price_square),
            energy=found,
            energy_own=np.sqrt(own_square + around_square),
            edp=np.sqrt(both + joint),
            power=np.sqrt(both - joint),
        )
