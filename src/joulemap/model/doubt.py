"""Half-widths of the intervals of many points at once, as `totals_between` of the store gives them for a run.

    latency  ‖errors of its group, own numbers‖          own numbers: those that bound each part of the latency
    price    ‖parts of one basis summed, separate bases, static energy with the time‖
    energy   ‖E, growth (1 - host's share), host (host's share)‖      the last two at the boundary system
    E        ((n (errors^2 + own prices^2) + m price^2) / (n + m))^(1/2)      n groups of errors, m = FULL_GROUPS

Errors of other hardware do not include the uncertainty of this hardware's own numbers, which is added. Values that a
question sets are taken as exact. docs/doubt.md states the source of the numbers and their measured coverage.
"""

from __future__ import annotations

from collections.abc import Sequence, Set as AbstractSet
from typing import Final

import attrs
import numpy as np

from joulemap.domain.change import SOURCE
from joulemap.domain.configuration import SYSTEM, Configuration
from joulemap.domain.doubt import FULL_GROUPS, MEASURED_CLASSES, SAME_SIZE, UNMEASURED, Doubt, ErrorScale, find_peak
from joulemap.domain.hardware import Hardware
from joulemap.domain.point import Path
from joulemap.domain.surrounding import GROWTH_HALF_WIDTH, HOST_HALF_WIDTH
from joulemap.domain.workload import DECOMPOSITION
from joulemap.model.total import PointColumns
from joulemap.model.workload import Floats

OWN_LEVEL: Final = 6
"""Error level of measurements on the hardware itself."""

CLASS_LEVEL: Final = 2
"""Minimum error level of measurements on the hardware's own class."""


def half_widths(
    points: PointColumns,
    hardware: Hardware,
    configuration: Configuration,
    doubt: Doubt,
    *,
    work: str = "model",
    varied: AbstractSet[Path] = frozenset(),
    left_out: tuple[float | None, float | None] = (None, None),
) -> tuple[Floats, Floats]:
    """Return half-widths of 80 % intervals for log latency and log energy of each point; 0 for a refused point.

    `varied` holds the hardware numbers in which the points differ. `left_out` holds the calibration's errors of latency
    and energy on held-out models; None without a calibration. Raises ValueError if no errors are known.
    """
    sizes = _find_sizes(points, hardware, configuration)
    least = np.sort([one.least_ops_per_s / SAME_SIZE for one in doubt.scales])
    most = np.sort([one.most_ops_per_s * SAME_SIZE for one in doubt.scales])
    cells = np.stack([np.searchsorted(least, sizes, "right"), np.searchsorted(most, sizes, "left")])
    _, firsts, places = np.unique(cells, axis=1, return_index=True, return_inverse=True)
    widths = np.zeros((2, len(points)))
    for place, first in enumerate(firsts.tolist()):
        scales = [
            _find_scale(doubt, quantity, hardware, configuration, work, float(sizes[first]))
            for quantity in ("latency", "energy")
        ]
        found = _combine(points, hardware, configuration, doubt, scales, varied, left_out)
        widths = np.where(places.ravel() == place, found, widths)
    return widths[0], widths[1]


def _find_sizes(points: PointColumns, hardware: Hardware, configuration: Configuration) -> Floats:
    """Return the peak of each point at its fastest precision; all peaks of a chip scale alike with units and clock."""
    fastest = max(peak.rate.value for peak in hardware.peaks.values())
    return fastest * points.peak_ops_per_s / hardware.peaks[configuration.precision].rate.value


