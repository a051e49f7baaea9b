"""Rows are written as they come: the same bytes as from a whole table, at once, and however many there are."""

from __future__ import annotations

import io
import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from conftest import Run
from joulemap.domain.settings import Bounds
from joulemap.domain.table import Column
from joulemap.show.present.document import table_document
from joulemap.show.present.format import list_formats, write, write_rows
from joulemap.store.connection import limit, reading
from joulemap.store.query import Rows
from joulemap.system.errors import DatabaseError, ExitCode, SqlError
from joulemap.workspace import Workspace

COLUMNS = (
    Column(name="run_id", type="INTEGER", meaning=""),
    Column(name="hardware", type="VARCHAR", meaning="of the run"),
    Column(name="energy_j", type="DOUBLE", unit="J", meaning="of the batch"),
    Column(name="line_energy_fj", type="HUGEINT", unit="fJ", meaning="exact"),
    Column(name="price", type="DECIMAL(10,2)", meaning=""),
    Column(name="is_newest", type="BOOLEAN", meaning=""),
    Column(name="levels", type="INTEGER[]", meaning=""),
    Column(name="about", type="STRUCT(a INTEGER)", meaning=""),
    Column(name="created_at", type="TIMESTAMP", meaning=""),
    Column(name='odd "name", =1', type="VARCHAR", meaning=""),
)
ROWS: tuple[tuple[Any, ...], ...] = (
    (1, "tpu_v4", 0.0, 2**70 + 1, Decimal("1.50"), True, [1, 2], {"a": 1}, datetime(2026, 1, 2, 3, 4), "=1+1"),
    (0, "h100", -0.0, 0, Decimal("0.00"), False, [], {"a": None}, None, 'a "quoted", text\nof two lines'),
    (-1, "", float("nan"), -1, None, None, None, None, datetime(2026, 1, 2), "\x1b[31m\u202e"),
    (1, "tpu_v4", 1.0, 1, Decimal("1.50"), True, [1, 2], {"a": 1}, None, None),
)
HEAD = Rows(title="sql", columns=COLUMNS, rows=(), projected=frozenset({"h100"}))


def pieces(rows: Sequence[tuple[Any, ...]], size: int) -> Iterator[tuple[tuple[Any, ...], ...]]:
    for start in range(0, len(rows), size):
        yield tuple(rows[start : start + size])


@pytest.mark.parametrize("form", list_formats())
@pytest.mark.parametrize("rows", [ROWS, ROWS[:1], ()], ids=["several", "one", "none"])
def test_one_batch_is_written_as_a_whole_table(form: str, rows: tuple[tuple[Any, ...], ...]) -> None:
    table = Rows(title="sql", columns=COLUMNS, rows=rows, projected=HEAD.projected)
    for width in (None, 80):
        whole = write(table_document(table), form, width)
        assert "".join(write_rows(HEAD, pieces(rows, 10), form, width)) == whole


@pytest.mark.parametrize("form", ["csv", "json"])
@pytest.mark.parametrize("size", [1, 3])
def test_batches_are_written_as_a_whole_table(form: str, size: int) -> None:
    whole = write(table_document(Rows(title="sql", columns=COLUMNS, rows=ROWS)), form)
    assert "".join(write_rows(HEAD, pieces(ROWS, size), form)) == whole


def test_an_empty_cell_alone_in_its_row_is_no_empty_line() -> None:
    head = Rows(title="sql", columns=COLUMNS[1:2], rows=())
    assert "".join(write_rows(head, [[("",), (None,)], [("a",)]], "csv")) == 'hardware\n""\n""\na'


@pytest.mark.parametrize("form", ["table", "markdown", "html"])
def test_columns_are_as_wide_as_the_first_batch_needs(form: str) -> None:
    rows = [(index, f"chip {index}") for index in range(100, 600)]
    head = Rows(title="sql", columns=COLUMNS[:2], rows=())
    whole = write(table_document(Rows(title="sql", columns=COLUMNS[:2], rows=tuple(rows))), form)
    assert "".join(write_rows(head, pieces(rows, 100), form)) == whole


