"""Quantities: numbers with unit, basis and source."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import attrs

from joulemap.system.record import frozen

BASES: Final = ("measured", "published", "derived", "scaled", "split", "recalled", "assumed")
"""Bases of a number, most certain first. A recalled number is public but was not checked against its source. A split
number is a part of a measured sum, whose division into parts is assumed.
"""


def least_sure(*bases: str) -> str:
    """Return the least certain of these bases; a derived number is no more certain than its inputs."""
    return max(bases, key=BASES.index)


def _check_basis(_instance: object, attribute: attrs.Attribute[str], value: str) -> None:
    if value not in BASES:
        raise ValueError(f"{attribute.name} is {value!r}, expected one of {', '.join(BASES)}")


def _check_text(_instance: object, attribute: attrs.Attribute[str], value: str) -> None:
    if not value.strip():
        raise ValueError(f"{attribute.name} is empty: every number needs a source")


def _check_number(_instance: object, attribute: attrs.Attribute[float], value: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{attribute.name} is {value!r}, expected a number")
    if not math.isfinite(value):
        raise ValueError(f"{attribute.name} is {value}, expected a finite number")


@frozen(kw_only=True)
class Evidence:
    """Measurements behind a fitted number."""

    sources: int = attrs.field(validator=attrs.validators.ge(1))
    """Sources of the measurements that the number was fitted to; one team, program or leaderboard is one source."""
    boards: int = attrs.field(validator=attrs.validators.ge(1))
    """Chips or boards of different types among them."""
    models: int = attrs.field(validator=attrs.validators.ge(1))
    """Models among them; a set of single operators counts as one."""

    def describe(self) -> str:
        """Return the numbers in words: `1 source, 9 boards, 2 models`."""
        counts = ("source", self.sources), ("board", self.boards), ("model", self.models)
        return ", ".join(f"{count} {name}{'' if count == 1 else 's'}" for name, count in counts)


COUNTS: Final = tuple(field.name for field in attrs.fields(Evidence))
"""Keys of an evidence in a data file, beside the value and source of its number."""


def read_evidence(entry: Mapping[str, Any]) -> Evidence | None:
    """Return the evidence in an entry of a data file; None if the entry has none of `COUNTS`.

    Raises ValueError for an entry with one or two of them, and for a count that is not a whole number from 1.
    """
    given = {name: entry[name] for name in COUNTS if entry.get(name) is not None}
    if not given:
        return None
    if missing := [name for name in COUNTS if name not in given]:
        raise ValueError(f"{' and '.join(missing)} missing beside {' and '.join(given)}")
    for name, count in given.items():
        if isinstance(count, bool) or not isinstance(count, int | float) or count < 1 or count != int(count):
            raise ValueError(f"{name} is {count!r}, expected a whole number from 1")
    return Evidence(**{name: int(count) for name, count in given.items()})


@frozen(kw_only=True)
class Quantity:
    """One number in SI units, with its basis and source."""

    value: float = attrs.field(validator=_check_number)
    """Value in `unit`."""
    unit: str
    """SI unit; `1` for a count or a ratio."""
    basis: str = attrs.field(validator=_check_basis)
    """Basis, one of `BASES`."""
    source: str = attrs.field(validator=_check_text)
    """Document, measurement or arithmetic that gave the value."""
    note: str = ""
    """Caveats for use of the number."""
    evidence: Evidence | None = attrs.field(default=None, repr=False, eq=False)
    """Measurements behind a fitted number; None for any other number, or if they are unknown."""
