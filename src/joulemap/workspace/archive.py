"""Runs out of a database and into another."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from joulemap.errors import CatalogueError, UnknownNameError, UsageError
from joulemap.plan.catalogue import ensure_catalogue, template
from joulemap.resource import package_version
from joulemap.store.archive import Manifest, read_manifest, write_manifest
from joulemap.store.connection import open_for_reading, open_for_writing, using
from joulemap.store.library import find_query
from joulemap.store.migration import SCHEMA_VERSION
from joulemap.store.query import run_query
from joulemap.store.read import find_all_runs

FORMS: Final = ("parquet", "json", "csv")


def export_runs(path: Path, folder: Path, run_ids: Sequence[int], form: str) -> int:
    """Write runs to a folder, which gets its name once it is complete; return how many."""
    from joulemap.store.write_archive import write_tables, write_views

    if form not in FORMS:
        raise UsageError(f"cannot export as {form!r}; known: {', '.join(FORMS)}")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} is there already: name a folder that is new or empty")
    with using(open_for_reading(path), path) as connection:
        stored = find_all_runs(connection)
        for run_id in run_ids:
            if run_id not in stored:
                raise UnknownNameError("run", str(run_id), (), "see `joulemap query run run.list`")
        chosen = sorted(set(run_ids)) if run_ids else stored
        try:
            with tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as place:
                draft = Path(place) / "archive"
                draft.mkdir()
                write = write_tables(connection, draft, chosen) if form == "parquet" else None
                entries = write if write is not None else write_views(connection, draft, chosen, form)
                manifest = Manifest(
                    schema_version=SCHEMA_VERSION,
                    package_version=package_version("joulemap"),
                    duckdb_version=package_version("duckdb"),
                    entries=entries,
                )
                write_manifest(draft, manifest)
                draft.replace(folder)
        except OSError as error:
            raise UsageError(f"cannot write {folder}: {error.strerror or error}") from error
    return len(chosen)


def import_runs(path: Path, folder: Path) -> tuple[int, int]:
    """Read runs from a folder; return (new, stored already). The archive is read and audited before `path` is."""
    from joulemap.store.read_archive import merge_archive, read_tables

    manifest = read_manifest(folder, SCHEMA_VERSION)
    with tempfile.TemporaryDirectory(prefix="joulemap-import-") as place:
        draft = Path(place) / "archive.duckdb"
        with contextlib.closing(read_tables(folder, manifest, draft)) as connection:
            findings = run_query(connection, find_query("audit.conservation"), {}).rows
            if findings:
                rule, run_id, where, *_ = findings[0]
                more = f", and {len(findings) - 1} more" if len(findings) > 1 else ""
                raise CatalogueError(f"{folder} does not add up: {rule} (run {run_id}, {where}){more}")
        with using(open_for_writing(path, template(path)), path) as connection:
            ensure_catalogue(connection)
            return merge_archive(connection, draft)
