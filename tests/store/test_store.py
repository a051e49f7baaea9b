from __future__ import annotations

import contextlib
import inspect
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import attrs
import duckdb
import pytest

from joulemap.catalog.load import load_catalogue
from joulemap.domain.dimension import DIMENSIONS
from joulemap.store import connection as store_connection, migration, schema, surface
from joulemap.store.connection import Connection, Patience, make_empty, open_in_memory, reading, transaction, writing
from joulemap.store.engine import BLOCK, MAKER, PAGE, STORAGE, connect, read_head, renew
from joulemap.store.hardware import read_hardware, write_hardware
from joulemap.store.migration import SCHEMA_VERSION, Migration, load_migrations, migrate, schema_version
from joulemap.store.schema import find_changes
from joulemap.store.surface import Surface, load_surface
from joulemap.system.errors import DatabaseError, LockedDatabaseError, OlderDatabaseError, SqlError
from joulemap.workspace import Workspace

PROMISED = {
    "runs": """run_id model input_shape model_arguments is_newest inferences_per_j edp_per_inference_js
        hardware architecture power_mode precision batch runtime latency_s energy_j edp_js
        throughput_per_s average_power_w peak_memory_bytes weight_bytes activation_bytes mac_count attained_ops_per_s
        peak_ops_per_s compute_utilization_fraction bandwidth_utilization_fraction arithmetic_intensity_ops_per_byte
        units_used_count units_total_count ops_per_j created_at energy_per_inference_j hardware_digest workload_key
        package_version formula_version torch_version torchvision_version tracer_version""",
    "subgraph_results": """run_id model input_shape model_arguments hardware architecture power_mode precision batch
        runtime is_newest subgraph_index name fusion_pattern operator_count mac_count latency_s energy_j
        compute_energy_j memory_energy_j control_energy_j static_energy_j edp_js edp_share_js units_used_count
        compute_utilization_fraction bottleneck moved_bytes dram_bytes tile_count wave_count executed_mac_count
        wave_fill_fraction padding_fraction pass_bytes computed_mac_count""",
    "operator_results": """run_id model input_shape model_arguments hardware architecture power_mode precision batch
        runtime is_newest subgraph_index operator_index name energy_j latency_s edp_share_js is_fused
        separate_energy_j separate_latency_s compute_energy_j memory_energy_j control_energy_j static_energy_j
        kernel_count dram_bytes moved_bytes pass_bytes separate_kernel_count separate_dram_bytes separate_moved_bytes
        separate_pass_bytes bias_addition_count bias_element_count""",
    "energy_ledger": """run_id model input_shape model_arguments hardware architecture power_mode precision batch
        runtime is_newest subgraph_index subgraph_name fusion_pattern operator_index operator_name operation
        category common_category component action part action_count energy_per_action_j line_energy_fj line_energy_j
        basis source""",
    "energy_parts": "run_id model hardware precision batch is_newest subgraph_index operator_index",
    "part_amounts": "run_id subgraph_index operator_index amount common_category cause exact",
    "event_counts": """run_id model hardware precision batch runtime is_newest subgraph_index operator_index component
        event per part_of event_count event_energy_fj event_energy_j""",
    "newest_runs": "run_id model input_shape hardware architecture power_mode precision weight_precision batch runtime",
    "metrics": "name label unit column_name per is_higher_better",
    "hardware": "hardware name architecture deployment tdp_w hardware_digest",
    "hardware_facts": "hardware quantity value unit basis source",
    "hardware_links": """hardware link generation connects topology link_count lane_count bandwidth_bytes_per_s
        domain_size latency_s energy_per_byte_j basis source""",
    "static_parts": "hardware part power_w low_w high_w static_fraction basis source hardware_digest is_current",
    "energy_reference": "hardware component action energy_per_action_j basis source",
    "measurements": """hardware model precision batch runtime scope latency_s energy_j power_w peak_memory_bytes source
        conditions""",
    "scored_measurements": "measurement_id run_id measured_latency_s predicted_latency_s predicted_energy_j seen",
    "prediction_errors": """measurement_id serving_measurement_id run_id hardware model precision batch runtime engine
        scope source quantity measured predicted error_fraction low high seen calibration""",
    "energy_errors": """measurement_id serving_measurement_id run_id architecture hardware boundary subject quantity
        model precision batch source measured predicted error_fraction half_width low high idle_power_w seen
        calibration""",
    "serving_measurements": """serving_measurement_id source hardware model engine scope batch time_to_first_token_s
        inter_token_latency_s energy_per_output_token_j power_w split""",
    "serving_predictions": "serving_measurement_id quantity measured predicted refusal",
    "serving_refusals": "serving_measurement_id source hardware model quantity refusal",
    "operator_measurements": """hardware model precision batch runtime operation shapes operator_count kernels
        call_count device_time_s is_overlapping source conditions seen""",
    "operator_prediction_errors": """run_id hardware model precision batch runtime kind operation shapes operator_count
        measured_s predicted_s error_fraction is_overlapping""",
    "operator_signatures": "workload_id operator_index operation shapes kind",
    "measurement_splits": "measurement_id family split",
    "uncounted": "model operator_index aten reason",
}


