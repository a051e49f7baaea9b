"""Addresses: one name for each number of a chip, with a parser, a reader and a writer.

    clock, tdp, static_power …         quantity of the datasheet
    geometry.array_rows                quantity of the class's geometry
    coefficient.dram_efficiency        coefficient of the class's model
    memory.l2.capacity, .bandwidth     number of a memory level
    peak.int8                          rate of a peak; its operations per clock scale with it
    peak.int8.unit_count …             one field of a peak
    link.nvlink.bandwidth …            number of a link
    dram.read                          energy of an action
    gpu.clock                          any of these numbers, for the device `gpu` of a box

Options, answers, sensitivities, designs and boxes use these addresses. The writer replaces numbers and nothing else;
`model.change` also moves the numbers that follow a clock or a unit count.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

import attrs

from joulemap.physics.record.quantity import Quantity
from joulemap.physics.record.reference import FJ_PER_J, LOSS_ACTION, STATIC_ACTION, EnergyReference
from joulemap.system.record import vary

if TYPE_CHECKING:
    from joulemap.physics.record.hardware import Hardware
    from joulemap.physics.record.reference import EnergyAction

SOURCE: Final = "--set"
"""Source of a number set by the user; its basis is `assumed`."""

MAPPINGS: Final = {"geometry": "geometry", "coefficient": "coefficients", "peak": "peaks"}
"""Kind of address -> field of `Hardware` that maps names to numbers of this kind."""

RECORDS: Final = {"memory": "memory_levels", "link": "links"}
"""Kind of address -> field of `Hardware` with a list of named records of this kind."""

USE: Final = "use"
"""Kind of address for assumptions about use and prices; these numbers belong to no chip."""

Make = Callable[..., Any]
"""Function that copies a record with some fields replaced. `attrs.evolve` validates the copy; `vary` does not."""


class Address(NamedTuple):
    """Address of one number of a chip."""

    kind: str
    """Kind: `quantity`, `geometry`, `coefficient`, `memory`, `peak`, `link`, `price` or `use`."""
    name: str
    """Name within the kind: a quantity, an action (`dram.read`), a memory level, a link, a precision or a
    coefficient.
    """
    field: str = ""
    """Field of a memory level, link or peak; empty for the rate of a peak and for all other kinds."""
    device: str = ""
    """Name of a device in a box; empty for a number of a chip, or of the whole box."""

    @classmethod
    def read(cls, text: str) -> Self:
        """Parse the full name of a number, such as `memory.l2.capacity`; the name must not start with a device."""
        kind, dot, rest = text.partition(".")
        if not dot:
            return cls("quantity", text)
        if kind in RECORDS and "." in rest:
            name, _, field = rest.rpartition(".")
            return cls(kind, name, field)
        if kind == "peak":
            name, _, field = rest.partition(".")
            return cls(kind, name, field)
        return cls(kind, rest) if kind in MAPPINGS or kind == USE else cls("price", text)

    @classmethod
    def of(cls, action: EnergyAction) -> Self:
        """Return the address of an action's energy."""
        return cls("price", f"{action.component}.{action.action}")

    @property
    def own(self) -> str:
        """Name without the device."""
        before = "" if self.kind in ("quantity", "price") else f"{self.kind}."
        return f"{before}{self.name}.{self.field}" if self.field else f"{before}{self.name}"

    def __str__(self) -> str:
        """Return the full name."""
        return f"{self.device}.{self.own}" if self.device else self.own


CLOCK: Final = Address("quantity", "clock")
UNIT_COUNT: Final = Address("quantity", "unit_count")
MEMORY_BANDWIDTH: Final = Address("quantity", "memory_bandwidth")
STATIC_POWER: Final = Address("quantity", "static_power")
REGULATOR_LOSS: Final = Address("price", ".".join(LOSS_ACTION))


def find_quantity(hardware: Hardware, address: Address) -> Quantity:
    """Return the quantity at an address; KeyError if the hardware has none there."""
    quantity = _find(hardware, address)
    if not isinstance(quantity, Quantity):
        raise KeyError(f"{hardware.id}: no quantity {address}")
    return quantity


def read_number(hardware: Hardware, address: Address) -> float:
    """Return the number at an address; KeyError if the hardware has none. Energies of actions are in femtojoules."""
    quantity = _find(hardware, address)
    return float(quantity.value if isinstance(quantity, Quantity) else quantity)


