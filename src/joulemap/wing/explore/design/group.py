"""Designs that are surveyed together: like one chip, at one precision, batch and runtime."""

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
    """Designs like one chip, at one precision, batch and runtime."""

    hardware: str
    """With its power mode."""
    dimensions: Mapping[str, str]
    batch: int
    space: Space
    loads: tuple[Load, ...]
    numbers: Integers
    """Of the designs in their space."""
    found: Outcomes | None = None
    """What they take, where a search has seen it."""

    def end_block(self, start: int, most: int) -> int:
        """Return where designs from a place on end that are evaluated together: of a whole space they are a grid."""
        is_whole = len(self.numbers) == self.space.size
        return self.space.end_block(start, most) if is_whole else min(start + most, len(self.numbers))
