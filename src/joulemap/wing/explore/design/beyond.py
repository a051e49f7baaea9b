"""Designs beyond existing hardware: constants outside the range of their class, and dies above the reticle limit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from joulemap.domain.constant import STATIC, list_constants
from joulemap.domain.silicon import RETICLE
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.domain.hardware import Hardware
    from joulemap.wing.explore.design.survey import Survey

FEW_CHIPS: Final = 3
"""Number of chips in a class below which constants are compared with all chips."""


@frozen(kw_only=True)
class Beyond:
    """Constant of some designs that exceeds every existing chip."""

    name: str
    value: float
    """Most extreme value among the designs."""
    unit: str
    known: str
    """Class of the compared chips; empty for all chips."""
    most: float
    """Most extreme value among those chips: the maximum, or the minimum for energies and static power."""
    chip: str
    """Chip with that value."""


@frozen(kw_only=True)
class Oversize:
    """Designs larger than the reticle limit of one die."""

    design_count: int
    largest_mm2: float
    chip: str
    """Base chip of the largest design."""
    own_mm2: float
    """Area of that chip by the same table."""


def find_beyond(done: Survey, rows: Sequence[int], chips: Sequence[Hardware]) -> Iterator[Beyond]:
    """Yield each constant that exceeds all chips of its class in some designs; energies and static power below all."""
    rows = list(rows)
    place = done.group[rows]
    for one in np.unique(place).tolist():
        space = done.groups[one].space
        alike = [chip for chip in chips if chip.architecture == space.hardware.architecture]
        is_few = len(alike) < FEW_CHIPS
        stated = [(chip.id, list_constants(chip)) for chip in (chips if is_few else alike)]
        values = space.values_at(done.numbers[rows][place == one])
        for name, column in values.items():
            unit = space.law.constants[name].unit
            known = [(at[name].value, chip) for chip, at in stated if name in at]
            is_less = unit == "J" or name == STATIC
            sign, value = (-1.0, float(column.min())) if is_less else (1.0, float(column.max()))
            own, chip = min(known) if is_less else max(known)
            if sign * value > sign * own:
                where = "" if is_few else space.hardware.architecture
                yield Beyond(name=name, value=value, unit=unit, known=where, most=own, chip=chip)


def find_oversize(done: Survey, rows: Sequence[int]) -> Oversize | None:
    """Return the designs larger than one die and than their base chip, which may have several dies; None without."""
    rows = list(rows)
    area = done.outcomes_at(rows).area_mm2
    built = [0.0 if one.space.hardware.projection else float(one.space.law.area.find_mm2({})[0]) for one in done.groups]
    count = int((area > np.maximum(RETICLE.value, built)[done.group[rows]]).sum())
    if not count:
        return None
    space = done.groups[int(done.group[rows[int(np.argmax(area))]])].space
    own = float(space.law.area.find_mm2({})[0])
    return Oversize(design_count=count, largest_mm2=float(area.max()), chip=space.hardware.id, own_mm2=own)
