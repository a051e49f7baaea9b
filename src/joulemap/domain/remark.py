"""Remarks of a trace, as they are stored: names of operators without a formula, and assumptions.

An assumption has no code of its own in a workload, whose digest covers it. Where the program has to know one, it makes
the whole text from its values and compares that.
"""

from __future__ import annotations

from joulemap.physics.record.workload import APPENDED


def name_uncounted(operator: str) -> str:
    """Return the name of an uncounted operator as its library spells it: `space::attend` for `space.attend.default`."""
    return "::".join(operator.split(".")[:2])


def write_appending(count: int) -> str:
    """Return the assumption that `count` operators append rows to keys and values, as a trace states it."""
    return f"{count} x cat appends new rows to given keys and values{APPENDED}"
