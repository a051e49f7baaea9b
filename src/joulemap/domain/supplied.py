"""Content of an installed package with hardware, and what of it is left out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.physics.record.hardware import Hardware
    from joulemap.system.package import Package

ADVICE: Final = "`joulemap extend check {name}` lists all faults; `pip uninstall {name}` removes it"
"""Advice at the end of the line about a package with faults."""


@frozen(kw_only=True)
class Fault:
    """File of a package that is left out, with the reason."""

    file: Path
    text: str
    """One line that names the file, the key and the reason."""


@frozen(kw_only=True)
class Supplied:
    """Content of a package that is valid, and the files that are not."""

    package: Package
    hardware: tuple[Hardware, ...] = ()
    architectures: tuple[str, ...] = ()
    """Classes that the package defines."""
    measurements: tuple[Any, ...] = ()
    """Measured runs of its chips: rows of `Measurement` or of the kinds that wings read."""
    faults: tuple[Fault, ...]

    def describe_faults(self) -> str:
        """Return a line about the files that are left out, and what to do; empty without any."""
        if not self.faults:
            return ""
        first, *more = self.faults
        others = f" ({len(more)} more of its files too)" if more else ""
        advice = ADVICE.format(name=self.package.name)
        return f"the package {self.package.label}: left out: {first.text}{others}; {advice}"
