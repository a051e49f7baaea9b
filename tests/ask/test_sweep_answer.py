"""What a sweep says: best batches and turning points by hand, and a command that can be interrupted at any time."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from compare import assert_close
from conftest import Run
from joulemap.ask.fact import Change
from joulemap.ask.sweep import SweepAnswer
from joulemap.cli.value import read_batches
from joulemap.domain.metric import METRIC
from joulemap.domain.settings import BATCHES as DEFAULT_BATCHES
from joulemap.show.present.document import Grid
from joulemap.show.sweep import describe_fall
from joulemap.store.library import find_query
from joulemap.store.query import run_query
from joulemap.system.errors import ExitCode, UnsupportedError, UsageError
from joulemap.workspace import Workspace
from ledger import Book, Part

MODELS = ("resnet18", "squeezenet1_1")
BATCHES = (1, 2, 8, 32, 2000)
HARDWARE = ("xeon_8490h", "h100_sxm5", "kpu_t256", "coral", "Jetson-Orin-Nano@7W", "Jetson-Orin-Nano@15W")


def ask(book: Book, name: str, **parameters: object) -> list[dict[str, Any]]:
    return run_query(book.connection, find_query(name), parameters).records()


def fill(book: Book, hardware: str, runs: dict[int, tuple[float, float] | None], **settings: Any) -> None:
    """Store (latency, energy of the batch) by batch; None for a batch that it cannot run."""
    for batch, run in runs.items():
        parts = [Part(time_s=run[0], compute_j=run[1], mac_count=5)] if run else [Part(time_s=1.0)]
        reason = None if run else f"{hardware} is full at {batch}"
        book.add_run(parts, hardware=hardware, batch=batch, refusal=reason, **settings)


@pytest.fixture(scope="module")
def book() -> Book:
    """`even` takes 1 s and 1 J for each sample, `wide` 2 s and 4 J for any batch up to 4."""
    book = Book()
    fill(book, "even", {1: (1.0, 1.0), 2: (2.0, 2.0), 4: (4.0, 4.0), 8: (8.0, 8.0)})
    fill(book, "wide", {1: (2.0, 4.0), 2: (2.0, 4.0), 4: (2.0, 4.0), 8: None})
    return book


def test_efficiency_worked_out_by_hand(book: Book) -> None:
    rows = {(row["hardware"], row["batch"]): row for row in ask(book, "sweep.point", run_ids=list(range(1, 9)))}
    for batch in (1, 2, 4, 8):
        even = rows["even", batch]
        assert (even["throughput_per_s"], even["speedup_ratio"]) == (1.0, 1.0)
        assert (even["batch_scaling_ratio"], even["inferences_per_j"], even["is_in_zone"]) == (
            1.0 / batch,
            1.0,
            True,
        )
    for batch in (1, 2, 4):
        wide = rows["wide", batch]
        assert (wide["throughput_per_s"], wide["batch_scaling_ratio"]) == (batch / 2, 1.0)
        assert (wide["energy_per_inference_j"], wide["is_in_zone"]) == (4.0 / batch, batch == 4)
    full = rows["wide", 8]
    assert (full["status"], full["reason"], full["latency_s"]) == ("unsupported", "wide is full at 8", None)
    without = ask(book, "sweep.point", run_ids=[2, 3])
    assert [row["batch_scaling_ratio"] for row in without] == [None, None]


def test_best_batches_worked_out_by_hand(book: Book) -> None:
    ids = list(range(1, 9))
    wide, even = ask(book, "sweep.series", run_ids=ids, max_latency_s=2.0, zone_fraction=0.5)
    assert (wide["hardware"], even["hardware"]) == ("wide", "even")
    # ties go to the smaller batch
    assert (wide["least_latency_batch"], wide["least_latency_s"]) == (1, 2.0)
    assert (wide["budget_batch"], wide["budget_throughput_per_s"], wide["budget_latency_s"]) == (4, 2.0, 2.0)
    assert (wide["throughput_batch"], wide["throughput_per_s"]) == (4, 2.0)
    assert (wide["energy_batch"], wide["energy_per_inference_j"]) == (4, 1.0)
    assert (wide["zone_low_batch"], wide["zone_high_batch"], wide["zone_high_power_w"]) == (2, 4, 2.0)
    assert (wide["largest_batch"], wide["largest_speedup_ratio"], wide["largest_batch_scaling_ratio"]) == (
        4,
        4.0,
        1.0,
    )
    assert (wide["batch_count"], wide["refused_count"], wide["reason"]) == (3, 1, "wide is full at 8")
    assert (even["budget_batch"], even["throughput_batch"], even["energy_batch"]) == (1, 1, 1)
    assert (even["zone_low_batch"], even["zone_high_batch"], even["largest_batch_scaling_ratio"]) == (1, 8, 0.125)
    tight = ask(book, "sweep.series", run_ids=ids, max_latency_s=0.5)
    assert [row["budget_batch"] for row in tight] == [None, None]
    free = ask(book, "sweep.series", run_ids=ids)
    assert [row["budget_batch"] for row in free] == [None, None]


def test_a_zone_has_no_gap() -> None:
    book = Book()
    fill(book, "h", {1: (1.0, 1.0), 2: (1.0, 4.0), 4: (1.0, 4.0), 8: (1.0, 8.1)})
    (row,) = ask(book, "sweep.series", run_ids=[1, 2, 3, 4])
    assert (row["energy_batch"], row["zone_low_batch"], row["zone_high_batch"]) == (1, 1, 1)
    points = ask(book, "sweep.point", run_ids=[1, 2, 3, 4])
    assert [point["is_in_zone"] for point in points] == [True, False, False, False]


def test_turning_points_worked_out_by_hand(book: Book) -> None:
    rows = ask(book, "sweep.crossing", run_ids=list(range(1, 9)))
    # latency 1 against 2 s at batch 1, equal at 2, 4 against 2 s at 4; energy per inference meets at 4, and no more
    assert [
        (row["metric"], row["overtaker"], row["overtaken"], row["batch"], row["previous_batch"]) for row in rows
    ] == [
        ("edp", "wide", "even", 4, 2),
        ("latency", "wide", "even", 4, 1),
    ]
    assert (rows[1]["overtaker_value"], rows[1]["overtaken_value"]) == (2.0, 4.0)
    assert (rows[1]["previous_overtaker_value"], rows[1]["previous_overtaken_value"]) == (2.0, 1.0)


def test_winners_worked_out_by_hand(book: Book) -> None:
    rows = ask(book, "sweep.winner", run_ids=list(range(1, 9)))
    by = {(row["metric"], row["batch"]): row for row in rows}
    assert [by["latency", batch]["winner"] for batch in (1, 2, 4, 8)] == ["even", "even", "wide", "even"]
    assert [by["latency", batch]["is_change"] for batch in (1, 2, 4, 8)] == [False, False, True, True]
    # at batch 8 `wide` is not beaten, it cannot run
    assert [by["latency", batch]["is_overtaking"] for batch in (1, 2, 4, 8)] == [False, False, True, False]
    assert by["latency", 2]["advantage_ratio"] == 1.0
    assert [by["energy_per_inference", batch]["winner"] for batch in (1, 2, 4, 8)] == ["even"] * 4
    assert by["latency", 8]["runner_up"] is None


@pytest.mark.slow
def test_a_sweep_that_nothing_can_run_says_why(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "none.duckdb")
    with pytest.raises(UnsupportedError, match="coral_edge_tpu has no fp32; it has int8"):
        workspace.sweep("resnet18", hardware="coral", batch=(1, 2))
    assert workspace.sql("SELECT count(*) FROM refused_runs").rows == ((2,),)


def test_one_run_is_a_sweep_too() -> None:
    book = Book()
    fill(book, "h", {1: (1.0, 1.0)})
    assert len(ask(book, "sweep.point", run_ids=[1])) == 1
    (row,) = ask(book, "sweep.series", run_ids=[1])
    assert (row["zone_low_batch"], row["zone_high_batch"], row["largest_batch_scaling_ratio"]) == (1, 1, 1.0)
    assert len(ask(book, "sweep.winner", run_ids=[1])) == 3
    assert ask(book, "sweep.crossing", run_ids=[1]) == []


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("swept") / "results.duckdb"


@pytest.fixture(scope="module")
def answer(path: Path) -> SweepAnswer:
    return Workspace(path).sweep(
        MODELS, hardware=HARDWARE, batch=BATCHES, precision=("fp32", "int8"), max_latency_s=0.004
    )


@pytest.mark.sample(1)
def test_every_point_is_a_run_and_every_best_is_the_best(path: Path, answer: SweepAnswer) -> None:
    assert len(answer.points) == answer.tally.run_count == len(answer.scope.run_ids)
    assert answer.tally.refused_count > 0
    runs = {row["run_id"]: row for row in Workspace(path).sql("SELECT * FROM runs").records()}
    for point in answer.points:
        assert (point.status == "ok") == (point.run_id in runs)
        if point.status == "ok":
            run = runs[point.run_id]
            assert (point.latency_s, point.throughput_per_s, point.edp_js) == (
                run["latency_s"], run["throughput_per_s"], run["edp_js"])  # fmt: skip
    for row in answer.series:
        points = [
            point
            for point in answer.points
            if (point.model, point.hardware, point.precision) == (row.model, row.hardware, row.precision)
            and point.latency_s is not None
        ]
        assert len(points) == row.batch_count
        if not points:
            assert row.reason
            continue
        # of rates that differ by femtoseconds the smaller batch has the highest, as the least of such energies
        kept = [point for point in points if (point.latency_s or 0.0) <= 0.004]
        rates = {
            point.batch: point.throughput_per_s or 0.0 for point in kept or points
        }  # the best are within the limit
        fastest = min(batch for batch, rate in rates.items() if rate >= max(rates.values()) * (1 - 1e-7))
        assert (row.throughput_batch, row.throughput_per_s) == (fastest, rates[fastest])
        least = min(point.energy_per_inference_j or 0.0 for point in kept or points) * (1 + 1e-7)
        leanest = next(point for point in kept or points if (point.energy_per_inference_j or 0.0) <= least)
        assert (row.energy_batch, row.energy_per_inference_j) == (leanest.batch, leanest.energy_per_inference_j)
        most = max((point.throughput_per_s or 0.0 for point in kept), default=0.0)
        best = next((point for point in kept if (point.throughput_per_s or 0.0) >= most * (1 - 1e-7)), None)
        assert row.budget_batch == (best.batch if best else None)
        single = next(point for point in points if point.batch == 1)
        for point in points:
            assert_close(point.batch_scaling_ratio, (single.latency_s or 0.0) / (point.latency_s or 1.0))
        zone = [point.batch for point in points if point.is_in_zone]
        assert (min(zone), max(zone)) == (row.zone_low_batch, row.zone_high_batch)
        thriftiest = min(points, key=lambda point: (point.energy_per_inference_j or 0.0, point.batch))  # limit or not
        assert thriftiest.batch in zone


def test_winners_and_crossings_are_those_of_the_points(answer: SweepAnswer) -> None:
    ran = [one for one in answer.points if one.status == "ok"]
    sold = {(one.model, one.precision) for one in ran if one.is_available}
    ranked = [one for one in ran if one.is_available or (one.model, one.precision) not in sold]
    for row in answer.winners:
        values = [
            (getattr(point, METRIC[row.metric].column), point.hardware)
            for point in ranked
            if (point.model, point.precision, point.batch) == (row.model, row.precision, row.batch)
        ]
        assert (row.value, row.winner) == min(values)
        assert row.candidate_count == len(values)
    assert answer.crossings
    for crossing in answer.crossings:
        assert crossing.overtaker_value < crossing.overtaken_value
        assert crossing.previous_overtaker_value > crossing.previous_overtaken_value
        assert crossing.previous_batch < crossing.batch
    beaten = {
        (row.model, row.precision, row.metric, row.batch, row.winner, row.previous_winner)
        for row in answer.winners
        if row.is_overtaking
    }
    assert beaten <= {
        (row.model, row.precision, row.metric, row.batch, row.overtaker, row.overtaken) for row in answer.crossings
    }


def test_what_is_stored_is_only_read_and_makes_no_progress(path: Path, answer: SweepAnswer) -> None:
    before = path.stat().st_mtime_ns
    told: list[tuple[int, int]] = []
    again = Workspace(path, progress=lambda done, total: told.append((done, total))).sweep(
        MODELS, hardware=HARDWARE, batch=BATCHES, precision=("fp32", "int8"), max_latency_s=0.004
    )
    assert again.tally.stored_count == answer.tally.run_count
    assert (again.points, again.series, again.winners, again.crossings) == (
        answer.points, answer.series, answer.winners, answer.crossings)  # fmt: skip
    assert told == []
    assert path.stat().st_mtime_ns == before


@pytest.mark.parametrize(
    ("text", "batches"),
    [
        ("1", (1,)),
        ("1, 8,32", (1, 8, 32)),
        ("8,1,8", (8, 1)),
        ("1,2,4,...,128", DEFAULT_BATCHES),
        ("", ()),
        ("1,2,4,…,16", (1, 2, 4, 8, 16)),
        ("1,2,3,...,6", (1, 2, 3, 4, 5, 6)),
        ("2,4,...,10", (2, 4, 6, 8, 10)),
        ("1,3,9,...,81,100", (1, 3, 9, 27, 81, 100)),
        ("1,2,...,3", (1, 2, 3)),
    ],
)
def test_batches_as_a_person_writes_them(text: str, batches: tuple[int, ...]) -> None:
    assert read_batches(text) == batches


@pytest.mark.parametrize(
    "text",
    [",", "1..8", "...", "...,8", "1,...,8", "1,2,...", "1,2,4,...,9", "4,2,...,1", "0", "-1", "1.5"],
)
def test_batches_that_cannot_be_read(text: str) -> None:
    with pytest.raises(UsageError):
        read_batches(text)


def test_a_budget_of_the_command_line_is_that_of_the_answer(joulemap: Run) -> None:
    done = joulemap("sweep", "mlp", "--batch", "1", "--hardware", "tpu_v4", "--max-latency", "1ms", "-f", "json")
    assert (done.returncode, json.loads(done.stdout)["max_latency_s"]) == (0, 1e-3)


@pytest.mark.slow
def test_an_interrupt_leaves_whole_runs_and_the_rest_is_evaluated_later(tmp_path: Path) -> None:
    """Ctrl-C between two transactions: what is stored adds up, and the same sweep goes on from there."""
    place = tmp_path / "stopped.duckdb"
    program = """