@pytest.fixture(scope="module")
def empty() -> Connection:
    """An empty database that no test changes."""
    return open_in_memory()


def read_storage(connection: Connection) -> str:
    ((storage,),) = connection.execute(
        "SELECT tags['storage_version'] FROM duckdb_databases() WHERE database_name = current_database()"
    ).fetchall()
    return str(storage)


def test_the_code_knows_every_migration_file() -> None:
    assert [entry.version for entry in load_migrations()] == list(range(1, SCHEMA_VERSION + 1))


def test_a_stored_hardware_is_read_as_its_files_say() -> None:
    connection = open_in_memory()
    catalogue = tuple(load_catalogue().hardware.values())
    write_hardware(connection, catalogue, "0")
    stored = read_hardware(connection, [one.digest for one in catalogue])
    for one in catalogue:
        assert stored[one.digest].peaks == one.peaks, one.id
        assert stored[one.digest] == one, one.id


def test_a_new_database_records_each_migration_with_its_checksum(empty: Connection) -> None:
    recorded = empty.execute(
        "SELECT version, name, checksum FROM internal.schema_migration ORDER BY version"
    ).fetchall()
    assert recorded == [(entry.version, entry.name, entry.checksum) for entry in load_migrations()]


def test_migrating_twice_changes_nothing(empty: Connection) -> None:
    assert migrate(empty) == ()
    assert schema_version(empty) == SCHEMA_VERSION


def test_a_migration_that_fails_leaves_neither_its_tables_nor_its_record(monkeypatch: pytest.MonkeyPatch) -> None:
    connection = duckdb.connect(":memory:")
    good = Migration(1, "good", "CREATE TABLE kept (a INTEGER);")
    bad = Migration(2, "bad", "CREATE TABLE half (a INTEGER); CREATE TABLE kept (a INTEGER);")
    monkeypatch.setattr(migration, "load_migrations", lambda: (good, bad))
    with pytest.raises(duckdb.Error, match="kept"):
        migrate(connection)
    tables = connection.execute("SELECT table_name FROM duckdb_tables() ORDER BY 1").fetchall()
    assert tables == [("kept",), ("schema_migration",)]
    assert schema_version(connection) == 1


def test_a_database_of_another_baseline_is_refused_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "other.duckdb"
    with monkeypatch.context() as elsewhere:
        baseline = attrs.evolve(load_migrations()[0], sql="CREATE TABLE other (a INTEGER);")
        elsewhere.setattr(migration, "load_migrations", lambda: (baseline,))
        elsewhere.setattr(surface, "load_surface", lambda: Surface(""))
        make_empty(path)
    before = path.read_bytes()
    for opening in (reading, writing):
        refused = pytest.raises(DatabaseError, match=r"made by another version of joulemap")
        with refused as one, opening(path):
            pass
        assert "\n" not in str(one.value)
    assert path.read_bytes() == before


def test_a_database_of_the_schemas_before_the_baseline_is_refused(own_database: Path) -> None:
    connection = duckdb.connect(str(own_database))
    connection.execute("UPDATE internal.schema_migration SET checksum = 'x'")
    connection.execute(
        "INSERT INTO internal.schema_migration VALUES (12, 'parts', 'x', TIMESTAMP '2030-01-01 00:00:00')"
    )
    connection.close()
    for opening in (reading, writing):
        with pytest.raises(DatabaseError, match="another version of joulemap"), opening(own_database):
            pass


