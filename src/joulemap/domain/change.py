"""Changes of a chip's numbers for one question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from joulemap.domain.address import Address
from joulemap.domain.coefficient import check_coefficient
from joulemap.domain.constant import Constant
from joulemap.domain.target import changes_word
from joulemap.system.record import frozen


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
    """Return the word that represents changes and a new name in a digest."""
    return changes_word(((one.name, one.value) for one in changes), name)
