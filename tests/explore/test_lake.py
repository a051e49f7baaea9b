"""Lakes: what a shard holds, who writes one at once, what is damaged, and the promised views over them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import attrs
import numpy as np
import pytest

from compare import assert_close
from conftest import Run
from joulemap.ask.query import reading
from joulemap.plan.source import Source
from joulemap.store.connection import Patience
from joulemap.store.shard import Shard
from joulemap.system.errors import DatabaseError, JoulemapError, UsageError
from joulemap.system.pool import open_pool
from joulemap.wing.explore.block import Block, name_column
from joulemap.wing.explore.lake.database import number_shards, survey
from joulemap.wing.explore.lake.fill import Filled, fill, read_cluster
from joulemap.wing.explore.lake.shard import open_lake, store_points
from joulemap.workspace import Workspace
from pond import Cell, Totals, evaluate_and_die, evaluate_cell, list_blocks_of, make_columns


def ask(lake: Path, statement: str) -> list[tuple[object, ...]]:
    return list(Workspace(lake).sql(statement).rows)


@pytest.fixture(scope="module")
def pond(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three shards of a hundred points; never written by a test."""
    lake = tmp_path_factory.mktemp("lake") / "pond"
    fill(lake, map(Cell, range(3)), evaluate_cell)
    return lake


def files(lake: Path) -> list[Path]:
    return sorted(lake.glob("*/*.parquet"))


@pytest.mark.parametrize(
    ("constant", "unit", "column"),
    [
        ("clock", "Hz", "set_clock_hz"),
        ("memory.l2.capacity", "B", "set_memory_l2_capacity_bytes"),
        ("memory_bandwidth", "B/s", "set_memory_bandwidth_bytes_per_s"),
        ("dram.read", "J", "set_dram_read_j"),
        ("unit_count", "1", "set_unit_count"),
        ("peak.bf16", "ops/s", "set_peak_bf16_ops_per_s"),
    ],
)
def test_a_varied_constant_has_a_column_of_its_name_and_unit(constant: str, unit: str, column: str) -> None:
    assert name_column(constant, unit) == column


def test_the_digest_of_a_block_is_of_all_that_its_answer_depends_on() -> None:
    clock = np.array([1e9, 2e9])
    digests = {
        Block(columns=columns, varied={name: (unit, values)}).digest
        for columns in (make_columns(), make_columns(batch=3), make_columns(batch=[2, 3]), make_columns(rules="x"))
        for name, unit, values in (("clock", "Hz", clock), ("clock", "Hz", clock[::-1]), ("tdp", "W", clock))
    }
    assert len(digests) == 12
    assert (
        Block(columns=make_columns(batch=np.array([2, 3]))).digest == Block(columns=make_columns(batch=[2, 3])).digest
    )


def test_a_block_whose_columns_do_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="missing or unknown: batch, more"):
        Block(columns={name: value for name, value in make_columns(more=1).items() if name != "batch"})
    with pytest.raises(ValueError, match="found 1, 2"):
        Block(columns=make_columns(batch=[1, 2]), varied={"clock": ("Hz", np.ones(1))})
    with pytest.raises(ValueError, match="one class"):
        Block(columns=make_columns(architecture=["tpu", "cpu"]))


def test_points_that_are_fewer_than_the_block_says_are_refused(tmp_path: Path) -> None:
    open_lake(tmp_path)
    with pytest.raises(ValueError, match="100 points for a block of 50"):
        store_points(tmp_path, Cell(0, 50).block, evaluate_cell(Cell(0, 100)))
    assert files(tmp_path) == []


