"""Half-widths of the 80 % intervals of predictions, for many predictions at once.

‖a, b‖ is the root of the sum of the squares, as for independent errors.

    latency  ‖errors of its group, own numbers, thin, boxes‖    own numbers: those that bound each part of the latency
    thin     the largest half-width that a thinly measured number adds, if it sets a tenth of the latency
    boxes    ln(1 + (`BOXES`^2 - 1) share of the latency in non-maximum suppressions)
    price    ‖parts of one basis summed, separate bases‖
    power    ‖P, growth (1 - host's share), host (host's share)‖      the last two at the boundary `system`
    P^2      evidence^2 + m / (n + m) max(price^2 - evidence^2, 0)      n groups of errors, m = FULL_GROUPS
    evidence ‖errors of its group, own prices‖
    energy   ‖latency, power‖      edp  ‖2 latency, power‖

A price is an energy per action. Own numbers and prices are those of the hardware's file; their uncertainty is added if
the errors were measured on other hardware. Errors of a calibration on held-out model families replace those of a group.
Values that a question sets count as exact. Prices without evidence widen a power and never narrow it. docs/doubt.md
states the source of the numbers and their measured coverage.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from joulemap.physics.interval.error_scale import FULL_GROUPS, MOVING, OWN_LEVEL
from joulemap.physics.interval.probability import Floats
from joulemap.physics.interval.scale import CLASS_LEVEL
from joulemap.system.record import frozen
from joulemap.system.units import FS_PER_S

BOXES: Final = 3.0
"""Factor, up or down, on the number of boxes that reach a non-maximum suppression; pairs grow with its square.

Assumed, as the number itself (`trace.formula.pooling.CANDIDATES`).
"""

BROKEN: Final = math.log(1000.0)
"""Half-width of a prediction that breaks a law (`physics.law`), so that no decision on it is sure."""


@frozen(kw_only=True)
class Errors:
    """Error scales of predictions of one quantity, latency or power, as arrays with one row per prediction."""

    half_width: Floats
    level: Floats
    """Level of the group of measurements; NaN without a group."""
    group_count: Floats
    held_out: Floats
    """Half-width of the calibration's errors on held-out model families; NaN without a calibration. In the record for
    power, it is the half-width of the energy.
    """
    least: Floats
    """Lower bound of the half-width of power on calibrated chips."""

    @property
    def is_foreign(self) -> NDArray[np.bool_]:
        """True for predictions whose error scale was measured on other hardware."""
        return np.asarray(np.isnan(self.held_out) & (self.level != OWN_LEVEL))


@frozen(kw_only=True)
class Spent:
    """Inputs of half-widths from the latency and energy of predictions, as arrays with one row per prediction."""

    latency_fs: Floats
    bound_fs: Floats
    """Parts of the latency in femtoseconds that are bound by compute, memory and launches, one column each."""
    own_number: Floats
    """Half-widths of the hardware's numbers that determine the parts in `bound_fs`, with the same columns."""
    thin: Floats | float = 0.0
    """Half-widths that thinly measured numbers add to the parts in `bound_fs`, with the same columns."""
    suppressed_s: Floats | float = 0.0
    """Part of the latency in non-maximum suppressions, whose number of boxes is assumed."""
    basis_square: Floats
    """Squared half-width of the energy from its energies per action. Parts with the same basis are added before
    squaring.
    """
    own_square: Floats
    """Squared half-width of the energy from energies per action in the hardware's file; only what exceeds that of
    scored hardware.
    """
    has_load: NDArray[np.bool_]
    """True if the power of the whole board under a load was measured."""
    host_share: Floats
    """Share of the host's static power in the energy."""
    growth_half_width: Floats
    """Half-width of the logarithm of wall energy per board energy; 0 unless the boundary is `system`."""
    host_half_width: Floats
    """Half-width of the logarithm of the host's power at the wall plug; 0 unless the boundary is `system`."""
    breaks_law: NDArray[np.bool_]
    """True for a prediction that breaks a law, so that its half-widths are at least `BROKEN`."""


