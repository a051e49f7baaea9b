"""Energy reference tables: the energy of each action of a chip."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import attrs

from joulemap.physics.record.quantity import BASES, Evidence, Quantity
from joulemap.system.record import frozen

FJ_PER_J: Final = 1e15

PARTS: Final = ("compute", "memory", "control", "static")
"""Parts of the energy; every ledger line belongs to one."""

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
    "unattributed",
    "host",
    "static",
)
"""Categories common to all architecture classes. Memory is owned by one unit, shared by all units, or off chip.
`communication` is traffic on links to other devices. `host` is the work of a host on operators that the chip leaves to
it. `board` is the board without its chip and memory, `unattributed` the energy that no modelled circuit explains.
"""

OFF_CORE: Final = ("off_chip_memory", "communication", "board", "unattributed", "host", "static")
"""Categories whose energy is independent of the chip's voltage: memory and links have separate supplies."""

ActionKey = tuple[str, str]
"""(component, action); equal keys of two classes mean the same physical event."""

STATIC_ACTION: Final[ActionKey] = ("chip", "static_power")
"""Action of static power, counted in seconds; its energy per count is a power in watts. Static power is active idle:
leakage, clocks, memory refresh and regulators while clocks are up.
"""

HOST: Final = "host"
"""Name of the component for the computer that hosts a chip."""

HOST_ACTION: Final[ActionKey] = (HOST, "static_power")
"""Action of the host's static power during a run, counted in seconds; its energy per count is a power in watts."""


CHASSIS_ACTION: Final[ActionKey] = ("chassis", "fans_and_regulators")
"""Action of fans and regulators in the computer around a board, counted in joules of the board because their power
grows with it.
"""

SUPPLY_ACTION: Final[ActionKey] = ("psu", "conversion_loss")
"""Action of the power supply's loss, counted in joules of the board. The host's part of the loss is in
`HOST_ACTION`.
"""

AROUND: Final = (CHASSIS_ACTION, SUPPLY_ACTION)
"""Actions at the boundary `system` that are proportional to the energy of the board."""


def host_key(key: ActionKey) -> ActionKey:
    """Return the key under which a chip's reference table lists an action of its host."""
    return f"{HOST}_{key[0]}", key[1]


def is_of_host(key: ActionKey) -> bool:
    """Return whether a key is one of `host_key`."""
    return key[0].startswith(f"{HOST}_")


BOARD: Final = "board"
"""Name of the component for all parts of the board except the chip and its memory."""

LOSS_ACTION: Final[ActionKey] = (BOARD, "regulator_loss")
"""Action of heat from voltage regulators, counted in joules of all actions on and off the chip."""

LINK_ACTION: Final[ActionKey] = ("device_link", "transfer")
"""Action of traffic to other devices, counted in bytes sent; its energy includes the bytes received."""

MEMORY_ACTION: Final[ActionKey] = (BOARD, "unattributed_memory_cycle")
"""Action of a busy memory, counted in clock cycles. Its energy is the part of the power limit that no other action
explains.
"""


CYCLE_ACTION: Final[ActionKey] = (BOARD, "unattributed_cycle")
"""Action of a GPU board with GDDR, counted in clock cycles of units that work. Its energy is the part of the power of a
running board that no other action explains.
"""

ACTIVE_ACTION: Final[ActionKey] = ("unit", "active_cycle")
"""Action of a GPU's unit that works, counted in clock cycles: its clock, sequencers and pipeline registers."""

CLOCK_ACTION: Final[ActionKey] = ("chip", "clock_cycle")
"""Action of the clock of a GPU board with GDDR while kernels run, counted in clock cycles of all units, whether they
work or not.
"""

STANDBY_ACTION: Final[ActionKey] = ("dram", "standby")
"""Action of memory and its links at full clock while kernels run, counted in bytes that memory could move."""

RUNNING: Final = (CYCLE_ACTION, ACTIVE_ACTION, CLOCK_ACTION, STANDBY_ACTION)
"""Actions that count the time in which a GPU board with GDDR runs; at a lower clock there are fewer cycles."""

ISSUE_ACTION: Final[ActionKey] = (BOARD, "unattributed_issue_cycle")
"""Action of a GPU's unit that issues instructions without products, counted in clock cycles."""

OVERHEAD: Final = "overhead"
"""Name of the component for what software adds to a pass, and of its operators' kind."""

