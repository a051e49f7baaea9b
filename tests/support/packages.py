"""Packages with hardware, as pip would install them."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Final

from joulemap.catalog.new_package import write_package

MEASURED: Final = "acme_x1,resnet50,fp16,1,engine,0.0012,,,,,a bench,driver 1\n"
"""Measured run of `acme_x1`."""


def write_filled(folder: Path, *, chip: str = "acme_x1") -> Path:
    """Write a new package with a chip like an L4 and give every number a source; return its folder."""
    place, _ = write_package(chip, folder, like="l4")
    file = find_file(place, chip)
    text = file.read_text(encoding="utf-8").replace('source = "copied"', 'source = "mine"')
    text = re.sub(r"^copied = .*\n", "", text, flags=re.MULTILINE)
    (file.parents[1] / "page.md").write_text(f"# {chip}\n\nThe card of a data sheet.\n", encoding="utf-8")
    file.write_text(re.sub(r"^mine = .*", 'mine = "Acme data sheet 1"', text, flags=re.MULTILINE), encoding="utf-8")
    return place


def find_file(place: Path, chip: str = "acme_x1") -> Path:
    """Return the hardware file of a written package."""
    return place / "src" / f"joulemap_{chip}" / "hardware" / f"{chip}.toml"


def install(place: Path, site: Path, *, chip: str = "acme_x1", version: str = "0.1.0") -> None:
    """Put a written package into a folder of the search path, with the metadata that pip writes."""
    module = f"joulemap_{chip}"
    shutil.copytree(place / "src" / module, site / module, dirs_exist_ok=True)
    name = module.replace("_", "-")
    about = site / f"{module}-{version}.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (about / "entry_points.txt").write_text(f"[joulemap.hardware]\n{chip} = {module}\n")
