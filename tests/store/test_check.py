"""What `db check` finds: edits by hand, damage to the file, and nothing where nothing is wrong."""

from __future__ import annotations

import contextlib
import random
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import attrs
import duckdb
import pytest

from blank import open_blank
from conftest import Run
from damage import BLOCK_BYTES, HEADER_BYTES, KINDS, damage
from joulemap.domain.settings import Settings
from joulemap.plan.workload import find_model, find_workload_of
from joulemap.show.database import SOUND
from joulemap.store import guard
from joulemap.store.check import check_database, find_damaged_blocks, find_faults
from joulemap.store.connection import PATIENT, reading
from joulemap.store.digest import HARDWARE, RUN, SEALS, WORKLOAD, Digester, digest_groups
from joulemap.store.engine import connect
from joulemap.store.library import find_query
from joulemap.store.query import run_query
from joulemap.system.errors import DatabaseError, ExitCode, ModelError
from joulemap.workspace import Workspace
from sample import thin
from tools.zoo import write_workload

RUNS = "the rows of a run are those that were written"
WORKLOADS = "the rows of a workload are those that were written"
VERSIONS = "the rows of a hardware version are those that were written"
MEASUREMENTS = "the rows of a measurement are those that were written"
THINGS = "everything that was written is there, and nothing else"
CATALOGUE = "the rows of the catalogue are those that were written"
SCHEMA = "tables, views and macros are those that joulemap makes"

EDITS: dict[str, tuple[str, str, str]] = {
    "a part of the energy deleted": (
        "DELETE FROM internal.ledger_line WHERE action_id IN (SELECT action_id "
        "FROM internal.action WHERE part = 'compute')",
        RUNS,
        "ledger_line of resnet18 on ",
    ),
    "another workload": ("UPDATE internal.run SET workload_id = 9 WHERE run_id = 1", RUNS, "run"),
    "parameters": ("UPDATE internal.workload SET parameter_count = 1", WORKLOADS, "workload of resnet18 batch 1"),
    "price": (
        "UPDATE internal.energy_per_action SET energy_per_action_fj = 2 * energy_per_action_fj",
        VERSIONS,
        "energy_per_action of h100_sxm5",
    ),
    "vocabulary": (
        "UPDATE internal.action SET component = 'x' WHERE part = 'static'",
        VERSIONS,
        "energy_per_action of ",
    ),
    "a measured time": ("UPDATE internal.measurement SET latency_s = 2 * latency_s", MEASUREMENTS, "measurement of "),
    "a measurement deleted": ("DELETE FROM internal.measurement WHERE measurement_id = 3", THINGS, "measurement"),
    "a run deleted": (
        "; ".join(
            f"DELETE FROM internal.{table} WHERE run_id = 2"
            for table in ("run_total", "run_action", "run_operator", "run_subgraph", "ledger_line", "run")
        ),
        THINGS,
        "run",
    ),
    "a run twice": (
        "INSERT INTO internal.run SELECT * REPLACE (900 AS run_id, 'x' AS run_key) FROM internal.run WHERE run_id = 1",
        THINGS,
        "run",
    ),
    "a version deleted": ("DELETE FROM internal.hardware_version WHERE hardware = 'l4'", THINGS, "hardware_version"),
    "a grid's carbon": ("UPDATE internal.grid_region SET gco2_per_kwh = 1", CATALOGUE, "grid_region"),
    "operators' times": (
        "DELETE FROM internal.operator_measurement WHERE rowid = 5",
        CATALOGUE,
        "operator_measurement",
    ),
    "a view replaced": ("CREATE OR REPLACE VIEW workloads AS SELECT 1 AS x", SCHEMA, "view workloads"),
    "a macro replaced": ("CREATE OR REPLACE MACRO seconds(x) AS x", SCHEMA, "macro seconds"),
    "a comment replaced": ("COMMENT ON COLUMN runs.energy_j IS 'in eV'", SCHEMA, "view runs"),
    "a table less": ("DROP TABLE internal.grid_region", SCHEMA, "table internal.grid_region"),
    "a column more": ("ALTER TABLE internal.run ADD COLUMN mood VARCHAR", SCHEMA, "table internal.run"),
}


