"""Identify the catalogue without parsing it, and find user-supplied hardware files.

Each hardware record has its own digest (`Hardware.with_own_digest`); the catalogue digest identifies the set of
records.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Final

from joulemap.system.errors import CatalogueError
from joulemap.system.package import digest_packages
from joulemap.system.resource import remember
from joulemap.system.wing import describe_foreign

DATA: Final = Path(__file__).parent / "data"

ZOO: Final = DATA / "zoo"
"""Folder of built-in workloads."""

PROFILES: Final = DATA / "measurement" / "profile"
"""Folder of built-in device times of operators."""

VARIABLE: Final = "JOULEMAP_HARDWARE"
"""Environment variable with files and folders of hardware that join the catalogue, separated as in PATH."""


def shipped_files() -> list[Path]:
    """Return the built-in hardware files."""
    return sorted((DATA / "hardware").glob("*.toml"))


def box_files() -> list[Path]:
    """Return the built-in box files."""
    return sorted((DATA / "box").glob("*.toml"))


def is_hardware_path(name: str) -> bool:
    """Return True if a name is a file or folder, not an id or a label such as l4[clock=1GHz]."""
    plain, bracket, settings = name.partition("[")
    if bracket and settings.endswith("]") and "=" in settings:  # settings may contain units such as GB/s
        name = plain
    if name.endswith(".toml") or name in (".", ".."):
        return True
    if " " in name and name[0] not in "./~":  # `rockchip RK3566/RK3568`, `AMD Ryzen 7 7840U w/ Radeon 780M Graphics`
        return os.sep in name and os.path.exists(name)
    return os.sep in name


def expand_paths(paths: Iterable[Path]) -> tuple[Path, ...]:
    """Return the hardware files among these paths, with those in folders.

    Raises CatalogueError for a missing path and for a folder without hardware files.
    """
    files: dict[Path, None] = {}
    for path in paths:
        if os.path.isdir(path):
            inside = sorted(path.glob("*.toml"))
            if not inside:
                raise CatalogueError(f"{path}: the folder has no .toml file")
            files.update(dict.fromkeys(inside))
        elif os.path.isfile(path):
            files[path] = None
        else:
            what = "it is not a regular file" if os.path.exists(path) else "there is no such file or folder"
            raise CatalogueError(f"{path}: {what}")
    return tuple(files)


def own_files() -> tuple[Path, ...]:
    """Return the hardware files in `$JOULEMAP_HARDWARE`; raises like `expand_paths`."""
    written = os.environ.get(VARIABLE, "")
    return expand_paths(Path(part).expanduser() for part in written.split(os.pathsep) if part.strip())


def catalogue_digest() -> str:
    """Return a digest of all data files, including the user's and those of packages, and of the code that reads them,
    as sixteen hexadecimal digits.
    """
    own, foreign = own_files(), describe_foreign("error_groups") + digest_packages()
    if not own and not foreign:
        return _shipped_digest()
    digest = hashlib.sha256(f"{_shipped_digest()}{foreign}".encode())
    for path in own:
        digest.update(str(path.name).encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]


PACKAGE: Final = Path(__file__).parents[1]

SOURCES: Final = (
    "catalog/*.py", "domain/*.py", "system/units.py", "wing/*/error_scale.py", "wing/*/data/error_scale.csv",
)  # fmt: skip
"""Code that turns data files into records, and error scales of wings; a change changes the catalogue's digest."""


@cache
def _shipped_digest() -> str:
    return remember("catalogue", _digest_shipped)


def _digest_shipped() -> str:
    digest = hashlib.sha256()
    for pattern in SOURCES:
        for path in sorted(PACKAGE.glob(pattern)):
            digest.update(path.name.encode())
            digest.update(path.read_bytes())
    for folder in (
        DATA / "architecture",
        DATA / "box",
        DATA / "calibration",
        DATA / "compiler",
        DATA / "cost",
        DATA / "doubt",
        DATA / "family",
        DATA / "family" / "part",
        DATA / "hardware",
        DATA / "link",
        DATA / "measurement",
        DATA / "measurement" / "seen",
        DATA / "model",
        ZOO,
    ):
        for path in sorted(folder.iterdir()):
            if path.is_file() and path.suffix in (".toml", ".csv"):
                digest.update(path.name.encode())
                digest.update(path.read_bytes())
    for path in sorted(PROFILES.iterdir()):
        if path.suffix in (".toml", ".parquet"):  # databases hold the reduced profiles, not the raw ones
            digest.update(path.name.encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
