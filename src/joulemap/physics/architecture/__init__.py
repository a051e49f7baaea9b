"""Models of the architecture classes: each places kernels on hardware, times them and counts their actions.

One module per class, named like the class in the catalogue, defines an `ARCHITECTURE`. A new class is one new module
here, one data file in the catalogue and a line in `domain/architecture.py`; `docs/design.md` has an example. A package
of another distribution may supply a class too (`system/package.py`).
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

from joulemap.physics.kernel import KernelColumns
from joulemap.physics.ledger import ActionCounts
from joulemap.physics.placement import Placed, Placement
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.record.silicon import UnitArea
from joulemap.physics.workload import Work
from joulemap.system.errors import Interrupted, UnknownNameError, UnsupportedError
from joulemap.system.package import Package, find_class_package

Returned = TypeVar("Returned")

REFUSAL: Final = "refusal"
"""Coefficient that marks a chip whose class failed on the probes of its anchor; its source is the reason. Every run of
the chip is refused with it.
"""


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


def find_architecture(name: str) -> Architecture[Placement]:
    """Return the model of an architecture class. Raise UnknownNameError if no module implements the class, and
    UnsupportedError if that of a package cannot be imported.
    """
    if name in _list_built_in():
        return _import_built_in(name)
    package = find_class_package(name)
    if package is None:
        raise UnknownNameError("architecture", name, _list_built_in())
    return _import_supplied(package, name)


@cache
def _list_built_in() -> tuple[str, ...]:
    return tuple(module.name for module in pkgutil.iter_modules(__path__))


@cache
def _import_built_in(name: str) -> Architecture[Placement]:
    architecture: Architecture[Placement] = importlib.import_module(f"{__name__}.{name}").ARCHITECTURE
    return architecture


@cache
def _import_supplied(package: Package, name: str) -> Architecture[Placement]:
    """Import the module of a class of a package from its file; importing its package would run other code too."""
    from importlib.util import module_from_spec, spec_from_file_location

    path = package.folder / "architecture" / f"{name}.py"
    if not path.is_file():
        raise UnsupportedError(f"the class {name} of the package {package.label} has no module: {path} is missing")
    try:
        spec = spec_from_file_location(f"{package.folder.name}.architecture.{name}", path)
        assert spec is not None
        assert spec.loader is not None
        module = module_from_spec(spec)
        sys.modules[spec.name] = module  # records look their module up by name
        spec.loader.exec_module(module)
        return SuppliedArchitecture(package, name, module.ARCHITECTURE)
    except Interrupted:
        raise
    except (Exception, SystemExit) as error:
        raise _blame(package, name, error) from error


class SuppliedArchitecture:
    """Model of a class of a package; its errors are refusals of a chip, so that other chips are still evaluated."""

    def __init__(self, package: Package, name: str, own: Architecture[Any]) -> None:
        self.package = package
        self.name = name
        self.own = own
        self.unit_area: UnitArea = own.unit_area

    def decides(self, hardware: Hardware, work: Work, precision: str, /) -> tuple[Any, ...]:
        """Return the values on which the formulas of the class branch."""
        if (refusal := hardware.coefficients.get(REFUSAL)) is not None:
            raise UnsupportedError(refusal.source)
        return self._call(self.own.decides, hardware, work, precision)

    def place(self, kernels: KernelColumns, hardware: Hardware) -> Placement:
        """Return the kernels placed on the hardware."""
        if (refusal := hardware.coefficients.get(REFUSAL)) is not None:
            raise UnsupportedError(refusal.source)
        placed: Placement = self._call(self.own.place, kernels, hardware)
        return placed

    def count(self, kernels: KernelColumns, placement: Placement, hardware: Hardware) -> ActionCounts:
        """Return the count of each action per operator."""
        return self._call(self.own.count, kernels, placement, hardware)

    def _call(self, function: Callable[..., Returned], *arguments: Any) -> Returned:
        try:
            return function(*arguments)
        except (UnsupportedError, Interrupted):
            raise
        except (Exception, SystemExit) as error:
            raise _blame(self.package, self.name, error) from error


def refuse(name: str, error: Exception) -> UnsupportedError | KeyError:
    """Return the refusal of a chip of a class whose run raised an error; raise any error that is none.

    Errors of a chip of a package's class are refusals, because shared formulas fail where its own return nonsense.
    """
    if isinstance(error, UnsupportedError):
        return error
    if isinstance(own := find_architecture(name), SuppliedArchitecture):
        return _blame(own.package, name, error)
    if isinstance(error, KeyError):
        return error
    raise error


def _blame(package: Package, name: str, error: Exception | SystemExit) -> UnsupportedError:
    """Return the refusal of a chip of a package's class for an error, which names the last line of the package."""
    import traceback

    from joulemap.system.debug import show_traceback

    folder, frames = package.folder.resolve(), traceback.extract_tb(error.__traceback__)
    own = [(one.filename, one.lineno) for one in frames if Path(one.filename).resolve().is_relative_to(folder)]
    place = "{}, line {}".format(*own[-1]) if own else str(folder / "architecture" / f"{name}.py")
    text = " ".join(str(error).split())
    show_traceback(error)
    return UnsupportedError(
        f"the class {name} of the package {package.label} failed: {type(error).__name__}: {text} ({place}); tell its "
        f"maker, or remove it: `pip uninstall {package.name}`"
    )