OVERHEAD_DEVICE, OVERHEAD_HOST, OVERHEAD_SERIAL = "device", "host", "serial"
"""Operations of overhead: time of the device, of a host that works beside it, and of a host between passes."""

WAIT_ACTION: Final[ActionKey] = (OVERHEAD, "wait")
"""Action of a device that waits for its host within a pass, counted in seconds; its energy comes on top of static
power.
"""

AWAKE_ACTION: Final[ActionKey] = (LINK_ACTION[0], "awake")
"""Action of a device's links while it has peers, counted in seconds regardless of traffic."""

UNATTRIBUTED: Final = "unattributed"
"""Category for energies per clock of busy units that were fitted to boards. No modelled circuit explains these
energies, but they decrease with the chip's voltage.
"""


OTHER_ACTION: Final[ActionKey] = (BOARD, "unattributed_other_cycle")
"""Action of a unit that is busy with an operator without products, counted in clock cycles. Its energy is that of
`cycle_action` at the precision with the lowest, because no product unit works.
"""


def cycle_action(precision: str) -> ActionKey:
    """Return the action of a unit that is busy with products at a precision, counted in clock cycles.

    Its energy is the part of the power limit that no other action explains.
    """
    return (BOARD, f"unattributed_{precision}_cycle")


@frozen(kw_only=True)
class EnergyAction:
    """Row of the energy reference table of one chip."""

    category: str
    """Category of the architecture class, e.g. `register_file`."""
    common_category: str = attrs.field(validator=attrs.validators.in_(COMMON_CATEGORIES))
    component: str
    action: str
    part: str = attrs.field(validator=attrs.validators.in_(PARTS))
    per: str
    """Unit of the count: `MAC`, `B`, `instruction`, `s` …"""
    energy_per_action_fj: float = attrs.field(validator=attrs.validators.ge(0.0))
    """Energy of one count at this hardware's process node, at the highest voltage of its die."""
    low_fj: float | None = None
    """Lower end of the plausible range; None if unknown."""
    high_fj: float | None = None
    basis: str = attrs.field(validator=attrs.validators.in_(BASES))
    source: str
    count_formula: str
    """Description of how the count follows from an operator, in the words of the source."""
    evidence: Evidence | None = attrs.field(default=None, repr=False, eq=False)
    """Measurements behind a fitted energy; None for any other energy, or if they are unknown."""

    @property
    def key(self) -> ActionKey:
        """Key of the action: (component, action)."""
        return (self.component, self.action)

    @property
    def range_half_width(self) -> float:
        """Half-width of the plausible range of the energy's logarithm, on the wider side; 0 without a range."""
        if self.low_fj is None or self.high_fj is None or not 0.0 < self.low_fj <= self.energy_per_action_fj:
            return 0.0
        return math.log(max(self.high_fj / self.energy_per_action_fj, self.energy_per_action_fj / self.low_fj))

    @property
    def follows_voltage(self) -> bool:
        """True if the action costs less energy at a lower chip voltage."""
        return self.category == UNATTRIBUTED or self.common_category not in OFF_CORE or self.is_unit_cycle

    @property
    def is_unit_cycle(self) -> bool:
        """True for a clock cycle of a busy unit, with products or without."""
        return self.component == BOARD and self.per == "cycle" and self.key != MEMORY_ACTION

    @property
    def is_of_host(self) -> bool:
        """True for a launch, which a core of the host computes."""
        return self.per == "launch"

    @property
    def is_on_board(self) -> bool:
        """True if the energy is the board's as measured, outside the counted parts of the chip and its memory."""
        return self.category != UNATTRIBUTED and (self.component in (BOARD, OVERHEAD) or self.key == AWAKE_ACTION)

    @property
    def is_delivered(self) -> bool:
        """True if the energy passes the board's regulators, whose loss is then an action of its own."""
        return not self.is_on_board and self.common_category not in ("host", "static") and self.key not in AROUND


def price_by(quantity: Quantity, key: ActionKey, source: str = "", **fields: Any) -> EnergyAction:
    """Build the row of an action from its energy per count, a quantity in joules (or watts, for a count in seconds).

    `source` replaces the source of the quantity.
    """
    return EnergyAction(
        component=key[0],
        action=key[1],
        energy_per_action_fj=quantity.value * FJ_PER_J,
        basis=quantity.basis,
        source=source or quantity.source,
        evidence=quantity.evidence,
        **fields,
    )


