"""Roles: what an action is for, whatever the class of hardware calls it, so that two classes can be set side by side.

A tensor core's MAC and a systolic array's have one role; so have an instruction and a token of a data flow machine.
Each class says of each of its actions which role it has, and how much of the role's unit one count is: 0 of what only
comes with another act that is counted, as a tag lookup with the bytes that are read.
"""

from __future__ import annotations

from typing import Final

import attrs

from joulemap.system.record import frozen


@frozen
class Role:
    """What actions are for, in the words of those who read an answer."""

    name: str
    noun: str
    """In the plural, but for static power."""
    unit: str
    """What one is counted in: an SI unit, or a word."""


ROLES: Final[dict[str, Role]] = {
    role.name: role
    for role in (
        Role("mac", "multiply-accumulates", "MAC"),
        Role("elementwise", "elementwise operations", "operation"),
        Role("special_function", "special functions", "function"),
        Role("address", "integer and address operations", "operation"),
        Role("operand", "operands and results", "operation"),
        Role("memory_read", "reads of on-chip memory", "B"),
        Role("memory_write", "writes to on-chip memory", "B"),
        Role("transport", "transfers across the chip", "B"),
        Role("off_chip_read", "reads of off-chip memory", "B"),
        Role("off_chip_write", "writes to off-chip memory", "B"),
        Role("exchange", "transfers between devices", "B"),
        Role("instruction", "control steps", "step"),
        Role("idle", "cycles of units without work", "cycle"),
        Role("coordination", "starts and barriers of tiles", "tile"),
        Role("transfer", "set-ups of transfers", "transfer"),
        Role("launch", "launches from the host", "launch"),
        Role("regulator", "losses of voltage regulators", "J"),
        Role("busy_cycle", "unexplained draws of busy units", "cycle"),
        Role("busy_memory", "unexplained draws of busy memory", "s"),
        Role("static", "static power", "s"),
    )
}
"""Name -> role. Operands are counted by the operations that they serve, and what crosses the chip by the bytes that its
memories read and write: no class counts either in a unit that others have."""


@frozen(kw_only=True)
class ActionRole:
    """The role of one action of a class."""

    architecture: str
    component: str
    action: str
    role: str = attrs.field(validator=attrs.validators.in_(ROLES))
    amount: float = attrs.field(validator=attrs.validators.ge(0.0))
    """How much of the role's unit one count is."""
    way: str
    """How the class does what the role is for, after `they`; empty where it does as all do."""
