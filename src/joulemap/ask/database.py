"""Describe a results database, audit it, and export and import its runs as files."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Never, get_args

import attrs

from joulemap.ask.answer import Answer, fetch_tables
from joulemap.domain.settings import ArchiveFormat, check_name
from joulemap.domain.table import Table
from joulemap.generated.audit import Finding
from joulemap.generated.database import StoredTable, StoredView
from joulemap.plan.catalogue import ensure_catalogue, writing
from joulemap.plan.reader import reading
from joulemap.plan.source import Source
from joulemap.store.connection import (
    allow_folder,
    check_path,
    missing,
    place_database,
    reading as reading_file,
    reporting_failures,
    transaction,
)
from joulemap.store.library import find_query
from joulemap.store.manifest import read_manifest, write_manifest
from joulemap.store.migration import SCHEMA_VERSION, schema_version
from joulemap.store.query import check_runs
from joulemap.store.run import find_all_runs
from joulemap.system.draft import DRAFTS, drafting
from joulemap.system.errors import CatalogueError, DatabaseError, EngineError, LockedDatabaseError, UsageError
from joulemap.system.record import frozen
from joulemap.system.wing import find_parts

if TYPE_CHECKING:
    from joulemap.store.recover import Recovery


@frozen(kw_only=True)
class DatabaseAnswer(Answer):
    """Facts about a database file."""

    path: str
    schema_version: int
    size_bytes: int
    views: Table[StoredView]
    """Views with a stable interface for SQL statements."""
    content: Table[StoredTable]
    """Internal tables behind the views; they may change."""

    def data(self) -> dict[str, Any]:
        """Return the data for machine formats."""
        return {
            "path": self.path,
            "database_schema_version": self.schema_version,
            "size_bytes": self.size_bytes,
            "views": self.views.records(),
            "tables": self.content.records(),
        }


@frozen(kw_only=True)
class AuditAnswer(Answer):
    """Errors found in a database, such as changed rows or totals that differ from their parts."""

    findings: Table[Finding]


def info(source: Source) -> DatabaseAnswer:
    """Return the path, schema version, size and tables of a database file."""
    with reading(source) as connection:
        return DatabaseAnswer(
            path=str(source.path),
            schema_version=schema_version(connection) or 0,
            size_bytes=source.path.stat().st_size,
            **fetch_tables(connection, DatabaseAnswer),
        )


def check(source: Source) -> AuditAnswer:
    """Return every rule that the database breaks: schema, digests of written rows, sums, and what wings prove.

    Reads all of the file, in a separate process. DatabaseError for a damaged block, or if the engine crashes.
    """
    from joulemap.store.guard import check_apart

    query = find_query(Finding.query)
    faults = check_apart(source.path, source.patience)
    if not faults:
        with reading(source) as connection:
            faults = [fault for audit in find_parts("audits") for fault in audit(connection)]
    rows = tuple(map(Finding.of, faults))
    return AuditAnswer(
        findings=Table(title=query.title, columns=query.columns, rows=rows, sql=query.sql, parameters={})
    )


def recover(source: Source, path: str | Path) -> Recovery:
    """Copy all readable data of this database into a new one; return the number of runs, and the losses.

    A sound database is copied as it is. The database itself stays unchanged. Raises DatabaseError if nothing can be
    read, UsageError for a `path` that exists.
    """
    from joulemap.store.archive import merge_archive
    from joulemap.store.guard import recover_apart
    from joulemap.store.measurement import read_measurements, write_measurements
    from joulemap.store.recover import copy_sound

    new = place_database(path)
    if not check_path(source.path):
        raise missing(source.path)
    if os.path.lexists(new) or check_path(new):
        raise UsageError(f"{new} exists: name a new database")
    with reporting_failures(new), _drafting_beside(new) as folder:
        sound = folder / "sound.duckdb"
        if _is_sound(source):
            recovery = copy_sound(source.path, sound)
            sound.replace(new)
            return recovery
        recovery = recover_apart(source.path, sound)
        with reading_file(sound) as connection:
            measured = read_measurements(connection)
        with writing(attrs.evolve(source, path=new)) as connection:
            with transaction(connection):
                ensure_catalogue(connection)
                write_measurements(connection, measured)
            merge_archive(connection, sound)
    return recovery


def _is_sound(source: Source) -> bool:
    """Return True if a check of the database, which takes a fraction of a recovery, finds no fault."""
    from joulemap.store.guard import check_apart

    try:
        return not check_apart(source.path, source.patience)
    except LockedDatabaseError:
        raise
    except (DatabaseError, EngineError):
        return False


def export_runs(
    source: Source, folder: str | Path, run_ids: Sequence[int] = (), *, form: ArchiveFormat = "parquet"
) -> int:
    """Write the named runs, or all, to a new or empty folder; return their number.

    `parquet` holds everything that `import_runs` needs; `json` and `csv` hold the stable views of these runs. Raises
    UnknownNameError for a run that is not stored, UsageError for a folder that is not empty or an unknown form,
    DatabaseError.
    """
    from joulemap.store.archive import write_tables, write_views

    check_name("archive format", form, get_args(ArchiveFormat))
    folder = Path(folder)
    if os.path.lexists(folder) and (not os.path.isdir(folder) or any(folder.iterdir())):
        raise UsageError(f"{folder} exists: name a new or an empty folder")
    try:
        parent = folder.parent.absolute()
    except OSError as error:
        raise UsageError(f"cannot write {folder}: the working folder is gone") from error
    with reading(source, allow_folder(parent / DRAFTS)) as connection:
        stored = find_all_runs(connection)
        check_runs(connection, {"run_ids": run_ids})
        chosen, draft = sorted(set(run_ids)) if run_ids else stored, folder
        try:
            with drafting(parent) as drafts:
                draft = drafts / "archive"
                draft.mkdir()
                if form == "parquet":
                    files = write_tables(connection, draft, chosen)
                else:
                    files = write_views(connection, draft, chosen, form)
                write_manifest(draft, files)
                draft.replace(folder)
        except OSError as error:
            if error.strerror is None and str(draft) not in str(error):
                raise  # the engine's error about the database that it reads
            raise UsageError(f"cannot write {folder}: {error.strerror or error}") from error
    return len(chosen)


def import_runs(source: Source, folder: str | Path) -> tuple[int, int]:
    """Import the runs of a folder written by `export_runs`; return the numbers of new and of already stored runs.

    Runs with equal keys are the same. Raises CatalogueError if the folder is no export or is damaged, or if parts of a
    run do not sum to it. Raises DatabaseError. After an error, nothing is stored.
    """
    from joulemap.store.archive import merge_archive, read_tables
    from joulemap.store.check import find_row_faults

    folder = Path(folder)
    schema_version, files = read_manifest(folder)
    with reporting_failures(source.path), _drafting_beside(source.path) as drafts:
        draft = drafts / "archive.duckdb"
        with contextlib.closing(read_tables(folder, schema_version, files, draft)) as connection:
            findings = [Finding.of(fault) for fault in find_row_faults(connection)]
            if findings:
                _refuse(folder, findings)
        with writing(source) as connection:
            ensure_catalogue(connection)
            return merge_archive(connection, draft)


def _refuse(folder: Path, findings: Sequence[Finding]) -> Never:
    one, more = findings[0], len(findings) - 1
    subjects = {"run": one.run_id, "workload": one.workload_id}
    named = "".join(f"{name} {number}, " for name, number in subjects.items() if number is not None)
    rest = f", and {more} more" if more else ""
    raise CatalogueError(f"{folder} does not add up: {one.rule} ({named}{one.location}){rest}")


def migrate(source: Source) -> int:
    """Create or update the database; return its schema version."""
    with writing(source):
        return SCHEMA_VERSION


@contextlib.contextmanager
def _drafting_beside(path: Path) -> Iterator[Path]:
    """Yield a temporary folder next to a database, on the same file system; DatabaseError if it cannot be written."""
    try:
        with drafting(path.parent) as folder:
            yield folder
    except OSError as error:
        raise DatabaseError(f"cannot write beside {path}: {error.strerror or error}") from error
