"""A checkpoint that is killed or fails loses nothing: what it writes over is kept until it stands."""

import errno
import os
import re
import resource
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import duckdb
import pytest

from conftest import Run
from joulemap.store import connection as store, recover
from joulemap.store.check import check_database
from joulemap.store.connection import make_empty, reading, writing
from joulemap.store.engine import BLOCK, HEAD, PAGE, Head, is_whole, renew, renew_identity
from joulemap.store.journal import Journal, checkpoint, journal_of, log_of, restore
from joulemap.store.recover import save_readable
from joulemap.system.errors import DatabaseError, ExitCode
from joulemap.workspace import Workspace


def read_head(path: Path) -> Head:
    return Head(path.read_bytes()[:HEAD])


def count(path: Path) -> int:
    with reading(path) as connection:
        ((rows,),) = connection.execute("SELECT count(*) FROM internal.metric").fetchall()
        return int(rows)


def add(path: Path) -> None:
    with writing(path) as connection:
        named = "SELECT * REPLACE (concat(name, gen_random_uuid()) AS name) FROM internal.metric ORDER BY name LIMIT 1"
        connection.execute(f"INSERT INTO internal.metric BY NAME {named}")


@pytest.fixture
def path(own_database: Path) -> Path:
    return own_database


def test_the_head_is_read_as_the_engine_writes_it(path: Path) -> None:
    head = read_head(path)
    assert len(head.identity) == 16
    assert all(is_whole(head.pages[start : start + PAGE]) for start in range(0, HEAD, PAGE))
    assert not is_whole(head.pages[:100])
    before = head.checkpoint
    add(path)
    after = read_head(path)
    assert after.checkpoint > before
    assert after.identity != head.identity
    assert Head(b"\0" * HEAD).identity == b""


def test_a_checkpoint_leaves_the_database_alone_in_its_folder(path: Path) -> None:
    before = count(path)
    add(path)
    assert count(path) == before + 1
    assert not log_of(path).exists()
    assert not journal_of(path).exists()


