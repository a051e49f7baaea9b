"""Write the files of a new package with a chip."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from joulemap.catalog.package import list_owners
from joulemap.domain.architecture import CLASS_HARDWARE, find_class
from joulemap.system.errors import UsageError
from joulemap.system.name import fold_name

PROJECT: Final = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "{distribution}"
version = "0.1.0"
description = "{chip} for joulemap"
readme = "README.md"
requires-python = ">=3.11"
dependencies = ["joulemap"]

[project.optional-dependencies]
test = ["pytest"]

[project.entry-points."joulemap.hardware"]
{chip} = "{module}"

[tool.hatch.build.targets.wheel]
packages = ["src/{module}"]
"""

README: Final = """\
# {distribution}

Adds the chip `{chip}` to [joulemap](https://pypi.org/project/joulemap/).

1. In `src/{module}/hardware/{chip}.toml`, replace each number whose source is `copied`, with its basis and source.
2. Put measurements into `src/{module}/measurement/{chip}.csv`, one row each; without any, leave the header alone.
3. Write what a user of the chip should know into `src/{module}/page.md`.
4. `joulemap extend check .` lists what is wrong or missing.
5. `pip install .`, and then `joulemap compare mobilenet_v2 {chip} l4`.
"""

PLACEHOLDER: Final = "Say here which product the numbers describe"
"""Text of the page of a new package that its author replaces."""

PAGE: Final = f"""\
# {{chip}}

{PLACEHOLDER}, where they come from, and what is not known yet.
"""

MEASURED: Final = "hardware,model,precision,batch,runtime,latency_s,energy_j,power_w,boundary,scope,source,conditions\n"

TEST: Final = '''\
"""The package passes the check of joulemap."""

from pathlib import Path

from joulemap.extend import check_package


def test_the_package_passes_its_check() -> None:
    checked = check_package(Path(__file__).parents[1])
    assert checked.is_sound, checked.describe_faults()
'''


def write_package(
    chip: str, folder: Path | None = None, *, architecture: str = "", like: str = ""
) -> tuple[Path, tuple[Path, ...]]:
    """Write a package with a chip to a new or empty folder; return the folder and its files.

    The numbers are those of the chip `like`, or of the default chip of a class, and marked as copied. The folder is
    by default `joulemap-CHIP`. Raises UsageError for a name that is taken, a folder that is not empty or an unknown
    class, UnknownNameError for an unknown chip.
    """
    from joulemap.catalog.load import load_catalogue
    from joulemap.catalog.starter import packaged_text

    if not re.fullmatch(r"[a-z][a-z0-9_]*", chip):
        raise UsageError(f"{chip!r}: expected lower case letters, digits and _, beginning with a letter")
    owner = dict(list_owners(load_catalogue().hardware.values())).get(fold_name(chip))
    if find_class(chip) or owner:
        raise UsageError(f"the name {chip!r} is already that of {owner or 'a class of hardware'}; choose another")
    if bool(architecture) == bool(like):
        raise UsageError("name one of --like HARDWARE and --architecture CLASS")
    if architecture and not find_class(architecture):
        raise UsageError(f"--architecture {architecture}: expected one of {', '.join(CLASS_HARDWARE)}")
    distribution = f"joulemap-{chip.replace('_', '-')}"
    place = folder or Path(distribution)
    if os.path.lexists(place) and (not place.is_dir() or any(place.iterdir())):
        raise UsageError(f"{place} exists: name a new or an empty folder")
    words = {"chip": chip, "distribution": distribution, "module": f"joulemap_{chip}"}
    package = f"src/{words['module']}"
    texts: Mapping[str, str] = {
        "pyproject.toml": PROJECT.format(**words),
        "README.md": README.format(**words),
        f"{package}/__init__.py": f'"""Data of {chip} for joulemap."""\n',
        f"{package}/page.md": PAGE.format(**words),
        f"{package}/hardware/{chip}.toml": packaged_text(chip, find_class(architecture) or architecture, like),
        f"{package}/measurement/{chip}.csv": MEASURED,
        "tests/test_package.py": TEST,
    }
    for name, text in texts.items():
        path = place / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise UsageError(f"cannot write {path}: {error.strerror or error}") from error
    return place, tuple(place / name for name in texts)
