"""A query is stopped where it takes too much, and every type that it can return is written in every format."""

from __future__ import annotations

import json
import resource
import time
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from conftest import Run
from joulemap.domain.settings import Bounds
from joulemap.store.parquet import ABSENT, replace_types
from joulemap.system.errors import ExitCode, SqlError, UsageError
from joulemap.workspace import Workspace
from sample import thin

SHORT = Bounds(timeout_s=0.3)
SMALL = Bounds(max_memory_bytes=60e6, timeout_s=30.0)

ENDLESS = {
    "recursion": "WITH RECURSIVE t (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT count(*) FROM t",
    "range": "SELECT sum(range) FROM range(1000000000000)",
    "cross join": "SELECT count(*) FROM range(1000000) AS a, range(1000000) AS b, range(1000000) AS c",
    "fetch": "SELECT range FROM range(1000000000000) WHERE range % 1000000 = 0",
    "unnest": "SELECT count(*) FROM (SELECT unnest(range(1000000)) FROM range(1000000))",
    "sort": "SELECT max(h) FROM (SELECT hash(range) AS h FROM range(1000000000000))",
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("statement", ENDLESS.values(), ids=ENDLESS)
def test_a_statement_that_does_not_end_is_stopped_within_a_second(statement: str, database: Path) -> None:
    begun = time.process_time()  # a machine that others use too is as slow as they make it
    with pytest.raises(SqlError, match=r"stopped after 0\.3 s: .* --timeout"):
        Workspace(database).sql(statement, bounds=SHORT)
    assert time.process_time() - begun < 1.0


@pytest.mark.slow
def test_a_function_that_the_engine_does_not_stop_ends_the_command(joulemap_process: Run, database: Path) -> None:
    begun = time.monotonic()
    statement = "SELECT levenshtein(repeat('ab', 300000), repeat('ba', 300000))"
    done = joulemap_process("sql", statement, "--timeout", 0.2, "--db", database)
    assert time.monotonic() - begun < 20.0
    assert (done.returncode, done.stdout) == (ExitCode.SQL, "")
    assert done.stderr == "joulemap: stopped after 0.2 s: ask for less, or allow more with --timeout SECONDS\n"


def test_one_value_of_a_function_keeps_to_the_memory(joulemap: Run, database: Path, tmp_path: Path) -> None:
    """The engine does not count what a function writes into one vector: the operating system does."""
    statement = "SELECT len(range(400000000))"
    for more in ((), ("--output", tmp_path / "x.parquet")):
        done = joulemap("sql", statement, "--max-memory", "60MB", "--db", database, *more)
        assert (done.returncode, done.stdout) == (ExitCode.SQL, "")
        assert done.stderr.startswith("joulemap: stopped, because it needs more than 60 MB of memory")
    assert resource.getrlimit(resource.RLIMIT_DATA)[0] == resource.RLIM_INFINITY


def test_rows_are_counted_while_they_come(database: Path) -> None:
    workspace = Workspace(database)
    assert len(workspace.sql("SELECT range FROM range(5000)", bounds=Bounds(max_rows=5000))) == 5000
    for statement in ("SELECT range FROM range(5001)", "SELECT range FROM range(1000000000000)"):
        with pytest.raises(SqlError, match=r"more than 5,000 rows: .* --max-rows"):
            workspace.sql(statement, bounds=Bounds(max_rows=5000))


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "statement",
    [
        "SELECT range FROM range(100000000) ORDER BY hash(range)",
        "SELECT repeat('x', 1000000) AS a FROM range(100)",
        "SELECT list(range) FROM range(100000000)",
        "SELECT [repeat('x', 100000), 'y'] AS a FROM range(1000)",
    ],
)
def test_memory_has_a_bound_and_nothing_goes_to_disk(statement: str, own_database: Path) -> None:
    before = sorted(own_database.parent.iterdir())
    with pytest.raises(SqlError, match=r"more than 60 MB of memory: .* --max-memory"):
        Workspace(own_database).sql(statement, bounds=SMALL)
    assert sorted(own_database.parent.iterdir()) == before


def test_what_is_stopped_leaves_the_database_as_usable_as_before(database: Path) -> None:
    workspace = Workspace(database)
    for _ in range(5):
        with pytest.raises(SqlError, match="stopped"):
            workspace.sql(ENDLESS["range"], bounds=Bounds(timeout_s=0.05))
        assert workspace.sql("SELECT 1 AS one").rows == ((1,),)


def test_versioned_queries_are_bounded_too(joulemap: Run, database: Path, tmp_path: Path) -> None:
    done = joulemap("query", "run", "run.list", "--max-rows", 2, "--db", database)
    assert (done.returncode, done.stdout) == (ExitCode.SQL, "")
    (tmp_path / "qs" / "own").mkdir(parents=True)
    (tmp_path / "qs" / "own" / "long.v1.sql").write_text(
        '/*\nname = "own.long"\nversion = 1\nschema = 1\nsummary = "s"\ngrain = "one row"\norder = []\n[columns]\n'
        'total = { type = "HUGEINT", meaning = "m" }\n*/\nSELECT sum(range) AS total FROM range(1000000000000)\n'
    )
    done = joulemap("query", "run", "own.long", "--queries", "qs", "--timeout", 0.3, "--db", database)
    assert (done.returncode, "stopped after 0.3 s" in done.stderr) == (ExitCode.SQL, True)


