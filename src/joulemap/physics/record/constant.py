"""Named constants of a chip: energies per action, quantities, geometry and coefficients."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final, Self

from joulemap.physics.record.address import Address
from joulemap.physics.record.coefficient import check_coefficient
from joulemap.physics.record.configuration import BUSY_SHARE, CLOCK_ENERGY, LIMIT_SHARE, STANDBY_ENERGY
from joulemap.physics.record.reference import AROUND, BOARD, FJ_PER_J, HOST, HOST_ACTION, LOSS_ACTION, STATIC_ACTION
from joulemap.physics.record.surrounding import KEPT
from joulemap.physics.record.target import changes_word
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from joulemap.physics.record.hardware import Hardware
    from joulemap.physics.record.reference import EnergyAction


KINDS: Final = ("price", "quantity", "geometry", "memory", "peak", "coefficient", "link", "use")
"""Kinds of constants, in order: energy per action, datasheet quantity, class-specific geometry, capacity or bandwidth
of a memory level, peak rate, and model coefficient. The last two are links between devices of a box, and use or power
assumptions common to all hardware.
"""

STATED: Final = ("quantity", "geometry", "memory", "peak", "coefficient")
"""Kinds of constants that a chip's description states; the rest are energies per action, links and use."""

INPUTS: Final = frozenset(("chip_energy", LIMIT_SHARE, BUSY_SHARE, CLOCK_ENERGY, STANDBY_ENERGY, *KEPT))
"""Coefficients that affect only energies per action. Answers vary these energies instead of the coefficients."""

QUANTITIES: Final = (
    "unit_count", "clock", "clock_boost", "clock_die", "memory_capacity", "memory_bandwidth", "tdp", "static_power",
    "idle_power", "price_purchase", "price_cloud", "host_share",
)  # fmt: skip
"""Quantities that directly affect an answer. Process node is omitted because it only sets energies per action, which
are constants themselves. Other clocks and data rates are shown but not used.
"""

PREFIXES: Final = STATED[1:]
"""Kinds that may be omitted from the name of a constant if the rest is unambiguous: `array_rows` for
`geometry.array_rows`.
"""

UNATTRIBUTED: Final = f"{BOARD}.unattributed_"
"""Start of the names of unattributed energies. These are inferred from the power limit and belong to no modelled
action.
"""

STATIC: Final = "static_power"
LOSS: Final = ".".join(LOSS_ACTION)

PROPORTIONAL: Final = frozenset(map(".".join, (LOSS_ACTION, *AROUND)))
"""Actions whose count is the energy of other actions in joules; their energies per action are thus ratios."""

OUTSIDE_LIMIT: Final = frozenset(map(".".join, (HOST_ACTION, *AROUND)))
"""Actions whose energy does not count toward a board's power limit."""

SHORT: Final = {
    "units": "unit_count",
    "rows": "geometry.array_rows",
    "columns": "geometry.array_columns",
    "dram.bandwidth": "memory_bandwidth",
    "dram.capacity": "memory_capacity",
}
"""Short constant name used by designs -> full name."""

_ALIASES: Final = {
    **SHORT,
    ".".join(STATIC_ACTION): STATIC,
    "regulator_loss": LOSS,
    "coefficient.regulator_loss": LOSS,
}
"""Constant alias -> name.

Static energy per second is static power; regulator loss per joule is the loss coefficient.
"""


@frozen(kw_only=True)
class Constant:
    """One number that a prediction depends on."""

    address: Address
    value: float
    """Value in `unit`."""
    unit: str
    """SI unit; an energy per action is in J, W if counted per second, or 1 if counted per joule."""
    per: str = ""
    """Unit of one count of an action, such as `MAC` or `B`; empty for other kinds and for counts in seconds or joules.
    """
    meaning: str = ""
    """Meaning in one line; empty if the architecture class states none."""
    low: float | None = None
    """Lower end of the plausible range; None if unknown."""
    high: float | None = None
    basis: str
    source: str

    def __attrs_post_init__(self) -> None:
        """Raise ValueError for an unknown kind."""
        if self.kind not in KINDS:
            raise ValueError(f"{self.address}: the kind is {self.kind!r}, expected one of {', '.join(KINDS)}")

    @cached_property
    def name(self) -> str:
        """Name, such as `dram.read` or `peak.bf16`; prefixed with the device in a box, as in `gpu.clock`."""
        return str(self.address)

    @cached_property
    def own(self) -> str:
        """Name without the device prefix."""
        return self.address.own

    @property
    def kind(self) -> str:
        """Kind, one of `KINDS`."""
        return self.address.kind

    @property
    def of(self) -> str:
        """Device of a box that the constant belongs to; empty outside a box."""
        return self.address.device

    @property
    def is_linear(self) -> bool:
        """True if energy is proportional to the constant at a fixed clock: energies per action and static power."""
        return (self.kind == "price" and self.own not in PROPORTIONAL) or self.own == STATIC

    @property
    def is_whole(self) -> bool:
        """True if the constant is a count, so that only whole numbers are valid."""
        return self.own == "unit_count" or (self.kind == "geometry" and is_count(self.address.name))


