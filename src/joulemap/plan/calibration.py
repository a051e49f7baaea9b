"""Calibration of each chip in a question, and the calibrated hardware.

A user's own calibration applies to its hardware only. A shipped calibration is inherited by hardware of the same
generation.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache, cached_property, partial
from typing import Final

from joulemap.catalog.calibration import find_calibration, find_named, locate, read_calibration, shipped_generations
from joulemap.domain.catalogue import HardwareEntry
from joulemap.physics.record.calibration import UNCALIBRATED, Calibration, CalibrationEntry
from joulemap.physics.record.configuration import BoundaryName
from joulemap.physics.record.hardware import Hardware
from joulemap.plan.anchor import anchor_hardware, apply_calibration
from joulemap.plan.catalogue import known_hardware
from joulemap.plan.target import AtBoundary, AtMode, Calibrated, Target
from joulemap.plan.version import formula_version
from joulemap.system.errors import CatalogueError, UsageError
from joulemap.system.record import define

AUTO: Final = "auto"
"""Default choice: the user's own calibration, else the shipped one, else the generation's, else none."""

OWN: Final = "own"
"""Choice like `auto`, but no calibration is inherited from the generation."""

GIVEN: Final = "given"


@define(slots=False)
class CalibrationUse:
    """Choice of calibration: `auto`, `own`, `none`, or a named calibration for its hardware and `auto` for other
    hardware.

    With `auto`, hardware without a calibration inherits a shipped calibration of its generation.
    """

    named: str | Calibration = AUTO
    """`auto`, `own`, `none`, a name, a file, or a record."""

    @cached_property
    def chosen(self) -> CalibrationEntry | None:
        """Named calibration; None for `auto`, `own` and `none`. Raises UnknownNameError or CatalogueError."""
        if isinstance(self.named, Calibration):
            return self.named.entry(GIVEN)
        return None if self.named in (AUTO, OWN, UNCALIBRATED) else find_named(self.named)

    @cached_property
    def _found(self) -> dict[str, CalibrationEntry | None]:
        return {}

    def find(self, hardware: HardwareEntry | Hardware) -> CalibrationEntry | None:
        """Return a chip's own or inherited calibration; None if it has neither."""
        if self.named == UNCALIBRATED:
            return None
        name = hardware.described if isinstance(hardware, HardwareEntry) else hardware.id
        if self.chosen is not None and self.chosen.hardware == name:
            return self.chosen
        if name not in self._found:
            calibration = find_calibration(name)
            if calibration is None and self.named != OWN:
                calibration = shipped_generations().get(hardware.generation)
            self._found[name] = calibration
        return self._found[name]

    def named_for(self, hardware: str) -> str | Calibration:
        """Return the choice for one chip: `auto` if the named calibration is for other hardware."""
        return self.named if self.chosen is None or self.chosen.hardware == hardware else AUTO

    def check(self, hardware: Collection[str]) -> None:
        """Raise UsageError if the named calibration is for none of these chips."""
        if self.chosen is not None and self.chosen.hardware not in hardware:
            what = "the calibration" if self.chosen.origin == GIVEN else str(self.named)
            raise UsageError(
                f"{what} is a calibration of {self.chosen.hardware}, which is not among the requested hardware "
                f"({', '.join(sorted(hardware)[:3])}{' …' if len(hardware) > 3 else ''})"
            )

    def check_fit(self, hardware: HardwareEntry | Hardware) -> None:
        """Raise CatalogueError if a chip's calibration was fitted with other formulas or to another description.

        An inherited calibration is checked against the chip that it was fitted to.
        """
        entry = self.find(hardware)
        if entry is not None:
            self._check(entry, hardware)

    def check_own(self, hardware: HardwareEntry | Hardware) -> None:
        """Raise as `check_fit` does if the chip has a calibration of the user; reads no built-in one."""
        if (entry := self.find(hardware)) is not None and entry.origin != "shipped":
            self.check_fit(hardware)

    def _check(self, entry: CalibrationEntry, hardware: HardwareEntry | Hardware) -> Calibration:
        calibration = self.load(entry, hardware.architecture)
        fitted = hardware if entry.hardware == hardware.id else known_hardware()[entry.hardware]
        try:
            calibration.check_target(fitted.id, fitted.digest)
        except ValueError as error:
            raise CatalogueError(f"{_name(entry)}: {error}") from error
        return calibration

    def load(self, entry: CalibrationEntry, architecture: str) -> Calibration:
        """Return the calibration of an entry; CatalogueError if its file is invalid or its formulas are outdated."""
        calibration = self.read(entry)
        if calibration.formula_version != formula_version(architecture):
            raise CatalogueError(
                f"{_name(entry)}: formula_version: it was fitted with other formulas ({calibration.formula_version}, "
                f"now {formula_version(architecture)}): `joulemap calibrate {entry.hardware}` again, or use "
                "`--calibration none`"
            )
        return calibration

    def read(self, entry: CalibrationEntry) -> Calibration:
        """Return the calibration of an entry, fitted with any formulas; CatalogueError if its file is invalid.

        Predictions use `load`. A new fit may begin at values that older formulas were fitted with.
        """
        if isinstance(self.named, Calibration) and self.named.digest == entry.digest:
            return self.named
        return _read(entry)

    def target(self, hardware: HardwareEntry | Hardware, mode: str, boundary: BoundaryName) -> Target:
        """Return the target of a chip with its calibration, at a power mode and a boundary."""
        entry = self.find(hardware)
        fitted = Calibrated(digest=entry.digest if entry else "", fit=partial(self.apply, entry=entry))
        return Target(hardware, (fitted, AtMode(mode), AtBoundary.of(hardware, boundary)))

    def apply(self, hardware: Hardware, entry: CalibrationEntry | None) -> Hardware:
        """Return the hardware at its default mode, with the energies of its anchor and a calibration.

        Raises CatalogueError if the calibration does not fit, or the hardware cannot be mapped.
        """
        return self.adjust(anchor_hardware(hardware), entry)

    def adjust(self, hardware: Hardware, entry: CalibrationEntry | None) -> Hardware:
        """Return the hardware with a calibration and no other change; CatalogueError if the two do not fit."""
        if entry is None:
            return hardware
        calibration = self._check(entry, hardware)
        try:
            return apply_calibration(hardware, calibration)
        except ValueError as error:
            raise CatalogueError(f"{_name(entry)}: {error}") from error


@cache
def _read(entry: CalibrationEntry) -> Calibration:
    """Return the calibration of an entry's file; the entry names its content, so that questions share it."""
    calibration = read_calibration(locate(entry))
    if calibration.digest != entry.digest:
        raise CatalogueError(f"{_name(entry)}: it changed while it was read; try again")
    return calibration


def use_calibration(named: str | Calibration) -> CalibrationUse:
    """Return the choice of calibration; raises UnknownNameError or CatalogueError if a name or file is wrong."""
    used = CalibrationUse(named)
    _ = used.chosen
    return used


def _name(entry: CalibrationEntry) -> str:
    return f"{entry.name}.toml" if entry.origin in ("shipped", GIVEN) else entry.origin
