"""Several hardware as one, whose numbers are columns: a formula that is written for one runs for all of them.

    hardware.coefficient("tile_rows")      of one: a number
                                           of several: a number of each, points x 1, which meets a workload's columns

What formulas decide by, texts, truth values and what there is at all, is the same of all of them: `skeleton` says what
that is of any hardware, `Architecture.decides` what it is of a class.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from joulemap.domain.hardware import Hardware
from joulemap.domain.point import Path, set_numbers
from joulemap.domain.reference import STATIC_ACTION
from joulemap.model.workload import Floats

QUANTITIES: Final = (
    "unit_count", "clock", "clock_boost", "clock_die", "memory_capacity", "memory_bandwidth", "tdp", "static_power",
)  # fmt: skip  # fmt: skip
"""Of a datasheet, that formulas ask for."""

PEAKS: Final = ("fp32", "tf32", "bf16", "fp8", "int8")
"""Precisions whose peaks formulas ask for beside that of a run."""

PEAK_NUMBERS: Final = ("rate", "operations_per_clock", "unit_count", "clock_hz")

MOST_AXES: Final = 8
"""Of a grid of hardware."""


def list_numbers(hardware: Hardware, precision: str) -> Mapping[Path, float]:
    """Return the numbers of a hardware that formulas may ask for at a precision, but for those of links."""
    return dict(_numbers(hardware, precision))


def _numbers(hardware: Hardware, precision: str) -> Iterator[tuple[Path, float]]:
    for name in QUANTITIES:
        if (quantity := getattr(hardware, name)) is not None:
            yield (name,), quantity.value
    for kind in ("geometry", "coefficients"):
        for name, quantity in getattr(hardware, kind).items():
            yield (kind, name), quantity.value
    for place, level in enumerate(hardware.memory_levels):
        yield ("memory_levels", place, "capacity"), level.capacity.value
        if level.bandwidth is not None:
            yield ("memory_levels", place, "bandwidth"), level.bandwidth.value
    for name in dict.fromkeys((precision, *PEAKS)):
        if (peak := hardware.peaks.get(name)) is not None:
            yield ("peaks", name, "rate"), peak.rate.value
            for field in PEAK_NUMBERS[1:]:
                yield ("peaks", name, field), getattr(peak, field)
    for action, price in zip(hardware.reference, hardware.reference.prices_fj, strict=True):
        yield ("reference", ".".join(action.key)), price


def skeleton(hardware: Hardware, precision: str) -> Hashable:
    """Return what formulas decide by of any hardware: what it has, whatever the numbers are."""
    reference = hardware.reference
    return (
        hardware.architecture,
        hardware.boundary,
        tuple(getattr(hardware, name) is None for name in QUANTITIES),
        tuple(hardware.geometry),
        tuple(hardware.coefficients),
        tuple((level.name, level.kind, level.per, level.bandwidth is None) for level in hardware.memory_levels),
        precision in hardware.peaks,
        reference.keys,
        reference.on_chip,
        reference.on_board,
    )


def gather(hardware: Sequence[Hardware], precision: str) -> Hardware:
    """Return several hardware of one skeleton as one; one alone as it is."""
    if len(hardware) == 1:
        return hardware[0]
    numbers = [list_numbers(one, precision) for one in hardware]
    varied: dict[Path, Floats] = {}
    for path, first in numbers[0].items():
        if not all(path in one for one in numbers):
            continue
        values = [one[path] for one in numbers]
        if any(value != first for value in values):
            varied[path] = np.array(values, dtype=np.float64)[:, None]
    if ("static_power",) in varied:
        varied["reference", ".".join(STATIC_ACTION)] = np.array(
            [[one.reference.prices_fj[one.reference.keys.index(STATIC_ACTION)]] for one in hardware]
        )
    return set_numbers(hardware[0], varied)


def before_points(values: Floats) -> Floats:
    """Return alternatives as an axis before those of any grid of hardware, and that of operators."""
    return values.reshape(-1, *(1,) * (MOST_AXES + 1))


def drop_axes(column: Floats) -> Floats:
    """Return a column without the axes before its first that has several places."""
    shape, first = column.shape, 0
    while shape[first] == 1 and first < column.ndim - 1:
        first += 1
    return column.reshape(shape[first:])


def merge_axes(column: Floats) -> Floats:
    """Return a column with one place of each axis of points along which nothing differs."""
    for axis in range(column.ndim - 1):
        first = column.take([0], axis=axis)
        if column.shape[axis] > 1 and (column == first).all():
            column = first
    return column


def decide(found: Any) -> bool:
    """Return what is the same of all hardware that are evaluated together."""
    return bool(np.asarray(found).flat[0])


def is_one(number: Floats | float) -> bool:
    """Whether a factor changes nothing."""
    return bool(np.all(np.equal(number, 1.0)))
