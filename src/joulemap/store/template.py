"""A finished database with the catalogue and nothing else, kept in the cache folder and copied for each new one.

Beside it lies an index of its hardware, so that names are checked before a database is made or opened.

Making the tables and storing some fifty hardware takes longer than a comparison. The template is made once for each
schema, catalogue, engine and code that writes; without a folder to keep it in, every new database is made from the
start.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import attrs
import duckdb

from joulemap.domain.catalogue import HardwareEntry
from joulemap.resource import cache_folder, digest_code
from joulemap.store.connection import Connection
from joulemap.store.migration import load_migrations, migrate

WRITERS: Final = tuple(f"store/{name}.py" for name in ("catalogue", "hardware", "measurement", "row", "template"))
"""Code that decides what a template holds beside the catalogue."""

KEPT: Final = 8
"""Templates of other catalogues or versions that stay, the newest."""


@attrs.frozen
class Template:
    """A database to copy, and the hardware in it by id."""

    path: Path
    entries: dict[str, HardwareEntry]


Fill = Callable[[Connection], dict[str, HardwareEntry]]


def find_template(catalogue_digest: str, package_version: str, fill: Fill) -> Template | None:
    """Return the template of a catalogue, making it if need be; None where it cannot be kept.

    `fill` stores the catalogue in an empty database and returns its entries.
    """
    schema = (one.checksum for one in load_migrations())
    identity = [catalogue_digest, digest_code(*WRITERS), package_version, duckdb.__version__, *schema]
    name = f"{hashlib.sha256('|'.join(identity).encode()).hexdigest()[:16]}.duckdb"
    try:
        path = cache_folder() / name
        if not (path.exists() and _index(path).exists()):
            _make(path, fill)
        return Template(path, _read_index(path))
    except (OSError, RuntimeError, duckdb.IOException):
        return None


def _index(path: Path) -> Path:
    return path.with_suffix(".json")


def _read_index(path: Path) -> dict[str, HardwareEntry]:
    rows: list[dict[str, Any]] = json.loads(_index(path).read_text(encoding="utf-8"))
    entries = [HardwareEntry(**row) for row in rows]
    return {entry.id: entry for entry in entries}


def _make(path: Path, fill: Fill) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".draft.", dir=path.parent) as folder:
        draft = Path(folder) / path.name
        connection = duckdb.connect(str(draft))
        try:
            migrate(connection)
            entries = fill(connection)
            connection.execute("CHECKPOINT")
        finally:
            connection.close()
        _index(draft).write_text(json.dumps([attrs.asdict(entry) for entry in entries.values()]), encoding="utf-8")
        _index(draft).replace(_index(path))
        draft.replace(path)
    others = sorted(path.parent.glob("*.duckdb"), key=lambda other: other.stat().st_mtime, reverse=True)
    for other in others[KEPT:]:
        with contextlib.suppress(OSError):
            other.unlink()
            _index(other).unlink()
