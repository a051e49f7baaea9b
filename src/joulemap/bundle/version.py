"""Version of the packed chips: a digest of all code and data from which they, and predictions with them, follow.

Comments, docstrings and layout do not count (`system/code.py`). The version stands in a file of its own beside the
chips, so that a change which no chip shows leaves the larger file as it is.
"""

from __future__ import annotations

import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Final

from joulemap.system.errors import CatalogueError
from joulemap.system.resource import read_code, remember

DATA: Final = Path(__file__).parents[1] / "catalog" / "data"

FOLDER: Final = DATA / "bundle"
"""Folder of the packed chips."""

STAMP: Final = FOLDER / "version.json"

PACKED: Final = FOLDER / "packed_version.txt"
"""Version of a copy of this package that lacks the code and data from which it follows, such as that of a page; absent
from an installation.
"""

CODE: Final = (
    "physics", "system/units.py", "bundle", "catalog", "trace", "plan/anchor.py", "plan/budget.py",
    "plan/calibration.py", "plan/target.py",
)  # fmt: skip
"""Folders and files with the formulas of all classes and of intervals, with what describes, binds and traces."""

SOURCES: Final = ("architecture", "calibration", "compiler", "doubt", "family", "hardware", "link")
"""Folders of data from which chips and intervals follow."""

WINGS: Final = ("wing/*/error_scale.py", "wing/*/data/error_scale.csv")
"""Error scales of wings."""


@cache
def bundle_version() -> str:
    """Return the version that packed chips of this code and data have, as sixteen hexadecimal digits."""
    return PACKED.read_text(encoding="utf-8") if PACKED.is_file() else remember("bundle", compute_version)


def compute_version() -> str:
    """Compute the version that `bundle_version` caches."""
    package = DATA.parents[1]
    digest = hashlib.sha256(read_code(*CODE).encode())
    files = [path for name in SOURCES for path in (DATA / name).rglob("*") if path.suffix in (".toml", ".csv")]
    for path in sorted((*files, *(path for pattern in WINGS for path in package.glob(pattern)))):
        digest.update(f"{path.relative_to(package).as_posix()}\n".encode())
        digest.update(path.read_bytes().replace(b"\r\n", b"\n"))
    return digest.hexdigest()[:16]


def digest_content(content: bytes) -> str:
    """Return a digest of the content of a file."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def form_stamp(content: bytes) -> str:
    """Return the note that packed chips with this content are of the current version."""
    return json.dumps({"version": bundle_version(), "file": digest_content(content)}) + "\n"


def check_stamp(path: Path) -> None:
    """Raise CatalogueError if a file of packed chips is missing, damaged or of another version."""
    try:
        noted = json.loads(STAMP.read_text(encoding="utf-8"))
        found, file = noted["version"], noted["file"]
        own = digest_content(path.read_bytes())
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CatalogueError(
            f"the bundle of chips cannot be read ({error}): `make bundle`, or install again"
        ) from error
    if found != bundle_version() or file != own:
        what = "was made by other formulas or data" if found != bundle_version() else "was changed"
        raise CatalogueError(f"the bundle of chips {what}: `make bundle`, or install joulemap again")
