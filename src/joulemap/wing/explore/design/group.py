"""Designs that are surveyed together: same base chip, precision, batch and runtime."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from joulemap.system.record import frozen
from joulemap.wing.explore.design.outcome import Load
from joulemap.wing.explore.design.space import Space

if TYPE_CHECKING:
    from joulemap.model.workload import Integers
    from joulemap.wing.explore.design.outcome import Outcomes


@frozen(kw_only=True, eq=False)
class Group:
    """Designs with the same base chip, precision, batch and runtime."""

    hardware: str
    """Base chip with its power mode."""
    dimensions: Mapping[str, str]
    batch: int
    space: Space
    loads: tuple[Load, ...]
    numbers: Integers
    """Numbers of the designs in their space."""
    found: Outcomes | None = None
    """Outcomes already computed by a search."""

    def end_block(self, start: int, most: int) -> int:
        """Return the end of the next block of designs; a sub-grid if the group is a whole space."""
        is_whole = len(self.numbers) == self.space.size
        return self.space.end_block(start, most) if is_whole else min(start + most, len(self.numbers))