def test_totals_are_read_as_they_were_written(pond: Path) -> None:
    """Point 7 of cell 1: place 107, every number by hand."""
    asked = (
        "SELECT latency_fs, energy_fj, compute_fj, energy_j, latency_s, throughput_per_s, average_power_w, clock_hz, "
        "set_clock_hz, set_memory_vmem_capacity_bytes, changes, peak_memory_bytes, bottleneck, configured_hardware, "
        "label, latency_high_s, is_newest, compute_utilization_fraction FROM points WHERE set_clock_hz = 1.107e9"
    )
    (row,) = Workspace(pond).sql(asked).records()
    latency = 10**15 // 1_107
    assert (row["latency_fs"], row["energy_fj"], row["compute_fj"]) == (latency, 1_207_000_000, 1_107_000_000)
    assert (row["clock_hz"], row["set_clock_hz"], row["set_memory_vmem_capacity_bytes"]) == (1.107e9, 1.107e9, 2.0**20)
    assert row["changes"] == ["clock=1107000000.0", "memory.vmem.capacity=1048576.0"]
    assert (row["peak_memory_bytes"], row["bottleneck"], row["is_newest"]) == (30, "launch", False)
    assert (row["configured_hardware"], row["label"]) == ("tpu_v4", "tpu_v4 bf16 batch 2")
    assert_close(row["energy_j"], 1.207e-6)
    assert_close(row["latency_s"], latency / 1e15)
    assert_close(row["throughput_per_s"], 2e15 / latency)
    assert_close(row["average_power_w"], 1_207_000_000 / latency)
    assert_close(row["latency_high_s"], latency / 1e15 * np.exp(0.3))
    assert_close(row["compute_utilization_fraction"], 2e6 / (latency / 1e15) / 1e14)


