"""Chips as runs use them: at their default mode and the boundary of their board, calibrated, with their host.

`make bundle` writes them as `plan` binds them, without the sources of their numbers, which no formula reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

from joulemap.bundle.pack import Pack
from joulemap.bundle.record import Reader
from joulemap.bundle.version import FOLDER, check_stamp
from joulemap.physics.interval.point import PointErrors
from joulemap.physics.record.hardware import Hardware

FILE: Final = FOLDER / "chip.pack"

REPLACED: Final = dict.fromkeys(("source", "note", "count_formula"), "see `joulemap hardware show`")
"""Field of a record -> text that replaces its own; a number must have a source."""

CHIP: Final = "chip "
"""Prefix of the name of a chip among the packed values."""

CALIBRATION: Final = "calibration"
DOUBT: Final = "doubt"
HELD_OUT: Final = "held_out"


class Chips:
    """Packed chips with their calibrations, and the errors of predictions for them."""

    def __init__(self, path: Path) -> None:
        """Open a file; raises CatalogueError if it is damaged."""
        self._reader = Reader(Pack(path).read(CHIP))
        self.calibrations: Mapping[str, str] = self._reader.find(CALIBRATION)
        """Id of each calibrated chip -> digest of its own or inherited calibration."""
        self.errors = PointErrors(self._reader.find(DOUBT), self._reader.find(HELD_OUT))
        """Known errors of predictions."""
        self.ids = frozenset(name.removeprefix(CHIP) for name in self._reader.roots if name.startswith(CHIP))
        """Ids of all chips."""

    def find(self, name: str) -> Hardware:
        """Return the chip with an id; KeyError for an unknown one."""
        chip: Hardware = self._reader.find(f"{CHIP}{name}")
        return chip


@cache
def load_chips() -> Chips:
    """Return the packed chips. Raises CatalogueError if they are not of the current version."""
    check_stamp(FILE)
    return Chips(FILE)
