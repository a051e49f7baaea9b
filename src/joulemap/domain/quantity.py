"""Quantities: numbers with unit, basis and source."""

from __future__ import annotations

import math
from typing import Final

import attrs

from joulemap.system.record import frozen

BASES: Final = ("measured", "published", "derived", "scaled", "recalled", "assumed")
"""Bases of a number, most certain first. A recalled number is public but was not checked against its source."""


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
