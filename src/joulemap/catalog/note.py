"""Notes on architecture classes, from a data file of the package."""

from __future__ import annotations

import csv
from functools import cache
from typing import Final

from joulemap.catalog.digest import DATA
from joulemap.domain.note import ArchitectureNote

FILE: Final = DATA / "note" / "architecture.csv"


@cache
def load_notes() -> tuple[ArchitectureNote, ...]:
    """Return every note, class by class."""
    with FILE.open(newline="", encoding="utf-8") as file:
        return tuple(
            ArchitectureNote(
                architecture=row["architecture"], topic=row["topic"], text=row["text"], source=row["source"]
            )
            for row in csv.DictReader(file)
        )


def find_notes(architectures: tuple[str, ...]) -> tuple[ArchitectureNote, ...]:
    """Return the notes on these classes, each class once and in this order."""
    return tuple(note for name in dict.fromkeys(architectures) for note in load_notes() if note.architecture == name)