@pytest.mark.parametrize(
    "option",
    [("--timeout", "0"), ("--timeout", "nan"), ("--timeout", "-1"), ("--max-rows", "0"), ("--max-memory", "1B"),
     ("--max-memory", "much"), ("--timeout", "soon")],
)  # fmt: skip
def test_a_bound_that_is_none_is_refused(option: tuple[str, str], joulemap: Run, database: Path) -> None:
    done = joulemap("sql", "SELECT 1", *option, "--db", database)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (ExitCode.USAGE, "", 1)


def test_bounds_have_defaults_that_are_said() -> None:
    bounds = Bounds()
    assert (bounds.timeout_s, bounds.max_rows) == (60.0, 1_000_000)
    assert 1e6 < bounds.max_memory_bytes <= 4e9
    with pytest.raises(UsageError, match="max_rows is 0"):
        Bounds(max_rows=0)


VALUES: dict[str, tuple[str, Any]] = {
    "a time with a zone": ("TIMESTAMPTZ '2024-01-01 00:00:00+02'", "2023-12-31 22:00:00+00"),
    "a clock with a zone": ("TIMETZ '12:00:00+01'", "12:00:00+01"),
    "months": ("INTERVAL 14 MONTH", "1 year 2 months"),
    "nanoseconds": ("TIMESTAMP_NS '2024-01-01 00:00:00.123456789'", "2024-01-01 00:00:00.123456789"),
    "a day": ("DATE '2024-01-01'", "2024-01-01"),
    "no last day": ("'infinity'::DATE", "infinity"),
    "no first time": ("'-infinity'::TIMESTAMP", "-infinity"),
    "far away": ("DATE '290000-01-01'", "290000-01-01"),
    "an identity": ("'aee245ac-7f64-4500-9605-7e3eec0a2036'::UUID", "aee245ac-7f64-4500-9605-7e3eec0a2036"),
    "bytes": ("'a\\xFFb'::BLOB", "a\\xFFb"),
    "bits": ("'101'::BIT", "101"),
    "a decimal": ("1.25::DECIMAL(10, 2)", 1.25),
    "a large number": ("170141183460469231731687303715884105727::HUGEINT", 2**127 - 1),
    "no number": ("'nan'::DOUBLE", None),
    "no end": ("'-inf'::FLOAT", None),
    "nothing": ("NULL", None),
    "a list": ("[1, NULL, 3]", [1, None, 3]),
    "an array": ("[1, 2]::INTEGER[2]", [1, 2]),
    "a structure": ("{'a': 1, 'when': INTERVAL 2 DAY}", {"a": 1, "when": "2 days"}),
    "a map": ("MAP {'k': 1.5::DOUBLE}", {"k": 1.5}),
    "times in a list": ("[TIMESTAMPTZ '2024-01-01 00:00:00+00']", ["2024-01-01 00:00:00+00"]),
    "a day without end in a list": ("[DATE 'infinity']", ["infinity"]),
    "one of several": ("union_value(a := INTERVAL 1 DAY)", "1 day"),
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("value", thin(VALUES, 6))
def test_a_value_of_any_type_is_written_in_every_format(
    value: str, joulemap: Run, database: Path, tmp_path: Path
) -> None:
    written, expected = VALUES[value]
    asked = ("sql", f"SELECT {written} AS v; -- as it is", "--db", database)
    assert json.loads(joulemap(*asked, "-f", "json").stdout) == [{"v": expected}]
    shown = {"no number": "nan", "no end": "-inf"}.get(value, "" if expected is None else str(expected))
    for form in ("table", "markdown", "csv"):
        done = joulemap(*asked, "-f", form)
        assert done.returncode == ExitCode.OK, done.stderr
        if isinstance(expected, str) or form == "table":
            assert (shown if not isinstance(expected, list | dict | int | float) else "") in done.stdout
    parquet = joulemap(*asked, "-f", "parquet", "-o", tmp_path / "v.parquet")
    assert parquet.returncode in (ExitCode.OK, ExitCode.SQL), parquet.stderr
    assert parquet.returncode == ExitCode.OK or "cannot be written as Parquet" in parquet.stderr


def test_a_time_with_a_zone_keeps_its_type_in_parquet(joulemap: Run, database: Path, tmp_path: Path) -> None:
    done = joulemap(
        "sql", "SELECT now() AS a, INTERVAL 3 DAY AS b", "-f", "parquet", "-o", "v.parquet", "--db", database
    )
    assert done.returncode == ExitCode.OK, done.stderr
    assert str(pq.read_schema(tmp_path / "v.parquet").field("a").type).startswith("timestamp[us, tz=")


def test_dates_of_this_world_stay_dates(database: Path) -> None:
    rows = Workspace(database).sql("SELECT DATE '2024-01-01' AS a, TIMESTAMP '2024-01-01 01:02:03' AS b").rows
    assert rows == ((date(2024, 1, 1), datetime(2024, 1, 1, 1, 2, 3)),)


def test_order_is_kept_where_columns_are_texts(database: Path) -> None:
    statement = "SELECT range AS n, now() AS t FROM range(10000) ORDER BY hash(range)"
    plain = Workspace(database).sql(statement.replace(", now() AS t", ""))
    assert [row[0] for row in Workspace(database).sql(statement).rows] == [row[0] for row in plain.rows]


def test_types_are_replaced_at_any_depth_and_names_are_kept() -> None:
    kind = "STRUCT(\"INTERVAL\" INTEGER, b MAP(VARCHAR, TIMESTAMP WITH TIME ZONE[]), c ENUM('INTERVAL'))[]"
    assert replace_types(kind, ABSENT) == kind.replace("TIMESTAMP WITH TIME ZONE", "VARCHAR")
    assert replace_types("INTEGER[]", ABSENT) == ""
