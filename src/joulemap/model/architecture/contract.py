"""What every architecture class provides, and how one is found."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from typing import Protocol

from joulemap.domain.hardware import Hardware
from joulemap.errors import UnknownNameError
from joulemap.model.kernel import KernelColumns, Placement
from joulemap.model.ledger import ActionCounts


class Architecture(Protocol):
    """The mapping and counting model of one architecture class."""

    @property
    def name(self) -> str:
        """The class's name in the catalogue, e.g. `gpu`."""

    def place(self, kernels: KernelColumns, hardware: Hardware) -> Placement:
        """Return where the work goes and how long the units, the memory and the launches take."""

    def count(self, kernels: KernelColumns, placement: Placement, hardware: Hardware) -> ActionCounts:
        """Return how often each action happens, per operator, without the static line."""


@cache
def _architectures() -> dict[str, Architecture]:
    import joulemap.model.architecture as package

    found: dict[str, Architecture] = {}
    for module in pkgutil.iter_modules(package.__path__):
        if module.name != "contract":
            architecture: Architecture = importlib.import_module(f"{package.__name__}.{module.name}").ARCHITECTURE
            found[architecture.name] = architecture
    return found


def find_architecture(name: str) -> Architecture:
    """Return the model of an architecture class; UnknownNameError if no module implements it."""
    architectures = _architectures()
    if name not in architectures:
        raise UnknownNameError("architecture", name, architectures)
    return architectures[name]
