"""Queries that call others, and those that are a header alone."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from joulemap.errors import SqlError, UnknownNameError
from joulemap.store.connection import Connection
from joulemap.store.include import include
from joulemap.store.library import find_query, list_queries
from joulemap.store.query import run_query

CALLED = """/*
name = "own.called"
version = 1
schema = 1
summary = "s"
grain = "one row per number"
order = ["a descending"]
[parameters]
most = { type = "INTEGER", meaning = "m" }
word = { type = "VARCHAR", default = "it's", meaning = "m" }
[columns]
a = { type = "BIGINT", unit = "s", meaning = "the number" }
b = { type = "VARCHAR", null = true, of = "x", meaning = "the word" }
*/
SELECT
    r.a,
    concat($word, ', ', 'and', r.a) AS b
FROM range($most) AS r (a)
ORDER BY r.a DESC
"""


def called(path: Path) -> tuple[Path, str]:
    (path / "own").mkdir(exist_ok=True)
    (path / "own" / "called.v1.sql").write_text(CALLED)
    return path, "own.called"


def expand(sql: str, path: Path) -> str:
    folder, name = called(path)
    return include(sql, name.__eq__, lambda one: find_query(one, folder))


def answer(sql: str) -> list[tuple[object, ...]]:
    return duckdb.sql(sql).fetchall()


def test_a_call_is_the_sql_of_the_query_with_what_it_is_given(tmp_path: Path) -> None:
    sql = expand(
        "SELECT a, b FROM own.called(most := (SELECT max(x) FROM (VALUES (1), (2)) AS v (x))) ORDER BY a", tmp_path
    )
    assert answer(sql) == [(0, "it's, and0"), (1, "it's, and1")]
    sql = expand("SELECT count(*), min(b) FROM own.called(most := 3, word := 'a, (b') WHERE a > 0", tmp_path)
    assert answer(sql) == [(2, "a, (b, and1")]


def test_columns_that_nobody_names_are_left_out(tmp_path: Path) -> None:
    assert "concat" not in expand("SELECT a FROM own.called(most := 3)", tmp_path)
    assert "concat" in expand("SELECT * FROM own.called(most := 3)", tmp_path)
    assert answer(expand("SELECT count(*) FROM own.called(most := 3)", tmp_path)) == [(3,)]


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ("own.called()", "NAME := VALUE"),
        ("own.called(3)", "NAME := VALUE"),
        ("own.called(word := 'x')", "needs the parameter most"),
        ("own.called(most := 3, least := 1)", "takes no parameter least"),
        ("own.called(most := (3)", "does not end"),
    ],
)
def test_a_call_that_cannot_be_is_refused(call: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(SqlError, match=reason):
        expand(f"SELECT a FROM {call}", tmp_path)


VIEW = """/*
name = "own.view"
version = 1
schema = 1
summary = "s"
grain = "one row per subgraph"
from = "cube.place(run_ids := [$run_id])"
columns = ["name", "energy_fj AS exact_fj"]
order = ["latency_fs descending", "place_index"]
[parameters]
run_id = { type = "INTEGER", meaning = "run" }
*/
"""


def write_view(path: Path, old: str = "", new: str = "") -> Path:
    (path / "own").mkdir()
    (path / "own" / "view.v1.sql").write_text(VIEW.replace(old, new) if old else VIEW)
    return path


def test_a_view_has_the_columns_that_it_names_as_they_are_there(tmp_path: Path, database: Path) -> None:
    query = find_query("own.view", write_view(tmp_path))
    assert [(column.name, column.type, column.unit) for column in query.columns] == [
        ("name", "VARCHAR", ""), ("exact_fj", "HUGEINT", "fJ")
    ]  # fmt: skip
    with duckdb.connect(str(database), read_only=True) as connection:
        rows = run_query(connection, query, {"run_id": 1}).rows
        whole = connection.execute("SELECT sum(line_energy_fj) FROM energy_ledger WHERE run_id = 1").fetchall()
    assert sum(row[1] for row in rows) == whole[0][0]


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('"name"', '"nome"', "has no column nome"),
        ('"name"', '"operator_index"', "of each operator alone"),
        ("*/\n", "*/\nSELECT 1\n", "has no SQL"),
        ('columns = ["name", "energy_fj AS exact_fj"]', "columns = []", "no columns"),
    ],
)
def test_a_view_that_cannot_be_is_refused(old: str, new: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(SqlError, match=reason):
        find_query("own.view", write_view(tmp_path, old, new))


def test_a_view_of_nothing_offers_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match=r"cube\.place"):
        find_query("own.view", write_view(tmp_path, "cube.place", "cube.plase"))


@pytest.mark.parametrize("level", ["run", "subgraph", "operator"])
def test_every_division_of_causes_adds_up_to_the_run(level: str, opened: Connection) -> None:
    ids = [run_id for (run_id,) in opened.execute("SELECT run_id FROM runs ORDER BY 1 LIMIT 4").fetchall()]
    exact = dict(opened.execute("SELECT run_id, energy_fj FROM run_total").fetchall())
    for name in ("cube.cause", "cube.category"):
        rows = run_query(opened, find_query(name), {"run_ids": ids, "division": level}).records()
        assert {run_id: sum(row["energy_fj"] for row in rows if row["run_id"] == run_id) for run_id in ids} == {
            run_id: exact[run_id] for run_id in ids
        }


@pytest.mark.parametrize("level", ["subgraph", "operator"])
def test_every_division_of_places_adds_up_to_the_run(level: str, opened: Connection) -> None:
    ids = [run_id for (run_id,) in opened.execute("SELECT run_id FROM runs ORDER BY 1 LIMIT 4").fetchall()]
    rows = run_query(opened, find_query("cube.place"), {"run_ids": ids, "division": level}).records()
    assert {row["run_id"] for row in rows} == set(ids)
    for run_id in ids:
        mine = [row for row in rows if row["run_id"] == run_id]
        for part in ("compute_fj", "memory_fj", "control_fj", "static_fj"):
            assert all(0 <= row[part] <= row["energy_fj"] for row in mine)
        assert sum(row["energy_fj"] for row in mine) == mine[0]["run_fj"]
        assert sum(row["latency_fs"] for row in mine) == mine[0]["run_fs"]
        assert sorted(row["rank"] for row in mine) == list(range(1, len(mine) + 1))


def test_every_view_says_where_its_rows_come_from() -> None:
    views = [query for query in list_queries() if query.called]
    assert len(views) > 10
    assert all(query.called.startswith("cube.") for query in views)


@pytest.fixture
def opened(database: Path) -> Connection:
    return duckdb.connect(str(database), read_only=True)