@pytest.fixture
def torn(path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, int]:
    """A database whose checkpoint ended in the middle of each block that it wrote over, and its rows with the log."""
    before = count(path)

    def tear(connection: duckdb.DuckDBPyConnection, place: Path, descriptor: int) -> None:
        rows = connection.execute("SELECT DISTINCT block_id FROM pragma_metadata_info()").fetchall()
        offsets = [HEAD + BLOCK * int(block) for (block,) in rows]
        blocks = {offset: os.pread(descriptor, BLOCK, offset) for offset in offsets}
        head = Head(os.pread(descriptor, HEAD, 0))
        journal = Journal(head, renew(head.pages[:PAGE]))
        journal.write(journal_of(place), blocks)
        with place.open("r+b") as file:  # gives the lock away, which nobody else asks for here
            file.write(journal.renewed[:130])
            for offset in offsets:
                file.seek(offset)
                file.write(os.urandom(BLOCK // 2))

    monkeypatch.setattr(store, "checkpoint", tear)
    add(path)
    monkeypatch.undo()
    assert journal_of(path).exists()
    assert log_of(path).exists()
    return path, before + 1


def test_a_torn_checkpoint_is_put_back_by_who_opens_next(torn: tuple[Path, int]) -> None:
    path, expected = torn
    assert count(path) == expected
    assert not journal_of(path).exists()
    add(path)
    assert count(path) == expected + 1


def test_without_its_journal_the_torn_database_is_lost(torn: tuple[Path, int]) -> None:
    path, _ = torn
    journal_of(path).unlink()
    with pytest.raises(DatabaseError, match="recover"):
        count(path)


@pytest.mark.slow
def test_a_damaged_journal_is_told_and_kept_where_it_is_needed(torn: tuple[Path, int], tmp_path: Path) -> None:
    path, expected = torn
    before, whole = path.read_bytes(), journal_of(path).read_bytes()
    for content in (whole[:1000], whole[:-1], whole + b"x", whole[:-5000] + b"x" + whole[-4999:], whole[:-BLOCK]):
        journal_of(path).write_bytes(content)
        with pytest.raises(DatabaseError, match=r"own\.duckdb\.journal is damaged.*db recover"):
            restore(path)
        assert (path.read_bytes(), journal_of(path).read_bytes()) == (before, content)
    with pytest.raises(DatabaseError, match="nothing can be read"):
        save_readable(path, tmp_path / "sound.duckdb", is_bold=False)
    journal_of(path).write_bytes(whole)
    (tmp_path / "copy.duckdb").unlink()
    assert save_readable(path, tmp_path / "sound.duckdb", is_bold=False).lost == []
    assert count(path) == expected


def describe(file: Path) -> tuple[int, int, int]:
    """What reading a file does not change."""
    status = file.lstat()
    return status.st_ino, status.st_size, status.st_mtime_ns


def put_text(file: Path) -> None:
    file.write_text("dear diary")


def put_endless(file: Path) -> None:
    with file.open("wb") as stream:
        stream.truncate(30 * 2**30)


@pytest.mark.parametrize(
    ("put", "place"),
    [
        (put_text, journal_of),
        (put_endless, journal_of),
        (Path.touch, journal_of),
        (Path.mkdir, journal_of),
        (os.mkfifo, journal_of),
        (lambda file: file.symlink_to("/dev/zero"), journal_of),
        (put_text, log_of),
        (os.mkfifo, log_of),
        (lambda file: file.symlink_to("/dev/zero"), log_of),
    ],
)
def test_a_file_of_somebody_else_beside_a_database_stays(
    put: Callable[[Path], object], place: Callable[[Path], Path], path: Path, joulemap: Run
) -> None:
    file = place(path)
    put(file)
    before = describe(file)
    for command in (("db", "info"), ("compare", "resnet18", "--batch", "2")):
        done = joulemap(*command, "--db", path)
        assert (done.returncode, done.stdout) == (ExitCode.DATABASE, "")
        assert done.stderr == (
            f"joulemap: {file} has the name of the {'journal' if place is journal_of else 'log'} of own.duckdb but "
            "is not one: move it away, or use another --db\n"
        )
    assert describe(file) == before


def test_a_journal_never_takes_the_place_of_another_file(path: Path) -> None:
    before = count(path)
    with writing(path) as connection:
        connection.execute(
            "INSERT INTO internal.metric BY NAME SELECT * REPLACE ('new' AS name) FROM internal.metric LIMIT 1"
        )
        put_text(journal_of(path))
    assert journal_of(path).read_text() == "dear diary"
    assert log_of(path).exists()
    journal_of(path).unlink()
    assert count(path) == before + 1


def test_a_journal_is_put_back_only_where_the_checkpoint_does_not_stand(path: Path, tmp_path: Path) -> None:
    old = read_head(path)
    journal = Journal(old, renew(old.pages[:PAGE]))
    assert journal.is_torn(old)
    assert journal.is_torn(Head(journal.renewed[:130] + old.pages[130:]))
    assert not journal.is_over(old)
    add(path)
    new = read_head(path)
    assert not journal.is_torn(new)
    assert not journal.is_over(new), "another journal was there meanwhile"
    assert Journal(old, new.pages[:PAGE]).is_over(new)
    half = bytearray(new.pages)
    page = next(start for start in (PAGE, 2 * PAGE) if new.pages[start : start + PAGE] == new.newest)
    half[page + 2000 : page + PAGE] = os.urandom(PAGE - 2000)
    assert Journal(old, new.pages[:PAGE]).is_torn(Head(bytes(half)))
    other = tmp_path / "other.duckdb"
    make_empty(other)
    assert not journal.is_torn(read_head(other))
    journal.write(journal_of(path), {})
    with pytest.raises(
        DatabaseError, match=r"own\.duckdb\.journal belongs to another database than own\.duckdb, or to an"
    ):
        restore(path)
    assert journal_of(path).exists()


def test_a_log_whose_checkpoint_stands_is_removed_with_the_journal(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = count(path)
    kept: list[bytes] = []
    unlink = Path.unlink

    def keep(connection: duckdb.DuckDBPyConnection, place: Path, descriptor: int) -> None:
        kept.append(log_of(place).read_bytes())
        with monkeypatch.context() as patch:
            patch.setattr(Path, "unlink", lambda file, **_: None if file.suffix == ".journal" else unlink(file))
            checkpoint(connection, place, descriptor)

    monkeypatch.setattr(store, "checkpoint", keep)
    add(path)
    monkeypatch.undo()
    assert journal_of(path).exists()
    log_of(path).write_bytes(kept[0])  # as when a kill comes between the last page and the end of the log
    assert count(path) == before + 1
    assert not journal_of(path).exists()
    assert not log_of(path).exists()


@pytest.mark.sample(1)
@pytest.mark.parametrize("kept", [3, 40, -1], ids=["magic", "identity", "transaction"])
def test_a_log_cut_in_its_first_transaction_locks_nobody_out(
    path: Path, monkeypatch: pytest.MonkeyPatch, kept: int
) -> None:
    before = count(path)
    with monkeypatch.context() as patch:
        patch.setattr(store, "checkpoint", lambda *_: None)
        add(path)
    log_of(path).write_bytes(log_of(path).read_bytes()[:kept])
    for _ in range(2):
        with writing(path):
            pass  # commits nothing, so that there is nothing to move
        assert not journal_of(path).exists()
        assert count(path) == before
    add(path)
    assert count(path) == before + 1
    assert not log_of(path).exists()


def used_blocks(path: Path) -> set[int]:
    """Ids of the blocks that hold data or metadata of what is committed."""
    with duckdb.connect(str(path), read_only=True) as connection:
        data = {
            int(block)
            for (table,) in connection.execute("SELECT table_name FROM duckdb_tables() WHERE NOT internal").fetchall()
            for (block,) in connection.execute(
                f"SELECT block_id FROM pragma_storage_info('internal.{table}')"
            ).fetchall()
            if block is not None and int(block) >= 0
        }
        metadata = connection.execute("SELECT DISTINCT block_id FROM pragma_metadata_info()").fetchall()
    return data | {int(block) for (block,) in metadata}


def test_what_a_checkpoint_writes_over_is_in_the_journal(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks that were in use and differ afterwards are blocks of metadata: the journal has them all.

    Where free blocks are at hand, a checkpoint writes over none: that is the engine's choice.
    """
    kept: list[dict[int, bytes]] = []
    write = Journal.write

    def keep(journal: Journal, file: Path, blocks: dict[int, bytes]) -> None:
        kept.append(blocks)
        write(journal, file, blocks)

    monkeypatch.setattr(Journal, "write", keep)
    for _ in range(4):
        used = used_blocks(path)
        before = path.read_bytes()
        add(path)
        after = path.read_bytes()
        changed = {
            offset
            for offset in range(HEAD, len(before), BLOCK)
            if before[offset : offset + BLOCK] != after[offset : offset + BLOCK] and (offset - HEAD) // BLOCK in used
        }
        blocks = kept.pop()
        assert changed <= set(blocks)
        # what it keeps is what was there
        assert all(before[offset : offset + BLOCK] == block for offset, block in blocks.items())


def test_a_full_disk_keeps_what_is_committed_in_the_log(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = count(path)

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Journal, "write", refuse)
    add(path)
    monkeypatch.undo()
    assert log_of(path).exists()
    assert count(path) == before + 1
    add(path)
    assert not log_of(path).exists()


def test_a_disk_that_takes_a_part_of_a_journal_takes_none(tmp_path: Path, path: Path) -> None:
    """A write may take fewer bytes than it was given, and no more is told of that by the one that is the last."""
    head = read_head(path)
    journal = Journal(head, renew(head.pages[:PAGE]))
    journal.write(tmp_path / "whole", {HEAD: bytes(BLOCK)})
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, ((tmp_path / "whole").stat().st_size - 16, before[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            journal.write(tmp_path / "part", {HEAD: bytes(BLOCK)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_new_databases_are_not_taken_for_each_other(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = tmp_path / "one.duckdb", tmp_path / "other.duckdb"
    for copy in (one, other):
        shutil.copy(path, copy)
        assert renew_identity(copy)
    assert len({read_head(copy).identity for copy in (path, one, other)}) == 3
    before = count(one)
    monkeypatch.setattr(store, "checkpoint", lambda *_: None)
    add(one)
    shutil.copy(other, one)
    for opening in (reading, writing):
        with pytest.raises(DatabaseError, match=r"one\.duckdb\.wal belongs to another database"), opening(one):
            pass
    log_of(one).unlink()
    assert count(one) == before


def test_a_log_is_applied_to_no_copy_that_grew_apart(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = tmp_path / "one.duckdb", tmp_path / "other.duckdb"
    for copy in (one, other):
        shutil.copy(path, copy)
        add(copy)
    monkeypatch.setattr(store, "checkpoint", lambda *_: None)
    add(one)
    before = count(other)
    shutil.copy(log_of(one), log_of(other))
    for opening in (reading, writing):
        with pytest.raises(DatabaseError, match=r"other\.duckdb\.wal belongs to another database"), opening(other):
            pass
    log_of(other).unlink()
    assert count(other) == before
    assert count(one) == before + 1


def test_what_is_left_of_a_database_that_is_gone_is_told(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "checkpoint", lambda *_: None)
    add(path)
    path.unlink()
    for opening in (reading, writing):
        with pytest.raises(DatabaseError, match="remains of one: put the database back, or move"), opening(path):
            pass
    assert log_of(path).exists()
    assert not path.exists()


def test_another_layout_keeps_its_identity(tmp_path: Path) -> None:
    path = tmp_path / "other"
    path.write_bytes(b"\0" * 2 * PAGE)
    assert not renew_identity(path)
    assert path.read_bytes() == b"\0" * 2 * PAGE


def list_runs(path: Path) -> set[int]:
    with reading(path) as connection:
        return {run_id for (run_id,) in connection.execute("SELECT run_id FROM internal.run").fetchall()}


@pytest.mark.slow
def test_a_sound_database_is_recovered_as_it_is(own_database: Path, tmp_path: Path) -> None:
    done = Workspace(own_database).recover(tmp_path / "new.duckdb")
    assert (done.is_copy, done.lost, done.run_count) == (True, [], len(list_runs(own_database)))
    assert list_runs(tmp_path / "new.duckdb") == list_runs(own_database)
    assert check_database(tmp_path / "new.duckdb") == []


@pytest.mark.parametrize("unreadable", [{1, 3}])
@pytest.mark.slow
def test_every_run_is_recovered_or_named_as_lost(
    unreadable: set[int], database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A group with an unreadable run loses that run alone; the reads that this takes grow with its logarithm."""
    asked: list[str] = []

    def copy(connection: store.Connection, tables: Sequence[str], which: str) -> str:
        asked.extend([which] if which.startswith("run_id") else [])
        key, _, keys = which.partition(" IN ")
        is_hit = key.endswith("run_id") and unreadable.intersection(map(int, re.findall(r"\d+", keys)))
        return "Input/output error" if is_hit else copy_rows(connection, tables, which)

    copy_rows = recover._copy_rows
    monkeypatch.setattr(recover, "_copy_rows", copy)
    done = recover.save_readable(database, tmp_path / "new.duckdb", is_bold=False)
    kept, runs = list_runs(tmp_path / "new.duckdb"), list_runs(database)
    assert kept == runs - unreadable
    assert [int(line.split(":")[0].removeprefix("run ")) for line in sorted(done.lost)] == sorted(unreadable)
    assert len(asked) <= 1 + 2 * len(unreadable) * len(runs).bit_length()


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.EMFILE, errno.EIO])
def test_recovery_is_advised_for_damage_alone(number: int, own_database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise duckdb.IOException(f'IO Error: Cannot open file "own.duckdb": {os.strerror(number)}')

    monkeypatch.setattr(store, "connect", fail)
    with pytest.raises(DatabaseError) as told, writing(own_database):
        pass
    assert ("db recover" in str(told.value)) == (number == errno.EIO)
