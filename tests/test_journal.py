"""A checkpoint that is killed or fails loses nothing: what it writes over is kept until it stands."""

import os
import shutil
from pathlib import Path

import duckdb
import pytest

from joulemap.errors import DatabaseError
from joulemap.store import connection as store
from joulemap.store.connection import log_of, make_empty, reading, writing
from joulemap.store.header import BLOCK, HEAD, PAGE, Head, is_whole, renew_identity
from joulemap.store.journal import Journal, is_torn, journal_of, read_journal, settle


def read_head(path: Path) -> Head:
    return Head(path.read_bytes()[:HEAD])


def count(path: Path) -> int:
    with reading(path) as connection:
        ((rows,),) = connection.execute("SELECT count(*) FROM metric").fetchall()
        return int(rows)


def add(path: Path) -> None:
    with writing(path) as connection:
        named = "SELECT * REPLACE (concat(name, gen_random_uuid()) AS name) FROM metric ORDER BY name LIMIT 1"
        connection.execute(f"INSERT INTO metric BY NAME {named}")


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
    assert after.identity == head.identity
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
        Journal(Head(os.pread(descriptor, HEAD, 0)), blocks).write(journal_of(place))
        with place.open("r+b") as file:  # gives the lock away, which nobody else asks for here
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


def test_a_journal_that_is_not_whole_is_dropped(path: Path) -> None:
    before = path.read_bytes()
    Journal(read_head(path), {HEAD: b"\0" * BLOCK}).write(journal_of(path))
    whole = journal_of(path).read_bytes()
    for content in (b"", whole[:1000], whole[:-1], b"a file of somebody", whole[:5000] + b"x" + whole[5001:]):
        journal_of(path).write_bytes(content)
        assert read_journal(journal_of(path)) is None
        settle(path)
        assert not journal_of(path).exists()
        assert path.read_bytes() == before


def test_a_journal_is_put_back_only_where_the_checkpoint_does_not_stand(path: Path, tmp_path: Path) -> None:
    old = read_head(path)
    journal = Journal(old, {})
    assert is_torn(journal, old)
    add(path)
    new = read_head(path)
    assert not is_torn(journal, new)
    assert not is_torn(Journal(new, {}), old)  # an older copy was put in its place
    half = bytearray(new.pages)
    page = next(start for start in (PAGE, 2 * PAGE) if new.pages[start : start + PAGE] == new.newest)
    half[page + 2000 : page + PAGE] = os.urandom(PAGE - 2000)
    assert is_torn(journal, Head(bytes(half)))
    other = tmp_path / "other.duckdb"
    make_empty(other)
    assert not is_torn(journal, read_head(other))


def used_blocks(path: Path) -> set[int]:
    """Ids of the blocks that hold data or metadata of what is committed."""
    with duckdb.connect(str(path), read_only=True) as connection:
        data = {
            int(block)
            for (table,) in connection.execute("SELECT table_name FROM duckdb_tables() WHERE NOT internal").fetchall()
            for (block,) in connection.execute(f"SELECT block_id FROM pragma_storage_info('{table}')").fetchall()
            if block is not None and int(block) >= 0
        }
        metadata = connection.execute("SELECT DISTINCT block_id FROM pragma_metadata_info()").fetchall()
    return data | {int(block) for (block,) in metadata}


def test_what_a_checkpoint_writes_over_is_in_the_journal(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks that were in use and differ afterwards are blocks of metadata: the journal has them all.

    Where free blocks are at hand, a checkpoint writes over none: that is the engine's choice.
    """
    kept: list[Journal] = []
    write = Journal.write

    def keep(journal: Journal, file: Path) -> None:
        kept.append(journal)
        write(journal, file)

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
        journal = kept.pop()
        assert changed <= set(journal.blocks)
        # what it keeps is what was there
        assert all(before[offset : offset + BLOCK] == block for offset, block in journal.blocks.items())


def test_a_full_disk_keeps_what_is_committed_in_the_log(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = count(path)

    def refuse(_self: Journal, _file: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Journal, "write", refuse)
    add(path)
    monkeypatch.undo()
    assert log_of(path).exists()
    assert count(path) == before + 1
    add(path)
    assert not log_of(path).exists()


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
        with pytest.raises(DatabaseError, match=r"one\.duckdb\.wal is of another database"), opening(one):
            pass
    log_of(one).unlink()
    assert count(one) == before


def test_what_is_left_of_a_database_that_is_gone_is_told(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "checkpoint", lambda *_: None)
    add(path)
    path.unlink()
    for opening in (reading, writing):
        with pytest.raises(DatabaseError, match="is left of one: put the database back, or remove"), opening(path):
            pass
    assert log_of(path).exists()
    assert not path.exists()


def test_another_layout_keeps_its_identity(tmp_path: Path) -> None:
    path = tmp_path / "other"
    path.write_bytes(b"\0" * 2 * PAGE)
    assert not renew_identity(path)
    assert path.read_bytes() == b"\0" * 2 * PAGE