@frozen
class EnergyReference:
    """Energy reference table of one chip: a row for each action. Arrays of counts and energies follow the order of the
    rows.
    """

    actions: tuple[EnergyAction, ...]
    prices_fj: tuple[float, ...] = attrs.field(init=False, eq=False, repr=False)
    """Energy of each row for one count of its action."""
    on_chip: tuple[bool, ...] = attrs.field(init=False, eq=False, repr=False)
    """Per row, True if the action costs less energy at a lower chip voltage."""
    on_board: tuple[bool, ...] = attrs.field(init=False, eq=False, repr=False)
    """Per row, True if the board spends the energy, outside the chip and its memory."""
    of_host: tuple[bool, ...] = attrs.field(init=False, eq=False, repr=False)
    """Per row, True if a core of the host spends the energy."""
    around: tuple[int, ...] = attrs.field(init=False, eq=False, repr=False)
    """Indices of the rows for the actions of `AROUND`; empty unless the boundary is `system`."""
    running: tuple[int, ...] = attrs.field(init=False, eq=False, repr=False)
    """Indices of the rows for the actions of `RUNNING`; empty unless the power of the board sets its cycles."""
    loss_j: float = attrs.field(init=False, eq=False, repr=False)
    """Joules lost in regulators per joule of an action; 0 if the loss has no entry."""
    keys: tuple[ActionKey, ...] = attrs.field(init=False, eq=False, repr=False)
    """Keys of the actions, in order."""
    _position: Mapping[ActionKey, int] = attrs.field(init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        position: dict[ActionKey, int] = {}
        for index, action in enumerate(self.actions):
            if action.key in position:
                raise ValueError(f"the action {'.'.join(action.key)} is listed twice in the reference table")
            position[action.key] = index
        object.__setattr__(self, "_position", position)
        object.__setattr__(self, "keys", tuple(position))
        object.__setattr__(self, "prices_fj", tuple(action.energy_per_action_fj for action in self.actions))
        object.__setattr__(self, "on_chip", tuple(action.follows_voltage for action in self.actions))
        object.__setattr__(self, "on_board", tuple(action.is_on_board for action in self.actions))
        object.__setattr__(self, "of_host", tuple(action.is_of_host for action in self.actions))
        object.__setattr__(self, "around", tuple(position[key] for key in AROUND if key in position))
        is_running = CYCLE_ACTION in position
        object.__setattr__(self, "running", tuple(position[key] for key in RUNNING if is_running and key in position))
        loss = position.get(LOSS_ACTION)
        object.__setattr__(self, "loss_j", 0.0 if loss is None else self.prices_fj[loss] / FJ_PER_J)

    def __len__(self) -> int:
        return len(self.actions)

    def __iter__(self) -> Iterator[EnergyAction]:
        return iter(self.actions)

    def __contains__(self, key: object) -> bool:
        return key in self._position

    def with_static(self, power: Quantity) -> EnergyReference:
        """Return this table with another static power. The plausible range of the old one is kept if the source
        stays.
        """
        return self.with_actions(
            attrs.evolve(
                action,
                energy_per_action_fj=power.value * 1e15,
                low_fj=action.low_fj if power.source == action.source else None,
                high_fj=action.high_fj if power.source == action.source else None,
                basis=power.basis,
                source=power.source,
                evidence=power.evidence,
            )
            for action in self.actions
            if action.key == STATIC_ACTION
        )

    def withheld(self) -> EnergyReference:
        """Return this table with a note in all rows of the board: at the boundary `chip`, their energy counts only
        toward the power limit.
        """
        return self.with_actions(
            attrs.evolve(
                action, count_formula=f"0 at this boundary, counted toward the power limit only: {action.count_formula}"
            )
            for action in self.actions
            if action.is_on_board
        )

    def with_actions(self, actions: Iterable[EnergyAction]) -> EnergyReference:
        """Return this table with these rows. A row replaces the one with the same action, or is appended."""
        changed = {action.key: action for action in actions}
        if not changed:
            return self
        kept = [changed.pop(action.key, action) for action in self.actions]
        return EnergyReference((*kept, *changed.values()))

    def row(self, key: ActionKey) -> int:
        """Return the index of the row of an action, which the table must have."""
        return self._position[key]

    def position(self, key: ActionKey) -> int | None:
        """Return the index of the row of an action, or None if the table has no such row."""
        return self._position.get(key)