def _find(hardware: Hardware, address: Address) -> Any:
    kind, name, field, _ = address
    value: Any = None
    try:
        if kind == "price":
            value = hardware.reference.prices_fj[_find_row(hardware.reference, address)]
        elif kind == "quantity":
            value = getattr(hardware, name)
        elif kind in RECORDS:
            record = next((one for one in getattr(hardware, RECORDS[kind]) if one.name == name), None)
            value = getattr(record, field)
        else:
            value = getattr(hardware, MAPPINGS[kind])[name]
            value = getattr(value, field or "rate") if kind == "peak" else value
        return value if isinstance(value, Quantity) else value + 0
    except (AttributeError, KeyError, TypeError):
        raise KeyError(f"{hardware.id}: no number {address}") from None


def find_action(hardware: Hardware, address: Address) -> EnergyAction:
    """Return the action whose energy is at an address; KeyError if the hardware has none there."""
    return hardware.reference.actions[_find_row(hardware.reference, address)]


def _find_row(reference: EnergyReference, address: Address) -> int:
    component, _, action = address.name.partition(".")
    row = reference.position((component, action))
    if row is None:
        raise KeyError(address)
    return row


def set_numbers(hardware: Hardware, values: Mapping[Address, Any], make: Make = vary) -> Hardware:
    """Return a chip with some numbers replaced; energies of actions are in femtojoules.

    With `vary`, the numbers may be arrays and are not validated. Raises KeyError if the hardware has no such number.
    """
    updates: dict[str, Any] = {}
    rows: dict[int, Any] = {}
    for address, value in values.items():
        _find(hardware, address)
        kind, name, field, _ = address
        if kind == "price":
            rows[_find_row(hardware.reference, address)] = value
        elif kind == "quantity":
            updates[name] = replace_value(getattr(hardware, name), value, make)
        elif kind in RECORDS:
            whole = updates.setdefault(RECORDS[kind], list(getattr(hardware, RECORDS[kind])))
            position = next(index for index, one in enumerate(whole) if one.name == name)
            whole[position] = set_fields(whole[position], {field: value}, make)
        else:
            whole = updates.setdefault(MAPPINGS[kind], dict(getattr(hardware, MAPPINGS[kind])))
            whole[name] = _set_entry(whole[name], field, value, make)
    for field in RECORDS.values():
        if field in updates:
            updates[field] = tuple(updates[field])
    static = hardware.reference.position(STATIC_ACTION)
    if STATIC_POWER.name in updates and static is not None:
        rows.setdefault(static, updates[STATIC_POWER.name].value * FJ_PER_J)
    if rows:
        updates["reference"] = _set_prices(hardware.reference, rows, make)
    return make(hardware, **updates)  # type: ignore[no-any-return]


def replace_value(quantity: Quantity, value: Any, make: Make = attrs.evolve) -> Any:
    """Return a quantity with another value, the basis `assumed` and the source `--set`."""
    return make(quantity, value=value, basis="assumed", source=SOURCE)


def set_fields(record: Any, values: Mapping[str, Any], make: Make = attrs.evolve) -> Any:
    """Return a copy of a record with new values in some fields. A field that holds a quantity keeps its unit."""
    changed: dict[str, Any] = {}
    for field, value in values.items():
        before = getattr(record, field)
        if isinstance(before, Quantity):
            changed[field] = replace_value(before, value, make)
        else:
            changed[field] = round(value) if isinstance(value, float) and isinstance(before, int) else value
    return make(record, **changed) if changed else record


def _set_entry(entry: Any, field: str, value: Any, make: Make) -> Any:
    """Return a copy of a quantity or peak with another value. A new rate of a peak also scales its operations per
    clock.
    """
    if isinstance(entry, Quantity):
        return replace_value(entry, value, make)
    if field:
        return set_fields(entry, {field: value}, make)
    per_clock = entry.operations_per_clock * (value / entry.rate.value)
    return make(entry, rate=replace_value(entry.rate, value, make), operations_per_clock=per_clock)


def _set_prices(reference: EnergyReference, rows: Mapping[int, Any], make: Make) -> EnergyReference:
    """Return a reference table in which some rows, given by index, have other energies in femtojoules.

    With `vary`, only `prices_fj` and `loss_j` change; the rows of the table keep their energies.
    """
    if make is not vary:
        fields = {"low_fj": None, "high_fj": None, "basis": "assumed", "source": SOURCE}
        return reference.with_actions(
            make(reference.actions[row], energy_per_action_fj=price, **fields) for row, price in rows.items()
        )
    prices = tuple(rows.get(row, price) for row, price in enumerate(reference.prices_fj))
    loss = reference.position(LOSS_ACTION)
    return vary(reference, prices_fj=prices, loss_j=0.0 if loss is None else prices[loss] / FJ_PER_J)
