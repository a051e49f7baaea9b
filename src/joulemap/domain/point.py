"""Points: versions of a hardware with different numbers, either one record or arrays of many.

    ("clock",), ("tdp",), …                                a quantity; static power is ("static_power",)
    ("geometry", NAME), ("coefficients", NAME)             entry of a mapping
    ("memory_levels", 1, "capacity" or "bandwidth")        of a level, nearest to the units first
    ("peaks", "int8")                                      a rate; operations per clock scale with it
    ("peaks", "int8", "unit_count"), …                     one field of a peak
    ("reference", "dram.read")                             energy of an action in femtojoules

Setting a number changes nothing else: to vary a clock, also vary the peaks that follow from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import attrs

from joulemap.domain.change import SOURCE
from joulemap.domain.quantity import Quantity
from joulemap.domain.reference import FJ_PER_J, LOSS_ACTION, STATIC_ACTION, EnergyReference
from joulemap.domain.target import changes_word, extend_digest
from joulemap.system.record import vary

if TYPE_CHECKING:
    from joulemap.domain.hardware import Hardware

Path = tuple[str | int, ...]
"""Path of a number in a hardware."""

Make = Callable[..., Any]
"""Function that returns a record with some fields replaced: `attrs.evolve`, which validates, or `vary`."""


def read_number(hardware: Hardware, path: Path) -> float:
    """Return the number at a path; KeyError if the hardware has none there."""
    found = _read(hardware, path)
    return float(found)


def _read(hardware: Hardware, path: Path) -> Any:
    record: Any = hardware
    try:
        if path[0] == "reference":
            return hardware.reference.actions[_row(hardware.reference, path)].energy_per_action_fj
        for step in path:
            record = getattr(record, step) if attrs.has(type(record)) else record[step]  # type: ignore[arg-type]
        if path[0] == "peaks" and len(path) == 2:
            record = record.rate
        return record.value if isinstance(record, Quantity) else record + 0
    except (AttributeError, IndexError, KeyError, TypeError):
        raise KeyError(f"{hardware.id}: no number {'.'.join(map(str, path))}") from None


def point_hardware(hardware: Hardware, varied: Mapping[Path, Any], index: int) -> Hardware:
    """Return the record of one point; `varied` maps each path to an array with one number per point.

    Raises ValueError if numbers contradict each other, KeyError if the hardware has no such number.
    """
    values = {path: float(numbers[index]) for path, numbers in varied.items()}
    if not values:
        return hardware
    told = ((".".join(map(str, path)), value) for path, value in sorted(values.items(), key=str))
    digest = extend_digest(hardware.digest, changes_word(told))
    found = set_numbers(hardware, values, attrs.evolve)
    return attrs.evolve(found, digest=digest, described_digest=hardware.described_digest or hardware.digest)


def set_numbers(hardware: Hardware, values: Mapping[Path, Any], make: Make = vary) -> Hardware:
    """Return a hardware with replaced numbers; with `vary`, they may be arrays and are not validated.

    Raises KeyError if the hardware has no such number.
    """
    updates: dict[str, Any] = {}
    rows: dict[int, Any] = {}
    for path, value in values.items():
        _read(hardware, path)
        name = str(path[0])
        if name == "reference":
            rows[_row(hardware.reference, path)] = value
        elif len(path) == 1:
            updates[name] = _set(getattr(hardware, name), value, make)
        else:
            before = updates.get(name, getattr(hardware, name))
            updates[name] = _set_in(before, path[1:], value, make)
    static = hardware.reference.position(STATIC_ACTION)
    if "static_power" in updates and static is not None:
        rows.setdefault(static, updates["static_power"].value * FJ_PER_J)
    if rows:
        updates["reference"] = _price(hardware.reference, rows, make)
    return make(hardware, **updates)  # type: ignore[no-any-return]


def _row(reference: EnergyReference, path: Path) -> int:
    component, _, action = str(path[1]).partition(".")
    found = reference.position((component, action))
    if found is None:
        raise KeyError(path)
    return found


def _set(quantity: Quantity, value: Any, make: Make) -> Any:
    return make(quantity, value=value, basis="assumed", source=SOURCE)


def _set_in(whole: Any, path: Path, value: Any, make: Make) -> Any:
    """Return a mapping, levels, links or a peak with the number at the remaining path replaced."""
    step, rest = path[0], path[1:]
    if isinstance(whole, tuple):
        return tuple(_set_in(one, rest, value, make) if place == step else one for place, one in enumerate(whole))
    if isinstance(whole, Mapping):
        one = whole[step]
        if rest:
            return {**whole, step: _set_in(one, rest, value, make)}
        if isinstance(one, Quantity):
            return {**whole, step: _set(one, value, make)}
        per_clock = one.operations_per_clock * (value / one.rate.value)
        return {**whole, step: make(one, rate=_set(one.rate, value, make), operations_per_clock=per_clock)}
    before = getattr(whole, str(step))
    if isinstance(before, Quantity):
        return make(whole, **{str(step): _set(before, value, make)})
    return make(whole, **{str(step): round(value) if isinstance(value, float) and isinstance(before, int) else value})


def _price(reference: EnergyReference, rows: Mapping[int, Any], make: Make) -> EnergyReference:
    """Return a reference table with replaced energies; with arrays, only its columns change and its rows stay."""
    if make is not vary:
        told = {"low_fj": None, "high_fj": None, "basis": "assumed", "source": SOURCE}
        return reference.with_actions(
            make(reference.actions[place], energy_per_action_fj=price, **told) for place, price in rows.items()
        )
    prices = tuple(rows.get(place, price) for place, price in enumerate(reference.prices_fj))
    loss = reference.position(LOSS_ACTION)
    return vary(reference, prices_fj=prices, loss_j=0.0 if loss is None else prices[loss] / FJ_PER_J)
