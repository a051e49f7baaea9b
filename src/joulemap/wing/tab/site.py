"""Write the page: a folder of static files that any web server can serve.

index.html page.css page.js worker.js     the page, with answers to draw before Python is there
choices.json                              names that its form offers
joulemap.zip                              the modules of this package that the page imports, and attrs
pyodide/                                  Python for browsers, unless the page takes it from its CDN
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from joulemap.bundle import bundle_version
from joulemap.bundle.chip import FILE
from joulemap.bundle.pack import pack_for_browser
from joulemap.bundle.version import PACKED, STAMP, check_stamp, form_stamp
from joulemap.bundle.workload import FILE as WORKLOADS, is_predicted
from joulemap.catalog import ZOO
from joulemap.catalog.digest import VARIABLE
from joulemap.show import write_variables
from joulemap.system import MissingPackageError, UsageError, make_folder
from joulemap.system.file import write_file
from joulemap.wing.tab import browser
from joulemap.wing.tab.browser import PACKAGE

SOURCE: Final = Path(__file__).with_name("page")

VERSION: Final = "0.27.7"
"""Release of Pyodide that is tested, with Python 3.12 and numpy 2.0."""

CDN: Final = f"https://cdn.jsdelivr.net/pyodide/v{VERSION}/full/"

NEEDED: Final = ("pyodide.js", "pyodide.asm.js", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")
"""Files of Pyodide, beside its wheel of numpy."""

WHEEL: Final = ".whl"

NUMPY: Final = f"numpy-*{WHEEL}"

UNUSED: Final = ("f2py", "random", "testing", "_pyinstaller")
"""Parts of numpy that the page leaves out: they are a quarter of it, and no prediction imports them."""

UNREAD: Final = (".a", ".h", ".pxd", ".pyi")
"""Suffixes of files of numpy that only compilers and type checkers read."""

ATTRS: Final = ("attr", "attrs")

EPOCH: Final = (1980, 1, 1, 0, 0, 0)
"""Time of every file in the archive, so that equal files make an equal archive."""


def write_site(folder: Path, pyodide: Path | None = None) -> list[Path]:
    """Write the page to a folder and return its files. Pyodide is copied from a folder, or comes from its CDN.

    Raises UsageError for a folder without Pyodide or for a file there that joulemap did not write, CatalogueError for
    packed chips of another version.
    """
    copied = _find_pyodide(pyodide) if pyodide is not None else []
    check_stamp(FILE)
    found = _record()
    make_folder(folder)
    files: dict[str, bytes] = {
        "index.html": _fill_page(found, copied).encode(),
        "choices.json": _dump(found["choices"]).encode(),
        "joulemap.zip": _pack(found),
        "page.css": write_variables().encode() + (SOURCE / "page.css").read_bytes(),
        **{name: (SOURCE / name).read_bytes() for name in ("page.js", "worker.js")},
    }
    for path in copied:
        files[f"pyodide/{path.name}"] = _trim_wheel(path) if path.suffix == WHEEL else path.read_bytes()
        make_folder(folder / "pyodide")
    for name, content in files.items():
        write_file(folder / name, partial(_write_bytes, content))
    return [folder / name for name in files]


def _write_bytes(content: bytes, path: Path) -> None:
    path.write_bytes(content)


def _find_pyodide(folder: Path) -> list[Path]:
    """Return the files of Pyodide that the page needs; UsageError if one is missing."""
    wheels = sorted(folder.glob(NUMPY))
    missing = [name for name in NEEDED if not (folder / name).is_file()] + [NUMPY] * (not wheels)
    if missing:
        raise UsageError(
            f"{folder} has no {missing[0]}: unpack a full release of Pyodide {VERSION}, or leave --pyodide out to use "
            "its CDN"
        )
    return [*(folder / name for name in NEEDED), wheels[0]]


def _trim_wheel(path: Path) -> bytes:
    """Return a wheel of numpy without the parts that the page does not use."""
    with zipfile.ZipFile(path) as wheel:
        kept = {
            name: wheel.read(name)
            for name in wheel.namelist()
            if not name.endswith(UNREAD) and name.split("/")[1:2] not in [[one] for one in UNUSED]
        }
    return _archive(kept)


def _record() -> dict[str, Any]:
    """Return what the page needs, found by a process of its own, in which nothing else is imported."""
    given = {name: value for name, value in os.environ.items() if name != VARIABLE}
    given["PYTHONPATH"] = os.pathsep.join([str(PACKAGE.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    program = [sys.executable, "-P", str(Path(browser.__file__))]  # by its path, so that it imports nothing before
    done = subprocess.run(program, env=given, capture_output=True, text=True, check=False)
    if done.returncode:
        raise UsageError(f"the page cannot be made: {done.stderr.strip().splitlines()[-1]}")
    recorded: dict[str, Any] = json.loads(done.stdout)
    return recorded


def _fill_page(found: Mapping[str, Any], copied: Sequence[Path]) -> str:
    """Return the page with its policy, where Python comes from, and its prepared answers."""
    wheel = next((one.name for one in copied if one.suffix == WHEEL), "")
    origin = "" if wheel else f" {CDN.partition('/pyodide/')[0]}"
    policy = "; ".join(
        (
            "default-src 'none'",
            f"script-src 'self' blob: 'wasm-unsafe-eval'{origin}",
            "worker-src blob:",
            f"connect-src 'self'{origin}",
            "style-src 'self'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )
    static = _dump({"defaults": found["defaults"], "answers": found["answers"]}).replace("<", "\\u003c")
    page = (SOURCE / "index.html").read_text(encoding="utf-8")
    python = "pyodide/" if wheel else CDN
    places = {"policy": policy, "pyodide": python, "numpy": wheel, "answers": static}
    for name, text in places.items():
        page = page.replace(f"{{{name}}}", text)
    return page


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _pack(found: Mapping[str, Any]) -> bytes:
    """Return an archive of the modules and data that the page needs."""
    return _archive({**dict(_list_own(found)), **dict(_list_attrs())})


def _archive(files: Mapping[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, content in sorted(files.items()):
            archive.writestr(zipfile.ZipInfo(name, EPOCH), content, zipfile.ZIP_DEFLATED, 9)
    return out.getvalue()


def _list_own(found: Mapping[str, Any]) -> Iterator[tuple[str, bytes]]:
    chips = pack_for_browser(FILE, bool)
    made = {
        FILE: chips,
        STAMP: form_stamp(chips).encode(),
        PACKED: bundle_version().encode(),
        ZOO / WORKLOADS: pack_for_browser(ZOO / WORKLOADS, is_predicted),
    }
    for path in (*(PACKAGE / name for name in (*found["modules"], *found["data"])), *made):
        content = made[path] if path in made else path.read_bytes()
        yield f"{PACKAGE.name}/{path.relative_to(PACKAGE).as_posix()}", content


def _list_attrs() -> Iterator[tuple[str, bytes]]:
    for name in ATTRS:
        spec = find_spec(name)
        if spec is None or spec.origin is None:
            raise MissingPackageError(name)
        folder = Path(spec.origin).parent
        for path in sorted(folder.rglob("*.py")):
            yield f"{name}/{path.relative_to(folder).as_posix()}", path.read_bytes()