TEN = [
    ("SELECT count(*) FROM runs", [(270,)]),
    ("SELECT count(*), any_value(refusal) FROM refused_runs", [(30, "too much")]),
    ("SELECT min(latency_fs), max(energy_fj) FROM points WHERE refusal IS NULL", [(10**15 // 1299, 1_399_000_000)]),
    ("SELECT set_clock_hz FROM runs ORDER BY energy_j LIMIT 1", [(1.001e9,)]),
    ("SELECT count(*) FROM runs WHERE clock_hz > 1.2e9", [(90,)]),
    ("SELECT model, hardware, precision, batch, runtime FROM runs GROUP BY ALL",
     [("small", "tpu_v4", "bf16", 2, "fused")]),
    ("SELECT count(DISTINCT run_id), count(DISTINCT shard) FROM points", [(300, 3)]),
    ("SELECT count(*) FROM run_configurations WHERE refusal IS NOT NULL", [(30,)]),
    ("SELECT bottleneck, count(*) FROM points WHERE refusal IS NULL GROUP BY ALL ORDER BY ALL",
     [("compute", 90), ("launch", 90), ("memory", 90)]),
    ("SELECT parameter_count, max(u.energy_half_width) FROM runs JOIN run_uncertainty AS u USING (run_id) GROUP BY ALL",
     [(40, 0.4)]),
]  # fmt: skip


def test_a_lake_is_asked_in_sql(pond: Path) -> None:
    with reading(Source(path=pond)) as connection:
        for statement, rows in TEN:
            assert connection.execute(statement).fetchall() == rows, statement


@pytest.fixture(scope="module")
def copied(database: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The runs of the database as a lake."""
    lake = tmp_path_factory.mktemp("lake") / "copied"
    open_lake(lake)
    for block, totals in list_blocks_of(database):
        store_points(lake, block, totals)
    return lake


def test_runs_of_a_lake_are_those_of_the_database_that_it_was_made_of(database: Path, copied: Path) -> None:
    """Every column of the promise, but for what numbers rows and what a lake does not know."""
    left_out = "run_id, run_key, workload_id, created_at, is_newest, energy_basis, latency_basis, has_ledger"
    asked = f"SELECT * EXCLUDE ({left_out}) FROM run_figures ORDER BY ALL"
    (here, there) = (Workspace(path).sql(asked) for path in (copied, database))
    assert [one.name for one in here.columns] == [one.name for one in there.columns]
    assert len(here) == len(there) >= 20, (len(here), len(there))
    for mine, own in zip(here.records(), there.records(), strict=True):
        for name, value in own.items():
            if isinstance(value, float):
                assert_close(mine[name], value)
            else:
                assert mine[name] == value, name
    columns = [
        [(one.name, one.type) for one in Workspace(path).sql("FROM runs").columns] for path in (copied, database)
    ]
    assert [pair for pair in zip(*columns, strict=True) if pair[0] != pair[1]] == [
        (("run_id", "BIGINT"), ("run_id", "INTEGER"))
    ]


FRONT = """
    SELECT run_id FROM (
        SELECT run_id, energy_j, min(energy_j) OVER (
            ORDER BY latency_s, energy_j, run_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
        FROM points WHERE {})
    WHERE before IS NULL OR energy_j < before ORDER BY run_id"""


def test_the_front_of_a_lake_is_that_of_the_edges_of_its_shards(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    for number in range(3):
        drawn = evaluate_cell(Cell(number, 2_000))
        latency, energy = random.integers(1, 60, 2_000), random.integers(1, 60, 2_000)
        totals = attrs.evolve(drawn, latency_fs=latency, energy_fj=energy, category_fj={})
        open_lake(tmp_path)
        store_points(tmp_path, Cell(number, 2_000).block, totals)
    page = (Path(__file__).parents[2] / "docs" / "lake.md").read_text()
    (plain,) = (text.split("```")[0] for text in page.split("```sql\n")[1:])
    few = plain.replace("is_edge", "refusal IS NULL AND latency_s > 2e-14")
    with reading(Source(path=tmp_path)) as connection:
        told = [connection.execute(FRONT.format(one)).fetchall() for one in ("is_edge", "refusal IS NULL")]
        limited = connection.execute(FRONT.format("refusal IS NULL AND latency_s > 2e-14")).fetchall()
        assert sorted((run,) for run, _, _ in connection.execute(few).fetchall()) == limited != told[0]
        assert sorted((run,) for run, _, _ in connection.execute(plain).fetchall()) == told[0]
        ((edges,),) = connection.execute("SELECT count(*) FROM points WHERE is_edge").fetchall()
    assert told[0] == told[1] != []
    assert 0 < edges < 600


def test_two_lakes_that_are_copied_together_are_one(tmp_path: Path) -> None:
    for name, cells in (("here", (0, 1)), ("there", (1, 2))):
        fill(tmp_path / name, map(Cell, cells), evaluate_cell)
        shutil.copytree(tmp_path / name, tmp_path / "both", dirs_exist_ok=True)
    assert ask(tmp_path / "both", "SELECT count(*), count(DISTINCT set_clock_hz) FROM points") == [(300, 300)]


def test_what_a_lake_does_not_hold_is_empty_and_said(pond: Path) -> None:
    said: list[str] = []
    workspace = Workspace(pond, patience=Patience(tell=said.append))
    assert workspace.sql("SELECT sum(line_energy_fj) FROM energy_ledger").rows == ((None,),)
    assert len(said) == 1
    assert "energy_ledger is empty here" in said[0]
    workspace.sql("SELECT count(*) FROM runs")
    assert len(said) == 1


def test_a_lake_confines_statements_as_a_database_does(pond: Path, joulemap: Run) -> None:
    done = joulemap("sql", "SELECT * FROM read_csv('/etc/passwd')", "--db", pond)
    assert (done.returncode, done.stdout) == (8, "")
    assert joulemap("sql", "DROP VIEW runs", "--db", pond).returncode == 8


def test_commands_that_need_runs_refuse_a_lake(pond: Path, joulemap: Run) -> None:
    done = joulemap("compare", "resnet18", "--db", pond)
    assert (done.returncode, done.stdout) == (5, "")
    assert "is a folder" in done.stderr and "joulemap sql" in done.stderr
    done = joulemap("sql", "FROM runs", "--db", pond.parent)
    assert (done.returncode, "not a lake" in done.stderr) == (5, True)


def test_a_block_is_evaluated_once(tmp_path: Path) -> None:
    first = fill(tmp_path, [Cell(0), Cell(1), Cell(0)], evaluate_cell)
    assert (len(first.questions), first.known_point_count, first.point_count) == (2, 100, 200)
    again = fill(tmp_path, map(Cell, range(3)), evaluate_cell)
    assert (again.known_point_count, again.point_count) == (200, 100)


def test_what_is_stopped_keeps_its_shards_and_goes_on(tmp_path: Path) -> None:
    told: list[int] = []

    def stop(one: Filled) -> None:
        told.append(one.point_count)
        if told[-1] == 200:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fill(tmp_path, map(Cell, range(4)), evaluate_cell, report=stop)
    assert len(files(tmp_path)) == 2
    assert fill(tmp_path, map(Cell, range(4)), evaluate_cell).known_point_count == 200
    assert ask(tmp_path, "SELECT count(*), count(DISTINCT set_clock_hz) FROM points") == [(400, 400)]


def test_two_who_fill_a_lake_at_once_keep_each_block_once(tmp_path: Path) -> None:
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: fill(tmp_path, map(Cell, range(8)), evaluate_cell), range(2)))
    found = survey(tmp_path)
    assert (len(found.shards), found.twice, found.damaged, found.unfinished) == (8, (), (), ())


@pytest.mark.sample(1)
@pytest.mark.parametrize("how", ["cut", "altered", "emptied"])
def test_a_damaged_shard_is_named_left_out_and_replaced(how: str, tmp_path: Path) -> None:
    fill(tmp_path, map(Cell, range(2)), evaluate_cell)
    broken = files(tmp_path)[0]
    content = broken.read_bytes()
    middle = len(content) // 2
    altered = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
    broken.write_bytes({"cut": content[:-10], "altered": altered, "emptied": b""}[how])
    said: list[str] = []
    workspace = Workspace(tmp_path, patience=Patience(tell=said.append))
    assert workspace.sql("SELECT count(*) FROM points").rows == ((100,),)
    assert len(said) == 1 and str(broken) in said[0]
    assert fill(tmp_path, map(Cell, range(2)), evaluate_cell).point_count == 100
    assert broken.read_bytes() == content
    assert ask(tmp_path, "SELECT count(*) FROM points") == [(200,)]


def test_shards_of_other_formulas_are_counted_and_never_asked(tmp_path: Path, joulemap: Run) -> None:
    fill(tmp_path, map(Cell, range(2)), evaluate_cell)
    folder = files(tmp_path)[0].parent
    folder.rename(tmp_path / "tpu-0000000000000000")
    ruled = tmp_path / f"{folder.name}-1111111111111111"
    ruled.mkdir()
    (tmp_path / "tpu-0000000000000000" / files(tmp_path)[0].name).rename(ruled / files(tmp_path)[0].name)
    done = joulemap("sql", "SELECT count(*) FROM points", "--db", tmp_path, "-f", "csv")
    assert done.stdout.splitlines()[1] == "0"
    assert "left out 2 stale shards (1 of other design rules, 1 of other formulas than this version's)" in done.stderr
    fill(tmp_path, map(Cell, range(1)), evaluate_cell)
    assert ask(tmp_path, "SELECT count(*) FROM points") == [(100,)]


def test_garbage_is_listed_with_its_bytes_and_removed_when_asked(tmp_path: Path, joulemap: Run) -> None:
    fill(tmp_path, map(Cell, range(3)), evaluate_cell)
    whole, broken, other = files(tmp_path)
    broken.write_bytes(b"PAR1")
    stale = tmp_path / "tpu-0000000000000000"
    stale.mkdir()
    other.rename(stale / other.name)
    parts = [whole.parent / f".{'0' * 32}.host-{number}-aa.part" for number in range(2)]
    for part in parts:
        part.write_bytes(b"12345")
    os.utime(parts[0], (0, 0))
    size = stale.joinpath(other.name).stat().st_size
    listed = json.loads(joulemap("lake", "list", tmp_path, "-f", "json").stdout)
    assert sorted(one["state"] for one in listed["shards"]) == ["damaged", "stale", "unfinished", "unfinished", "whole"]
    assert listed["point_count"] == 100
    checked = joulemap("lake", "check", tmp_path)
    assert (checked.returncode, "1 of 5 files are damaged" in checked.stderr) == (6, True)
    told = json.loads(joulemap("lake", "clean", tmp_path, "-f", "json").stdout)
    assert (len(told["shards"]), told["size_bytes"], told["removed_count"]) == (3, size + 4 + 5, 0)
    assert broken.exists()
    gone = json.loads(joulemap("lake", "clean", tmp_path, "--remove", "-f", "json").stdout)
    assert (gone["removed_count"], gone["removed_bytes"]) == (3, size + 9)
    assert [one for one in tmp_path.glob("*/*") if one not in (whole, parts[1])] == []


def test_a_folder_that_is_no_lake_is_neither_written_nor_read(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").touch()
    with pytest.raises(UsageError, match="new or empty"):
        fill(tmp_path, [Cell(0)], evaluate_cell)
    with pytest.raises(DatabaseError, match="not a lake"):
        survey(tmp_path)
    with pytest.raises(UsageError, match="s3://bucket/designs is an object store"):
        fill(Path("s3://bucket/designs"), [], evaluate_cell)
    (tmp_path / "joulemap-lake.json").write_text('{"format": 99}')
    with pytest.raises(UsageError, match="format 99"):
        survey(tmp_path)


def test_an_empty_lake_has_the_columns_of_runs_and_no_row(tmp_path: Path) -> None:
    fill(tmp_path, [], evaluate_cell)
    assert ask(tmp_path, "SELECT hardware, energy_j, changes FROM runs") == []


def test_numbers_of_shards_are_exact_as_doubles_and_differ(tmp_path: Path) -> None:
    alike = [Shard(tmp_path, "f" * 30 + end, "", 0) for end in ("00", "01", "02")]
    numbers = number_shards(alike)
    assert numbers == [2**33 - 1, 2**33, 2**33 + 1]
    assert number_shards([Shard(tmp_path, "0" * 7 + "8" + "0" * 24, "", 0)]) == [16]


@pytest.mark.parametrize("text", ["here", "local:", "local:0", "local:x", "tcp:", "tcp://", "http://a"])
def test_a_cluster_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="write tcp://HOST:PORT"):
        read_cluster(text)


PROGRAM = """
import sys
from pathlib import Path
from joulemap.wing.explore.lake.fill import Filled, fill
from pond import Cell, Totals, evaluate_cell
if __name__ == "__main__":
    fill(Path(sys.argv[1]), (Cell(n, 2000, 0.01) for n in range(40)), evaluate_cell, jobs=int(sys.argv[2]))
"""


def start(lake: Path, jobs: int) -> subprocess.Popen[bytes]:
    path = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
    program = lake.parent / "program.py"
    program.write_text(PROGRAM)
    return subprocess.Popen([sys.executable, program, lake, str(jobs)], env=os.environ | {"PYTHONPATH": path})


@pytest.mark.slow
def test_two_processes_fill_one_lake(tmp_path: Path) -> None:
    started = [start(tmp_path / "lake", 1) for _ in range(2)]
    assert [one.wait() for one in started] == [0, 0]
    found = survey(tmp_path / "lake", is_thorough=True)
    assert (len(found.shards), found.damaged, found.twice, found.unfinished) == (40, (), (), ())


@pytest.mark.slow
@pytest.mark.parametrize("way", [{"jobs": 2}, {"cluster": "local:2"}], ids=["processes", "cluster"])
def test_a_worker_that_is_killed_loses_nothing_and_writes_nothing_twice(
    way: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "cluster" in way:
        pytest.importorskip("distributed")
    monkeypatch.setenv("POND_MARK", str(tmp_path / "mark"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)]))
    lake = tmp_path / "lake"
    told = fill(lake, (Cell(n, 10_000) for n in range(10)), evaluate_and_die, **way)  # type: ignore[arg-type]
    assert (tmp_path / "mark").exists()
    assert told.point_count == 100_000
    found = survey(lake, is_thorough=True)
    assert (len(found.shards), found.damaged, found.twice) == (10, (), ())
    assert ask(lake, "SELECT count(*), count(DISTINCT set_clock_hz) FROM points") == [(100_000, 100_000)]


def evaluate_deadly(_: Cell) -> Totals:
    os.kill(os.getpid(), 9)
    raise AssertionError


@pytest.mark.slow
def test_a_block_that_kills_every_process_ends_with_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)]))
    with pytest.raises(JoulemapError, match="for lack of memory"):
        fill(tmp_path / "lake", [Cell(0)], evaluate_deadly, jobs=2)


@pytest.mark.slow
def test_a_million_points_answer_ten_questions(tmp_path: Path) -> None:
    fill(tmp_path, (Cell(n, 100_000) for n in range(10)), evaluate_cell)
    assert ask(tmp_path, "SELECT count(*) FROM runs") == [(900_000,)]
    for statement, _ in TEN:
        assert ask(tmp_path, statement)
    assert ask(tmp_path, "SELECT set_clock_hz FROM runs ORDER BY energy_j LIMIT 1") == [(1.001e9,)]


def test_a_pool_on_windows_has_no_resource_tracker_and_at_most_61_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    def start() -> None:
        raise ImportError("_posixsubprocess")

    monkeypatch.setattr("multiprocessing.resource_tracker.ensure_running", start)
    monkeypatch.setattr("joulemap.system.pool.IS_POSIX", False)
    with open_pool(64) as pool:
        assert vars(pool)["_max_workers"] == 61