def other_surface(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the program another macro, another view and one more."""
    known = load_surface()
    text = known.sql.replace("AS list_position(\n    ['latency_s',", "AS list_position(\n    ['worst',")
    text = text.replace("CREATE VIEW run_uncertainty AS\nSELECT", "CREATE VIEW run_uncertainty AS\nSELECT 42 AS more,")
    assert text.count("42 AS more") == text.count("'worst'") == 1
    other = attrs.evolve(known, sql=text + "\nCREATE VIEW one_more AS SELECT quantity_index('worst') AS worst;")
    monkeypatch.setattr(surface, "load_surface", lambda: other)
    monkeypatch.setattr(schema, "_expect", inspect.unwrap(schema._expect))  # its cache is of the true surface


ASKED = "SELECT DISTINCT quantity_index('worst'), u.more, o.worst FROM run_uncertainty AS u CROSS JOIN one_more AS o"


@pytest.mark.slow
def test_a_reader_asks_with_its_own_macros_and_views(own_database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = own_database.read_bytes()
    workspace = Workspace(own_database)
    with monkeypatch.context() as elsewhere:
        other_surface(elsewhere)
        own_database.chmod(0o444)
        assert workspace.sql(ASKED).rows == ((1, 42, 1),)
        assert len(workspace.query("run.list")) > 0  # on a connection beside the first
        assert workspace.check().findings.rows == ()
    assert own_database.read_bytes() == before


@pytest.mark.slow
@pytest.mark.sample(1)
def test_a_writer_replaces_macros_and_views_and_leaves_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own_database = tmp_path / "own.duckdb"
    workspace = Workspace(own_database)
    workspace.evaluate("gemm(m=8,n=8,k=7)", hardware="tpu_v4")
    with monkeypatch.context() as elsewhere:
        other_surface(elsewhere)
        with contextlib.closing(duckdb.connect(str(own_database))) as plain:
            plain.execute('CREATE VIEW "my own" AS SELECT 1 AS one')
        workspace.evaluate("gemm(m=8,n=8,k=8)", hardware="tpu_v4")
        with contextlib.closing(duckdb.connect(str(own_database), read_only=True)) as plain:
            assert plain.execute(ASKED).fetchall() == [(1, 42, 1)]
    workspace.evaluate("gemm(m=8,n=8,k=9)", hardware="tpu_v4")
    assert [row.location for row in workspace.check().findings] == ["view my own"]
    assert workspace.sql('FROM "my own"').rows == ((1,),)
    with pytest.raises(SqlError, match="one_more"):
        workspace.sql("FROM one_more")


def test_every_table_view_and_column_says_what_it_is() -> None:
    connection = duckdb.connect()
    migrate(connection)
    silent = connection.execute(
        """
        SELECT table_name, '' FROM duckdb_tables() WHERE NOT internal AND comment IS NULL
        UNION ALL
        SELECT view_name, '' FROM duckdb_views() WHERE NOT internal AND comment IS NULL
        UNION ALL
        SELECT table_name, column_name FROM duckdb_columns()
        WHERE NOT internal AND comment IS NULL
        """
    ).fetchall()
    assert silent == []


@pytest.mark.parametrize("view", sorted(PROMISED))
def test_a_promised_view_has_its_promised_columns(view: str, empty: Connection) -> None:
    columns = {entry[0] for entry in empty.execute(f"SELECT * FROM {view} LIMIT 0").description or ()}
    assert set(PROMISED[view].split()) <= columns


@pytest.mark.parametrize("view", ["newest_runs", "energy_ledger", "energy_parts", "event_counts", "subgraph_results"])
def test_every_view_of_runs_and_parts_has_the_dimensions(view: str, empty: Connection, database: Path) -> None:
    names = {entry[0] for entry in empty.execute(f"SELECT * FROM {view} LIMIT 0").description or ()}
    dimensions = {one.view_column for one in DIMENSIONS}
    assert dimensions <= names
    connection = duckdb.connect(str(database), read_only=True)
    apart = " OR ".join(f"v.{name} IS DISTINCT FROM r.{name}" for name in sorted(dimensions))
    unlike = f"SELECT count(*) FROM {view} AS v LEFT JOIN run_configurations AS r USING (run_id) WHERE {apart}"
    assert connection.execute(unlike).fetchall() == [(0,)]
    connection.close()


def test_the_newest_run_is_one_of_each_configuration(database: Path) -> None:
    connection = duckdb.connect(str(database), read_only=True)
    names = ", ".join(one.view_column for one in DIMENSIONS)
    (rows, apart), = connection.execute(
        f"SELECT count(*), count(DISTINCT ROW({names})) FROM newest_runs"
    ).fetchall()  # fmt: skip
    assert rows == apart == connection.execute("SELECT count(*) FROM runs WHERE is_newest").fetchall()[0][0]
    connection.close()


@pytest.mark.parametrize("energy_fj", [0, 1, 123_456_789, -(2**53) - 1, 2**53 + 1, 98_765_432_109_876_543_211])
def test_joules_are_the_nearest_double(energy_fj: int, empty: Connection) -> None:
    assert empty.execute(f"SELECT joules({energy_fj}::HUGEINT)").fetchall() == [(energy_fj / 10**15,)]


def test_no_foreign_keys_guard_the_tables(empty: Connection) -> None:
    kinds = {row[0] for row in empty.execute("SELECT constraint_type FROM duckdb_constraints()").fetchall()}
    assert kinds == {"PRIMARY KEY", "UNIQUE", "NOT NULL", "CHECK"}


def test_a_transaction_that_raises_leaves_nothing() -> None:
    connection = open_in_memory()
    with pytest.raises(KeyboardInterrupt), transaction(connection):
        connection.execute("INSERT INTO internal.workload_edge VALUES (1, 0, 0, 1, 0)")
        raise KeyboardInterrupt
    assert connection.execute("SELECT count(*) FROM internal.workload_edge").fetchall() == [(0,)]


def test_a_transaction_with_a_failed_statement_leaves_nothing() -> None:
    connection = open_in_memory()
    with pytest.raises(duckdb.ConstraintException), transaction(connection):
        connection.execute("INSERT INTO internal.workload_edge VALUES (1, 0, 0, 1, 0)")
        connection.execute("INSERT INTO internal.workload_edge VALUES (1, 1, 1, 0, 0)")
    assert connection.execute("SELECT count(*) FROM internal.workload_edge").fetchall() == [(0,)]


def test_a_missing_database_is_named(tmp_path: Path) -> None:
    with pytest.raises(DatabaseError, match=r"no database at .*none\.duckdb"), reading(tmp_path / "none.duckdb"):
        pass


@pytest.mark.parametrize(
    ("name", "content"),
    [("duckdb", b""), ("duckdb", b"not a database"), ("duckdb", b"\0" * 5000), ("csv", b"a\n1\n"), ("json", b"[{}]")],
)
def test_a_file_of_something_else_is_refused_and_kept(name: str, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / f"other.{name}"
    path.write_bytes(content)
    for opening in (reading, writing):
        with pytest.raises(DatabaseError, match=r"not (a DuckDB database|one of joulemap)"), opening(path):
            pass
    assert path.read_bytes() == content


def test_a_database_of_another_program_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.duckdb"
    duckdb.connect(str(path)).execute("CREATE TABLE theirs (a INTEGER)").close()
    with pytest.raises(DatabaseError, match="not one of joulemap"), writing(path):
        pass


OLD_STORAGE: Final = (("storage_compatibility_version", "v1.0.0"),)


@pytest.mark.slow
def test_an_empty_database_of_an_older_engine_is_made_anew(tmp_path: Path) -> None:
    path, link = tmp_path / "blank.duckdb", tmp_path / "link.duckdb"
    with contextlib.closing(connect(path, config=(*OLD_STORAGE, ("default_block_size", "262144")))) as plain:
        plain.execute("CREATE TABLE gone (a INTEGER); CHECKPOINT; DROP TABLE gone; CHECKPOINT")
    path.chmod(0o640)
    link.symlink_to(path)
    with writing(link):
        pass
    with reading(path) as opened:
        assert read_storage(opened) == f"{STORAGE}+"
        assert find_changes(opened) == []
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o640
    assert read_head(path).block_bytes == BLOCK


@pytest.mark.sample(1)
@pytest.mark.parametrize("statement", ["CREATE SEQUENCE mine", "CREATE MACRO mine(a) AS a", "CREATE SCHEMA mine"])
@pytest.mark.slow
def test_a_database_with_something_in_it_is_kept(statement: str, tmp_path: Path) -> None:
    path = tmp_path / "theirs.duckdb"
    duckdb.connect(str(path), config=dict(OLD_STORAGE)).execute(statement).close()
    with writing(path):
        pass
    with reading(path) as opened:
        assert read_storage(opened) == "v1.0.0+"
        assert [what for what, *_ in find_changes(opened)] == [f"{statement.split()[1].lower()} mine"]


@pytest.mark.slow
def test_a_reopened_database_is_the_one_at_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process may have opened a file that another one replaces before it has the lock."""
    path, other = tmp_path / "runs.duckdb", tmp_path / "other.duckdb"
    make_empty(path)
    make_empty(other)
    kept = read_head(other).identity
    opened = []

    def open_late(*given: Any, **named: Any) -> Connection:
        opened.append(connect(*given, **named))
        if other.exists():
            other.replace(path)
        return opened[-1]

    monkeypatch.setattr(store_connection, "connect", open_late)
    with writing(path) as connection:
        assert connection is opened[1]
        assert len(opened) == 2
    assert read_head(path).identity == kept


def test_a_database_of_a_newer_engine_names_both_versions(tmp_path: Path) -> None:
    path = tmp_path / "newer.duckdb"
    make_empty(path)
    head = read_head(path)
    first = bytearray(head.pages[:PAGE])
    first[12:20], first[MAKER] = (999).to_bytes(8, "little"), b"v9.8.7".ljust(MAKER.stop - MAKER.start, b"\0")
    with path.open("r+b") as file:
        file.write(renew(bytes(first)))
    for opening in (reading, writing):
        with pytest.raises(DatabaseError, match=rf"v9\.8\.7.*{re.escape(duckdb.__version__)}"), opening(path):
            pass


@pytest.mark.slow
def test_views_stored_by_another_engine_are_not_compared_and_stored_again(
    own_database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each version of the engine prints the same view differently."""
    with contextlib.closing(duckdb.connect(str(own_database))) as plain:
        plain.execute("CREATE OR REPLACE VIEW metrics AS SELECT 'other' AS name")
    changed = [("view metrics", "as joulemap makes it", "changed")]
    with reading(own_database) as connection:
        assert find_changes(connection) == changed
    monkeypatch.setattr(duckdb, "__version__", "9.8.7")
    with reading(own_database) as connection:
        assert find_changes(connection) == []
    with writing(own_database):
        pass
    with reading(own_database) as connection:
        assert connection.execute("SELECT engine_version FROM internal.schema_surface").fetchall() == [("9.8.7",)]
        assert find_changes(connection) == []
        assert len(connection.execute("SELECT name FROM metrics").fetchall()) > 1


def test_a_newer_database_is_refused(own_database: Path) -> None:
    connection = duckdb.connect(str(own_database))
    connection.execute(
        "INSERT INTO internal.schema_migration VALUES (99, 'future', 'x', TIMESTAMP '2030-01-01 00:00:00')"
    )
    connection.close()
    for opening in (reading, writing):
        with pytest.raises(DatabaseError, match="schema 99, newer than this joulemap"), opening(own_database):
            pass


def test_an_older_database_is_readable_after_migrating(own_database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    following = Migration(2, "following", "ALTER TABLE internal.run ADD COLUMN mood VARCHAR DEFAULT 'calm';")
    both = (*load_migrations(), following)
    monkeypatch.setattr(migration, "load_migrations", lambda: both)
    for module in (migration, store_connection):
        monkeypatch.setattr(module, "SCHEMA_VERSION", 2)
    older = pytest.raises(OlderDatabaseError, match="has schema 1, this joulemap needs 2: run `joulemap db migrate")
    with older, reading(own_database):
        pass
    with writing(own_database):
        pass
    with reading(own_database) as connection:
        assert connection.execute("SELECT DISTINCT mood FROM internal.run").fetchall() == [("calm",)]
        assert connection.execute("SELECT count(*) > 0 FROM runs").fetchall() == [(True,)]


HOLD = "import duckdb, sys, time; c = duckdb.connect(sys.argv[1]); print('held', flush=True); time.sleep(60)"


@pytest.mark.slow
def test_a_locked_database_names_the_process_that_holds_it(own_database: Path) -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(own_database)], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        told: list[str] = []
        patience = Patience(limit_s=1.5, tell=told.append)
        locked = pytest.raises(LockedDatabaseError, match=f"locked by process {holder.pid} \\(waited 1.5 s\\)")
        with locked, reading(own_database, patience):
            pass
        assert told == [f"waiting: {own_database} is locked by process {holder.pid}"]
    finally:
        holder.kill()
        holder.wait(timeout=60)


def test_a_new_database_appears_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bad = Migration(1, "bad", "CREATE TABLE a (x INTEGER); nonsense;")
    monkeypatch.setattr(migration, "load_migrations", lambda: (bad,))
    with pytest.raises(DatabaseError), writing(tmp_path / "new.duckdb"):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_file_system_without_links_takes_a_new_database_by_rename(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("os.link", refuse)
    path = tmp_path / "new.duckdb"
    with writing(path):
        pass
    assert list(tmp_path.iterdir()) == [path]
    with reading(path):
        pass


def test_creating_in_a_missing_folder_says_so(tmp_path: Path) -> None:
    with pytest.raises(DatabaseError, match="does not exist"), writing(tmp_path / "no" / "new.duckdb"):
        pass


def test_a_copy_of_a_closed_database_needs_nothing_else(database: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.duckdb"
    shutil.copy(database, copy)
    with reading(copy) as connection:
        assert connection.execute("SELECT count(*) > 0 FROM internal.ledger_line").fetchall() == [(True,)]
