"""Several chips as one chip whose numbers are arrays, so that a formula for one chip evaluates all.

    hardware.coefficient("tile_rows")      one chip: a number
                                           several: points x 1 numbers, which broadcast against a workload's columns

All properties on which formulas branch (texts, flags, the presence of parts) are equal for these chips. `skeleton`
returns the properties common to all classes, `Architecture.decides` those of one class.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np

from joulemap.physics.record.address import STATIC_POWER, Address, set_numbers
from joulemap.physics.record.configuration import NO_HOST
from joulemap.physics.record.constant import INPUTS
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.record.product import FP32
from joulemap.physics.record.reference import (
    LINK_ACTION,
    STATIC_ACTION,
    ActionKey,
    EnergyReference,
    cycle_action,
    is_of_host,
)
from joulemap.physics.workload import Floats, Integers

QUANTITIES: Final = (
    "unit_count", "clock", "clock_boost", "clock_die", "memory_capacity", "memory_bandwidth", "tdp", "static_power",
)  # fmt: skip
"""Datasheet quantities that formulas use."""

STAND_INS: Final = {"clock_die": "full_clock"}
"""Quantity that a chip may lack -> the property that formulas take in its place."""

PEAKS: Final = ("fp32", "tf32", "bf16", "fp8", "int8")
"""Precisions whose peaks formulas use in addition to the run's precision."""

PEAK_NUMBERS: Final = ("rate", "operations_per_clock", "unit_count", "clock_hz")

MOST_AXES: Final = 8
"""Maximum number of axes of a grid of points."""


def list_numbers(hardware: Hardware, precision: str) -> tuple[tuple[Address, ...], list[float]]:
    """Return the addresses and values of the numbers that formulas may use at a precision, except those of links.

    Chips with the same parts share one tuple of addresses.
    """
    quantities = [(name, one) for name in QUANTITIES if (one := getattr(hardware, name)) is not None]
    peaks = [(name, one) for name in dict.fromkeys((precision, *PEAKS)) if (one := hardware.peaks.get(name))]
    levels, reference = hardware.memory_levels, hardware.reference
    addresses = _address(
        tuple(name for name, _ in quantities),
        tuple(hardware.geometry),
        tuple(hardware.coefficients),
        tuple((level.name, level.bandwidth is not None) for level in levels),
        tuple(name for name, _ in peaks),
        reference.keys,
    )
    numbers: list[float] = [quantity.value for _, quantity in quantities]
    numbers += [quantity.value for quantity in hardware.geometry.values()]
    numbers += [quantity.value for quantity in hardware.coefficients.values()]
    for level in levels:
        numbers += [one.value for one in (level.capacity, level.bandwidth) if one is not None]
    for _, peak in peaks:
        numbers += (peak.rate.value, peak.operations_per_clock, peak.unit_count, peak.clock_hz)
    numbers += reference.prices_fj
    return addresses, numbers


@lru_cache(maxsize=256)
def _address(
    quantities: tuple[str, ...],
    geometry: tuple[str, ...],
    coefficients: tuple[str, ...],
    levels: tuple[tuple[str, bool], ...],
    peaks: tuple[str, ...],
    actions: tuple[tuple[str, str], ...],
) -> tuple[Address, ...]:
    """Return the addresses of a chip's numbers, given the names of its parts.

    The result is cached, because most hardware of a class has the same parts.
    """
    return (
        *(Address("quantity", name) for name in quantities),
        *(Address("geometry", name) for name in geometry),
        *(Address("coefficient", name) for name in coefficients),
        *(
            Address("memory", name, field)
            for name, has_bandwidth in levels
            for field in ("capacity", "bandwidth")[: 1 + has_bandwidth]
        ),
        *(Address("peak", name, field) for name in peaks for field in PEAK_NUMBERS),
        *(Address("price", ".".join(action)) for action in actions),
    )


