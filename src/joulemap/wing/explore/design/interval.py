"""Half-widths of the intervals of design points, from their totals and the numbers in which they differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set as AbstractSet

import numpy as np

from joulemap.physics.interval.error_scale import (
    DOUBTED,
    OWN_LEVEL,
    SAME_SIZE,
    BasisSpread,
    Doubt,
    DoubtQuantity,
    ErrorScale,
    find_peak,
)
from joulemap.physics.interval.half_width import Errors, Spent, combine_errors
from joulemap.physics.interval.scale import Subject, find_least, find_scale
from joulemap.physics.record.address import CLOCK, MEMORY_BANDWIDTH, SOURCE, STATIC_POWER, Address, find_quantity
from joulemap.physics.record.configuration import BOUNDARY, Configuration
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.record.reference import HOST_ACTION, STATIC_ACTION
from joulemap.physics.record.surrounding import GROWTH_HALF_WIDTH, HOST_HALF_WIDTH
from joulemap.physics.total import PointColumns
from joulemap.physics.workload import Floats


def half_widths(
    points: PointColumns,
    hardware: Hardware,
    configuration: Configuration,
    doubt: Doubt,
    *,
    work: str = "model",
    varied: AbstractSet[Address] = frozenset(),
    left_out: tuple[float | None, float | None] = (None, None),
) -> tuple[Floats, Floats]:
    """Return half-widths of 80 % intervals for log latency and log energy of each point; 0 for a refused point.

    `varied` contains the hardware numbers in which the points differ. `left_out` contains the calibration's errors of
    latency and energy on held-out models; None without a calibration. Raises ValueError if no errors are known.
    """
    sizes = _find_sizes(points, hardware, configuration)
    least = np.sort([one.least_ops_per_s / SAME_SIZE for one in doubt.scales])
    most = np.sort([one.most_ops_per_s * SAME_SIZE for one in doubt.scales])
    cells = np.stack([np.searchsorted(least, sizes, "right"), np.searchsorted(most, sizes, "left")])
    _, firsts, places = np.unique(cells, axis=1, return_index=True, return_inverse=True)
    widths = np.zeros((2, len(points)))
    for index, first in enumerate(firsts.tolist()):
        scales = [
            find_scale_of(doubt, quantity, hardware, configuration, work, float(sizes[first])) for quantity in DOUBTED
        ]
        pair = _combine(points, hardware, configuration, doubt, scales, varied, left_out)
        widths = np.where(places.ravel() == index, pair, widths)
    return widths[0], widths[1]


def _find_sizes(points: PointColumns, hardware: Hardware, configuration: Configuration) -> Floats:
    """Return the peak of each point at the chip's fastest precision, in operations per second."""
    fastest = max(peak.rate.value for peak in hardware.peaks.values())
    return (
        fastest * points.peak_ops_per_s / hardware.product_rate(configuration.precision, configuration.weight_precision)
    )


def _combine(
    points: PointColumns,
    hardware: Hardware,
    configuration: Configuration,
    doubt: Doubt,
    scales: Sequence[ErrorScale],
    varied: AbstractSet[Address],
    left_out: tuple[float | None, float | None],
) -> tuple[Floats, Floats]:
    """Return half-widths of latency and energy, given the error scales of latency and power."""
    spreads = {one.number_basis: one for one in doubt.spreads}
    beyond = dict(zip(spreads, doubt.own_half_widths(), strict=True))
    own_number = _own_widths(hardware, configuration, {name: two for name, (_, two) in beyond.items()}, varied)
    total = np.maximum(points.energy_fj, 1).astype(np.float64)
    parts, owned, static = ({name: np.zeros(len(points)) for name in spreads} for _ in range(3))
    for key, spent in points.spent_fj.items():
        parts[key.basis] += spent
        owned[key.basis] += spent * key.is_own
        static[key.basis] += spent * (key.common_category == "static")
    nothing = np.zeros(len(points))
    host_fj: Floats = np.asarray(hardware.host_w * points.interval_fs, dtype=np.float64)  # W = fJ / fs
    ranged = {} if STATIC_POWER in varied else _widen(hardware, spreads, static, host_fj)
    around = (GROWTH_HALF_WIDTH, HOST_HALF_WIDTH) if BOUNDARY[hardware.boundary].is_at_wall else ()
    growth_width, host_width = [nothing + hardware.coefficient(name) for name in around] or [nothing, nothing]
    least = find_least(doubt.floors, _describe_subject(hardware, configuration), OWN_LEVEL)
    latency, power = (
        _repeat(scale, held_out, least, len(points)) for scale, held_out in zip(scales, left_out, strict=True)
    )
    combined = combine_errors(
        latency,
        power,
        Spent(
            latency_fs=np.maximum(points.latency_fs, 1).astype(np.float64),
            bound_fs=points.share_fs.astype(np.float64),
            own_number=np.broadcast_to(np.array(own_number), points.share_fs.shape),
            basis_square=sum(
                (
                    np.square((spreads[name].half_width.value * part + ranged.get(name, 0.0)) / total)
                    for name, part in parts.items()
                ),
                nothing,
            ),
            own_square=sum((np.square(beyond[name][0] * part / total) for name, part in owned.items()), nothing),
            has_load=np.full(
                len(points), any(load.covers == "board" and load.power.basis != "assumed" for load in hardware.loads)
            ),
            host_share=host_fj / total,
            growth_half_width=growth_width,
            host_half_width=host_width,
        ),
    )
    is_there = points.refusal == ""
    return np.where(is_there, combined.latency, 0.0), np.where(is_there, combined.energy, 0.0)