def is_count(geometry: str) -> bool:
    """Return True for a geometry that only whole numbers can have, such as rows, and False for a share or a ratio."""
    return not geometry.endswith(("_share", "_ratio"))


def list_constants(hardware: Hardware) -> dict[str, Constant]:
    """Return the constants of a chip as used in a run, by name: energies, quantities, geometry, memory levels, peaks
    and coefficients.

    Energies of operators that a host computes are excluded. At the boundary `chip`, board energies are excluded, except
    the part that counts toward the power limit.
    """
    others = {STATIC_ACTION} | {one.key for one in hardware.reference if one.category == HOST} - {HOST_ACTION}
    constants = [_price(action) for action in hardware.reference if action.key not in others]
    static = next((_price(action) for action in hardware.reference if action.key == STATIC_ACTION), None)
    for name, quantity in hardware.quantities():
        address = Address.read(name)
        if address.kind == "quantity" and name not in QUANTITIES:
            continue
        if address.kind == "coefficient" and address.name in INPUTS:
            continue
        if name == "clock_boost" and hardware.full_clock is not quantity:
            continue
        if address.kind in STATED and name not in _ALIASES:
            constants.append(
                Constant(
                    address=address,
                    value=quantity.value,
                    low=static.low if static is not None and name == STATIC else None,
                    high=static.high if static is not None and name == STATIC else None,
                    unit=quantity.unit,
                    basis=quantity.basis,
                    source=quantity.source,
                    meaning=quantity.note if address.kind == "coefficient" else "",
                )
            )
    return {one.name: one for one in constants}


def _price(action: EnergyAction) -> Constant:
    def joules(energy_fj: float | None) -> float | None:
        return None if energy_fj is None else energy_fj / FJ_PER_J

    return Constant(
        address=Address.of(action),
        value=action.energy_per_action_fj / FJ_PER_J,
        unit={"s": "W", "J": "1"}.get(action.per, "J"),
        per="" if action.per in ("s", "J") else action.per,
        low=joules(action.low_fj),
        high=joules(action.high_fj),
        basis=action.basis,
        source=action.source,
        meaning=action.count_formula,
    )


def match_names(written: str, constants: Mapping[str, Constant]) -> list[str]:
    """Return the full names of all constants that a written name means; a full name takes precedence over one without
    its kind.

    In a box, a name without a device matches the constants of this name on all devices.
    """
    matches = _match(written, constants.values())
    devices = dict.fromkeys(one.of for one in constants.values() if one.of)
    named = [device for device in devices if written.startswith(f"{device}.")]
    for device in () if matches else named or devices:
        mine = [one for one in constants.values() if one.of == device]
        matches += _match(written.removeprefix(f"{device}."), mine, device)
    return [one.name for one in matches]


def _match(written: str, constants: Iterable[Constant], device: str = "") -> list[Constant]:
    """Return the constants of one device with this name, in full or else without its kind; an empty device is the
    box.
    """
    name = _ALIASES.get(written, written).removeprefix("energy.")
    mine = [one for one in constants if one.of == device]
    exact = [one for one in mine if one.own == name]
    return exact or [one for one in mine if one.kind in PREFIXES and one.own.partition(".")[2] == name]


@frozen(kw_only=True)
class Change:
    """One constant of a chip, as set by the user."""

    address: Address
    value: float
    """New value in `unit`."""
    before: float
    """Original value."""
    unit: str

    @classmethod
    def of(cls, constant: Constant, value: float) -> Self:
        """Return the change of a constant to a value."""
        return cls(address=constant.address, value=value, before=constant.value, unit=constant.unit)

    @property
    def name(self) -> str:
        """Name of the constant."""
        return str(self.address)


def check_value(constant: Constant, value: float) -> None:
    """Raise ValueError for a value outside the valid range of a constant."""
    if constant.kind == "coefficient":
        check_coefficient(constant.address.name, value)
    if value < 0.0 or (value == 0.0 and constant.kind not in ("price", "coefficient")):
        raise ValueError(f"{value:g} is not {'at least' if constant.kind in ('price', 'coefficient') else 'above'} 0")
    if constant.is_whole and value != int(value):
        raise ValueError(f"{value:g} is not a whole number")


def word_changes(changes: Sequence[Change], name: str = "") -> str:
    """Return the text that changed constants and a new name add to the digest of a chip."""
    return changes_word(((one.name, one.value) for one in changes), name)
