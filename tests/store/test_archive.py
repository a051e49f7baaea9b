"""Runs out of one database and into another."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest

from calibration_case import hardware, made
from compare import assert_close
from joulemap.ask import database as archive
from joulemap.domain.settings import ArchiveFormat
from joulemap.physics.record.workload import WorkloadKey
from joulemap.store import connection, migration, schema
from joulemap.store.archive import _is_of
from joulemap.store.check import check_database
from joulemap.store.manifest import KEYS
from joulemap.store.migration import SCHEMA_VERSION, Migration, load_migrations
from joulemap.store.query import Rows
from joulemap.store.shard import list_shards, name_shard
from joulemap.system.errors import CatalogueError, JoulemapError, UnknownNameError, UsageError
from joulemap.workspace import Workspace
from sample import thin

CALIBRATED = "h200_sxm"
CALIBRATION = made(hardware(CALIBRATED))

IDS = {"run_id", "run_a", "run_b", "workload_id"}
QUESTIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("resnet18", {"hardware": ["xeon_8490h", "h100_sxm5", "tpu_v4", "kpu_t256"]}),
    ("mlp", {"hardware": [CALIBRATED, "l4"], "precision": "fp16", "batch": 4, "calibration": CALIBRATION}),
    ("mlp", {"hardware": [CALIBRATED], "precision": "fp16", "batch": 4, "calibration": "none"}),
    ("resnet18", {"hardware": [CALIBRATED], "precision": "fp16"}),
    ("attention_head", {"hardware": ["jetson_orin_nano_8gb@7W", "jetson_orin_nano_8gb@15W"], "precision": "fp16"}),
    ("resnet18", {"hardware": ["coral_edge_tpu", "h100_sxm5"], "precision": "bf16"}),
)
"""Several models, calibrated runs and not, a refused one, power modes."""


def ask(workspace: Workspace) -> list[Any]:
    """Return what questions answer, without ids; each must be stored, for the file is only read."""
    rows: list[Any] = []
    for model, options in QUESTIONS:
        compared = workspace.compare(model, **options)
        rows += [without_ids(answer) for answer in compared.tables]
        first = options["hardware"][0] if CALIBRATED in options["hardware"] else options["hardware"][-1]
        rest = {name: value for name, value in options.items() if name != "hardware"}
        rows += [without_ids(answer) for answer in workspace.analyze(model, first, **rest).tables]
    explained = workspace.explain("resnet18", "h100_sxm5", "tpu_v4")
    return [*rows, *(without_ids(answer) for answer in explained.tables)]


def without_ids(answer: Rows) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name not in IDS} for row in answer.records()]


def tables(path: Path) -> dict[str, int]:
    with duckdb.connect(str(path), read_only=True) as connection:
        return {
            table: int(connection.execute(f"SELECT count(*) FROM internal.{table}").fetchall()[0][0]) for table in KEYS
        }


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with the questions' runs, and one chip in two versions; never written by a test."""
    path = tmp_path_factory.mktemp("source") / "source.duckdb"
    workspace = Workspace(path)
    for model, options in QUESTIONS:
        workspace.evaluate(model, **options)
    with duckdb.connect(str(path)) as connection:
        assert connection.execute("SELECT count(*) FROM internal.run WHERE refusal IS NOT NULL").fetchall()[0][0] > 0
        assert connection.execute("SELECT count(*) FROM internal.calibration").fetchall()[0][0] > 0
        versions = connection.execute(
            "SELECT count(DISTINCT r.hardware_digest) "
            "FROM internal.run AS r JOIN internal.hardware_version AS v USING (hardware_digest) "
            "WHERE v.hardware = ?",
            [CALIBRATED],
        ).fetchall()
        assert versions == [(3,)]
    path.chmod(0o444)
    return path


