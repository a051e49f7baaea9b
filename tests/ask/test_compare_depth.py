"""Comparisons in depth: parts and who wins them, whole runs, several models, rankings for a deployment."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from compare import assert_close
from conftest import Run
from joulemap.domain.settings import ModelDivision
from joulemap.show.ranking import NUMBERS_TITLE, OPERATORS_TITLE, SPREADS_TITLE, STRENGTHS_TITLE
from joulemap.store.library import find_query
from joulemap.store.query import run_query
from joulemap.system.errors import ExitCode, SqlError, UnsupportedError, UsageError
from joulemap.workspace import Workspace
from ledger import Book, Part

MODELS = ("resnet18", "mobilenet_v2", "vit_b_16", "squeezenet1_1", "swin_t")


@pytest.fixture(scope="module")
def book() -> Book:
    """Two chips on three parts: a wins the first, b the second, the third is a tie; c is refused."""
    book = Book()
    book.add_run(
        [
            Part(time_s=1.0, compute_j=2.0, static_j=1.0, mac_count=50, dram_bytes=4.0, pattern="conv2d+relu"),
            Part(time_s=2.0, memory_j=4.0, launch_s=0.5, compute_s=0.5, memory_s=1.5, dram_bytes=8.0, pattern="conv2d"),
            Part(time_s=1.0, control_j=3.0, launch_s=1.0, dram_bytes=1.0, pattern="add"),
        ],
        hardware="a",
    )
    book.add_run(
        [
            Part(time_s=2.0, compute_j=5.0, static_j=1.0, mac_count=50, dram_bytes=4.0, pattern="conv2d+relu"),
            Part(time_s=1.0, memory_j=1.0, launch_s=0.5, compute_s=0.5, memory_s=0.5, dram_bytes=6.0, pattern="conv2d"),
            Part(time_s=2.0, control_j=3.0, launch_s=2.0, dram_bytes=1.0, pattern="add"),
        ],
        hardware="b",
    )
    book.add_run([Part(time_s=1.0), Part(time_s=1.0), Part(time_s=1.0)], hardware="c", refusal="c has no memory")
    return book


def ask(book: Book, name: str, **parameters: object) -> list[dict[str, Any]]:
    return run_query(book.connection, find_query(name), parameters).records()


@pytest.mark.sample(1)
@pytest.mark.parametrize("level", ["subgraph", "operator"])
def test_winners_worked_out_by_hand(level: str, book: Book) -> None:
    rows = ask(book, "compare.part", run_ids=[1, 2, 3], level=level)
    assert [(row["part_index"], row["hardware"], row["value"], row["rank"], row["tied_count"]) for row in rows] == [
        (0, "a", 3.0, 1, 1),
        (0, "b", 6.0, 2, 1),
        (1, "b", 1.0, 1, 1),
        (1, "a", 4.0, 2, 1),
        (2, "a", 3.0, 1, 2),
        (2, "b", 3.0, 2, 2),
    ]
    assert [row["ratio"] for row in rows] == [1.0, 2.0, 1.0, 4.0, 1.0, 1.0]
    assert [row["winner"] for row in rows] == ["a", "a", "b", "b", "a", "a"]


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("metric", "unit", "values"),
    [
        ("latency", "s", [1.0, 2.0, 1.0, 2.0, 1.0, 2.0]),
        ("memory", "B", [4.0, 4.0, 6.0, 8.0, 1.0, 1.0]),
        # E = 10 J and T = 4 s on a, 10 J and 5 s on b: (3 x 4 + 10 x 1) / 2 = 11 against (6 x 5 + 10 x 2) / 2 = 25
        ("edp", "Js", [11.0, 25.0, 7.5, 18.0, 11.0, 17.5]),
    ],
)
def test_each_metric_has_its_own_winners(metric: str, unit: str, values: list[float], book: Book) -> None:
    rows = ask(book, "compare.part", run_ids=[2, 1], metric=metric)
    assert [row["value"] for row in rows] == values
    assert {row["unit"] for row in rows} == {unit}


def test_victories_by_kind_worked_out_by_hand(book: Book) -> None:
    rows = ask(book, "compare.victory", run_ids=[1, 2, 3])
    assert [(row["hardware"], row["kind"], row["won_count"], row["tied_count"], row["verdict"]) for row in rows] == [
        ("a", "conv2d", 1, 0, "some"),
        ("a", "add", 0, 1, "none"),
        ("b", "conv2d", 1, 0, "some"),
        ("b", "add", 0, 1, "none"),
    ]
    assert {(row["hardware_won_count"], row["hardware_tied_count"], row["all_part_count"]) for row in rows} == {
        (1, 1, 3)
    }


def test_a_metric_or_level_that_does_not_exist_is_refused(book: Book) -> None:
    with pytest.raises(SqlError, match="expected energy, latency, edp or memory"):
        ask(book, "compare.part", run_ids=[1], metric="beauty")
    with pytest.raises(SqlError, match="expected subgraph or operator"):
        ask(book, "compare.victory", run_ids=[1], level="tile")
    with pytest.raises(SqlError, match="unknown metric beauty, expected one of energy"):
        ask(book, "compare.ranking", run_ids=[1], sort="beauty")
    assert ask(book, "compare.part", run_ids=[3]) == ask(book, "compare.part", run_ids=[99]) == []


@pytest.mark.slow
def test_too_many_workloads_are_asked_in_turns(book: Book) -> None:
    ids = [book.add_run([Part(time_s=1.0, compute_j=1.0)], model=f"net{number}", hardware="a") for number in range(33)]
    for name in ("compare.part", "compare.victory", "compare.tree"):
        assert ask(book, name, run_ids=ids[:32])
        with pytest.raises(SqlError, match="more than 32 workloads"):
            ask(book, name, run_ids=ids)


def test_a_ranking_worked_out_by_hand(book: Book) -> None:
    rows = ask(book, "compare.ranking", run_ids=[1, 2, 3], sort="latency")
    assert [(row["rank"], row["hardware"], row["best_ratio"]) for row in rows] == [
        (1, "a", 1.0),
        (2, "b", 1.25),
        (None, "c", None),
    ]
    assert rows[0]["throughput_per_s"] == 0.25
    assert rows[0]["inferences_per_j"] == 0.1
    assert rows[0]["energy_per_inference_j"] == 10.0
    # 10 J in 5 s draw less power than 10 J in 4 s; their energies are equal, and a comes first by name
    assert [row["hardware"] for row in ask(book, "compare.ranking", run_ids=[1, 2], sort="power")] == ["b", "a"]
    assert [row["hardware"] for row in ask(book, "compare.ranking", run_ids=[2, 1], sort="energy_per_inference")] == [
        "a",
        "b",
    ]


def test_strengths_are_held_against_the_median_and_the_peak() -> None:
    book = Book()
    for hardware, time_s, energy_j, mac_count in (("a", 1.0, 4.0, 40), ("b", 2.0, 10.0, 10), ("c", 4.0, 11.0, 1)):
        part = Part(time_s=time_s, compute_j=energy_j, mac_count=mac_count, launch_s=0.75 * time_s)
        book.add_run([part], model=hardware, hardware=hardware)
    rows = {(row["hardware"], row["aspect"]): row for row in ask(book, "compare.strength", run_ids=[1, 2, 3])}
    assert len(rows) == 3 * 7
    told = {key: row["verdict"] for key, row in rows.items()}
    # medians: 10 J, 2 s, 4 W; utilization 0.8, 0.1 and 0.005; 1 of 4 units, three quarters of the time in launches
    assert (told["a", "energy_per_inference"], rows["a", "energy_per_inference"]["median_ratio"]) == ("strength", 2.5)
    assert (told["b", "energy_per_inference"], told["c", "energy_per_inference"]) == ("even", "even")
    assert (told["c", "latency"], rows["c", "latency"]["median_ratio"]) == ("weakness", 0.5)
    assert [told[name, "utilization"] for name in "abc"] == ["strength", "weakness", "weakness"]
    assert (rows["b", "utilization"]["grade"], rows["b", "utilization"]["median_ratio"]) == ("poor", None)
    assert (told["a", "idle"], rows["a", "idle"]["value"]) == ("weakness", 0.75)
    assert (told["a", "launch"], told["a", "memory"]) == ("weakness", "even")
    assert len(ask(book, "compare.strength", run_ids=[2])) == 7


def test_the_mix_of_a_model_adds_up(workspace: Workspace) -> None:
    answer = workspace.rank_hardware("mobilenet_v2", has_details=True)
    mix = {row.kind: row for row in answer.mix}
    assert sum(row.operator_count for row in answer.mix) == answer.mix[0].all_operator_count
    assert sum(row.mac_count for row in answer.mix) == answer.mix[0].all_mac_count
    assert_close(sum(row.mac_fraction or 0.0 for row in answer.mix), 1.0)
    assert (mix["depthwise_conv"].operator_count, mix["linear"].subgraph_count) == (17, 1)
    assert_close(mix["depthwise_conv"].mac_fraction, 0.069, rel=0.01)


@pytest.mark.slow
def test_a_scenario_ranks_each_chip_at_the_mode_that_fits(joulemap: Run, workspace: Workspace) -> None:
    place = ("--precision", "int8", "--format", "json", "--db", workspace.path)
    done = joulemap("compare", "resnet18", "--where", "scenario=robot", "--sort", "efficiency", *place)
    document = json.loads(done.stdout)
    modes = {row["hardware"].partition("@")[0]: row["power_mode"] for row in document["rows"]}
    assert (modes["jetson_orin_nano_8gb"], modes["kpu_t256"], modes["coral_edge_tpu"]) == ("15W", "15W", "default")
    assert len(modes) == len(document["rows"])
    assert all(row["tdp_w"] <= 15.0 == document["power_budget_w"] for row in document["rows"])
    assert document["left_out"]["rtx_4090"] == "at least 150 W"
    assert all(row["microarchitecture"] for row in document["rows"])
    drawn = joulemap("compare", "resnet18", "--where", "scenario=robot", "--sort", "efficiency", "--precision", "int8",
                     "--show=details", "--show=notes", "--db", workspace.path)  # fmt: skip
    for text in (
        OPERATORS_TITLE,
        NUMBERS_TITLE,
        SPREADS_TITLE,
        STRENGTHS_TITLE,
        "microarchitecture",
        "Subgraphs on 1.",
        "within 15 W",
    ):
        assert text in drawn.stdout


def test_the_spread_names_who_is_responsible(book: Book) -> None:
    first, second = ask(book, "compare.spread", run_ids=[1, 2, 3])
    # 100 operations in 1 s of 100 ops/s; over the run 100 in 4 s
    assert (first["max_utilization_fraction"], first["max_kind"], first["max_name"]) == (1.0, "conv2d", "part0")
    assert first["mean_utilization_fraction"] == 0.25
    assert (first["idle_kind"], first["idle_time_fraction"]) == ("conv2d", 0.75)
    assert [first[f"{bound}_bound_count"] for bound in ("compute", "memory", "launch")] == [1, 1, 1]
    assert (second["idle_kind"], second["idle_time_fraction"]) == ("add", 0.6)


@pytest.mark.sample(1)
@pytest.mark.parametrize("level", ["subgraph", "operator"])
def test_parts_add_up_to_their_runs(level: ModelDivision, workspace: Workspace) -> None:
    answer = workspace.compare_parts(["mobilenet_v2"], by=level, metric="edp")
    runs = {row.run_id: row for row in workspace.compare_runs(["mobilenet_v2"]).rows}
    for run_id, run in runs.items():
        rows = [row for row in answer.rows if row.run_id == run_id]
        assert_close(sum(row.energy_j for row in rows), run.energy_j)
        assert_close(sum(row.latency_s for row in rows), run.latency_s)
        assert_close(sum(row.edp_share_js for row in rows), run.edp_js)
    counted = {row.hardware: row.hardware_won_count + row.hardware_tied_count for row in answer.victories}
    assert sum(counted.values()) >= len({row.part_index for row in answer.rows})


@pytest.mark.sample(1)
@pytest.mark.parametrize("model", MODELS)
def test_the_tree_sums_to_the_run(model: str, workspace: Workspace) -> None:
    answer = workspace.compare_runs([model])
    for row in answer.rows:
        branches = [branch for branch in answer.tree if branch.run_id == row.run_id]
        assert sum(branch.energy_fj for branch in branches) == row.energy_fj
        categories = {branch.category: branch.category_energy_fj for branch in branches}
        assert sum(categories.values()) == row.energy_fj
        assert row.compute_bound_count is not None
        assert row.peak_memory_bytes == (row.activation_bytes or 0) + (row.weight_bytes or 0)


def test_what_cannot_be_compared_says_so(workspace: Workspace) -> None:
    with pytest.raises(UsageError, match="unknown metric 'beauty'; known: energy"):
        workspace.compare_models(["resnet18"], metric="beauty")  # type: ignore[call-overload]
    with pytest.raises(UsageError, match="unknown level 'tile'"):
        workspace.compare_parts(["resnet18"], by="tile")  # type: ignore[call-overload]
    with pytest.raises(UsageError, match="name a model"):
        workspace.compare_runs([])
    with pytest.raises(UnsupportedError, match="coral_edge_tpu has no fp32"):
        workspace.rank_hardware("resnet18", hardware=["coral"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("resnet18", "vit_b_16", "--sort", "energy"), "for one model at --level summary"),
        (("resnet18", "--level", "detailed", "--sort", "power"), "for one model at --level summary"),
        (("resnet18", "--level", "operator", "--baseline", "tpu_v4"), "--baseline is for the summary"),
        (("resnet18", "--sort", "beauty"), "'beauty' is not one of 'latency'"),
        (("resnet18", "--metric", "beauty"), "'beauty' is not one of 'energy'"),
    ],
)
def test_options_that_do_not_go_together(arguments: Sequence[str], message: str, joulemap: Run) -> None:
    done = joulemap("compare", *arguments)
    assert (done.returncode, done.stdout) == (ExitCode.USAGE, "")
    assert message in done.stderr
