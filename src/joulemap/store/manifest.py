"""Manifest of an archive of runs, which is a folder with one Parquet file per table.

The manifest has the versions of schema, package and engine. For each file it has the number of rows, the columns with
their DuckDB types, and the digest. Column names are those of the tables, including units.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import attrs

from joulemap.system.errors import CatalogueError
from joulemap.system.file import FileError, read_text
from joulemap.system.record import frozen

MANIFEST: Final = "manifest.json"
MOST_BYTES: Final = 10_000_000
FORMAT: Final = "joulemap runs"
FORMAT_VERSION: Final = 1

KEYS: Final[Mapping[str, str]] = {
    "workload": "workload_id",
    "workload_subgraph": "workload_id",
    "workload_operator": "workload_id",
    "workload_tensor": "workload_id",
    "workload_access": "workload_id",
    "workload_edge": "workload_id",
    "workload_buffer": "workload_id",
    "workload_finding": "workload_id",
    "hardware_version": "hardware_digest",
    "hardware_fact": "hardware_digest",
    "hardware_precision": "hardware_digest",
    "hardware_level": "hardware_digest",
    "hardware_link": "hardware_digest",
    "hardware_load": "hardware_digest",
    "hardware_operator": "hardware_digest",
    "hardware_power_mode": "hardware_digest",
    "action": "action_id",
    "energy_per_action": "hardware_digest",
    "calibration": "calibration_digest",
    "calibration_coefficient": "calibration_digest",
    "calibration_error": "calibration_digest",
    "run": "run_id",
    "run_subgraph": "run_id",
    "run_operator": "run_id",
    "ledger_line": "run_id",
    "point_total": "run_id",
    "point_action": "run_id",
}
"""Table -> column by which the rows of exported runs are selected."""


@frozen(kw_only=True)
class Entry:
    """Entry of the manifest for one file of an archive."""

    rows: int
    columns: Mapping[str, str]
    """Column name -> DuckDB type."""
    digest: str
    """SHA-256 of the file, in hexadecimal digits."""


@frozen(kw_only=True)
class Manifest:
    """Versions and files of an archive."""

    schema_version: int
    package_version: str
    duckdb_version: str
    entries: Mapping[str, Entry]
    """File name without its suffix -> entry."""


def digest_file(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal digits."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write a manifest to the folder of its archive."""
    text = json.dumps(
        {"format": FORMAT, "format_version": FORMAT_VERSION, **attrs.asdict(manifest)}, indent=2, ensure_ascii=False
    )
    (folder / MANIFEST).write_text(f"{text}\n", encoding="utf-8")


def read_manifest(folder: Path, newest_schema: int) -> Manifest:
    """Return the manifest of an archive, after a check of its files.

    Raises CatalogueError for a folder that is not a run archive, was written by a newer joulemap, or has missing or
    changed files.
    """
    path = folder / MANIFEST
    hint = "expected a folder that `joulemap db export` wrote as Parquet"
    if not os.path.isfile(path):
        raise CatalogueError(f"{folder} is not an archive of runs, it has no {MANIFEST}; {hint}")
    try:
        document = json.loads(read_text(path, MOST_BYTES))
    except (FileError, ValueError, RecursionError) as error:
        raise CatalogueError(f"{path} cannot be read: {error}; {hint}") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise CatalogueError(f"{path} does not describe an archive of runs; {hint}")
    if document.get("format_version") != FORMAT_VERSION:
        raise CatalogueError(
            f"{path} has format version {document.get('format_version')}, this joulemap reads {FORMAT_VERSION}"
        )
    try:
        manifest = _structure(document)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise CatalogueError(f"{path} is damaged: {type(error).__name__} {error}") from error
    if not 1 <= manifest.schema_version <= newest_schema:
        raise CatalogueError(
            f"{path} has schema {manifest.schema_version}, this joulemap reads up to {newest_schema}: upgrade joulemap"
        )
    if "run" not in manifest.entries:
        raise CatalogueError(f"{folder} is not an archive of whole runs, but of views; {hint}")
    for name, entry in manifest.entries.items():
        if name not in KEYS:
            raise CatalogueError(f"{path} names {name!r}, which is not a table of runs")
        file = folder / f"{name}.parquet"
        if not file.is_file():
            raise CatalogueError(f"{file} is missing")
        if digest_file(file) != entry.digest:
            raise CatalogueError(f"{file} is damaged: its digest is not that of {MANIFEST}")
    return manifest


def _structure(document: Mapping[str, Any]) -> Manifest:
    return Manifest(
        **{name: str(document[name]) for name in ("package_version", "duckdb_version")},
        schema_version=int(document["schema_version"]),
        entries={
            str(name): Entry(rows=int(entry["rows"]), columns=dict(entry["columns"]), digest=str(entry["digest"]))
            for name, entry in document["entries"].items()
        },
    )
