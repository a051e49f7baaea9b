"""What engines do wrong that joulemap does not use, and how failures of the one that it uses are told."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any, Final

import duckdb
import pytest

from conftest import Run
from joulemap.store import check, connection
from joulemap.store.connection import reading, reporting_failures, writing
from joulemap.store.engine import connect
from joulemap.store.literal import list_numbers
from joulemap.system.errors import DatabaseError, EngineError, ExitCode

GROW = """
CREATE TABLE board (board_id INTEGER, name VARCHAR);
INSERT INTO board SELECT i, 'board' || i FROM range(100) AS n(i);
CREATE TABLE scale (precision VARCHAR, name VARCHAR);
INSERT INTO scale
SELECT p, n FROM (VALUES ('int8'), ('bf16'), ('')) AS p(p), (SELECT name FROM board UNION SELECT '') AS n(n);
CREATE TABLE run (run_id INTEGER, board_id INTEGER, precision VARCHAR);
INSERT INTO run SELECT i, i % 100, if(i % 2 = 0, 'int8', 'bf16') FROM range(1000) AS n(i);
CHECKPOINT;
INSERT INTO run SELECT i, i % 100, if(i % 2 = 0, 'int8', 'bf16') FROM range(1000, 1057) AS n(i);
"""
"""A column of texts of which some lie in a checkpoint's dictionary and some do not."""

ASKED = """
SELECT count(*)
FROM run AS r
JOIN board AS b ON b.board_id = r.board_id
JOIN scale AS s ON s.precision IN ('', r.precision) AND s.name IN ('', b.name)
"""
"""Engine 2.0.0 fails here: `dict-surviving cache: global dictionary changed identity` (docs/reliability.md)."""


def test_texts_partly_in_a_checkpoint_are_joined(tmp_path: Path) -> None:
    with contextlib.closing(connect(tmp_path / "grown.duckdb")) as grown:
        grown.execute(GROW)
        assert grown.execute(ASKED).fetchall() == [(4 * 1057,)]


def test_a_failure_inside_the_engine_is_told_as_that() -> None:
    said = r"failed internally.*dict-surviving cache.*db check --db runs.duckdb"
    with pytest.raises(EngineError, match=said) as told, reporting_failures("runs.duckdb"):
        raise duckdb.InternalError("INTERNAL Error: dict-surviving cache: global dictionary\n\nStack Trace:")
    assert told.value.exit_code == ExitCode.INTERNAL
    assert "\n" not in str(told.value)


def test_every_database_is_opened_that_way() -> None:
    source = Path(connect.__code__.co_filename).parents[1]
    assert [path.name for path in source.rglob("*.py") if "duckdb.connect(" in path.read_text()] == ["engine.py"]


@pytest.mark.parametrize(
    "error", [duckdb.InternalError("INTERNAL Error: x"), duckdb.FatalException("INTERNAL Error: y")]
)
def test_a_failure_inside_is_no_damage_where_a_database_is_opened_or_made(
    error: duckdb.Error, own_database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(connection, "connect", fail)
    monkeypatch.setattr(connection, "make_empty", fail)
    for opening in (reading(own_database), writing(own_database), writing(own_database.with_name("new.duckdb"))):
        with pytest.raises(EngineError, match="failed internally"), opening:
            pass


def test_a_lack_of_memory_while_opening_is_no_damage(own_database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise duckdb.OutOfMemoryException("Out of Memory Error: Allocation failure")

    monkeypatch.setattr(connection, "connect", fail)
    with pytest.raises(EngineError, match="ran out of memory") as told, reading(own_database):
        pass
    assert "recover" not in str(told.value)


@pytest.mark.slow
def test_a_failure_of_the_audit_over_whole_rows_is_the_engines(
    own_database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise duckdb.InternalError("INTERNAL Error: x")

    monkeypatch.setattr(check, "run_query", fail)
    with pytest.raises(EngineError, match="although no row has changed"):
        check.check_database(own_database)
    with writing(own_database) as opened:
        opened.execute("UPDATE internal.run SET precision = 'int8' WHERE run_id = 1")
    assert next(fault[0] for fault in check.check_database(own_database)) == "audit.conservation has an answer"


ENGINE_FAULTS: Final = (
    duckdb.ConstraintException("Constraint Error: CHECK constraint failed on table run_operator"),
    duckdb.ConversionException("Conversion Error: Could not convert string '' to INT64\n\nLINE 1: SELECT"),
    duckdb.OutOfRangeException("Out of Range Error: Overflow in multiplication of INT64"),
    duckdb.NotImplementedException("Not implemented Error: x"),
    duckdb.OutOfMemoryException("Out of Memory Error: failed to allocate data of size 16.0 MiB"),
    duckdb.InternalException("INTERNAL Error: x"),
)


@pytest.mark.sample(2)
@pytest.mark.parametrize("error", ENGINE_FAULTS, ids=lambda error: type(error).__name__)
def test_an_error_of_the_engine_is_one_line_and_no_fault_of_the_database(
    error: duckdb.Error, joulemap: Run, monkeypatch: pytest.MonkeyPatch, own_database: Path
) -> None:
    errors = [error]

    def fail_once(*given: Any, **named: Any) -> Any:  # the check for damage that follows finds none
        if errors:
            raise errors.pop()
        return list_numbers(*given, **named)

    monkeypatch.setattr("joulemap.store.literal.list_numbers", fail_once)
    done = joulemap("compare", "resnet18", "l4", "--db", own_database)
    assert done.returncode == ExitCode.INTERNAL, done.stderr
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr
    assert any(advice in done.stderr for advice in ("please report", "at a time"))


@pytest.mark.parametrize(
    "error",
    [
        duckdb.IOException("IO Error: No space left on device"),
        duckdb.OutOfMemoryException("Out of Memory Error: failed to offload: No space left on device"),
        duckdb.CatalogException("Catalog Error: Table with name run does not exist!"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_full_disk_and_a_damaged_file_are_matters_of_the_database(error: duckdb.Error) -> None:
    with pytest.raises(DatabaseError), reporting_failures("runs.duckdb"):
        raise error


def test_an_own_query_is_blamed_for_what_it_asks(joulemap: Run, tmp_path: Path) -> None:
    joulemap("compare", "resnet18", "l4")
    done = joulemap("sql", "SELECT CAST('' AS BIGINT)")
    assert done.returncode == ExitCode.SQL
    assert "Could not convert" in done.stderr