def skeleton(hardware: Hardware, precision: str, actions: Sequence[ActionKey] | None = None) -> Hashable:
    """Return the properties of a chip on which formulas of any class branch: the parts that it has, without their
    numbers.

    `actions` are the actions of its reference table that formulas may count; by default all.
    """
    reference = hardware.reference
    rows = range(len(reference)) if actions is None else [reference.row(key) for key in actions]
    return (
        hardware.architecture,
        hardware.boundary,
        hardware.host == NO_HOST,
        tuple(getattr(hardware, name) is None for name in QUANTITIES if name not in STAND_INS),
        frozenset(hardware.geometry),
        frozenset(hardware.coefficients) - INPUTS,
        tuple((level.name, level.kind, level.per, level.bandwidth is None) for level in hardware.memory_levels),
        precision in hardware.peaks,
        (hardware.matmul_precision, hardware.product_precision(precision)) if precision == FP32 else "",
        hardware.kernels,
        reference.keys if actions is None else tuple(actions),
        tuple(reference.on_chip[row] for row in rows),
        tuple(reference.on_board[row] for row in rows),
    )


def list_actions(hardware: Hardware, precision: str, *, exchanges: bool) -> tuple[ActionKey, ...]:
    """Return the actions that formulas may count on a chip which runs a whole workload at a precision, in order.

    Others are those of a host that computes operators, clock cycles at other precisions, and, unless the workload
    `exchanges` data with other devices, transfers between devices.
    """
    never = {cycle_action(one) for one in hardware.peaks if one != precision} | (set() if exchanges else {LINK_ACTION})
    return tuple(key for key in hardware.reference.keys if key not in never and not is_of_host(key))


def gather(hardware: Sequence[Hardware], precision: str) -> Hardware:
    """Return chips that differ only in numbers as one chip, whose differing numbers are arrays.

    Its reference table is that of one of the chips; rows that others lack keep their numbers, and no formula may count
    them.
    """
    if len(hardware) == 1:
        return hardware[0]
    base = next((one for one in hardware if one.clock_die is not None), hardware[0])
    listed = [list_numbers(one, precision) for one in hardware]
    if base.clock_die is not None:
        listed = [_complete(one, *numbers) for one, numbers in zip(hardware, listed, strict=True)]
    addresses, _ = listed[0]
    if any(others is not addresses for others, _ in listed):  # only numbers that all have can differ
        columns = [{address: column for column, address in enumerate(others)} for others, _ in listed]
        addresses = tuple(address for address in addresses if all(address in one for one in columns))
        rows = [
            [row[column_of[address]] for address in addresses]
            for column_of, (_, row) in zip(columns, listed, strict=True)
        ]
    else:
        rows = [row for _, row in listed]
    numbers = np.array(rows, dtype=np.float64)
    differing = np.flatnonzero((numbers != numbers[0]).any(axis=0)).tolist()
    varied: dict[Address, Floats] = {addresses[column]: numbers[:, [column]] for column in differing}
    if STATIC_POWER in varied:
        varied[Address("price", ".".join(STATIC_ACTION))] = np.array(
            [[one.reference.prices_fj[one.reference.row(STATIC_ACTION)]] for one in hardware]
        )
    return set_numbers(base, varied)


def _complete(
    hardware: Hardware, addresses: tuple[Address, ...], numbers: list[float]
) -> tuple[tuple[Address, ...], list[float]]:
    """Return a chip's numbers, and those that formulas take where it lacks a quantity of `STAND_INS`."""
    lacking = [name for name in STAND_INS if getattr(hardware, name) is None]
    if not lacking:
        return addresses, numbers
    stand_ins = [getattr(hardware, STAND_INS[name]).value for name in lacking]
    return (*addresses, *(Address("quantity", name) for name in lacking)), [*numbers, *stand_ins]


def find_rows(rows: Integers, table: EnergyReference, own: EnergyReference) -> Integers:
    """Return the rows of a chip's own reference table for rows of the table with which it was evaluated."""
    if table.keys == own.keys:
        return rows
    keys = table.keys
    distinct, index = np.unique(rows, return_inverse=True)
    own_rows: Integers = np.array([own.row(keys[row]) for row in distinct.tolist()], dtype=np.int64)[index]
    return own_rows


def before_points(values: Floats) -> Floats:
    """Return a list of alternatives as an array whose first axis precedes the axes of points and operators."""
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


def decide(condition: Any) -> bool:
    """Return a condition's truth value, which is equal for all hardware evaluated together."""
    return bool(np.asarray(condition).flat[0])


def is_one(number: Floats | float) -> bool:
    """Return whether a factor is 1 everywhere."""
    return bool(np.all(np.equal(number, 1.0)))
