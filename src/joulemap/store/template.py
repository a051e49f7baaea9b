"""Template for new databases: a database with the catalogue and no runs, which is kept in the cache folder and copied.

A separate index of its hardware allows names to be checked before a database is created or opened.

Creating the tables and storing all hardware takes longer than a comparison. The template is made once for each schema,
catalogue, engine and writing code, and again if its file was changed. A wheel of `make wheel` contains one. Without a
cache folder and such a wheel, every new database is made from scratch.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import json
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import attrs
import duckdb

from joulemap.store.connection import Connection
from joulemap.store.engine import connect, renew_identity
from joulemap.store.migration import load_migrations, migrate
from joulemap.store.surface import load_surface
from joulemap.system.cache import cache_folder
from joulemap.system.draft import drafting, sweep
from joulemap.system.errors import DatabaseError
from joulemap.system.record import frozen
from joulemap.system.resource import digest_code

if TYPE_CHECKING:
    from joulemap.domain.catalogue import HardwareEntry

WRITERS: Final = (
    *(f"store/{name}.py" for name in ("catalogue", "digest", "hardware", "insert", "interval", "measurement", "total")),
    "store/template.py",
    "domain/operator",
    "trace/formula",
    "trace/single",
    "physics",
    "plan/anchor.py",
    "plan/target.py",
)
"""Code that determines, besides the catalogue, the content of a template."""

_NAME: Final = re.compile(r"[0-9a-f]{16}\.duckdb")

SHIPPED: Final = Path(__file__).parents[1] / "template"
"""Folder with the template of a wheel; it does not exist in a checkout."""

PACKED: Final = ".xz"
"""Suffix of a wheel's template, which is compressed with xz: a third smaller than by the wheel's own compression."""

KEPT: Final = 8
"""Number of newest templates that the cache folder keeps; older ones are removed."""


@frozen
class Template:
    """Database file to copy for a new database, and its hardware entries by id."""

    path: Path
    entries: dict[str, HardwareEntry]


Fill = Callable[[Connection], "dict[str, HardwareEntry]"]


def find_template(catalogue_digest: str, package_version: str, fill: Fill) -> Template | None:
    """Return the template of a catalogue, which is made if necessary; None if it cannot be stored.

    `fill` stores the catalogue in an empty database and returns its hardware entries.
    """
    schema = (one.checksum for one in load_migrations())
    identity = [
        catalogue_digest,
        digest_code(*WRITERS),
        package_version,
        duckdb.__version__,
        *schema,
        load_surface().digest,
    ]
    name = f"{hashlib.sha256('|'.join(identity).encode()).hexdigest()[:16]}.duckdb"
    try:
        path = cache_folder() / name
        sweep(path.parent)
        return _read(path) or _make(path, fill)
    except (OSError, RuntimeError, duckdb.Error, DatabaseError):
        if not (SHIPPED / f"{name}{PACKED}").exists():
            return None
        import tempfile

        folder = Path(tempfile.mkdtemp(prefix="joulemap-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        return _unpack(folder / name)


def _index(path: Path) -> Path:
    return path.with_suffix(".json")


def _read(path: Path) -> Template | None:
    """Return the template at a path; None if it or its index is missing or its content was changed."""
    with contextlib.suppress(FileNotFoundError):
        noted = _read_index(path)
        if noted and (noted["seen"] == _read_stamp(path) or noted["file"] == _digest(path.read_bytes())):
            return _form(path, noted)
    return None


def _unpack(path: Path) -> Template | None:
    """Write the wheel's template to a path and return it; None if there is none or its content was changed."""
    import lzma

    with contextlib.suppress(FileNotFoundError, lzma.LZMAError):
        noted = _read_index(SHIPPED / path.name)
        content = lzma.decompress((SHIPPED / f"{path.name}{PACKED}").read_bytes())
        if noted and noted["file"] == _digest(content):
            path.write_bytes(content)
            return _form(path, noted)
    return None


def _read_index(path: Path) -> dict[str, Any] | None:
    """Return the index of a template; None if it was changed. Raise FileNotFoundError if there is none."""
    try:
        noted: dict[str, Any] = json.loads(_index(path).read_text(encoding="utf-8"))
        is_whole = noted["self"] == _digest(json.dumps([noted["file"], noted["entries"]]).encode())
        return noted if is_whole and "seen" in noted else None
    except (ValueError, TypeError, KeyError):
        return None


def _form(path: Path, noted: Mapping[str, Any]) -> Template | None:
    from joulemap.domain.catalogue import HardwareEntry

    try:
        entries = [HardwareEntry(**row) for row in noted["entries"]]
    except TypeError:
        return None
    return Template(path, {entry.id: entry for entry in entries})


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def _read_stamp(path: Path) -> list[int]:
    """Return file metadata that change with every write, as a substitute for reading the content."""
    status = path.stat()
    return [status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns]


def _make(path: Path, fill: Fill) -> Template:
    path.parent.mkdir(parents=True, exist_ok=True)
    with drafting(path.parent) as folder:
        draft = folder / path.name
        if shipped := _unpack(draft):
            entries = shipped.entries
        else:
            with contextlib.closing(connect(draft)) as connection:
                migrate(connection)
                entries = fill(connection)
                connection.execute("CHECKPOINT")
            renew_identity(draft, draft.stem.encode())  # two builds of a wheel are equal; each copy gets another one
        content = [_digest(draft.read_bytes()), [attrs.asdict(entry) for entry in entries.values()]]
        noted = dict(zip(("file", "entries"), content, strict=True), self=_digest(json.dumps(content).encode()))
        draft.replace(path)
        _index(draft).write_text(json.dumps({**noted, "seen": _read_stamp(path)}), encoding="utf-8")
        _index(draft).replace(_index(path))
    others = [other for other in path.parent.iterdir() if _NAME.fullmatch(other.name) and _index(other).exists()]
    for other in sorted(others, key=lambda other: other.stat().st_mtime, reverse=True)[KEPT:]:
        with contextlib.suppress(OSError):
            other.unlink()
            _index(other).unlink()
    return Template(path, entries)
