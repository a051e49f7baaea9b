"""Roles: the purpose of an action under any architecture class, which makes classes comparable.

A tensor core's MAC and a systolic array's MAC share a role, as do an instruction and a token of a data-flow machine.
Each class assigns a role to each of its actions, with the number of units of the role per count. This number is 0 for
an action that accompanies another action of the role, as a tag lookup accompanies a read.
"""

from __future__ import annotations

from typing import Final

import attrs

from joulemap.system.record import frozen


@frozen
class Role:
    """Purpose that actions of several architecture classes share, such as reads of on-chip memory."""

    name: str
    noun: str
    """Name in answers, in the plural except for static power."""
    unit: str
    """Unit of the role's count: an SI unit or a word such as `MAC`."""


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
        Role("instruction", "instruction fetch and scheduling", "step"),
        Role("active_cycle", "cycles of active cores", "cycle"),
        Role("active_unit", "cycles of units that work", "cycle"),
        Role("clock", "clocks of all units", "cycle"),
        Role("standby", "standby losses of memory", "B"),
        Role("idle", "cycles of units without work", "cycle"),
        Role("coordination", "tile launches and barriers", "tile"),
        Role("transfer", "set-ups of transfers", "transfer"),
        Role("launch", "launches from the host", "launch"),
        Role("host", "operators that its host computes", "J"),
        Role("host_static", "static power of the host", "s"),
        Role("regulator", "losses of voltage regulators", "J"),
        Role("busy_cycle", "unattributed energy of busy units", "cycle"),
        Role("busy_memory", "unattributed energy of busy memory", "cycle"),
        Role("static", "static power", "s"),
    )
}
"""Name -> role.

The role `operand` is counted in the operations that use operands, and `transport` in the bytes that memories read and
write. The classes have no common unit for either.
"""


@frozen(kw_only=True)
class ActionRole:
    """Role of one action of an architecture class."""

    architecture: str
    component: str
    action: str
    role: str = attrs.field(validator=attrs.validators.in_(ROLES))
    amount: float = attrs.field(validator=attrs.validators.ge(0.0))
    """Number of units of the role per count of the action."""
    way: str
    """Phrase that follows `they` in an answer and says how this class differs in the role; empty if it does not."""
    step: str
    """Name of one control step of the class, such as `instruction` or `token`; empty unless the action controls a
    unit.
    """