@pytest.fixture(scope="module")
def broken(database: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """A copy whose changes are rolled back after each test."""
    path = tmp_path_factory.mktemp("broken") / "broken.duckdb"
    path.write_bytes(database.read_bytes())
    with duckdb.connect(str(path)) as connection:
        yield connection


@pytest.fixture
def edited(broken: duckdb.DuckDBPyConnection) -> Iterator[duckdb.DuckDBPyConnection]:
    broken.execute("BEGIN TRANSACTION")
    yield broken
    broken.execute("ROLLBACK")


@pytest.mark.sample(1)
@pytest.mark.parametrize("edit", thin(EDITS, 4))
def test_an_edit_by_hand_is_found(edit: str, edited: duckdb.DuckDBPyConnection) -> None:
    statement, rule, place = EDITS[edit]
    edited.execute(statement)
    faults = find_faults(edited)
    assert any(fault[0] == rule and fault[3].startswith(place) for fault in faults), faults


def test_an_edit_that_changes_nothing_is_none(edited: duckdb.DuckDBPyConnection) -> None:
    edited.execute("UPDATE internal.ledger_line SET energy_fj = energy_fj")
    edited.execute("UPDATE internal.hardware_version SET name = name")
    assert find_faults(edited) == []


BESIDE = {"run": ["point_total"], "workload": [], "hardware_version": ["hardware_load"]}
"""What a digest is over -> tables in which the first few keys may have no row."""


@pytest.mark.slow
def test_every_column_is_part_of_a_digest(own_database: Path) -> None:
    """Columns left out are numbers of one database, or follow from others: those have a test of their own."""
    Workspace(own_database).sweep("resnet18", hardware=["l4"], batch=[3])  # a run without a ledger
    with duckdb.connect(str(own_database)) as edited:
        check_digested_columns(edited)


def check_digested_columns(edited: duckdb.DuckDBPyConnection) -> None:
    """Assert that a change of any column of a run, a workload or a chip changes a digest."""
    changes = {
        "VARCHAR": "concat({0}, 'x')",
        "BOOLEAN": "NOT {0}",
        "VARCHAR[]": "list_append({0}, 'x')",
        "TIMESTAMP": "{0} + INTERVAL 1 SECOND",
        "MAP(VARCHAR, VARCHAR)": "map_concat({0}, MAP {{'x': 'y'}})",
    }
    left_out = {"run_id", "workload_id", "measurement_id", "action_id", "is_newest", "content_digest"}
    whole = (
        " SEMI JOIN internal.hardware_power_mode USING (hardware_digest) SEMI "
        "JOIN internal.hardware_link USING (hardware_digest)"
    )
    for seal in (RUN, WORKLOAD, HARDWARE):
        of = f"{seal.table}{whole if seal is HARDWARE else ''}"
        keys = [row[0] for row in edited.execute(f"SELECT {seal.key} FROM internal.{of} ORDER BY 1 LIMIT 4").fetchall()]
        for beside in BESIDE[seal.table]:
            keys += [row[0] for row in edited.execute(f"SELECT max({seal.key}) FROM internal.{beside}").fetchall()]
        for table in seal.tables:
            columns = edited.execute(f"DESCRIBE internal.{table}").fetchall()
            for name, kind, *_ in columns:
                if name in left_out or name == seal.key:
                    continue
                before = Digester(edited).read(seal, keys)
                change = changes.get(kind, "coalesce({0}, 0) + 1").format(name)
                edited.execute(
                    f"ALTER TABLE internal.{table} RENAME TO whole; CREATE TABLE internal.{table} AS "
                    f"SELECT * REPLACE (CAST({change} AS {kind}) AS {name}) FROM internal.whole ORDER BY rowid"
                )
                after = Digester(edited).read(seal, keys)
                edited.execute(f"DROP TABLE internal.{table}; ALTER TABLE internal.whole RENAME TO {table}")
                assert any(before[key] != after[key] for key in keys), f"{table}.{name}"


@pytest.mark.slow
def test_a_run_has_the_same_digest_in_every_database(database: Path, tmp_path: Path) -> None:
    Workspace(database).export_runs(tmp_path / "archive")
    other = Workspace(tmp_path / "other.duckdb")
    other.evaluate("googlenet", hardware=["tpu_v4"])
    other.import_runs(tmp_path / "archive")
    statement = "SELECT run_id, content_digest FROM internal.run ORDER BY content_digest"
    own, others = (set(workspace.sql(statement).rows) for workspace in (Workspace(database), other))
    assert {digest for _, digest in own} < {digest for _, digest in others}
    assert not own <= others, "the ids are new"
    assert check_database(other.path) == []


def test_what_a_writer_digests_is_what_a_reader_finds(database: Path) -> None:
    with reading(database) as connection:
        for seal in SEALS:
            compared = list(Digester(connection).compare(seal))
            assert all(stored == current for _, stored, current in compared), seal.table


def test_rows_of_a_key_need_not_stand_together() -> None:
    import numpy as np

    together = digest_groups(np.array([1, 1, 2]), [np.array([5, 6, 7])])
    apart = digest_groups(np.array([1, 2, 1]), [np.array([5, 7, 6])])
    assert together == apart
    assert digest_groups(np.array([1, 1, 2]), [np.array([6, 5, 7])])[1] != together[1]


def test_a_finding_names_the_run_what_differs_and_what_to_do(joulemap: Run, own_database: Path) -> None:
    with duckdb.connect(str(own_database)) as connection:
        connection.execute("UPDATE internal.run SET uncapped_power_w = 1e0 WHERE run_id = 3")
    done = joulemap("db", "check", "--db", own_database)
    assert done.returncode == ExitCode.CHECK_FAILED
    assert RUNS in done.stdout
    assert "run of resnet18 on " in done.stdout
    assert "restore a copy of the database" in done.stdout
    assert done.stderr == "joulemap: 1 rows break a rule\n"


def test_a_healthy_database_passes(joulemap: Run, database: Path) -> None:
    done = joulemap("db", "check", "--db", database)
    assert (done.returncode, done.stdout) == (0, f"{SOUND}\n")


@pytest.mark.slow
def test_experts_that_are_not_hit_alike_break_no_rule(joulemap: Run, tmp_path: Path) -> None:
    # 16 x 8 choices fall on 83 of 128 experts: 45 of them have two, the others one
    mixture, path = "experts(rows=16,hidden=64,inner=32,taken=8,experts=128)", tmp_path / "mixture.duckdb"
    assert joulemap("analyze", mixture, "l4", "--precision", "bf16", "--db", path).returncode == 0
    assert joulemap("db", "check", "--db", path).returncode == 0
    with duckdb.connect(str(path)) as connection:
        connection.execute("UPDATE internal.workload_operator SET mac_count = mac_count // 2 WHERE mac_count > 0")
    assert "GEMM view" in joulemap("db", "check", "--db", path).stdout


@pytest.mark.parametrize("name", ["gemm(m=8,n=4,k=2)", "attention(queries=4,cached=2,heads=2,kv_heads=2,head_dim=8)"])
def test_a_workload_that_the_audit_would_find_is_never_stored(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sound = find_workload_of(find_model(name, Settings(), None), print)
    place = next(index for index, one in enumerate(sound.operators) if one.mac_count)
    changes = [
        ("mac_count", 0),
        *((field, one) for field in ("mac_count", "gemm_m", "gemm_n", "gemm_groups") for one in (-1, 1)),
    ]
    is_sound: dict[int, bool] = {}
    with contextlib.closing(open_blank()) as connection:
        for field, change in changes:
            operators = [*sound.operators]
            operators[place] = attrs.evolve(operators[place], **{field: getattr(operators[place], field) + change})
            key = attrs.evolve(sound.key, tracer_version=f"{field} {change}")
            changed = attrs.evolve(sound, key=key, operators=tuple(operators))
            try:
                is_sound[write_workload(connection, changed)] = True
            except ModelError:
                with monkeypatch.context() as patch:
                    patch.setattr("joulemap.store.workload.check_workload", lambda _: None)
                    is_sound[write_workload(connection, changed)] = False
        audited = run_query(connection, find_query("audit.conservation"), {}).records()
    assert len(is_sound) == len(changes)
    assert {row["workload_id"] for row in audited} == {one for one, is_good in is_sound.items() if not is_good}
    assert {*is_sound.values()} == {True, False}


@pytest.mark.sample(1)
@pytest.mark.parametrize(("is_sealed", "code"), [(True, ExitCode.INTERNAL), (False, ExitCode.DATABASE)])
@pytest.mark.slow
def test_an_internal_error_is_damage_only_if_rows_are_not_those_written(
    is_sealed: bool, code: ExitCode, joulemap: Run, own_database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise KeyError("fault of the program")

    with duckdb.connect(str(own_database)) as connection:
        ((before,),) = connection.execute(
            "SELECT content_digest FROM internal.workload WHERE workload_id = 1"
        ).fetchall()
        connection.execute("UPDATE internal.workload_operator SET mac_count = 2 * mac_count WHERE workload_id = 1")
        if is_sealed:
            digester = Digester(connection)
            digester.change_set(WORKLOAD, digester.reseal(WORKLOAD, [1]), [before])
    if is_sealed:  # rows that were written, and break a rule
        assert joulemap("db", "check", "--db", own_database).returncode == ExitCode.CHECK_FAILED
    monkeypatch.setattr("joulemap.plan.stored_runs.find_stored", fail)
    assert joulemap("analyze", "resnet18", "t1000", "--db", own_database).returncode == code


@pytest.mark.slow
def test_a_value_of_rows_that_no_conversion_takes_is_damage(joulemap: Run, own_database: Path) -> None:
    selected = ("sql", "SELECT energy_j FROM runs", "--db", own_database)
    assert joulemap(*selected).returncode == ExitCode.OK
    assert joulemap("sql", "SELECT CAST('x' AS INTEGER)", "--db", own_database).returncode == ExitCode.SQL
    with duckdb.connect(str(own_database)) as connection:
        connection.execute("UPDATE internal.run_total SET energy_fj = 10::HUGEINT ** 37")
    assert joulemap(*selected).returncode == ExitCode.SQL  # totals are not sealed: only a rule is broken
    with duckdb.connect(str(own_database)) as connection:
        connection.execute("UPDATE internal.workload_operator SET mac_count = 2 * mac_count WHERE workload_id = 1")
    assert joulemap(*selected).returncode == ExitCode.DATABASE


def blocks(path: Path) -> range:
    return range((path.stat().st_size - HEADER_BYTES) // BLOCK_BYTES)


def change_byte(path: Path, block: int, offset: int = 5000) -> None:
    with path.open("r+b") as stream:
        stream.seek(HEADER_BYTES + block * BLOCK_BYTES + offset)
        (byte,) = stream.read(1)
        stream.seek(-1, 1)
        stream.write(bytes([byte ^ 1]))


def used_blocks(path: Path) -> list[int]:
    used = []
    for block in blocks(path):
        change_byte(path, block)
        with path.open("rb") as stream:
            if block in find_damaged_blocks(stream):  # beside those behind the end, where the list of free ones is hit
                used.append(block)
        change_byte(path, block)
    return used


@pytest.mark.slow
def test_a_changed_byte_in_any_block_is_damage(own_database: Path) -> None:
    for block in used_blocks(own_database):
        change_byte(own_database, block)
        with pytest.raises(DatabaseError, match=r"damaged|Corrupt"):
            check_database(own_database)
        change_byte(own_database, block)
    assert check_database(own_database) == []


def test_a_free_block_may_hold_anything(tmp_path: Path) -> None:
    path = tmp_path / "free.duckdb"
    with connect(path) as connection:
        connection.execute("CREATE TABLE kept AS SELECT hash(range) AS x FROM range(300_000)")
        connection.execute("CREATE TABLE dropped AS SELECT hash(range) AS x FROM range(300_000); CHECKPOINT")
        connection.execute("CREATE TABLE after AS SELECT hash(range) AS x FROM range(300_000); CHECKPOINT")
        connection.execute("DROP TABLE dropped; CHECKPOINT")
        ((free,),) = connection.execute("SELECT free_blocks FROM pragma_database_size()").fetchall()
    assert free > 0
    assert len(used_blocks(path)) == len(blocks(path)) - free


@pytest.mark.apart
def test_a_file_of_another_storage_version_is_left_to_the_engine(own_database: Path) -> None:
    block = used_blocks(own_database)[-1]
    change_byte(own_database, block)
    with own_database.open("r+b") as stream:
        assert block in find_damaged_blocks(stream)
        stream.seek(12)
        stream.write(b"\x01")
        assert find_damaged_blocks(stream) == []


@pytest.mark.apart
@pytest.mark.slow
def test_an_index_that_misses_its_rows_is_damage(own_database: Path) -> None:
    """A block of another index in its place has a checksum that is right."""
    with duckdb.connect(str(own_database), read_only=True) as connection:
        tables = [name for (name,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()]
        listed = {
            block
            for table in tables
            for (block,) in connection.execute(
                f"SELECT block_id FROM pragma_storage_info('internal.{table}')"
            ).fetchall()
        } | {block for (block,) in connection.execute("SELECT block_id FROM pragma_metadata_info()").fetchall()}
    indexes = [block for block in used_blocks(own_database) if block not in listed]
    content = bytearray(own_database.read_bytes())
    places = [HEADER_BYTES + block * BLOCK_BYTES for block in indexes]
    kept = [bytes(content[place : place + BLOCK_BYTES]) for place in places]
    damaged = 0
    for place, other in zip(places, [*kept[1:], kept[0]], strict=True):
        own_database.write_bytes(content[:place] + other + content[place + BLOCK_BYTES :])
        try:
            damaged += guard.check_apart(own_database, PATIENT) != []
        except DatabaseError:  # the index does not find its keys, or the engine fails or does not end in it
            damaged += 1
    assert damaged >= 15  # of 28; the others hold indexes of several columns, in which no row is looked up


@pytest.mark.apart
def test_a_crash_of_the_engine_is_damage(
    database: Path, tmp_path: Path, joulemap: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    crashing = tmp_path / "python"
    crashing.write_text("#!/bin/sh\nkill -SEGV $$\n")
    crashing.chmod(stat.S_IRWXU)
    monkeypatch.setattr(sys, "executable", str(crashing))
    done = joulemap("db", "check", "--db", database)
    assert done.returncode == ExitCode.DATABASE
    assert done.stderr.startswith(f"joulemap: {database} is damaged: reading it crashes the engine (SIGSEGV); ")


READING = (
    ("sql", "SELECT sum(line_energy_j) FROM energy_ledger"),
    ("query", "run", "audit.conservation"),
    ("analyze", "resnet18", "tpu_v4"),
    ("compare", "resnet18", "--level", "subgraph"),
    ("db", "export", "archive"),
    ("db", "check"),
)


@pytest.mark.sample(1)
@pytest.mark.apart
@pytest.mark.parametrize("command", thin(READING, 3), ids=" ".join)
def test_a_damaged_ledger_is_one_line_and_exit_5(command: tuple[str, ...], joulemap: Run, own_database: Path) -> None:
    with duckdb.connect(str(own_database), read_only=True) as connection:
        damaged = connection.execute(
            "SELECT DISTINCT block_id FROM pragma_storage_info('internal.ledger_line') WHERE block_id >= 0"
        ).fetchall()
    for (block,) in damaged:
        change_byte(own_database, block)
    done = joulemap(*command, "--db", own_database)
    assert (done.returncode, done.stdout) == (ExitCode.DATABASE, "")
    assert len(done.stderr.splitlines()) == 1
    assert "Corrupt database file" in done.stderr


@pytest.mark.apart
def test_a_damaged_record_of_migrations_is_one_line_and_exit_5(joulemap: Run, own_database: Path) -> None:
    with duckdb.connect(str(own_database), read_only=True) as connection:
        ((block,),) = connection.execute(
            "SELECT DISTINCT block_id FROM pragma_storage_info('internal.schema_migration') WHERE block_id >= 0"
        ).fetchall()
    change_byte(own_database, block)
    for command in (("db", "info"), ("db", "check"), ("sql", "SELECT 1"), ("compare", "resnet18")):
        done = joulemap(*command, "--db", own_database)
        assert done.returncode == ExitCode.DATABASE, command
        assert len(done.stderr.splitlines()) == 1


@pytest.mark.apart
@pytest.mark.parametrize("kind", thin(KINDS, 9))
def test_damage_is_found_or_harmless(kind: str, database: Path, tmp_path: Path) -> None:
    before = contents(database)
    for seed in range(2):
        path = tmp_path / f"{seed}.duckdb"
        path.write_bytes(database.read_bytes())
        done = damage(path, random.Random(seed), kind)
        with contextlib.suppress(DatabaseError):
            assert guard.check_apart(path, PATIENT) != [] or contents(path) == before, done


def contents(path: Path) -> list[object]:
    """Return what every table holds, and what every run is found as."""
    with duckdb.connect(str(path), read_only=True) as connection:
        tables = connection.execute("SELECT table_name FROM duckdb_tables() ORDER BY table_name").fetchall()
        rows = [
            connection.execute(f"SELECT count(*), sum(hash(whole)) FROM internal.{table} AS whole").fetchall()
            for (table,) in tables
        ]
        keys = connection.execute("SELECT run_id FROM internal.run ORDER BY run_id").fetchall()
        return [*rows, *(connection.execute("FROM internal.run WHERE run_id = ?", key).fetchall() for key in keys)]
