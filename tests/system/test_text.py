"""What a person reads cannot steer the terminal, and what a spreadsheet reads cannot run."""

from __future__ import annotations

import csv
import io
import json
import sys
import unicodedata
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given, strategies as st

from conftest import Run
from joulemap.show.present.text import STEERING, escape_json, make_visible, one_line
from joulemap.store.contract import write_query
from joulemap.store.library import find_query
from joulemap.system.errors import ExitCode, UnknownNameError
from joulemap.system.name import find_meant, find_nearest, join_words
from joulemap.workspace import Workspace

STEERS = "\x1b[31m\x07\r\x08\x7f\x9b2J\u202e\u2066\u200b\u2028\ufeff\U000e0041"
SHOWN = r"\x1b[31m\x07\r\x08\x7f\x9b2J\u202e\u2066\u200b\u2028\ufeff\U000e0041"
AS_SQL = "||".join(f"chr({ord(one)})" for one in STEERS)


def is_harmless(text: str) -> bool:
    return not any(unicodedata.category(one) in STEERING for one in text.replace("\n", ""))


@pytest.mark.slow
def test_every_character_that_steers_is_shown_and_no_other_is_changed() -> None:
    for code in range(sys.maxunicode + 1):
        one = chr(code)
        steers = unicodedata.category(one) in STEERING and one != "\n"
        shown = make_visible(f"a{one}b")
        assert (shown != f"a{one}b") == steers, hex(code)
        assert not steers or (shown.isascii() and shown.isprintable()), hex(code)


def test_a_byte_of_a_name_that_is_no_text_is_shown_as_that_byte() -> None:
    assert make_visible("r\udcff.toml") == r"r\xff.toml"


STEER = st.sampled_from("<>&/!-'\"\\\x00\x1b\x7f\x9b\u2028\u202e")
LETTERS = (st.integers(0, 0xD7FF) | st.integers(0xE000, 0x10FFFF)).map(chr) | STEER
"""Of any kind; to know their kinds takes seconds."""


@given(st.lists(LETTERS).map("".join))
def test_json_keeps_its_texts_and_steers_nothing(text: str) -> None:
    written = escape_json(json.dumps([text], ensure_ascii=False))
    assert json.loads(written) == [text]
    assert is_harmless(written)


def test_an_error_is_one_line_of_bounded_length() -> None:
    assert one_line(f"a\n{STEERS[:6]} b", 100) == r"a \x1b[31m\x07 b"
    line = one_line("x" * 1_000_000, 300)
    assert (len(line), "\n" in line) == (303, False)
    assert one_line(f"unknown {'x' * 500} here", 2000) == f"unknown {'x' * 200} … {'x' * 100} here"


def test_a_name_of_any_length_is_looked_up_at_once_and_shown_short() -> None:
    """No name is like one many times as long, so that no comparison letter by letter is needed."""
    long = "bert" * 25_000
    with patch("difflib.SequenceMatcher.ratio", side_effect=AssertionError):
        assert find_meant(long, ["bert_base", "resnet18"]) == []
        assert find_nearest(long, [["bert_base"], ["resnet18"]]) == []
        assert len(str(UnknownNameError("model", long, ["bert_base", "resnet18"]))) < 300
    assert find_meant("bertt_base", ["bert_base", "resnet18"]) == ["bert_base"]
    assert join_words(["l4", "h100", *["x"] * 100_000], {"l4", "h100"}.__contains__) is None


def test_a_table_in_python_steers_nothing(database: Path) -> None:
    table = Workspace(database).sql(f'SELECT {AS_SQL} AS a, 1 AS "b{STEERS}"')
    assert is_harmless(repr(table)) and is_harmless(str(table))


