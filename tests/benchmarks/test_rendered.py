"""Queries that call others, and those that are a header alone, as they are rendered."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import attrs
import duckdb
import pytest

from joulemap.domain.metric import METRIC, METRICS
from joulemap.domain.table import Row
from joulemap.generated.edp import EdpBound, EdpCut, EdpOperatorShare, EdpShare
from joulemap.generated.explain import Effect, EnergyTerm
from joulemap.physics.record.runtime import RUNTIME, RUNTIME_NAMES, RuntimeName
from joulemap.store.block import share
from joulemap.store.connection import Connection
from joulemap.store.contract import Query
from joulemap.store.header import parse_query
from joulemap.store.library import SHIPPED, find_query, list_queries
from joulemap.store.literal import list_numbers
from joulemap.store.query import fetch, fetch_all, run_query
from joulemap.store.surface import fill_choices
from joulemap.system.errors import SqlError, UsageError
from joulemap.system.resource import folder
from tools.include import CALL, include
from tools.query import TOGETHER, find_source, read_source, render, spell_sql

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


def read(text: str, path: Path, name: str = "called") -> Query:
    place = path / "own" / f"{name}.v1.sql"
    place.parent.mkdir(exist_ok=True)
    place.write_text(text)
    return parse_query(place)


def expand(sql: str, path: Path, old: str = "", new: str = "") -> str:
    query = read(CALLED.replace(old, new) if old else CALLED, path)
    return include(sql, query.name.__eq__, lambda _: query)


def answer(sql: str) -> list[tuple[object, ...]]:
    return duckdb.execute(sql).fetchall()


def test_a_call_is_the_sql_of_the_query_with_what_it_is_given(tmp_path: Path) -> None:
    assert answer(expand("SELECT a, b FROM own.called(most := 2) ORDER BY a", tmp_path)) == [
        (0, "it's, and0"), (1, "it's, and1")
    ]  # fmt: skip
    sql = expand("SELECT count(*), min(b) FROM own.called(most := 3, word := 'a, b') AS c WHERE a > 0", tmp_path)
    assert answer(sql) == [(2, "a, b, and1")]
    assert expand("SELECT 1 FROM cube.part(run_ids := [1])", tmp_path) == "SELECT 1 FROM cube.part(run_ids := [1])"


def test_columns_that_nobody_names_are_left_out(tmp_path: Path) -> None:
    assert "concat" not in expand("SELECT a FROM own.called(most := 3)", tmp_path)
    assert answer(expand("SELECT count(*) FROM own.called(most := 3)", tmp_path)) == [(3,)]
    for star in ("SELECT *", "select distinct *", "SELECT c.*", "SELECT COLUMNS ('b')"):
        assert "concat" in expand(f"{star} FROM own.called(most := 3) AS c", tmp_path), star


@pytest.mark.parametrize(
    ("old", "new", "count"),
    [
        ("SELECT\n", "SELECT DISTINCT\n", 3),
        ("ORDER BY r.a DESC\n", "GROUP BY ALL\nORDER BY r.a DESC\n", 3),
        ("ORDER BY r.a DESC\n", "UNION ALL\nSELECT\n    1,\n    'x'\nFROM range(1)\nORDER BY 1\n", 4),
        ("ORDER BY r.a DESC\n", "ORDER BY r.a DESC\nLIMIT 2\n", 2),
    ],
)
def test_leaving_columns_out_changes_no_count_of_rows(old: str, new: str, count: int, tmp_path: Path) -> None:
    assert answer(expand("SELECT count(*) FROM own.called(most := 3)", tmp_path, old, new)) == [(count,)]


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ("own.called(3)", "NAME := VALUE"),
        ("own.called(most := 1 + 1)", "NAME := VALUE"),
        ("own.called(most := n)", "NAME := VALUE"),
        ("own.called()", "needs the parameter most"),
        ("own.called(word := 'x')", "needs the parameter most"),
        ("own.called(most := 3, most := 4)", "given twice"),
        ("own.called(most := 3, least := 1)", "takes no parameter least"),
    ],
)
def test_a_call_that_cannot_be_is_refused(call: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(SqlError, match=reason):
        expand(f"SELECT a FROM {call}", tmp_path)


def test_what_several_queries_read_from_is_made_once_and_changes_no_answer(opened: Connection) -> None:
    records: dict[str, type[Row]] = {
        "shares": EdpShare,
        "cuts": EdpCut,
        "bounds": EdpBound,
        "operators": EdpOperatorShare,
    }
    assert count_shared(record.query for record in records.values()) == 2  # of subgraphs and of operators
    tables = fetch_all(opened, records, run_id=1)
    for name, record in records.items():
        assert tables[name] == fetch(opened, record, run_id=1)
    assert opened.execute("SELECT count(*) FROM duckdb_tables() WHERE temporary").fetchall() == [(0,)]


def test_what_no_query_takes_is_refused_and_what_has_no_literal_is_asked_all_the_same(opened: Connection) -> None:
    with pytest.raises(UsageError, match="takes subgraf"):
        fetch_all(opened, {"cuts": EdpCut}, run_id=1, subgraf="conv1")
    records: dict[str, type[Row]] = {"terms": EnergyTerm, "effects": Effect}
    tables = fetch_all(opened, records, run_a=1, run_b=2, subgraph="half of a pair: \0")
    assert [len(table) for table in tables.values()] == [0, 6]


def test_a_metric_of_runs_needs_no_column_in_a_query(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tools.query.METRICS", (*METRICS, attrs.evolve(METRIC["power"], column="is_newest")))
    read_source.cache_clear()
    try:
        for name in ("cube.run", "cube.cost"):
            query = render(find_source(name))
            assert query.columns[-1].name == "is_newest"
            assert ".is_newest" in query.sql
    finally:
        read_source.cache_clear()


def test_what_ships_is_what_is_rendered_anew() -> None:
    files = {path: path.read_text(encoding="utf-8") for path in SHIPPED.iterdir()}
    assert files == spell_sql(), "make rows"
    for query in list_queries():
        assert attrs.evolve(render(find_source(query.title)), path=query.path) == query


def count_shared(names: Iterable[str]) -> int:
    """Return the number of tables that queries share if their parameters of one name have the same value."""
    queries = [find_query(name) for name in names]
    shared = share([(query.sql, {one.name: one.name for one in query.parameters}) for query in queries])
    assert shared is not None
    return len(shared[0])


@pytest.mark.parametrize("names", TOGETHER, ids=lambda names: names[0].partition(".")[0])
def test_queries_that_are_run_together_share_what_they_call(names: tuple[str, ...]) -> None:
    assert count_shared(names) > 0
    for name in names:
        assert any(count_shared([name, other]) for other in names), name


def test_few_numbers_of_a_list_stand_alone() -> None:
    assert list_numbers("a IN (SELECT unnest([1, 20]))") == "a IN (1, 20)"
    for text in ("a IN (SELECT unnest([]))", "a IN (SELECT unnest(['x']))", f"a IN (SELECT unnest({list(range(33))}))"):
        assert list_numbers(text) == text


@pytest.mark.parametrize("runtime", RUNTIME_NAMES)
def test_sql_and_python_call_the_same_runtimes_merging(runtime: RuntimeName, opened: Connection) -> None:
    assert opened.execute("SELECT is_merging(?)", [runtime]).fetchall() == [(RUNTIME[runtime].merges,)]


def test_a_query_that_shares_nothing_is_asked_as_it_is() -> None:
    sql = find_query("edp.bound").sql
    shared = share([(sql, {"run_id": 7})])
    assert shared is not None
    tables, (written,) = shared
    assert (tables, sql.count("( -- cube.part")) == ({}, 1)
    assert written == sql.replace("$run_id", "7").replace("( -- cube.part", "(")


def test_a_value_of_several_lines_is_not_moved() -> None:
    sql = "SELECT * FROM ( -- own.called\n    SELECT $word AS word\n)"
    assert share([(sql, {"word": "a b"})] * 2) == ({"shared_0": "SELECT 'a b' AS word"}, ["SELECT * FROM shared_0"] * 2)
    assert share([(sql, {"word": "a\nb"})] * 2) is None


def test_no_caller_hides_a_table_of_the_query_that_it_calls(opened: Connection) -> None:
    statement = "SELECT table_name FROM duckdb_tables() UNION SELECT view_name FROM duckdb_views() WHERE NOT internal"
    known = {name for (name,) in opened.execute(statement).fetchall()}
    seen: set[str] = set()
    for query in list_queries():
        text = find_source(query.title).sql
        if CALL.search(text):
            own = re.findall(r"^(?:WITH )?(\w+) (?:\([\w, ]*\) )?AS (?:MATERIALIZED )?\($", text, re.MULTILINE)
            assert not known & set(own), query.name
            seen.update(own)
    assert {"ranked", "side", "act"} <= seen


@pytest.mark.sample(1)
@pytest.mark.parametrize("level", ["run", "subgraph", "operator"])
def test_every_division_of_causes_adds_up_to_the_run(level: str, opened: Connection) -> None:
    ids = [run_id for (run_id,) in opened.execute("SELECT run_id FROM runs ORDER BY 1 LIMIT 4").fetchall()]
    exact = dict(opened.execute("SELECT run_id, energy_fj FROM internal.run_total").fetchall())
    for name in ("cube.cause", "cube.category"):
        rows = run_query(opened, find_query(name), {"run_ids": ids, "division": level}).records()
        assert {run_id: sum(row["energy_fj"] for row in rows if row["run_id"] == run_id) for run_id in ids} == {
            run_id: exact[run_id] for run_id in ids
        }


@pytest.mark.parametrize("level", ["subgraph", "operator"])
def test_every_division_of_places_adds_up_to_the_run(level: str, opened: Connection) -> None:
    ids = [run_id for (run_id,) in opened.execute("SELECT run_id FROM runs ORDER BY 1 LIMIT 4").fetchall()]
    rows = run_query(opened, find_query("cube.part"), {"run_ids": ids, "division": level}).records()
    assert {row["run_id"] for row in rows} == set(ids)
    for run_id in ids:
        mine = [row for row in rows if row["run_id"] == run_id]
        for part in ("compute_fj", "memory_fj", "control_fj", "static_fj"):
            assert all(0 <= row[part] <= row["energy_fj"] for row in mine)
        assert sum(row["energy_fj"] for row in mine) == mine[0]["run_fj"]
        assert sum(row["latency_fs"] for row in mine) == mine[0]["run_fs"]
        assert sorted(row["rank"] for row in mine) == list(range(1, len(mine) + 1))


@pytest.fixture
def opened(database: Path) -> Connection:
    return duckdb.connect(str(database), read_only=True)


def test_columns_that_are_not_declared_are_those_of_the_query_that_is_called() -> None:
    query = find_query("compare.summary")
    columns = {column.name: column for column in query.columns}
    assert "energy_j" not in {column.name for column in parse_query(find_source(query.name).path).columns}
    assert columns["label"].meaning != ""
    assert (columns["energy_j"].unit, columns["energy_j"].null) == ("J", True)  # a refused run has none
    alone = {column.name: column for column in find_query("analyze.total").columns}
    assert (alone["energy_j"].unit, alone["energy_j"].null) == ("J", False)
    assert alone["padding_fraction"].null


def test_a_word_is_what_several_queries_do_not_declare() -> None:
    words = tomllib.loads(fill_choices((folder("queries") / "words.toml").read_text()))
    files = [(query, parse_query(find_source(query.title).path)) for query in list_queries()]
    for kind, told in words.items():
        taken = Counter(
            one.name
            for query, file in files
            for one in getattr(query, kind)
            if one not in getattr(file, kind) and one.meaning == told.get(one.name, {}).get("meaning")
        )
        assert [name for name in told if taken[name] < 2] == []
