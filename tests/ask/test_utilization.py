"""How well hardware is used: the roofline by hand, flags with their reasons, and advice that is counted from runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from compare import assert_close
from conftest import Run
from joulemap.ask.fact import Choice, Entry, Share, Turn
from joulemap.ask.utilization import UtilizationAnswer, rank_remedies
from joulemap.plan.remedy import rebatch
from joulemap.show.utilization import UNTRACED
from joulemap.store.library import find_query
from joulemap.store.query import run_query
from joulemap.system.errors import ExitCode, SqlError, UsageError
from joulemap.workspace import Workspace
from ledger import Book, Part

HARDWARE = (
    "h100_sxm5",
    "kpu_t256",
    "coral",
    "Jetson-Orin-Nano@7W",
)


def ask(book: Book, name: str, **parameters: object) -> list[dict[str, Any]]:
    return run_query(book.connection, find_query(name), parameters).records()


@pytest.fixture(scope="module")
def book() -> Book:
    """100 operations per second, 10 bytes per second, 4 units; 60 operations and 20 bytes in 4 s and 8 J."""
    book = Book()
    book.add_run(
        [
            Part(time_s=1.0, compute_j=5.0, mac_count=25, dram_bytes=2.0, units=4, tiles=4.0),
            Part(time_s=3.0, memory_j=3.0, launch_s=0.5, compute_s=0.5, memory_s=2.5, mac_count=5, dram_bytes=18.0),
        ]
    )
    return book


def test_the_roofline_worked_out_by_hand(book: Book) -> None:
    (row,) = ask(book, "utilization.summary", run_ids=[1])
    expected = {
        "attained_ops_per_s": 15.0,
        "compute_utilization_fraction": 0.15,
        "attained_bytes_per_s": 5.0,
        "bandwidth_utilization_fraction": 0.5,
        "dram_intensity_ops_per_byte": 3.0,
        "ridge_ops_per_byte": 10.0,
        "ridge_ratio": 0.3,
        "roofline_ops_per_s": 30.0,
        "roofline_fraction": 0.5,
        "compute_time_fraction": 0.25,
        "memory_time_fraction": 0.625,
        "launch_time_fraction": 0.125,
        # 4 units for 1 s and 1 for 3 s are 1.75 of 4
        "idle_units_fraction": 0.5625,
        "average_power_w": 2.0,
        "ops_per_j": 7.5,
        "peak_ops_per_j": 1.0,
    }
    for name, value in expected.items():
        assert_close(row[name], value)
    assert (row["roof"], row["units_used_count"]) == ("memory", 2)
    assert row["flags"] == ["low_compute"]


def test_flags_name_where_the_cost_is(book: Book) -> None:
    limits = {"max_bandwidth_fraction": 0.4, "max_idle_fraction": 0.5}
    (row,) = ask(book, "utilization.summary", run_ids=[1], **limits)
    assert row["flags"] == ["low_compute", "high_bandwidth", "idle_units"]
    low, bandwidth, idle = ask(book, "utilization.flag", run_ids=[1], **limits)
    # at the peak the second would take 0.1 s of its 3, the first 0.5 of its 1: 2.9 of 3.4 s are lost there
    assert (low["flag"], low["value_fraction"], low["limit_fraction"]) == ("low_compute", 0.15, 0.2)
    assert_close(low["bottleneck_fraction"], 2.9 / 3.4)
    assert (bandwidth["flag"], bandwidth["value_fraction"], bandwidth["bottleneck_fraction"]) == (
        "high_bandwidth", 0.5, 0.9)  # fmt: skip
    assert (idle["flag"], idle["value_fraction"], idle["bottleneck_fraction"]) == ("idle_units", 0.5625, 1.0)
    for flag in (low, bandwidth, idle):
        assert (flag["bottleneck"], flag["subgraph"], flag["subgraph_count"], flag["total_count"]) == (
            "memory", "part1", 1, 2)  # fmt: skip


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("architecture", "memory_type", "name"),
    [
        ("tpu", "HBM2", "dram_efficiency"),
        ("gpu", "HBM3", "dram_efficiency.stacked"),
        ("gpu", "GDDR6", "dram_efficiency.planar"),
        ("gpu", "GDDR6 with ECC", "dram_efficiency.protected"),
    ],
)
def test_bandwidth_is_held_against_what_the_class_sustains(
    book: Book, architecture: str, memory_type: str, name: str
) -> None:
    book.connection.execute("BEGIN TRANSACTION")
    book.connection.execute(
        "UPDATE internal.hardware_version SET architecture = ?, memory_type = ?", [architecture, memory_type]
    )
    book.connection.execute(
        "INSERT INTO internal.hardware_fact VALUES ('h', 1, ?, 0.5, '1', 'assumed', 's', '', NULL, NULL, NULL)",
        [f"coefficient.{name}"],
    )
    (row,) = ask(book, "utilization.summary", run_ids=[1])
    assert (row["bandwidth_utilization_fraction"], row["sustained_bandwidth_fraction"]) == (0.5, 1.0)
    assert row["flags"] == ["low_compute", "high_bandwidth"]
    assert [flag["value_fraction"] for flag in ask(book, "utilization.flag", run_ids=[1])] == [0.15, 1.0]
    book.connection.execute("ROLLBACK")


def test_a_limit_that_is_just_kept_raises_no_flag(book: Book) -> None:
    limits = {"min_compute_fraction": 0.15, "max_bandwidth_fraction": 0.5, "max_idle_fraction": 0.5625}
    (row,) = ask(book, "utilization.summary", run_ids=[1], **limits)
    assert row["flags"] == []
    assert ask(book, "utilization.flag", run_ids=[1], **limits) == []


def test_a_run_that_multiplies_nothing_and_one_that_moves_nothing() -> None:
    book = Book()
    book.add_run([Part(time_s=1.0, memory_j=1.0, compute_s=0.0, memory_s=1.0, dram_bytes=8.0)])
    book.add_run([Part(time_s=1.0, compute_j=1.0, mac_count=50)], model="other")
    idle, busy = sorted(ask(book, "utilization.summary", run_ids=[1, 2]), key=lambda row: int(row["run_id"]))
    assert (idle["compute_utilization_fraction"], idle["roof"], idle["roofline_fraction"]) == (0.0, "memory", None)
    assert (busy["compute_utilization_fraction"], busy["roof"]) == (1.0, "compute")
    assert (busy["dram_intensity_ops_per_byte"], busy["ridge_ratio"]) == (None, None)
    assert (busy["roofline_ops_per_s"], busy["roofline_fraction"]) == (100.0, 1.0)


def contest(book: Book, model: str, batch: int, flop_count: int, **runs: tuple[float, float]) -> None:
    for hardware, (time_s, energy_j) in runs.items():
        book.add_run(
            [Part(time_s=time_s, compute_j=energy_j, mac_count=flop_count // 2 * batch)],
            model=model, hardware=hardware, batch=batch,
        )  # fmt: skip


def test_advice_is_counted_from_runs() -> None:
    book = Book()
    contest(book, "small", 1, 10, fast=(1.0, 4.0), lean=(2.0, 2.0))
    contest(book, "other", 1, 99, fast=(1.0, 6.0), lean=(3.0, 2.0))
    contest(book, "third", 1, 50, fast=(1.0, 1.0), lean=(2.0, 2.0))
    contest(book, "small", 8, 10, fast=(1.0, 8.0), lean=(0.5, 9.0))
    contest(book, "large", 1, 100, fast=(1.0, 4.0), lean=(2.0, 2.0))
    contest(book, "lonely", 1, 10, lean=(0.1, 0.1))
    rows = ask(book, "utilization.pairing", run_ids=list(range(1, 12)))
    assert [(row["least_flop_count"], row["batch"], row["goal"], row["hardware"]) for row in rows] == [
        (10, 1, "energy", "lean"),
        (10, 1, "latency", "fast"),
        (10, 1, "utilization", "fast"),
        (10, 8, "energy", "fast"),
        (10, 8, "latency", "lean"),
        (10, 8, "utilization", "lean"),
        (100, 1, "energy", "lean"),
        (100, 1, "latency", "fast"),
        (100, 1, "utilization", "fast"),
    ]
    first = rows[0]
    # lean wins two of three models, by 2x and 3x, at 2 J each; the run without an opponent is no contest
    assert (first["won_count"], first["entered_count"], first["contest_count"], first["model_count"]) == (2, 3, 3, 3)
    assert (first["median_value"], first["median_advantage_ratio"], first["unit"]) == (2.0, 2.5, "J")
    assert (first["runner_up"], first["runner_up_won_count"], first["hardware_count"]) == ("fast", 1, 2)
    assert rows[1]["runner_up"] is None
    assert {row["batch"] for row in ask(book, "utilization.pairing", run_ids=[7, 8])} == {8}
    assert ask(book, "utilization.pairing", run_ids=[1, 3, 5]) == []


def test_advice_takes_the_first_name_of_a_tie() -> None:
    book = Book()
    contest(book, "net", 1, 10, b=(1.0, 1.0), c=(1.0, 1.0))
    contest(book, "net", 1, 10, a=(1.0, 1.0))
    row = ask(book, "utilization.pairing", run_ids=[1, 2, 3])[0]
    assert (row["hardware"], row["won_count"], row["median_advantage_ratio"]) == ("a", 1, 1.0)


def test_grades_begin_where_they_say() -> None:
    book = Book()
    own = {row["grade"]: row["least_fraction"] for row in ask(book, "utilization.grade")}
    assert own == {"excellent": 0.7, "good": 0.5, "fair": 0.3, "poor": 0.1, "very poor": 0.0}
    for index, mac_count in enumerate((35, 34, 25, 15, 5, 4, 0), 1):
        book.add_run([Part(time_s=1.0, compute_j=1.0, mac_count=mac_count)], model=f"net{index}")
    rows = {row["run_id"]: row for row in ask(book, "utilization.summary", run_ids=list(range(1, 8)))}
    graded = [rows[index]["compute_grade"] for index in range(1, 8)]
    assert graded == ["excellent", "good", "good", "fair", "poor", "very poor", "very poor"]
    (moved,) = ask(book, "utilization.summary", run_ids=[4], grade_bounds=[0.3, 0.2, 0.1, 0.05])
    assert moved["compute_grade"] == "excellent"
    with pytest.raises(SqlError, match="expected four bounds of grades, from excellent down to poor, found 1"):
        ask(book, "utilization.grade", grade_bounds=[0.5])


def test_a_remedy_is_the_best_run_that_differs_in_one_thing() -> None:
    book = Book()

    def add(time_s: float, energy_j: float, **settings: Any) -> int:
        batch = settings.get("batch", 1)
        return book.add_run([Part(time_s=time_s, compute_j=energy_j, mac_count=5 * batch)], **settings)

    asked = add(1.0, 8.0)
    other = [
        add(1.2, 10.0, batch=2),
        add(2.0, 16.0, batch=4),
        add(3.8, 30.0, batch=8),
        add(0.9, 9.0, precision="int8"),
        add(0.5, 4.0, precision="fp16", batch=2),
        add(0.5, 4.0, precision="fp64"),
        add(0.8, 7.0, runtime="graph"),
        add(1.1, 2.0, hardware="small", peak_ops_per_s=50.0, units=2),
        add(0.5, 20.0, hardware="large", peak_ops_per_s=200.0, units=8),
        add(0.9, 7.0, hardware="like"),
    ]
    rows = {row["remedy"]: row for row in ask(book, "utilization.remedy", run_ids=[asked], other_ids=other)}
    # batch 8 takes 0.475 s and 3.75 J an inference, 4.49 times less together; 4 is within 90 % of it? 2 x 2 = 4 < 4.04
    batch = rows["larger batch"]
    assert (batch["choice"], batch["is_better"], batch["remedy_rank"], batch["tried_count"]) == ("batch 8", True, 1, 3)
    assert_close(batch["throughput_ratio"], 8.0 / 3.8)
    assert_close(batch["energy_ratio"], 30.0 / 64.0)
    assert_close(batch["gain_ratio"], 8.0 / 3.8 * 64.0 / 30.0)
    assert_close(batch["latency_ratio"], 3.8)
    near = ask(book, "utilization.remedy", run_ids=[asked], other_ids=other, near_fraction=0.89)
    assert [row["choice"] for row in near if row["remedy"] == "larger batch"] == ["batch 4"]
    # faster by 1 / 0.9, but 9 J against 8: no gain
    assert (rows["lower precision"]["choice"], rows["lower precision"]["is_better"]) == ("int8", False)
    assert (rows["fewer units"]["choice"], rows["fewer units"]["is_better"]) == ("small", True)
    assert rows["other runtime"]["remedy_rank"] is None, "a runtime does not follow from arithmetic that bounds"
    assert rows["more units"]["is_better"] is False
    assert (rows["another chip"]["choice"], rows["another chip"]["is_better"]) == ("like", True)
    assert set(rows) == {
        "larger batch", "lower precision", "other runtime", "fewer units", "more units", "another chip",
    }  # fmt: skip


def test_the_zone_is_where_both_are_near_their_best() -> None:
    book = Book()
    # utilization 0.1, 0.4, 0.38, 0.2; inferences per joule 0.5, 1, 2, 2
    for batch, time_s, energy_j in ((1, 1.0, 2.0), (2, 0.5, 2.0), (4, 4.0 / 3.8, 2.0), (8, 4.0, 4.0)):
        book.add_run([Part(time_s=time_s, compute_j=energy_j, mac_count=5 * batch)], batch=batch)
    book.add_run([], batch=16, refusal="too large")
    (row,) = ask(book, "utilization.zone", run_ids=[1, 2, 3, 4, 5])
    assert (row["batches"], row["zone_batches"], row["best_batch"]) == ([1, 2, 4, 8, 16], [4], 4)
    assert (row["utilization_batch"], row["energy_batch"]) == (2, 4)
    assert (row["refused_batch"], row["refusal"], row["run_id"]) == (16, "too large", 3)
    (strict,) = ask(book, "utilization.zone", run_ids=[1, 2, 3, 4, 5], zone_fraction=1.0)
    assert strict["zone_batches"] == []


def test_a_precision_is_held_against_fp32_or_the_widest() -> None:
    book = Book()
    for hardware, precisions in (("a", ("fp64", "int8", "fp32")), ("b", ("int4", "int8"))):
        for index, precision in enumerate(precisions, 1):
            part = Part(time_s=float(index), compute_j=2.0 * index, mac_count=5)
            book.add_run([part], hardware=hardware, precision=precision)
    rows = ask(book, "utilization.precision", run_ids=[1, 2, 3, 4, 5])
    told = [(row["hardware"], row["precision"], row["baseline_precision"]) for row in rows]
    assert told == [
        ("a", "fp32", "fp32"),
        ("a", "fp64", "fp32"),
        ("a", "int8", "fp32"),
        ("b", "int8", "int8"),
        ("b", "int4", "int8"),
    ]
    assert [round(row["speedup_ratio"], 9) for row in rows] == [1.0, 3.0, 1.5, 1.0, 2.0]
    assert [round(row["energy_ratio"], 9) for row in rows] == [1.0, round(1 / 3, 9), round(2 / 3, 9), 1.0, 0.5]


@pytest.fixture(scope="module")
def answer(workspace: Workspace) -> UtilizationAnswer:
    return workspace.utilization("mlp", hardware=HARDWARE, is_pairing=True)


def test_flags_are_raised_where_the_rows_say(answer: UtilizationAnswer) -> None:
    seen = set()
    raised = [(row.run_id, row.flag) for row in answer.flags]
    assert sorted(raised) == sorted((row.run_id, flag) for row in answer.rows for flag in row.flags)
    for flag in answer.flags:
        seen.add(flag.flag)
        row = next(one for one in answer.rows if one.run_id == flag.run_id)
        value = {
            "low_compute": row.compute_utilization_fraction,
            "high_bandwidth": row.sustained_bandwidth_fraction,
            "idle_units": row.idle_units_fraction,
        }[flag.flag]
        assert_close(flag.value_fraction, value)
    assert "low_compute" in seen


def test_facts_follow_the_rows_and_the_remedies(answer: UtilizationAnswer) -> None:
    (choice,) = answer.facts.of(Choice)
    assert choice.runs == tuple(row.run_id for row in answer.used)
    worst = answer.used[-1]
    better, turns = rank_remedies(worst, answer.remedies or ()), answer.facts.of(Turn)
    assert [(one.of, one.after) for one in turns] == [((worst.run_id,), row.choice) for row in better]
    assert turns
    (work,) = (one for one in answer.facts.of(Entry) if "kernels" in one.values)
    assert work.runs == (worst.run_id,)
    assert_close(work.values["attained"].value, worst.attained_ops_per_s)
    for turn, row in zip(turns, better, strict=True):
        assert_close(turn.ratio, row.throughput_ratio)


def test_every_remedy_is_true_of_the_stored_runs(workspace: Workspace, answer: UtilizationAnswer) -> None:
    runs = {row["run_id"]: row for row in workspace.sql("SELECT * FROM runs").records()}
    assert answer.remedies
    for row in answer.remedies:
        own, chosen = runs[row.run_id], runs[row.chosen_run_id]
        assert_close(row.throughput_ratio, chosen["throughput_per_s"] / own["throughput_per_s"])
        energy = chosen["energy_per_inference_j"] / own["energy_per_inference_j"]
        assert_close(row.energy_ratio, energy)
        assert not row.is_better or row.throughput_ratio / energy >= 1.05


@pytest.mark.slow
def test_the_peak_of_an_fp32_run_is_named_where_most_gemms_cannot_reach_it(workspace: Workspace) -> None:
    asked = workspace.utilization("vit_b_16", hardware="h100_sxm5", has_advice=False)
    (row,) = asked.rows
    # 494.7 Tops/s in TF32, which only the first convolution uses, and 66.9 in fp32
    assert row.fp32_peak_ops_per_s is not None and row.attained_ops_per_s is not None
    assert_close(row.fp32_peak_ops_per_s, 66.9e12, rel=1e-3)
    share = row.attained_ops_per_s / row.fp32_peak_ops_per_s
    (lanes,) = (one for one in asked.facts.of(Share) if one.level == "lanes")
    assert_close(lanes.share, share)
    assert row.peak_ops_per_s is not None
    assert row.attained_ops_per_s / row.peak_ops_per_s < 0.05
    assert "of its TF32 compute peak" in asked.document().answer
    convolutions = workspace.utilization("resnet18", hardware="h100_sxm5", has_advice=False)
    assert "lanes" not in {one.level for one in convolutions.facts.of(Share)}
    (half,) = workspace.utilization("vit_b_16", hardware="h100_sxm5", precision="bf16", has_advice=False).rows
    assert half.fp32_peak_ops_per_s is None


@pytest.mark.slow
def test_limits_can_be_moved(workspace: Workspace) -> None:
    strict = workspace.utilization(
        "resnet18", hardware=HARDWARE[:2], min_compute_fraction=1.0, max_bandwidth_fraction=0.0, max_idle_fraction=0.0
    )
    assert all(row.flags == ["low_compute", "high_bandwidth", "idle_units"] for row in strict.rows)
    assert len(strict.flags) == 6
    with pytest.raises(UsageError, match="max_idle_fraction is -1, expected a fraction from 0 to 1"):
        workspace.utilization("resnet18", max_idle_fraction=-1.0)


FIXED = """
import torch


