"""Files that people name: nothing of theirs is replaced, and nothing that would never end is read."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import Run
from joulemap.system.cache import CACHE
from joulemap.system.errors import ExitCode, UsageError
from joulemap.system.file import (
    MOST_MEMORY_BYTES,
    FileError,
    check_output,
    is_open_stream,
    read_text,
    write_file,
    write_text,
)

ASKED = ("sql", "SELECT 1 AS one")
ANSWER = "one\n---\n  1\n"


@pytest.fixture(autouse=True)
def memory(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of this test's own: what others have written is not remembered."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv(CACHE, str(folder))
    return folder


SPELLINGS: dict[str, Callable[[Path, Path], Path]] = {
    "itself": lambda one, _: one,
    "dots": lambda one, place: place / "sub" / ".." / one.name,
    "link": lambda one, place: make_link(place / "link", one),
    "link to a link": lambda one, place: make_link(place / "second", make_link(place / "link", one)),
    "hard link": lambda one, place: make_hard_link(place / "hard", one),
    "log": lambda one, place: one.with_name(f"{one.name}.wal"),
}


def make_link(path: Path, target: Path) -> Path:
    path.symlink_to(target)
    return path


def make_hard_link(path: Path, target: Path) -> Path:
    path.hardlink_to(target)
    return path


@pytest.mark.sample(2)
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_an_answer_never_replaces_a_database(spelling: str, joulemap: Run, own_database: Path, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    before = own_database.read_bytes()
    output = SPELLINGS[spelling](own_database, tmp_path)
    for command in (
        (*ASKED, "--db", own_database),
        ("compare", "resnet18", "--db", own_database, "-f", "parquet"),
        ("hardware", "template", "--like", "tpu_v4"),
    ):
        done = joulemap(*command, "-o", output)
        assert (done.returncode, done.stdout) == (ExitCode.USAGE, "")
        assert done.stderr.count("\n") == 1
    assert own_database.read_bytes() == before
    assert not own_database.with_name(f"{own_database.name}.wal").exists()


@pytest.mark.parametrize("end", ["", ".wal", ".journal"])
def test_the_place_of_a_database_that_is_yet_to_be_made_is_kept_free(end: str, joulemap: Run, tmp_path: Path) -> None:
    done = joulemap("compare", "resnet18", "-o", f"joulemap.duckdb{end}")
    assert done.returncode == ExitCode.USAGE
    assert "by this command itself" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_database_of_another_engine_is_kept(joulemap: Run, database: Path, tmp_path: Path) -> None:
    foreign = tmp_path / "places.sqlite"
    foreign.write_bytes(b"SQLite format 3\0 and so on")
    assert joulemap(*ASKED, "--db", database, "-o", foreign).returncode == ExitCode.USAGE
    assert foreign.read_bytes() == b"SQLite format 3\0 and so on"


def test_what_a_person_wrote_is_replaced_once_it_is_removed(joulemap: Run, database: Path, tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("precious\n")
    asked = (*ASKED, "--db", database, "-o", notes)
    refused = joulemap(*asked)
    assert (refused.returncode, notes.read_text()) == (ExitCode.USAGE, "precious\n")
    notes.unlink()
    assert joulemap(*asked).returncode == ExitCode.OK
    assert notes.read_text() == ANSWER


def test_what_joulemap_wrote_is_replaced_until_it_is_changed(joulemap: Run, database: Path, tmp_path: Path) -> None:
    asked = (*ASKED, "--db", database, "-o", "answer")
    for form in ("table", "csv", "json", "markdown", "parquet", "table"):
        assert joulemap(*asked, "-f", form).returncode == ExitCode.OK
    (tmp_path / "answer").rename(tmp_path / "moved.txt")
    assert joulemap(*ASKED, "--db", database, "-o", "moved.txt").returncode == ExitCode.OK
    with (tmp_path / "moved.txt").open("a") as file:
        file.write("a note of mine\n")
    assert joulemap(*ASKED, "--db", database, "-o", "moved.txt").returncode == ExitCode.USAGE
    assert (tmp_path / "moved.txt").read_text() == f"{ANSWER}a note of mine\n"


def test_an_empty_file_is_filled_and_keeps_its_mode(joulemap: Run, database: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.touch(mode=0o600)
    assert joulemap(*ASKED, "--db", database, "-o", empty).returncode == ExitCode.OK
    assert (empty.read_text(), empty.stat().st_mode & 0o777) == (ANSWER, 0o600)


@pytest.mark.parametrize("form", ["table", "json", "csv", "parquet"])
def test_no_output_can_be_run(form: str, joulemap: Run, database: Path, tmp_path: Path) -> None:
    assert joulemap(*ASKED, "--db", database, "-f", form, "-o", "answer").returncode == ExitCode.OK
    assert (tmp_path / "answer").stat().st_mode & 0o111 == 0


def test_a_file_is_written_where_its_link_leads(joulemap: Run, database: Path, tmp_path: Path) -> None:
    make_link(tmp_path / "link", tmp_path / "target")
    assert joulemap(*ASKED, "--db", database, "-o", "link").returncode == ExitCode.OK
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == ANSWER


@pytest.mark.sample(2)
@pytest.mark.parametrize("spelling", ["./mine.toml", "sub/../mine.toml", "link.toml", "hard.toml"])
def test_an_input_is_no_output(spelling: str, joulemap: Run, database: Path, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    assert joulemap("hardware", "template", "--like", "t4", "-o", "mine.toml").returncode == ExitCode.OK
    make_link(tmp_path / "link.toml", Path("mine.toml"))
    make_hard_link(tmp_path / "hard.toml", tmp_path / "mine.toml")
    text = (tmp_path / "mine.toml").read_text()
    for command in (
        ("hardware", "show", "./mine.toml", "--db", database),
        ("compare", "resnet18", "--hardware", "tpu_v4,./mine.toml@default", "--db", database),
        ("hardware", "check", "mine.toml"),
    ):
        done = joulemap(*command, "-o", spelling)
        assert done.returncode == ExitCode.USAGE, command
        assert "by this command itself" in done.stderr
    assert (tmp_path / "mine.toml").read_text() == text


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("net.py", ("compare", "./net.py:make")),
        ("net.pt2", ("model", "show", "net.pt2")),
        ("ask.sql", ("sql", "--file", "ask.sql")),
        ("here.toml", ("compare", "resnet18", "--calibration", "here.toml")),
        ("qs/own/one.v1.sql", ("query", "list", "--queries", "qs")),
        ("qs/own/one.v1.sql", ("query", "list", "--queries=qs")),
    ],
)
def test_a_model_statement_calibration_or_query_is_no_output(
    name: str, command: tuple[str, ...], joulemap: Run, tmp_path: Path
) -> None:
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text("mine")
    done = joulemap(*command, "--output", name)
    assert (done.returncode, (tmp_path / name).read_text()) == (ExitCode.USAGE, "mine")
    assert "by this command itself" in done.stderr


def test_hardware_of_the_environment_is_no_output(joulemap: Run, tmp_path: Path) -> None:
    joulemap("hardware", "template", "--like", "t4", "-o", "mine.toml")
    done = joulemap("hardware", "list", "-o", "mine.toml", variables={"JOULEMAP_HARDWARE": str(tmp_path)})
    assert done.returncode == ExitCode.USAGE


@pytest.mark.slow
def test_a_calibration_replaces_a_calibration_and_nothing_else(joulemap: Run, tmp_path: Path) -> None:
    asked = ("calibrate", "h200_sxm", "--model", "resnet18", "--precision", "fp16", "--output", "fit.toml")
    assert joulemap(*asked).returncode == ExitCode.OK
    made = (tmp_path / "fit.toml").read_text()
    assert joulemap(*asked, variables={CACHE: str(tmp_path / "another")}).returncode == ExitCode.OK
    assert (tmp_path / "fit.toml").read_text() == made
    (tmp_path / "fit.toml").write_text("mine")
    assert joulemap(*asked).returncode == ExitCode.USAGE
    assert joulemap(*asked[:-1], "same.toml", "--report", "same.toml").returncode == ExitCode.USAGE
    assert (tmp_path / "fit.toml").read_text() == "mine"
    assert not (tmp_path / "same.toml").exists()


def test_parquet_tells_itself_who_wrote_it(
    joulemap: Run, database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = (*ASKED, "--db", database, "-f", "parquet", "-o", "answer.parquet")
    assert joulemap(*asked).returncode == ExitCode.OK
    monkeypatch.setenv(CACHE, str(tmp_path / "another"))
    assert joulemap(*asked).returncode == ExitCode.OK
    (tmp_path / "answer.parquet").write_bytes(b"PAR1 of another program, long enough\x04\0\0\0PAR1")
    assert joulemap(*asked).returncode == ExitCode.USAGE


STREAMS = {
    "pipe": ("| cat", ANSWER),
    "file": ("> out; cat out", ANSWER),
    "end of a file": (">> log; cat log", f"before\n{ANSWER}"),
}


@pytest.mark.sample(1)
@pytest.mark.parametrize("way", STREAMS)
def test_stdout_by_name_is_stdout(way: str, database: Path, tmp_path: Path) -> None:
    rest, expected = STREAMS[way]
    (tmp_path / "log").write_text("before\n")
    command = f"'{sys.executable}' -m joulemap sql 'SELECT 1 AS one' --db '{database}' -o /dev/stdout {rest}"
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, cwd=tmp_path, timeout=60, check=False
    )
    assert (done.stdout, done.stderr) == (expected, "")


def test_devices_are_written_to(joulemap: Run, database: Path) -> None:
    assert joulemap(*ASKED, "--db", database, "-o", "/dev/null").returncode == ExitCode.OK
    full = joulemap(*ASKED, "--db", database, "-o", "/dev/full")
    assert (full.returncode, full.stderr) == (
        ExitCode.USAGE,
        "joulemap: cannot write /dev/full: No space left on device\n",
    )


def test_what_a_process_has_open_is_known_by_any_name(tmp_path: Path) -> None:
    assert is_open_stream(Path("/dev/stdout"))
    assert is_open_stream(Path("/dev/fd/1"))
    assert is_open_stream(make_link(tmp_path / "out", Path("/dev/stdout")))
    assert not is_open_stream(tmp_path / "file")
    assert not is_open_stream(make_link(tmp_path / "circle", tmp_path / "circle"))


@pytest.mark.parametrize("name", [".", "no/x", "x" * 300, "circle", "nul\0"])
def test_an_output_that_cannot_be_written_is_said_before_anything_is_done(name: str, tmp_path: Path) -> None:
    make_link(tmp_path / "circle", tmp_path / "circle")
    with pytest.raises(UsageError, match="cannot write"):
        check_output(tmp_path / name)


def test_a_write_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    write_text(tmp_path / "a", "first")

    def fail(draft: Path) -> None:
        draft.write_text("half")
        raise OSError(28, "No space left on device")

    with pytest.raises(UsageError, match="No space left"):
        write_file(tmp_path / "a", fail)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a", "first")]


def test_the_memory_of_what_was_written_stays_short_and_can_be_done_without(memory: Path, tmp_path: Path) -> None:
    (memory / "written").write_text("0" * 64 + "\n" + "1" * 63 * (MOST_MEMORY_BYTES // 50) + "\n")
    write_text(tmp_path / "a", "first")
    write_text(tmp_path / "a", "second")
    assert (memory / "written").stat().st_size < MOST_MEMORY_BYTES * 2
    (memory / "written").unlink()
    (memory / "written").mkdir()
    write_text(tmp_path / "b", "first")
    with pytest.raises(UsageError, match="did not write it as it is now"):
        write_text(tmp_path / "b", "second")


@pytest.mark.parametrize("kind", ["folder", "pipe", "device", "bytes", "long", "missing", "name"])
def test_what_cannot_be_read_to_its_end_is_refused(kind: str, tmp_path: Path) -> None:
    path = Path("/dev/zero") if kind == "device" else tmp_path / ("x" * 300 if kind == "name" else kind)
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind in ("bytes", "long"):
        path.write_bytes({"bytes": b"\xff", "long": b"x" * 101}[kind])
    with pytest.raises(FileError):
        read_text(path, 100)