@pytest.mark.parametrize("form", ["table", "markdown", "json"])
def test_a_value_a_heading_and_an_error_are_shown(form: str, joulemap: Run, database: Path) -> None:
    done = joulemap("sql", f'SELECT {AS_SQL} AS a, 1 AS "b{STEERS}"', "-f", form, "--db", database)
    assert done.returncode == ExitCode.OK
    assert is_harmless(done.stdout)
    if form == "json":
        assert json.loads(done.stdout) == [{"a": STEERS, f"b{STEERS}": 1}]
    else:
        assert done.stdout.count(SHOWN) == 2
    refused = joulemap("sql", f'SELECT "{STEERS}" FROM runs', "-f", form, "--db", database)
    assert refused.returncode == ExitCode.SQL
    assert is_harmless(refused.stderr)
    assert SHOWN.removeprefix(r"\x1b") in refused.stderr


class Terminal(io.TextIOWrapper):
    """A stream that says that a person reads it."""

    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_no_text_as_it_is(joulemap: Run, database: Path) -> None:
    with patch("command._stream", lambda: Terminal(io.BytesIO(), encoding="utf-8")):
        done = joulemap("sql", f"SELECT {AS_SQL} AS a", "-f", "csv", "--db", database)
    assert done.stdout == f'a\n"{SHOWN}"\n'


def test_a_cell_ends_no_row_of_markdown(joulemap: Run, database: Path) -> None:
    done = joulemap("sql", "SELECT 'a|b' AS \"x|y\", 'c' || chr(10) || 'd' AS z", "-f", "markdown", "--db", database)
    assert done.stdout.splitlines()[0] == r"| x\|y | z      |"
    assert done.stdout.splitlines()[2] == r"| a\|b | c<br>d |"


RUNNING = ("=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx")
KEPT = ("1=1", "a-b", "", "'quoted", " =1")


def test_a_text_that_a_spreadsheet_would_run_is_marked_in_csv(joulemap: Run, database: Path, tmp_path: Path) -> None:
    values = ", ".join("'{}'".format(one.replace("'", "''")) for one in (*RUNNING, *KEPT))
    asked = ("sql", f'SELECT -5 AS "=a", -1.5e0 AS b, unnest([{values}]) AS c', "-f", "csv", "--db", database)
    joulemap(*asked, "-o", "marked.csv")
    joulemap(*asked, "-o", "raw.csv", variables={"JOULEMAP_RAW": "1"})
    with (tmp_path / "marked.csv").open(newline="") as file:
        marked = list(csv.reader(file))
    with (tmp_path / "raw.csv").open(newline="") as file:
        raw = list(csv.reader(file))
    assert marked[0] == ["'=a", "b", "c"]
    assert [row[2] for row in marked[1:]] == [*(f"'{one}" for one in RUNNING), *KEPT]
    assert {tuple(row[:2]) for row in marked[1:]} == {("-5", "-1.5")}
    assert (raw[0], [row[2] for row in raw[1:]]) == (["=a", "b", "c"], [*RUNNING, *KEPT])


def test_a_marked_text_is_read_back_as_it_was(joulemap: Run, tmp_path: Path) -> None:
    head = "hardware,model,precision,batch,runtime,source,latency_s\n"
    (tmp_path / "mine.csv").write_text(f"{head}tpu_v4,resnet18,fp32,1,fused,'=mine,0.1\n")
    assert joulemap("measurements", "import", "mine.csv").returncode == ExitCode.OK
    rows = json.loads(joulemap("measurements", "list", "--hardware", "tpu_v4", "-f", "json").stdout)
    assert "=mine" in {row["source"] for row in rows}


def test_a_query_file_is_shown_without_what_steers(joulemap: Run, tmp_path: Path) -> None:
    text = write_query(find_query("run.list"))
    place = tmp_path / "qs" / "own" / "ask.v1.sql"
    place.parent.mkdir(parents=True)
    place.write_text(f"{text}\n-- \x1b[2J", encoding="utf-8")
    told = joulemap("query", "show", "own.ask", "--queries", tmp_path / "qs").stdout
    assert "\x1b" not in told
    assert told.endswith("-- \\x1b[2J\n")
