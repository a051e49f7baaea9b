"""The energy reference table: what each action of a hardware costs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import attrs

from joulemap.domain.quantity import BASES, Quantity
from joulemap.system.record import frozen

FJ_PER_J: Final = 1e15

PARTS: Final = ("compute", "memory", "control", "static")
"""The four parts that every ledger line belongs to."""

COMMON_CATEGORIES: Final = (
    "compute",
    "register",
    "unit_memory",
    "chip_memory",
    "interconnect",
    "off_chip_memory",
    "communication",
    "control",
    "board",
    "static",
)
"""One taxonomy over all architectures: memory that belongs to one unit, that all units share, and that is off chip;
what links to other devices carry; what the board takes beside the chip and its memory."""

OFF_CORE: Final = ("off_chip_memory", "communication", "board", "static")
"""Categories whose energy does not follow the voltage of the chip: memory and links have supplies of their own."""

ActionKey = tuple[str, str]
"""(component, action): the same key on two architectures means the same physical act."""

STATIC_ACTION: Final[ActionKey] = ("chip", "static_power")
"""Static power is an action: counted in seconds, priced in watts. It is active idle: leakage, clocks, memory refresh
and regulators while clocks are up."""

HOST: Final = "host"
"""The component of what the computer takes that a chip sits in."""

HOST_ACTION: Final[ActionKey] = (HOST, "static_power")
"""What it draws for as long as a run lasts, whatever is computed: counted in seconds, priced in watts."""


def host_key(key: ActionKey) -> ActionKey:
    """Return what an action of a host is called in the reference table of the chip that it computes for."""
    return f"{HOST}_{key[0]}", key[1]


BOARD: Final = "board"
"""The component of all that the board takes beside the chip and its memory."""

LOSS_ACTION: Final[ActionKey] = (BOARD, "regulator_loss")
"""What voltage regulators turn into heat: counted in joules that actions on and off the chip take."""

LINK_ACTION: Final[ActionKey] = ("device_link", "transfer")
"""What crosses links to other devices: counted in bytes that the device sends, priced with those that it receives."""

MEMORY_ACTION: Final[ActionKey] = (BOARD, "unattributed_memory_second")
"""What the power limit says of a second in which a memory level is busy, beyond all other prices."""


def cycle_action(precision: str) -> ActionKey:
    """Return what the power limit says of a clock of a unit while units compute at a precision, beyond other prices."""
    return (BOARD, f"unattributed_{precision}_cycle")


@frozen(kw_only=True)
class EnergyAction:
    """One row of the energy reference table of one hardware."""

    category: str
    """The architecture's own grouping, e.g. `register_file`."""
    common_category: str = attrs.field(validator=attrs.validators.in_(COMMON_CATEGORIES))
    component: str
    action: str
    part: str = attrs.field(validator=attrs.validators.in_(PARTS))
    per: str
    """What one count is: `MAC`, `B`, `instruction`, `s` …"""
    energy_per_action_fj: float = attrs.field(validator=attrs.validators.ge(0.0))
    """At this hardware's process node and the highest voltage of its die, femtojoules."""
    low_fj: float | None = None
    """Lower end of the plausible range; None where none is known."""
    high_fj: float | None = None
    basis: str = attrs.field(validator=attrs.validators.in_(BASES))
    source: str
    count_formula: str
    """How the count follows from the operator, in the words of the source."""

    @property
    def key(self) -> ActionKey:
        """(component, action)."""
        return (self.component, self.action)

    @property
    def follows_voltage(self) -> bool:
        """Whether one costs less at a lower voltage of the chip."""
        return self.common_category not in OFF_CORE


def price_by(quantity: Quantity, key: ActionKey, source: str = "", **told: Any) -> EnergyAction:
    """Return the row of an action that a quantity is the price of, in joules of one count."""
    return EnergyAction(
        component=key[0],
        action=key[1],
        energy_per_action_fj=quantity.value * FJ_PER_J,
        basis=quantity.basis,
        source=source or quantity.source,
        **told,
    )


@frozen
class EnergyReference:
    """The energy reference table of one hardware, in a fixed order."""

    actions: tuple[EnergyAction, ...]
    prices_fj: tuple[float, ...] = attrs.field(init=False, eq=False, repr=False)
    """Energy per action of each row."""
    on_chip: tuple[bool, ...] = attrs.field(init=False, eq=False, repr=False)
    """Of each row whether it costs less at a lower voltage of the chip."""
    on_board: tuple[bool, ...] = attrs.field(init=False, eq=False, repr=False)
    """Of each row whether the board takes it beside the chip and its memory."""
    loss_j: float = attrs.field(init=False, eq=False, repr=False)
    """Joules that regulators lose for each that an action takes; 0 where that has no price."""
    _position: Mapping[ActionKey, int] = attrs.field(init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        position: dict[ActionKey, int] = {}
        for index, action in enumerate(self.actions):
            if action.key in position:
                raise ValueError(f"the action {'.'.join(action.key)} stands twice in the reference table")
            position[action.key] = index
        object.__setattr__(self, "_position", position)
        object.__setattr__(self, "prices_fj", tuple(action.energy_per_action_fj for action in self.actions))
        object.__setattr__(self, "on_chip", tuple(action.follows_voltage for action in self.actions))
        object.__setattr__(self, "on_board", tuple(action.component == BOARD for action in self.actions))
        loss = position.get(LOSS_ACTION)
        object.__setattr__(self, "loss_j", 0.0 if loss is None else self.prices_fj[loss] / FJ_PER_J)

    def __len__(self) -> int:
        return len(self.actions)

    def __iter__(self) -> Iterator[EnergyAction]:
        return iter(self.actions)

    def __contains__(self, key: object) -> bool:
        return key in self._position

    def with_static(self, power: Quantity) -> EnergyReference:
        """Return the same table with another static power."""
        return self.with_actions(
            attrs.evolve(action, energy_per_action_fj=power.value * 1e15, basis=power.basis, source=power.source)
            for action in self.actions
            if action.key == STATIC_ACTION
        )

    def withheld(self) -> EnergyReference:
        """Return the same table, where rows of the board say that no ledger has them."""
        return self.with_actions(
            attrs.evolve(action, count_formula=f"0 at this boundary; held to the limit: {action.count_formula}")
            for action in self.actions
            if action.component == BOARD
        )

    def with_actions(self, actions: Iterable[EnergyAction]) -> EnergyReference:
        """Return the same table with these rows: in place of those of the same action, or behind all."""
        changed = {action.key: action for action in actions}
        if not changed:
            return self
        kept = [changed.pop(action.key, action) for action in self.actions]
        return EnergyReference((*kept, *changed.values()))

    @property
    def keys(self) -> tuple[ActionKey, ...]:
        """The actions, in order."""
        return tuple(self._position)

    def position(self, key: ActionKey) -> int | None:
        """Return the row of `key`, or None if the action has no price."""
        return self._position.get(key)