def _widen(
    hardware: Hardware, spreads: Mapping[str, BasisSpread], static: Mapping[str, Floats], host_fj: Floats
) -> dict[str, Floats]:
    """Return basis -> increase of the energy's half-width due to the stated range of static power, in femtojoules."""
    reference = hardware.reference
    own, host = (reference.position(key) for key in (STATIC_ACTION, HOST_ACTION))
    assert own is not None
    row = reference.actions[own]
    more = row.range_half_width - spreads[row.basis].half_width.value
    if row.range_half_width == 0.0 or more <= 0.0:
        return {}
    is_shared = host is not None and reference.actions[host].basis == row.basis
    return {row.basis: more * (static[row.basis] - host_fj * is_shared)}


def _repeat(scale: ErrorScale, held_out: float | None, least: float, count: int) -> Errors:
    """Return an error scale as arrays of `count` equal points, with the held-out error and the least error."""
    numbers = (scale.half_width, scale.level, scale.group_count, np.nan if held_out is None else held_out, least)
    half_width, level, group_count, held_outs, leasts = (np.full(count, float(one)) for one in numbers)
    return Errors(half_width=half_width, level=level, group_count=group_count, held_out=held_outs, least=leasts)


def find_scale_of(
    doubt: Doubt, quantity: DoubtQuantity, hardware: Hardware, configuration: Configuration, work: str, size: float
) -> ErrorScale:
    """Return the error scale of a configuration on a chip with a peak of `size` operations per second.

    Raises ValueError if no errors are known.
    """
    subject = _describe_subject(hardware, configuration, work, size)
    scale = find_scale(doubt.scales, quantity, subject, doubt.floors)
    if scale is None:
        raise ValueError(f"the error of {quantity} of {hardware.id} is unknown")
    return scale


def _describe_subject(
    hardware: Hardware, configuration: Configuration, work: str = "model", size: float | None = None
) -> Subject:
    """Return the key of an error lookup: a configuration on a chip with a peak of `size` operations per second."""
    return Subject(
        work=work,
        architecture=hardware.architecture,
        runtime=configuration.runtime,
        precision=configuration.precision,
        hardware=hardware.id,
        ops_per_s=size,
    )


def _own_widths(
    hardware: Hardware, configuration: Configuration, beyond: dict[str, float], varied: AbstractSet[Address]
) -> tuple[float, float, float]:
    """Return half-widths due to uncertain hardware numbers, for time bound by (compute, memory, launch)."""
    precision = find_peak(hardware.architecture, configuration.precision)

    def width(address: Address) -> float:
        quantity = find_quantity(hardware, address)
        is_given = quantity.source.endswith(SOURCE) or any(one[:2] == address[:2] for one in varied)
        return 0.0 if is_given else beyond[quantity.basis]

    clock = width(CLOCK)
    compute = max(clock, width(Address("peak", precision))) if precision and precision in hardware.peaks else clock
    return compute, width(MEMORY_BANDWIDTH), clock
