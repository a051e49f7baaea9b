"""Closed sets of the database follow from records: checks and meanings list the members, tables name none."""

from __future__ import annotations

import re
from typing import get_args

import duckdb
import pytest

from blank import open_blank
from conftest import Run
from joulemap.domain.scope import SCOPE_NAMES, SCOPES
from joulemap.physics.record.workload import Work


@pytest.fixture(scope="module")
def connection() -> duckdb.DuckDBPyConnection:
    return open_blank()


def list_checked(connection: duckdb.DuckDBPyConnection, table: str, column: str) -> list[str]:
    """Return the texts that a check allows in a column."""
    (check,) = (
        text
        for (text,) in connection.execute(
            "SELECT expression FROM duckdb_constraints() WHERE table_name = $table AND constraint_type = 'CHECK'",
            {"table": table},
        ).fetchall()
        if re.match(rf'\("?{column}"? IN ', text)
    )
    return re.findall(r"'([^']*)'", check)


@pytest.mark.parametrize(
    ("table", "column", "members"),
    [("workload", "work", get_args(Work))],
)
def test_a_check_lists_the_members(
    connection: duckdb.DuckDBPyConnection, table: str, column: str, members: tuple[str, ...]
) -> None:
    assert list_checked(connection, table, column) == list(members)


def test_the_meaning_of_a_scope_is_that_of_its_record(connection: duckdb.DuckDBPyConnection) -> None:
    ((told,),) = connection.execute(
        "SELECT DISTINCT comment FROM duckdb_columns() "
        "WHERE column_name = 'scope' AND table_name = 'serving_measurements'"
    ).fetchall()
    assert all(f"{one.name} ({one.meaning})" in told for one in SCOPES)


def test_help_lists_the_scopes_of_served_measurements(joulemap: Run) -> None:
    told = " ".join(joulemap("measurements", "import", "--help", "all").stdout.split())
    assert all(name in told for name in SCOPE_NAMES)
