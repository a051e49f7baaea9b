"""Manifest of an archive of runs, which is a folder with one shard per table (`joulemap.store.shard`).

The manifest has the versions of schema, package and engine, and for each file the columns with their DuckDB types.
Column names are those of the tables, including units.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from joulemap.store.migration import SCHEMA_VERSION
from joulemap.store.shard import find_damage, read_name
from joulemap.system.errors import CatalogueError
from joulemap.system.file import FileError, read_text
from joulemap.system.resource import package_version

MANIFEST: Final = "manifest.json"
MOST_BYTES: Final = 10_000_000
FORMAT: Final = "joulemap runs"
FORMAT_VERSION: Final = 2
PACKAGES: Final[Mapping[str, str]] = {"package": "joulemap", "duckdb": "duckdb"}
"""Name in the manifest -> package whose version it states."""

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


def write_manifest(folder: Path, files: Mapping[str, Mapping[str, str]]) -> None:
    """Write the manifest of the archive in a folder; `files` maps each file to its columns, as name -> type."""
    versions = {f"{name}_version": package_version(package) for name, package in PACKAGES.items()}
    document = {"format": FORMAT, "format_version": FORMAT_VERSION, "schema_version": SCHEMA_VERSION, **versions}
    text = json.dumps({**document, "files": files}, indent=2, ensure_ascii=False)
    (folder / MANIFEST).write_text(f"{text}\n", encoding="utf-8")


def read_manifest(folder: Path) -> tuple[int, dict[str, Path]]:
    """Return the schema version of an archive and the file of each table, after a check of the files.

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
        schema_version, names = int(document["schema_version"]), list(dict(document["files"]))
    except (KeyError, TypeError, ValueError) as error:
        raise CatalogueError(f"{path} is damaged: {type(error).__name__} {error}") from error
    if not 1 <= schema_version <= SCHEMA_VERSION:
        raise CatalogueError(
            f"{path} has schema {schema_version}, this joulemap reads up to {SCHEMA_VERSION}: upgrade joulemap"
        )
    files = {name.partition("-")[0]: folder / name for name in names}
    if "run" not in files:
        raise CatalogueError(f"{folder} is not an archive of whole runs, but of views; {hint}")
    if len(files) < len(names):
        raise CatalogueError(f"{path} names a table twice")
    for table, file in files.items():
        if table not in KEYS or file.parent != folder:
            raise CatalogueError(f"{path} names {file.name!r}, which is not a table of runs")
        shard = read_name(file)
        if shard is None:
            raise CatalogueError(f"{file} is missing")
        if damage := find_damage(shard):
            raise CatalogueError(f"{file} is damaged: {damage}")
    return schema_version, files