@pytest.fixture(scope="module")
def exported(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exported") / "archive"
    Workspace(source).export_runs(folder)
    return folder


@pytest.fixture
def own_archive(exported: Path, tmp_path: Path) -> Path:
    """A copy that the test may break."""
    return Path(shutil.copytree(exported, tmp_path / "own"))


@pytest.mark.parametrize(
    ("model", "source", "is_of"),
    [
        ("resnet18", "torchvision:resnet18", True),
        ("resnet1", "torchvision:resnet18", False),
        ("./mine.py:net", "file:6fd2e297d4b211b3:mine.py:net(width=32)", True),
        ("mine.py:net", "file:6fd2e297d4b211b3:mine.py:net", True),
        ("./mine.py:net", "file:6fd2e297d4b211b3:other.py:net", False),
        ("./nets/../net.pt2", "exported:6fd2e297d4b211b3:net.pt2", True),
        ("gemm(m=8,n=4,k=2)", "operator:gemm m=8 n=4 k=2", True),
        ("train(resnet50,devices=8)", "training:shipped-ec373dde32e072ad:train resnet50 devices=8", True),
        ("train(resnet50,devices=8)", "training:shipped-ec373dde32e072ad:train resnet18 devices=8", False),
        ("train(phi-4(tokens=8,logits=all),zero=1)", "training:4a:train phi-4 tokens=8 logits=all) zero=1", True),
    ],
)
def test_the_source_of_a_key_is_of_its_model_however_a_path_is_written(model: str, source: str, is_of: bool) -> None:
    torch = "" if source.startswith(("operator", "train")) else "2.9"
    key = WorkloadKey(source=source, input_spec="", torch_version=torch, torchvision_version="", tracer_version="")
    assert _is_of(model, key) is is_of


@pytest.mark.slow
def test_a_new_database_answers_the_same(source: Path, exported: Path, tmp_path: Path) -> None:
    path = tmp_path / "new.duckdb"
    run_count = tables(source)["run"]
    assert Workspace(path).import_runs(exported) == (run_count, 0)
    counts = tables(path)
    before, after = Workspace(source), Workspace(path)
    assert ask(after) == ask(before)
    assert tables(path) == counts
    assert after.check().findings.rows == ()
    views = ("runs", "subgraph_results", "operator_results", "energy_ledger", "refused_runs", "operators")
    for view in views:
        statement = f"SELECT COLUMNS(lambda c: c NOT IN ('run_id', 'workload_id')) FROM {view} ORDER BY ALL"
        assert after.sql(statement).rows == before.sql(statement).rows, view


@pytest.mark.slow
@pytest.mark.parametrize("name", ["archive.duckdb", "o'dd; name.duckdb"])
def test_a_database_of_any_name_takes_runs(name: str, source: Path, tmp_path: Path) -> None:
    Workspace(source).export_runs(tmp_path / "it's; one", [1])
    assert Workspace(tmp_path / name).import_runs(tmp_path / "it's; one") == (1, 0)


@pytest.mark.slow
def test_stored_runs_are_recognised_and_ids_are_new(exported: Path, tmp_path: Path) -> None:
    path = tmp_path / "new.duckdb"
    workspace = Workspace(path)
    workspace.compare("googlenet", hardware=["h100_sxm5"])
    kept = workspace.compare("resnet18", hardware=["tpu_v4"])
    fresh, known = workspace.import_runs(exported)
    assert known == 1
    counts = tables(path)
    assert counts["run"] == fresh + 2
    assert workspace.import_runs(exported) == (0, fresh + 1)
    assert tables(path) == counts
    assert workspace.check().findings.rows == ()
    assert workspace.compare("resnet18", hardware=["tpu_v4"]).scope.run_ids == kept.scope.run_ids


@pytest.mark.slow
def test_chosen_runs_take_along_what_they_consist_of_and_no_more(source: Path, tmp_path: Path) -> None:
    workspace = Workspace(source)
    run_ids = workspace.compare(QUESTIONS[1][0], **QUESTIONS[1][1]).scope.run_ids
    calibrated = workspace.sql(
        "SELECT run_id FROM runs WHERE list_contains($ids, run_id) AND calibration <> 'none'", {"ids": list(run_ids)}
    ).rows
    assert len(calibrated) == 1
    chosen = [int(calibrated[0][0])]
    assert workspace.export_runs(tmp_path / "one", chosen) == 1
    rows = {table: pq.read_metadata(find_file(tmp_path / "one", table)).num_rows for table in KEYS}
    assert (rows["run"], rows["workload"], rows["calibration"], rows["hardware_version"]) == (1, 1, 1, 2)
    new = Workspace(tmp_path / "new.duckdb")
    assert new.import_runs(tmp_path / "one") == (1, 0)
    statement = "SELECT calibration, value FROM calibration_coefficients WHERE calibration LIKE 'mine %' ORDER BY ALL"
    assert new.sql(statement).rows == workspace.sql(statement).rows
    assert len(new.sql("SELECT calibration FROM calibrations WHERE calibration LIKE 'mine %'").rows) == 1


def test_an_export_is_the_same_bytes_each_time_and_survives_a_round(
    exported: Path, source: Path, tmp_path: Path
) -> None:
    Workspace(source).export_runs(tmp_path / "again")
    assert digests(tmp_path / "again") == digests(exported)
    manifest = json.loads((exported / "manifest.json").read_text())
    assert manifest["schema_version"] == SCHEMA_VERSION
    columns = {find_table(name): columns for name, columns in manifest["files"].items()}
    assert columns["run"]["memory_bandwidth_bytes_per_s"] == "DOUBLE"
    assert columns["ledger_line"]["energy_fj"] == "BIGINT"


def digests(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def find_file(folder: Path, table: str) -> Path:
    (shard,) = list_shards(folder, table)
    return shard.path


def find_table(file: str) -> str:
    return file.partition("-")[0]


def rewrite(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    change(manifest)
    path.write_text(json.dumps(manifest))


def replace_table(folder: Path, table: str, statement: str) -> None:
    """Put other rows in place of a table's, and let name and manifest vouch for them."""
    file = find_file(folder, table)
    draft = folder / "draft"
    action = find_file(folder, "action")
    duckdb.sql(f"COPY ({statement.format(file=file, action=action)}) TO '{draft}' (FORMAT parquet)")
    file.unlink()
    new = name_shard(draft, table)
    rewrite(folder, lambda manifest: manifest["files"].update({new.name: manifest["files"].pop(file.name)}))


def cut(folder: Path) -> None:
    file = find_file(folder, "ledger_line")
    file.write_bytes(file.read_bytes()[:-100])


def leave_out(folder: Path, table: str) -> None:
    rewrite(folder, lambda manifest: manifest["files"].pop(find_file(folder, table).name))


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "no manifest": (lambda folder: (folder / "manifest.json").unlink(), "is not an archive of runs"),
    "no json": (lambda folder: (folder / "manifest.json").write_text("{"), "cannot be read"),
    "foreign": (lambda folder: (folder / "manifest.json").write_text('{"name": "x"}'), "does not describe an archive"),
    "emptied": (lambda folder: rewrite(folder, lambda one: one.pop("files")), "is damaged: KeyError"),
    "newer format": (lambda folder: rewrite(folder, lambda one: one.update(format_version=3)), "format version 3"),
    "newer schema": (lambda folder: rewrite(folder, lambda one: one.update(schema_version=999)), "schema 999"),
    "other table": (
        lambda folder: rewrite(folder, lambda one: one["files"].update({"../x-0123456789abcdef.parquet": {}})),
        "is not a table of runs",
    ),
    "table left out": (lambda folder: leave_out(folder, "action"), "lacks action"),
    "file missing": (lambda folder: find_file(folder, "run").unlink(), ".parquet is missing"),
    "file cut": (cut, ".parquet is damaged: it was cut short or altered"),
    "other columns": (
        lambda folder: replace_table(folder, "action", "SELECT action_id, part FROM '{file}'"),
        ".parquet has the columns action_id, part",
    ),
    "rows gone": (
        lambda folder: replace_table(folder, "ledger_line", "FROM '{file}' WHERE run_id <> 1"),
        "does not add up: a run with a ledger has subgraphs and lines",
    ),
    "energy changed": (
        lambda folder: replace_table(
            folder, "ledger_line", "SELECT * REPLACE (energy_fj + 1 AS energy_fj) FROM '{file}'"
        ),
        "does not add up",
    ),
    "one part of the energy gone": (
        lambda folder: replace_table(
            folder,
            "ledger_line",
            "FROM '{file}' ANTI JOIN (FROM '{action}' WHERE part = 'compute') USING (action_id)",
        ),
        "the rows of a run are those that were written (run 1, ledger_line of resnet18 on",
    ),
    "a fact changed": (
        lambda folder: replace_table(
            folder, "hardware_fact", "SELECT * REPLACE (if(quantity = 'tdp', 2 * value, value) AS value) FROM '{file}'"
        ),
        "the rows of a hardware version are those that were written (hardware_fact of ",
    ),
    "another model's name": (
        lambda folder: replace_table(folder, "workload", "SELECT * REPLACE ('vgg11' AS model) FROM '{file}'"),
        "is damaged: a workload of 'vgg11' has the key of 'torchvision:",
    ),
    "another model's key": (
        lambda folder: replace_table(
            folder, "workload", "SELECT * REPLACE ('torchvision:vgg11' AS source, 'vgg11' AS model) FROM '{file}'"
        ),
        "is damaged: a workload of 'vgg11' has the key of 'torchvision:vgg11'",
    ),
    "out of range": (
        lambda folder: replace_table(folder, "run", "SELECT * REPLACE (-1 AS batch) FROM '{file}'"),
        ".parquet is damaged: Constraint Error",
    ),
}  # fmt: skip


@pytest.mark.sample(1)
@pytest.mark.parametrize("damage", thin(DAMAGES, 2))
def test_a_damaged_or_foreign_folder_is_refused_whole(damage: str, own_archive: Path, tmp_path: Path) -> None:
    breaking, message = DAMAGES[damage]
    breaking(own_archive)
    path = tmp_path / "new.duckdb"
    with pytest.raises(CatalogueError) as refused:
        Workspace(path).import_runs(own_archive)
    assert message in str(refused.value)
    assert not path.exists()


@pytest.mark.slow
def test_an_archive_of_an_older_schema_is_migrated(
    own_archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    following = Migration(2, "following", "ALTER TABLE internal.workload ADD COLUMN mood VARCHAR DEFAULT 'calm';")
    both = (*load_migrations(), following)
    monkeypatch.setattr(migration, "load_migrations", lambda: both)
    for module in (migration, connection, archive):
        monkeypatch.setattr(module, "SCHEMA_VERSION", 2)
    monkeypatch.setattr(schema, "_expect", schema._expect.__wrapped__)  # another test may have asked before
    workspace = Workspace(tmp_path / "new.duckdb")
    stored, known = workspace.import_runs(own_archive)
    assert stored > 0
    assert known == 0
    assert check_database(workspace.path) == []
    assert workspace.sql("SELECT DISTINCT mood FROM internal.workload").rows == (("calm",),)


def test_a_write_that_fails_stores_nothing(own_archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from joulemap.store import archive

    path = tmp_path / "new.duckdb"
    Workspace(path).evaluate("mlp", hardware=["tpu_v4"])
    before = tables(path)
    insert = archive._insert

    def fail(connection: Any, archive: str, table: str, key: str) -> None:
        if table == "ledger_line":
            raise KeyboardInterrupt
        insert(connection, archive, table, key)

    monkeypatch.setattr(archive, "_insert", fail)
    with pytest.raises(KeyboardInterrupt):
        Workspace(path).import_runs(own_archive)
    assert tables(path) == before


@pytest.mark.sample(1)
@pytest.mark.parametrize("form", ["json", "csv"])
def test_views_are_written_for_other_programs(form: ArchiveFormat, source: Path, tmp_path: Path) -> None:
    workspace = Workspace(source)
    assert workspace.export_runs(tmp_path / "views", [1, 2], form=form) == 2
    rows = duckdb.execute(f"SELECT run_id, energy_j, hardware_digest FROM '{tmp_path}/views/runs.{form}' ORDER BY 1")
    statement = "SELECT run_id, energy_j, hardware_digest FROM runs WHERE run_id IN (1, 2) ORDER BY 1"
    assert rows.fetchall() == list(workspace.sql(statement).rows)
    with pytest.raises(CatalogueError, match="not an archive of whole runs"):
        Workspace(tmp_path / "new.duckdb").import_runs(tmp_path / "views")


def test_json_has_units_in_its_keys(source: Path, tmp_path: Path) -> None:
    Workspace(source).export_runs(tmp_path / "views", [1], form="json")
    (run,) = json.loads((tmp_path / "views" / "runs.json").read_text())
    assert {"latency_s", "energy_j", "peak_memory_bytes", "formula_version", "package_version", "run_key"} <= set(run)
    ledger = json.loads((tmp_path / "views" / "energy_ledger.json").read_text())
    assert_close(sum(line["line_energy_fj"] for line in ledger), run["energy_j"] * 1e15)


@pytest.mark.parametrize(
    ("ask_export", "error", "message"),
    [
        (lambda one, place: one.export_runs(place / "new", [99]), UnknownNameError, "unknown run '99'"),
        (lambda one, place: one.export_runs(place), UsageError, "exists: name a new"),
        (lambda one, place: one.export_runs(place / "a" / "b"), UsageError, "cannot write"),
        (lambda one, place: one.export_runs(place / "new", form="xml"), UsageError, "unknown archive format 'xml'"),
    ],
)
def test_an_export_that_cannot_be_written_leaves_nothing(
    ask_export: Callable[[Workspace, Path], object],
    error: type[JoulemapError],
    message: str,
    source: Path,
    tmp_path: Path,
) -> None:
    (tmp_path / "full.txt").write_text("x")
    with pytest.raises(error, match=message):
        ask_export(Workspace(source), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["full.txt"]