class Fixed(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.linear(x.reshape(1, 12), torch.ones(4, 12))


def fixed():
    return Fixed()


def free():
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(12, 4))
"""


@pytest.mark.slow
def test_batches_of_an_input_that_was_given(joulemap: Run, tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(FIXED)
    arguments = ("tpu_v4", "--precision", "bf16", "--format", "json")
    free = json.loads(joulemap("utilization", "net.py:free", *arguments, "--input", "2,3,4").stdout)
    assert [zone["batches"] for zone in free["zones"]] == [[1, 2, 4, 16, 64]]
    assert {row["remedy"] for row in free["remedies"]} >= {"larger batch", "lower precision"}
    assert free["untraced"] == ""
    done = joulemap("utilization", "net.py:fixed", *arguments, "--input", "1,3,4")
    fixed = json.loads(done.stdout)
    assert done.returncode == 0
    assert [zone["batches"] for zone in fixed["zones"]] == [[1]]
    assert "larger batch" not in {row["remedy"] for row in fixed["remedies"]}
    assert [note for note in fixed["notes"] if note.startswith(UNTRACED(untraced=""))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1,3,64", "8,3,64"), ("ids=1,128:int64", "ids=8,128:int64"), ("x1=1,4", "x1=8,4"), ("2,4", "2,4"), ("1", "8")],
)
def test_an_input_at_another_batch(text: str, expected: str) -> None:
    assert rebatch(text, 1, 8) == expected


def test_an_empty_database_answers_with_no_rows(joulemap: Run) -> None:
    assert joulemap("db", "migrate").returncode == ExitCode.OK
    done = joulemap("query", "run", "run.list", "--format", "json")
    assert (done.returncode, done.stdout) == (0, "[]\n")
    for query in ("utilization.pairing", "utilization.flag", "sweep.winner"):
        done = joulemap("query", "run", query, "-p", "run_ids=[]", "--format", "csv")
        assert (done.returncode, len(done.stdout.splitlines())) == (0, 1), query
    for query in ("edp.total", "edp.cut"):
        done = joulemap("query", "run", query, "-p", "run_id=1", "--format", "csv")
        assert (done.returncode, done.stdout) == (ExitCode.UNKNOWN_NAME, ""), query


def test_a_pairing_of_one_chip_is_refused() -> None:
    with pytest.raises(UsageError):
        Workspace(":memory:").utilization("mlp", hardware="l4", is_pairing=True)
