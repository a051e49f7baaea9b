"""Answers to files for programs."""

from __future__ import annotations

from pathlib import Path

from joulemap.resource import package_version
from joulemap.store.migration import SCHEMA_VERSION
from joulemap.store.query import Answer
from joulemap.store.write_parquet import write_parquet


def save_parquet(answer: Answer, path: Path) -> None:
    """Write an answer as Parquet, with its statement, parameters, columns and versions in the file's metadata.

    Raises SqlError for a type that Parquet cannot hold, OSError where the file cannot be written.
    """
    about = {
        "title": answer.title,
        "sql": answer.sql,
        "parameters": dict(answer.parameters),
        "columns": [
            {"name": column.name, "type": column.type, "unit": column.unit, "meaning": column.meaning}
            for column in answer.columns
        ],
        "package_version": package_version("joulemap"),
        "schema_version": SCHEMA_VERSION,
        "duckdb_version": package_version("duckdb"),
    }
    write_parquet(path, [(column.name, column.type) for column in answer.columns], answer.rows, about)
