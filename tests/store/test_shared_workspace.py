"""Threads share a workspace: readers side by side, each writer alone, and who comes first is served first."""

import subprocess
import sys
import threading
import time
from pathlib import Path
from subprocess import PIPE

import pytest

from joulemap.store import connection
from joulemap.store.connection import Patience, close_kept, keeping_open, reading, writing
from joulemap.store.sharing import Kind, give_back, queue_up, take
from joulemap.system.errors import LockedDatabaseError
from joulemap.workspace import Workspace

READING, WRITING = Kind(is_reading=True), Kind(is_reading=False)


def test_readers_alike_share_and_others_wait() -> None:
    assert take("a", READING, 0.0)
    assert take("a", READING, 0.0)
    assert not take("a", WRITING, 0.01)
    assert not take("a", Kind(is_reading=True, config=(("threads", "1"),)), 0.01)
    assert take("b", WRITING, 0.0)
    assert not take("b", WRITING, 0.01)
    give_back("b", WRITING)
    for _ in range(2):
        give_back("a", READING)
    assert take("a", WRITING, 0.0)
    give_back("a", WRITING)


def test_a_writer_that_waits_is_not_passed_by_readers() -> None:
    assert take("c", READING, 0.0)
    order: list[str] = []

    def want(name: str, kind: Kind) -> threading.Thread:
        def run() -> None:
            assert take("c", kind, 10.0)
            order.append(name)
            give_back("c", kind)

        thread = threading.Thread(target=run)
        thread.start()
        time.sleep(0.05)
        return thread

    threads = [want("writer", WRITING), want("reader", READING)]
    assert order == []
    give_back("c", READING)
    for thread in threads:
        thread.join(10.0)
    assert order == ["writer", "reader"]


def test_patience_ends(own_database: Path) -> None:
    workspace = Workspace(own_database, patience=Patience(limit_s=0.05))
    assert take(str(own_database), WRITING, 0.0)
    try:
        with pytest.raises(LockedDatabaseError, match=r"in use by another thread \(waited 0.05 s\)"):
            workspace.sql("SELECT 1")
    finally:
        give_back(str(own_database), WRITING)
    assert workspace.sql("SELECT 1").rows == ((1,),)


STAND = (
    "import sys; from joulemap.store.sharing import queue_up; turn = queue_up(sys.argv[1], is_reading=False); "
    "print(turn.has_come, flush=True); sys.stdin.read()"
)


def test_processes_take_turns_and_a_queue_that_does_not_move_keeps_nobody_out(
    own_database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JOULEMAP_CACHE", str(tmp_path / "cache"))
    place, told = str(own_database), list[str]()
    with subprocess.Popen([sys.executable, "-c", STAND, place], stdin=PIPE, stdout=PIPE, text=True) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "True\n"
        turn = queue_up(place, is_reading=True)
        assert turn is not None
        assert (turn.has_come, turn.holder, turn.is_wanted) == (False, f"process {first.pid}", False)
        turn.leave()
        monkeypatch.setattr(connection, "TELL_AFTER_S", 0.0)
        with reading(own_database, Patience(limit_s=0.1, tell=told.append)):
            assert told == [f"waiting: {own_database} is locked by process {first.pid}"]
        first.kill()
    turn = queue_up(place, is_reading=False)
    assert turn is not None
    assert turn.has_come
    with subprocess.Popen([sys.executable, "-c", STAND, place], stdin=PIPE, stdout=PIPE, text=True) as later:
        assert later.stdout is not None
        assert later.stdout.readline() == "False\n"
        assert turn.is_wanted
        later.kill()
    turn.leave()
    assert list((tmp_path / "cache").iterdir()) == []
    (tmp_path / "file").touch()
    monkeypatch.setenv("JOULEMAP_CACHE", str(tmp_path / "file"))
    assert queue_up(place, is_reading=True) is None


def test_readings_of_a_context_share_one_opening_and_make_way_for_writers(own_database: Path) -> None:
    place = str(own_database.resolve())
    with keeping_open():
        with reading(own_database):
            pass
        assert not take(place, WRITING, 0.0)  # kept between readings
        with reading(own_database) as again:
            assert again.execute("SELECT count(*) > 0 FROM runs").fetchall() == [(True,)]
        close_kept()
        assert take(place, WRITING, 0.0)
        give_back(place, WRITING)
        with reading(own_database), reading(own_database):
            pass
        with keeping_open(), writing(own_database, patience=Patience(limit_s=0.05)) as own:
            own.execute("CREATE TEMP TABLE made AS SELECT 1")  # no wait for the caller's own contexts
        with reading(own_database):
            pass
    assert take(place, WRITING, 0.0)  # nothing is kept after the context
    give_back(place, WRITING)


def test_a_context_lets_a_writer_of_another_thread_in_at_its_next_reading(own_database: Path) -> None:
    wrote = threading.Event()

    def write() -> None:
        with writing(own_database, patience=Patience(limit_s=10.0)):
            wrote.set()

    with keeping_open():
        with reading(own_database):
            thread = threading.Thread(target=write)
            thread.start()
            time.sleep(0.1)
        assert not wrote.is_set()
        with reading(own_database, Patience(limit_s=10.0)):
            assert wrote.is_set()
        thread.join(10.0)


def test_who_holds_a_database_passes_those_that_wait_for_its_release() -> None:
    assert take("d", READING, 0.0)

    def write() -> None:
        assert take("d", WRITING, 10.0)
        give_back("d", WRITING)

    thread = threading.Thread(target=write)
    thread.start()
    time.sleep(0.05)
    assert not take("d", READING, 0.01)
    assert take("d", READING, 0.01, is_again=True)
    for _ in range(2):
        give_back("d", READING)
    thread.join(10.0)
