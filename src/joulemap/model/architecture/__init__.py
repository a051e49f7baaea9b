"""Architecture classes: for each, placement of kernels, their times and their actions.

One module per class, named like the class in the catalogue, defines an `ARCHITECTURE`. A new class is one new
module here and one data file in the catalogue; `docs/design.md` has an example.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from typing import Any, Protocol

from joulemap.domain.hardware import Hardware
from joulemap.model.kernel import KernelColumns
from joulemap.model.ledger import ActionCounts
from joulemap.model.placement import Placed, Placement
from joulemap.model.workload import Work
from joulemap.system.errors import UnknownNameError


class Architecture(Protocol[Placed]):
    """The model of one architecture class."""

    def decides(self, hardware: Hardware, work: Work, precision: str, /) -> tuple[Any, ...]:
        """Return the values that formulas branch on, in addition to the hardware's features.

        Hardware with equal values is placed together. Values are texts, numbers or booleans; for several chips, each
        value except a text may be an array.
        """

    def place(self, kernels: KernelColumns, hardware: Hardware) -> Placed:
        """Return the placement of the work, with the seconds of the units, the memory and the launches."""

    def count(self, kernels: KernelColumns, placement: Placed, hardware: Hardware) -> ActionCounts:
        """Return the count of each action per operator, excluding static energy."""


@cache
def find_architecture(name: str) -> Architecture[Placement]:
    """Return the model of an architecture class; UnknownNameError if no module implements it."""
    names = [module.name for module in pkgutil.iter_modules(__path__)]
    if name not in names:
        raise UnknownNameError("architecture", name, names)
    architecture: Architecture[Placement] = importlib.import_module(f"{__name__}.{name}").ARCHITECTURE
    return architecture
