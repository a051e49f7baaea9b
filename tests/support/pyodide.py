"""Pyodide for tests: the folder that `JOULEMAP_PYODIDE` names, with its wheel of numpy, or files in its place."""

from __future__ import annotations

import os
import shutil
import subprocess
import zipfile
from pathlib import Path
from typing import Final

VARIABLE: Final = "JOULEMAP_PYODIDE"

PROGRAM: Final = Path(__file__).parents[1] / "tab" / "python.mjs"


def find_pyodide() -> Path | None:
    """Return the folder of Pyodide; None if no variable names one."""
    named = os.environ.get(VARIABLE)
    return Path(named) if named else None


def why_no_pyodide() -> str:
    """Return the reason why Pyodide cannot run here; empty if it can."""
    from joulemap.wing.tab.site import NUMPY

    folder = find_pyodide()
    if folder is None:
        return f"{VARIABLE} names no folder of Pyodide"
    if not any(folder.glob(NUMPY)):
        return f"{folder} has no {NUMPY}"
    return "" if shutil.which("node") else "node is not installed"


def run_in_pyodide(site: Path, program: Path) -> str:
    """Return the value of a program that runs in Pyodide with the files of a page; its folder is `/here`."""
    folder = find_pyodide()
    assert folder is not None
    given = ["node", str(PROGRAM), str(folder), str(site), str(program)]
    done = subprocess.run(given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()[-1]


def pretend(folder: Path) -> Path:
    """Return a folder with files of the names of Pyodide, which no browser could run."""
    from joulemap.wing.tab.site import NEEDED

    folder.mkdir(exist_ok=True)
    for name in NEEDED:
        (folder / name).write_text(name)
    with zipfile.ZipFile(folder / "numpy-2.0.2-cp312-none-any.whl", "w") as wheel:
        for name in ("numpy/__init__.py", "numpy/__init__.pyi", "numpy/random/mtrand.so", "numpy/lib/a.so"):
            wheel.writestr(name, name)
    return folder