@frozen(kw_only=True)
class HalfWidths:
    """Half-widths of 80 % intervals of natural logarithms, one row per prediction."""

    latency: Floats
    latency_own: Floats
    """Part of `latency` that is due to the numbers in the hardware's file."""
    thin: Floats
    """Part of `latency` that thinly measured numbers add."""
    price: Floats
    """Half-width of the power from the energies per action alone."""
    energy: Floats
    energy_own: Floats
    edp: Floats
    power: Floats


def stack_errors(each: Sequence[tuple[float, ...]], rows: NDArray[np.int64]) -> tuple[Errors, Errors]:
    """Return the errors of latency and power of predictions; `rows` is the index in `each` of every prediction.

    `each` has results of `ErrorRecord.find_errors`.
    """
    numbers: Floats = np.array(each, dtype=float).reshape(-1, 9)[rows]
    latency, power = (
        Errors(
            half_width=part[:, 0], level=part[:, 1], group_count=part[:, 2], held_out=part[:, 3], least=numbers[:, 8]
        )
        for part in (numbers[:, 0:4], numbers[:, 4:8])
    )
    return latency, power


def widen_by_prices(evidence_square: Floats, price_square: Floats, group_count: Floats) -> Floats:
    """Return the squared half-width of a power from two others: of measured errors, and of its energies per action.

    More groups of measurements reduce the weight of the second.
    """
    excess = np.maximum(price_square - evidence_square, 0.0)
    return np.asarray(evidence_square + FULL_GROUPS / (group_count + FULL_GROUPS) * excess)


def find_moving_width(bounds: Floats, thin: Floats | float, time: Floats | float) -> Floats:
    """Return the largest half-width `thin` of the parts of a time, last axis of `bounds`, that are a tenth of it."""
    is_moving = bounds >= MOVING * np.asarray(time)[..., None]
    return np.asarray(np.where(is_moving, thin, 0.0).max(axis=-1))


def combine_errors(latency: Errors, power: Errors, spent: Spent) -> HalfWidths:
    """Return the half-widths of latency, power, energy and EDP; NaN where no error scale is known."""
    with np.errstate(divide="ignore", invalid="ignore"):
        own = np.sqrt(np.square(spent.bound_fs * spent.own_number).sum(axis=1)) / spent.latency_fs
        thin = find_moving_width(spent.bound_fs, spent.thin, spent.latency_fs)
        own = np.where(latency.is_foreign, own, 0.0 * own)
        scored = np.where(np.isnan(latency.held_out), latency.half_width, latency.held_out)
        boxes = np.log1p((BOXES**2 - 1.0) * spent.suppressed_s * FS_PER_S / spent.latency_fs)
        width = np.sqrt(np.square(scored) + np.square(own) + np.square(thin) + np.square(boxes))
        width = np.where(spent.breaks_law, np.maximum(width, BROKEN), width)
        own_square = np.where(power.is_foreign, spent.own_square, 0.0 * spent.own_square)
        evidence = np.square(power.half_width) + own_square
        beside = np.where(spent.has_load, 0.0, np.square(power.half_width))
        spread_square = np.where(
            power.level < CLASS_LEVEL,
            beside + spent.basis_square,
            widen_by_prices(evidence, spent.basis_square, power.group_count),
        )
        left = np.maximum(np.square(power.held_out) - np.square(width), np.square(power.least))
        spread_square = np.where(np.isnan(power.held_out), spread_square, left)
        around_square = np.square(spent.growth_half_width * (1.0 - spent.host_share))
        around_square = around_square + np.square(spent.host_half_width * spent.host_share)
        power_square = spread_square + around_square
        power_square = np.where(spent.breaks_law, np.maximum(power_square, np.square(BROKEN)), power_square)
        return HalfWidths(
            latency=width,
            latency_own=own,
            thin=thin,
            price=np.sqrt(spent.basis_square),
            energy=np.sqrt(np.square(width) + power_square),
            energy_own=np.sqrt(np.square(own) + own_square + around_square),
            edp=np.sqrt(np.square(2.0 * width) + power_square),
            power=np.sqrt(power_square),
        )