def test_what_is_longer_later_sticks_out_and_is_whole() -> None:
    head = Rows(title="sql", columns=COLUMNS[:2], rows=())
    rows = [(1, "a"), (2, "a longer text than before"), (333333, "b")]
    lines = "".join(write_rows(head, pieces(rows, 1), "table")).splitlines()
    assert lines[2:] == ["     1  a", "     2  a longer text than before", "333333  b"]


MANY = "SELECT range AS n, 'text ' || range AS t FROM range(3000000)"


@pytest.mark.slow
def test_a_reader_who_leaves_has_the_first_rows_at_once_and_no_error(database: Path) -> None:
    for form in ("table", "csv", "json"):
        begun = time.monotonic()
        with subprocess.Popen(
            [sys.executable, "-m", "joulemap", "sql", MANY.replace("3000000", "1000000000000"), "-f", form, "--db",
             str(database)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:  # fmt: skip
            assert process.stdout is not None and process.stderr is not None
            assert process.stdout.readline()
            process.stdout.close()
            assert process.stderr.read() == b""
            assert process.wait(timeout=30) == ExitCode.OK
        assert time.monotonic() - begun < 30.0


@pytest.mark.slow
def test_an_error_in_the_middle_is_told(joulemap: Run, database: Path) -> None:
    statement = "SELECT CASE WHEN range = 2500000 THEN error('gone') ELSE range END AS n FROM range(3000000)"
    done = joulemap("sql", statement, "-f", "csv", "--db", database)
    assert done.returncode == ExitCode.SQL
    assert done.stdout.startswith("n\n0\n1\n")
    assert "gone" in done.stderr
    done = joulemap("sql", statement, "-f", "csv", "-o", "rows.csv", "--db", database)
    assert (done.returncode, done.stdout, Path("rows.csv").exists()) == (ExitCode.SQL, "", False)


def test_rows_may_be_more_than_a_table_holds(database: Path) -> None:
    workspace = Workspace(database)
    with workspace.stream("SELECT range FROM range(1500000)") as statement:
        assert sum(map(len, statement.batches())) == 1_500_000
        assert statement.arrow().read_all().num_rows == 1_500_000
    with workspace.stream(MANY, bounds=Bounds(max_rows=10)) as statement:
        for read in (lambda: list(statement.batches()), lambda: statement.arrow().read_all()):
            with pytest.raises(SqlError, match="more than 10 rows"):
                read()


def test_a_reader_may_take_longer_than_the_query(database: Path) -> None:
    with Workspace(database).stream("SELECT range FROM range(10000)", bounds=Bounds(timeout_s=0.3)) as statement:
        batches = statement.batches()
        first = next(batches)
        time.sleep(0.6)
        assert len(first) + sum(map(len, batches)) == 10_000
    endless = "SELECT sum(range) FROM range(1000000000000)"
    with (
        Workspace(database).stream(endless, bounds=Bounds(timeout_s=0.2)) as statement,
        pytest.raises(SqlError, match=r"stopped after 0\.2 s"),
    ):
        next(statement.batches())


def test_days_without_end_are_texts_and_others_stay_days(database: Path) -> None:
    statement = "SELECT * FROM (VALUES (DATE '2024-01-01', [DATE 'infinity']), (DATE '-infinity', [])) AS t (a, b)"
    assert Workspace(database).sql(statement).rows == ((date(2024, 1, 1), ["infinity"]), ("-infinity", []))


LEDGER = "SELECT * FROM energy_ledger ORDER BY run_id, operator_index, action, component"


@pytest.mark.slow
def test_parquet_is_written_by_the_engine_and_says_what_it_is(joulemap: Run, database: Path, tmp_path: Path) -> None:
    place = tmp_path / "ledger.parquet"
    done = joulemap("sql", LEDGER, "-f", "parquet", "-o", place, "--db", database)
    assert (done.returncode, done.stdout, done.stderr) == (ExitCode.OK, "", f"wrote {place}\n")
    rows = Workspace(database).sql(LEDGER)
    file = pq.read_table(place)
    assert [tuple(row.values()) for row in file.to_pylist()] == list(rows.rows)
    assert json.loads(file.schema.metadata[b"joulemap"])["sql"] == LEDGER
    again = joulemap("sql", "SELECT 1 AS a", "-f", "parquet", "-o", place, "--db", database)
    assert again.returncode == ExitCode.OK, again.stderr


def test_wide_integers_are_exact_in_every_format(joulemap: Run, database: Path, tmp_path: Path) -> None:
    statement = (
        f"SELECT {2**100 + 1}::HUGEINT AS a, {2**100 + 1}::HUGEINT AS a, sum(line_energy_fj) AS s FROM energy_ledger"
    )
    with Workspace(database).stream(statement) as opened:
        (row,) = opened.arrow().read_all().to_pylist()
    assert (row["a"], row["a_2"]) == (2**100 + 1, 2**100 + 1)
    joulemap("sql", statement, "-f", "parquet", "-o", "a.parquet", "--db", database)
    assert pq.read_table(tmp_path / "a.parquet").to_pylist() == [row]
    assert json.loads(joulemap("sql", statement, "-f", "json", "--db", database).stdout) == [
        {name: int(value) for name, value in row.items()}
    ]


@pytest.mark.parametrize(
    "statement",
    ["SELECT * FROM read_text('/etc/hostname')", "COPY run TO 'escaped.csv'", "SELECT 1; DELETE FROM internal.run"],
)
def test_a_statement_to_parquet_reaches_no_other_file(
    statement: str, joulemap: Run, database: Path, tmp_path: Path
) -> None:
    done = joulemap("sql", statement, "-f", "parquet", "-o", "a.parquet", "--db", database)
    assert done.returncode == ExitCode.SQL
    assert list(tmp_path.iterdir()) == []


def test_one_file_is_open_to_the_engine(database: Path, tmp_path: Path) -> None:
    allowed, other = tmp_path / "it's.parquet", tmp_path / "other.parquet"
    with reading(database, kind=limit(1e9, output=allowed)) as connection:
        connection.execute(f"COPY (SELECT 1) TO '{str(allowed).replace(chr(39), chr(39) * 2)}' (USE_TMP_FILE false)")
    with (
        pytest.raises(DatabaseError, match="disabled by configuration"),
        reading(database, kind=limit(1e9, output=allowed)) as connection,
    ):
        connection.execute(f"COPY (SELECT 1) TO '{other}' (USE_TMP_FILE false)")
    assert allowed.exists() and not other.exists()


def test_a_limit_shows_the_first_rows_and_tells_of_the_rest(joulemap: Run, database: Path) -> None:
    done = joulemap("sql", "SELECT range AS n FROM range(5000)", "--limit", 3, "--db", database)
    assert done.stdout.splitlines()[2:] == [
        "0", "1", "2", "", "4,997 more rows; --limit 5000 shows all, `-o FILE` or a pipe gets all"
    ]  # fmt: skip
    asked = ("query", "run", "run.list", "--limit", 1, "--db", database)
    assert "more row" in joulemap(*asked).stdout
    assert len(json.loads(joulemap(*asked, "-f", "json").stdout)) > 1


def test_a_terminal_shows_some_rows(database: Path) -> None:
    main, terminal = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "joulemap", "sql", MANY, "--db", str(database)],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
    ) as process:
        os.close(terminal)
        told = b""
        try:
            while chunk := os.read(main, 65536):
                told += chunk
        except OSError:
            pass
        assert process.wait(timeout=60) == ExitCode.OK
    os.close(main)
    assert b"2,999,800 more rows; --limit 3000000 shows all" in told
    assert told.count(b"text ") == 200


def test_nothing_is_written_before_the_first_row_is_there() -> None:
    def fail() -> Iterator[tuple[tuple[Any, ...], ...]]:
        raise SqlError("refused")
        yield ()

    for form in list_formats():
        with redirect_stdout(io.StringIO()), pytest.raises(SqlError):
            next(write_rows(HEAD, fail(), form))


def test_an_interrupt_ends_it_at_once(database: Path, tmp_path: Path) -> None:
    endless = MANY.replace("3000000", "1000000000000")
    with subprocess.Popen(
        [sys.executable, "-m", "joulemap", "sql", endless, "-f", "csv", "-o", "rows.csv", "--db", str(database)],
        stderr=subprocess.PIPE,
        cwd=tmp_path,
    ) as process:
        deadline = time.monotonic() + 60.0
        while not any(tmp_path.rglob("output")):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        begun = time.monotonic()
        assert process.wait(timeout=30) == ExitCode.INTERRUPTED
        assert time.monotonic() - begun < 5.0
    assert list(tmp_path.iterdir()) == []
