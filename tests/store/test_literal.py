"""Values written into a statement are what the engine makes of them as parameters."""

from __future__ import annotations

import subprocess
import sys
from datetime import datetime
from typing import Any

import duckdb
import pytest

from joulemap.store.engine import IN_MEMORY, connect
from joulemap.store.literal import execute, fill

VALUES: tuple[Any, ...] = (
    None, True, 0, -3, 2**40, 2**70, 1.5, -0.0, 1e-300, float("inf"), "", "it's", "a\n$b ? -- 'é", [], [1, -2],
    datetime(2020, 1, 2, 3, 4, 5, 678901), ["a", None, "'; DROP TABLE internal.run; --"], [[1.5], []],
    list(range(-20, 20)), [*range(40), None], [*range(40), 2**31], [*range(40), 2**70],
)  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_value_has_the_type_and_the_value_of_a_parameter(value: Any) -> None:
    connection = connect(IN_MEMORY)
    sql = "SELECT typeof($x), $x"
    assert fill(sql, {"x": value}) != sql
    assert repr(execute(connection, sql, {"x": value}).fetchall()) == repr(
        connection.execute(sql, {"x": value}).fetchall()
    )


def test_a_long_list_is_one_text_for_the_engine_and_a_list_for_a_reader() -> None:
    many = list(range(40))
    assert fill("SELECT $x", {"x": many}) == f"SELECT CAST('{many}' AS INTEGER[])"
    assert fill("SELECT $x", {"x": many}, long=40) == f"SELECT {many}"


def test_only_parameters_are_replaced() -> None:
    sql = "SELECT '$a', $$ $a $$, \"$a\", b$a, $a+$ab -- $a\n, $a /* $a */"
    assert fill(sql, {"a": 1, "ab": 2}) == "SELECT '$a', $$ $a $$, \"$a\", b$a, 1+2 -- $a\n, 1 /* $a */"
    assert fill("SELECT ?, '?', [?]", [1, 2]) == "SELECT 1, '?', [2]"


@pytest.mark.parametrize(
    "value", [{"a": 1}, b"a", "\0", "\ud800", object()], ids=["map", "bytes", "nul", "half", "any"]
)
def test_what_has_no_literal_is_left_to_the_engine(value: Any) -> None:
    assert fill("SELECT $x", {"x": value}) is None
    assert fill("SELECT $x, $y", {"x": 1}) is None


def test_a_missing_value_is_the_engines_to_tell() -> None:
    with pytest.raises(duckdb.Error, match="y"):
        execute(connect(IN_MEMORY), "SELECT $x, $y", {"x": 1})


def test_a_question_imports_no_pandas() -> None:
    asked = (
        "import sys; from joulemap.store.engine import IN_MEMORY, connect; from joulemap.store.literal import execute; "
        "execute(connect(IN_MEMORY), 'SELECT $x', {'x': [1, 2]}).fetchall(); "
        "assert not {'pandas', 'pyarrow', 'numpy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", asked], check=True)
