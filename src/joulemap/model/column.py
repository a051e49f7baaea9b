"""Several chips as one whose numbers are columns, so that a formula for one chip evaluates all.

    hardware.coefficient("tile_rows")      one chip: a number
                                           several: points x 1 numbers, which broadcast against a workload's columns

All properties on which formulas branch (texts, flags, the presence of parts) are equal for these chips. `skeleton`
returns these for any hardware, `Architecture.decides` those of a class.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np

from joulemap.domain.address import STATIC_POWER, Address, set_numbers
from joulemap.domain.configuration import NO_HOST
from joulemap.domain.hardware import Hardware
from joulemap.domain.reference import STATIC_ACTION
from joulemap.model.workload import Floats

QUANTITIES: Final = (
    "unit_count", "clock", "clock_boost", "clock_die", "memory_capacity", "memory_bandwidth", "tdp", "static_power",
)  # fmt: skip  # fmt: skip
"""Datasheet quantities that formulas use."""

PEAKS: Final = ("fp32", "tf32", "bf16", "fp8", "int8")
"""Precisions whose peaks formulas use in addition to the run's precision."""

PEAK_NUMBERS: Final = ("rate", "operations_per_clock", "unit_count", "clock_hz")

MOST_AXES: Final = 8
"""Maximum axes of a grid of hardware."""


def list_numbers(hardware: Hardware, precision: str) -> Mapping[Address, float]:
    """Return the numbers of a chip that formulas may use at a precision, except those of links."""
    return dict(_numbers(hardware, precision))


def _numbers(hardware: Hardware, precision: str) -> Iterator[tuple[Address, float]]:
    for name in QUANTITIES:
        if (quantity := getattr(hardware, name)) is not None:
            yield Address("quantity", name), quantity.value
    for kind, quantities in (("geometry", hardware.geometry), ("coefficient", hardware.coefficients)):
        for address, quantity in zip(_address(kind, tuple(quantities)), quantities.values(), strict=True):
            yield address, quantity.value
    for level in hardware.memory_levels:
        yield Address("memory", level.name, "capacity"), level.capacity.value
        if level.bandwidth is not None:
            yield Address("memory", level.name, "bandwidth"), level.bandwidth.value
    for name in dict.fromkeys((precision, *PEAKS)):
        if (peak := hardware.peaks.get(name)) is not None:
            yield Address("peak", name, "rate"), peak.rate.value
            for field in PEAK_NUMBERS[1:]:
                yield Address("peak", name, field), getattr(peak, field)
    names = tuple(map(".".join, hardware.reference.keys))
    yield from zip(_address("price", names), hardware.reference.prices_fj, strict=True)


@lru_cache(maxsize=256)
def _address(kind: str, names: tuple[str, ...]) -> tuple[Address, ...]:
    """Return the addresses of a kind's names, cached because most hardware of a class has the same names."""
    return tuple(Address(kind, name) for name in names)


def skeleton(hardware: Hardware, precision: str) -> Hashable:
    """Return all properties on which formulas branch, for any hardware: its components, not their numbers."""
    reference = hardware.reference
    return (
        hardware.architecture,
        hardware.boundary,
        hardware.host == NO_HOST,
        tuple(getattr(hardware, name) is None for name in QUANTITIES),
        tuple(hardware.geometry),
        tuple(hardware.coefficients),
        tuple((level.name, level.kind, level.per, level.bandwidth is None) for level in hardware.memory_levels),
        precision in hardware.peaks,
        reference.keys,
        reference.on_chip,
        reference.on_board,
        reference.around,
    )


def gather(hardware: Sequence[Hardware], precision: str) -> Hardware:
    """Return chips that differ only in numbers as one vectorized chip, cached."""
    if len(hardware) == 1:
        return hardware[0]
    numbers = [list_numbers(one, precision) for one in hardware]
    varied: dict[Address, Floats] = {}
    for address, first in numbers[0].items():
        if not all(address in one for one in numbers):
            continue
        values = [one[address] for one in numbers]
        if any(value != first for value in values):
            varied[address] = np.array(values, dtype=np.float64)[:, None]
    if STATIC_POWER in varied:
        varied[Address("price", ".".join(STATIC_ACTION))] = np.array(
            [[one.reference.prices_fj[one.reference.keys.index(STATIC_ACTION)]] for one in hardware]
        )
    return set_numbers(hardware[0], varied)


def before_points(values: Floats) -> Floats:
    """Return alternatives on an axis before the axes of any hardware grid and the axis of operators."""
    return values.reshape(-1, *(1,) * (MOST_AXES + 1))


def drop_axes(column: Floats) -> Floats:
    """Return a column without leading axes of length 1."""
    shape, first = column.shape, 0
    while shape[first] == 1 and first < column.ndim - 1:
        first += 1
    return column.reshape(shape[first:])


def merge_axes(column: Floats) -> Floats:
    """Return a column with each axis of points reduced to length 1 if its values are equal along that axis."""
    for axis in range(column.ndim - 1):
        first = column.take([0], axis=axis)
        if column.shape[axis] > 1 and (column == first).all():
            column = first
    return column


def decide(found: Any) -> bool:
    """Return the truth value that all hardware evaluated together share."""
    return bool(np.asarray(found).flat[0])


def is_one(number: Floats | float) -> bool:
    """Return whether a factor is 1 everywhere."""
    return bool(np.all(np.equal(number, 1.0)))
