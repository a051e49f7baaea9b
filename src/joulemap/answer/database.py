"""A results database: its tables, the audit of its sums, and its runs as files."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, get_args

import attrs

from joulemap.answer.answer import Answer
from joulemap.domain.settings import ArchiveFormat, check_name
from joulemap.domain.table import Table
from joulemap.errors import CatalogueError, UsageError
from joulemap.plan.catalogue import ensure_catalogue, template
from joulemap.plan.source import reading
from joulemap.present.cell import show_quantity
from joulemap.present.document import Document, Section, Text, grid
from joulemap.resource import package_version
from joulemap.store.connection import open_for_writing, read_everything, using
from joulemap.store.manifest import Manifest, read_manifest, write_manifest
from joulemap.store.migration import SCHEMA_VERSION, schema_version
from joulemap.store.query import check_runs, fetch
from joulemap.store.run import find_all_runs


@attrs.frozen
class Finding:
    """A rule that the database breaks."""

    query: ClassVar[str] = "audit.conservation"

    rule: str
    run_id: int
    place: str
    expected: str
    found: str


@attrs.frozen
class StoredTable:
    """A table of the database."""

    query: ClassVar[str] = "database.content"

    table_name: str
    row_count: int
    column_count: int
    meaning: str


@attrs.frozen(kw_only=True)
class DatabaseAnswer(Answer):
    """What a database file is."""

    path: str
    schema_version: int
    size_bytes: int
    content: Table[StoredTable]

    def data(self) -> dict[str, Any]:
        """Return what programs get."""
        return {
            "path": self.path,
            "schema_version": self.schema_version,
            "size_bytes": self.size_bytes,
            "tables": self.content.records(),
        }

    def document(self) -> Document:
        """Return it for people and programs."""
        shown = grid(
            self.content,
            (
                ("table", "table_name"),
                ("rows", "row_count"),
                ("columns", "column_count"),
                ("meaning", "meaning"),
            ),
            keep=("rows", "meaning"),
        )
        return Document(
            title=f"{self.path}: schema {self.schema_version}, {show_quantity(self.size_bytes, 'B')}",
            sections=(Section("", shown),),
            data=self.data(),
            table=self.content,
        )


@attrs.frozen(kw_only=True)
class AuditAnswer(Answer):
    """Every rule that a database breaks; none proves that the parts add up."""

    findings: Table[Finding]

    def document(self) -> Document:
        """Return it for people and programs."""
        names = ("rule", "run_id", "place", "expected", "found")
        text = () if self.findings.rows else (Text("ok: every part adds up"),)
        shown = grid(self.findings, [(name.replace("_", " "), name) for name in names])
        return Document(
            title="", sections=(Section("", (shown, *text)),), data=self.findings.records(), table=self.findings
        )


def describe_database(path: Path) -> DatabaseAnswer:
    """Return what the database file is and holds."""
    with reading(path) as connection:
        return DatabaseAnswer(
            path=str(path),
            schema_version=schema_version(connection) or 0,
            size_bytes=path.stat().st_size,
            content=fetch(connection, StoredTable),
        )


def audit_database(path: Path) -> AuditAnswer:
    """Return every rule that the database breaks, after reading all of it, as `Workspace.check` documents it."""
    with reading(path) as connection:
        read_everything(connection, path)
        return AuditAnswer(findings=fetch(connection, Finding))


def export_runs(path: Path, folder: Path, run_ids: Sequence[int], form: ArchiveFormat) -> int:
    """Write runs to a folder, which gets its name once it is complete; return how many."""
    from joulemap.store.archive import write_tables, write_views

    check_name("archive format", form, get_args(ArchiveFormat))
    if os.path.lexists(folder) and (not os.path.isdir(folder) or any(folder.iterdir())):
        raise UsageError(f"{folder} is there already: name a folder that is new or empty")
    with reading(path) as connection:
        stored = find_all_runs(connection)
        check_runs(connection, {"run_ids": run_ids})
        chosen = sorted(set(run_ids)) if run_ids else stored
        try:
            with tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as place:
                draft = Path(place) / "archive"
                draft.mkdir()
                if form == "parquet":
                    entries = write_tables(connection, draft, chosen)
                else:
                    entries = write_views(connection, draft, chosen, form)
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
    from joulemap.store.archive import merge_archive, read_tables

    manifest = read_manifest(folder, SCHEMA_VERSION)
    with tempfile.TemporaryDirectory(prefix="joulemap-import-") as place:
        draft = Path(place) / "archive.duckdb"
        with contextlib.closing(read_tables(folder, manifest, draft)) as connection:
            findings = fetch(connection, Finding)
            if findings.rows:
                first = findings[0]
                more = f", and {len(findings) - 1} more" if len(findings) > 1 else ""
                raise CatalogueError(
                    f"{folder} does not add up: {first.rule} (run {first.run_id}, {first.place}){more}"
                )
        with using(open_for_writing(path, template(path)), path) as connection:
            ensure_catalogue(connection)
            return merge_archive(connection, draft)
