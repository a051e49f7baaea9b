"""What engines do wrong that joulemap does not use, and how failures of the one that it uses are told."""

from __future__ import annotations

import contextlib
from pathlib import Path

import duckdb
import pytest

from joulemap.errors import EngineError, ExitCode
from joulemap.store.connection import telling
from joulemap.store.engine import connect

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
"""Engine 2.0.0 fails here: `dict-surviving cache: global dictionary column 1 changed identity` (docs/reliability.md)."""


def test_texts_partly_in_a_checkpoint_are_joined(tmp_path: Path) -> None:
    with contextlib.closing(connect(tmp_path / "grown.duckdb")) as connection:
        connection.execute(GROW)
        assert connection.execute(ASKED).fetchall() == [(4 * 1057,)]


def test_a_failure_inside_the_engine_is_told_as_that() -> None:
    said = r"failed inside.*dict-surviving cache.*db check --db runs.duckdb"
    with pytest.raises(EngineError, match=said) as told, telling("runs.duckdb"):
        raise duckdb.InternalError("INTERNAL Error: dict-surviving cache: global dictionary\n\nStack Trace:")
    assert told.value.exit_code == ExitCode.INTERNAL
    assert "\n" not in str(told.value)


def test_every_database_is_opened_that_way() -> None:
    source = Path(connect.__code__.co_filename).parents[1]
    assert [path.name for path in source.rglob("*.py") if "duckdb.connect(" in path.read_text()] == ["engine.py"]
