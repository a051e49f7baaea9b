"""Read and write design files: a chip derived from another one by changed numbers.

id = "small"            like = "kpu_t256"

[set]                   constants by name, in SI, that replace those of the other chip as used in its runs
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import attrs

from joulemap.catalog.parser import MAX_FILE_BYTES, name_file, read_file
from joulemap.system.errors import CatalogueError

ID: Final = re.compile(r"[a-z0-9][a-z0-9_]*")

HEAD: Final = """\
# A design like another chip, as `joulemap explore --save-as` writes it: use it with `--hardware FILE`.
# Numbers are in SI units and replace the chip's own, as `--set NAME=VALUE` does.
"""

LIKE: Final = re.compile(rb"^like\s*=", re.MULTILINE)


@attrs.frozen(kw_only=True)
class DesignFile:
    """Contents of a design file."""

    id: str
    like: str
    """Id of the base hardware, or its file, relative to the folder of the design file."""
    set: dict[str, float]
    """Name of a constant -> its value in SI units, which replaces that of the base hardware."""


def is_design_file(path: Path) -> bool:
    """Return True if a file has the form of a design file; False if it cannot be read."""
    try:
        return path.is_file() and path.stat().st_size <= MAX_FILE_BYTES and bool(LIKE.search(path.read_bytes()))
    except OSError:
        return False


def read_design(path: Path) -> DesignFile:
    """Read a design; CatalogueError names file, key and reason."""
    design, _ = read_file(path, DesignFile)
    if not ID.fullmatch(design.id):
        raise CatalogueError(f"{name_file(path)}: id: {design.id!r} is not lower case letters, digits and _")
    return design


def write_design(name: str, like: str, values: Mapping[str, float], notes: Iterable[str] = ()) -> str:
    """Return the text of a design file; reading it gives the same numbers."""
    lines = [f"{json.dumps(key)} = {float(value)!r}" for key, value in values.items()]
    comments = [f"# {' '.join(note.split())}\n" for note in notes]
    return f"{HEAD}{''.join(comments)}\nid = {json.dumps(name)}\nlike = {json.dumps(like)}\n\n[set]\n" + "\n".join(
        [*lines, ""]
    )


def name_design(stem: str) -> str:
    """Return the id of a design from its file name."""
    name = re.sub(r"[^a-z0-9]+", "_", stem.lower()).strip("_")
    return name or "design"