import sys
import joulemap.store.writer
joulemap.store.writer.CHUNK_LINES = 5_000
import joulemap.workspace as workspace
ask = workspace.Workspace.sweep
def sweep(self, *asked, **options):
    heed = self._source.progress
    def tell(done, total):
        print(done, file=sys.stderr, flush=True)
        heed(done, total)
    return ask(workspace.Workspace(self.path, progress=tell), *asked, **options)
workspace.Workspace.sweep = sweep
from joulemap.cli import main
main()
"""
    arguments = ["sweep", *MODELS, "--batch", "1,2,4,8", "--where", "deployment=edge", "--precision", "int8,fp32"]
    arguments += ["--db", str(place)]
    process = subprocess.Popen(
        [sys.executable, "-c", program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    for line in process.stderr:
        if line.strip().isdigit() and int(line) >= 60:
            process.send_signal(signal.SIGINT)
            break
    talk = [line for line in process.stderr if not line.strip().isdigit()]
    started = time.monotonic()
    assert process.wait(timeout=60) == ExitCode.INTERRUPTED
    assert time.monotonic() - started < 30
    assert talk == ["joulemap: interrupted; nothing in the database is half written\n"]
    workspace = Workspace(place)
    assert workspace.check().findings.rows == ()
    stored = workspace.sql("SELECT count(*) FROM internal.run").rows[0][0]
    answer = workspace.sweep(MODELS, batch=(1, 2, 4, 8), deployment="edge", precision=("int8", "fp32"))
    assert 0 < stored == answer.tally.stored_count < answer.tally.run_count
    assert workspace.check().findings.rows == ()


@pytest.mark.slow
def test_a_fall_of_the_throughput_has_a_cause_and_every_batch_a_limit(workspace: Workspace) -> None:
    """At batch 128 the first results of resnet50, 411 MB, no longer fit the L2 cache of an L4, 48 MB; at 4 they do."""
    answer = workspace.sweep("resnet50", hardware="l4", batch=(4, 128))
    few, many = answer.points
    assert few.throughput_per_s is not None and many.throughput_per_s is not None
    assert many.throughput_per_s < few.throughput_per_s
    assert few.dram_bytes_per_inference is not None and many.dram_bytes_per_inference is not None
    # fused: 102 MB of weights for four images; at 128, results are written and read by most of 53 convolutions
    assert few.dram_bytes_per_inference < 30e6 and many.dram_bytes_per_inference > 100e6
    assert (few.throughput_limit, many.throughput_limit, many.bound) == ("power cap", "latency", "memory")
    (fall,) = answer.facts.of(Change)
    assert (fall.runs, fall.cause) == ((few.run_id, many.run_id), "spill")
    assert_close(fall.before.value, few.throughput_per_s)
    assert_close(fall.after.value, many.throughput_per_s)
    assert describe_fall(fall, answer.facts.runs) in answer.document().insights
    (grid, *_) = answer.document(by="batch").sections[0].blocks
    assert isinstance(grid, Grid)
    column = grid.headings.index("throughput limit")
    assert [row[column] for row in grid.rows] == ["power cap", "memory"]
    assert workspace.sweep("resnet50", hardware="l4", batch=(1, 4)).facts.of(Change) == []
