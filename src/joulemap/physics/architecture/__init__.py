"""Models of the architecture classes: each places kernels on hardware, times them and counts their actions.

One module per class, named like the class in the catalogue, defines an `ARCHITECTURE`. A new class is one new module
here, one data file in the catalogue and a line in `domain/architecture.py`; `docs/design.md` has an example.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from typing import Any, Protocol

from joulemap.physics.kernel import KernelColumns
from joulemap.physics.ledger import ActionCounts
from joulemap.physics.placement import Placed, Placement
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.record.silicon import UnitArea
from joulemap.physics.workload import Work
from joulemap.system.errors import UnknownNameError


class Architecture(Protocol[Placed]):
    """Model of one architecture class: it places kernels, times them and counts their actions."""

    unit_area: UnitArea
    """Parts of the area of a unit."""

    def decides(self, hardware: Hardware, work: Work, precision: str, /) -> tuple[Any, ...]:
        """Return the values on which the formulas of this class branch, besides those of `column.skeleton`.

        Hardware with equal values is placed together. Values are texts, numbers or booleans; for several chips, each
        value except a text may be an array.
        """

    def place(self, kernels: KernelColumns, hardware: Hardware) -> Placed:
        """Return the kernels placed on the hardware, with the times of units, memory and launches in seconds."""

    def count(self, kernels: KernelColumns, placement: Placed, hardware: Hardware) -> ActionCounts:
        """Return the count of each action per operator, excluding static energy."""


@cache
def find_architecture(name: str) -> Architecture[Placement]:
    """Return the model of an architecture class. Raise UnknownNameError if no module implements the class."""
    names = [module.name for module in pkgutil.iter_modules(__path__)]
    if name not in names:
        raise UnknownNameError("architecture", name, names)
    architecture: Architecture[Placement] = importlib.import_module(f"{__name__}.{name}").ARCHITECTURE
    return architecture