def _combine(
    points: PointColumns,
    hardware: Hardware,
    configuration: Configuration,
    doubt: Doubt,
    scales: Sequence[ErrorScale],
    varied: AbstractSet[Path],
    left_out: tuple[float | None, float | None],
) -> tuple[Floats, Floats]:
    """Return half-widths of latency and energy, given the error scales of both."""
    latency_off, energy_off = left_out
    latency, energy = scales
    spreads = dict(zip((one.number_basis for one in doubt.spreads), doubt.spreads, strict=True))
    beyond = dict(zip(spreads, doubt.own_half_widths(), strict=True))
    whole = np.maximum(points.latency_fs, 1).astype(np.float64)
    own = np.zeros(len(points))
    if latency_off is None and latency.level != OWN_LEVEL:
        widths = np.array(
            _own_widths(hardware, configuration, {name: two for name, (_, two) in beyond.items()}, varied)
        )
        own = np.sqrt(np.square(points.share_fs * widths).sum(axis=1)) / whole
    latency_width = np.hypot(latency.half_width if latency_off is None else latency_off, own)

    total = np.maximum(points.energy_fj, 1).astype(np.float64)
    parts, owned, static = ({name: np.zeros(len(points)) for name in spreads} for _ in range(3))
    for key, spent in points.spent_fj.items():
        parts[key.basis] += spent
        owned[key.basis] += spent * key.is_own
        static[key.basis] += spent * (key.common_category == "static")
    basis_square = sum(np.square(spreads[name].half_width.value * part / total) for name, part in parts.items())
    own_square = sum(np.square(beyond[name][0] * part / total) for name, part in owned.items())
    static_share = sum(static.values(), np.zeros(len(points))) / total
    price_square = basis_square + np.square(static_share * latency_width)
    if energy_off is not None:
        energy_width = np.full(len(points), energy_off)
    elif energy.level < CLASS_LEVEL:
        has_load = any(load.covers == "board" for load in hardware.loads)
        energy_width = np.sqrt(price_square + (0.0 if has_load else energy.half_width**2))
    else:
        own_energy = 0.0 if energy.level == OWN_LEVEL else own_square + np.square(static_share * own)
        errors = energy.group_count * (energy.half_width**2 + own_energy)
        energy_width = np.sqrt((errors + FULL_GROUPS * price_square) / (energy.group_count + FULL_GROUPS))
    if hardware.boundary == SYSTEM:
        growth, host = (hardware.coefficient(name) for name in (GROWTH_HALF_WIDTH, HOST_HALF_WIDTH))
        hosted = hardware.host_w * points.interval_fs / total  # W = fJ / fs
        energy_width = np.sqrt(np.square(energy_width) + np.square(growth * (1.0 - hosted)) + np.square(host * hosted))
    is_there = points.refusal == ""
    return np.where(is_there, latency_width, 0.0), np.where(is_there, energy_width, 0.0)


def _find_scale(
    doubt: Doubt, quantity: str, hardware: Hardware, configuration: Configuration, work: str, size: float
) -> ErrorScale:
    """Return the error scale of the finest group of measurements that covers a configuration on a chip of this peak."""
    runtime = configuration.runtime
    if runtime == "fused" and hardware.architecture not in ("cpu", "gpu"):
        runtime = "engine"
    asked = {
        "work": work,
        "architecture": hardware.architecture,
        "runtime": runtime,
        "precision": configuration.precision,
        "hardware": hardware.id,
    }
    found = [
        one
        for one in doubt.scales
        if one.quantity == quantity
        and all(getattr(one, name) in ("", text) for name, text in asked.items())
        and one.is_of_size(size)
    ]
    if not found:
        raise ValueError(f"nothing is known of errors of {quantity} of {hardware.id}")
    finest = max(found, key=lambda one: one.level)
    is_new = work == DECOMPOSITION and finest.level <= CLASS_LEVEL
    is_known = finest.level == OWN_LEVEL or hardware.architecture in MEASURED_CLASSES
    if not is_new and (quantity != "latency" or is_known):
        return finest
    return attrs.evolve(finest, half_width=max(finest.half_width, UNMEASURED))


def _own_widths(
    hardware: Hardware, configuration: Configuration, beyond: dict[str, float], varied: AbstractSet[Path]
) -> tuple[float, float, float]:
    """Return half-widths from the hardware's own numbers for time bound by (compute, memory, launch)."""
    precision = find_peak(hardware.architecture, configuration.precision)

    def width(path: Path) -> float:
        quantity = hardware.peaks[str(path[1])].rate if path[0] == "peaks" else getattr(hardware, str(path[0]))
        is_given = quantity.source.endswith(SOURCE) or any(one[: len(path)] == path for one in varied)
        return 0.0 if is_given else beyond[quantity.basis]

    clock = width(("clock",))
    compute = max(clock, width(("peaks", precision))) if precision and precision in hardware.peaks else clock
    return compute, width(("memory_bandwidth",)), clock
