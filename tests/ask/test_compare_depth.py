"""Comparisons in depth: parts and who wins them, whole runs, several models, rankings for a deployment."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any, get_args

import pytest

from compare import assert_close
from conftest import Run
from joulemap.domain.settings import EnergyDivision, ModelDivision
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


GOALS = ("energy", "latency", "throughput", "memory", "edp")


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


def test_a_metric_or_level_that_does_not_exist_is_refused(book: Book) -> None:
    with pytest.raises(SqlError, match="expected energy, latency, edp or memory"):
        ask(book, "compare.part", run_ids=[1], metric="beauty")
    with pytest.raises(SqlError, match="expected subgraph or operator"):
        ask(book, "compare.part", run_ids=[1], level="tile")
    assert ask(book, "compare.part", run_ids=[3]) == ask(book, "compare.part", run_ids=[99]) == []


@pytest.mark.slow
def test_too_many_workloads_are_asked_in_turns(book: Book) -> None:
    ids = [book.add_run([Part(time_s=1.0, compute_j=1.0)], model=f"net{number}", hardware="a") for number in range(33)]
    for name in ("compare.part", "breakdown.action"):
        assert ask(book, name, run_ids=ids[:32])
        with pytest.raises(SqlError, match="more than 32 workloads"):
            ask(book, name, run_ids=ids)


@pytest.mark.parametrize(
    ("metric", "order", "ratios"),
    [
        ("latency", ["a", "b", "c"], [1.0, 1.25, None]),
        ("throughput", ["a", "b", "c"], [1.0, 0.8, None]),
        # 10 J in 5 s draw less power than 10 J in 4 s; their energies are equal, and a comes first by name
        ("power", ["b", "a", "c"], [1.0, 1.25, None]),
        ("efficiency", ["a", "b", "c"], [1.0, 1.0, None]),
    ],
)
def test_each_metric_orders_runs(metric: str, order: list[str], ratios: list[float | None], book: Book) -> None:
    rows = ask(book, "compare.summary", run_ids=[1, 2, 3], metric=metric)
    assert [row["hardware"] for row in rows] == order
    assert [row["ratio"] for row in rows] == ratios
    goals = [row["goal"] for row in ask(book, "compare.recommendation", run_ids=[1, 2, 3], metric=metric)]
    assert goals == [*GOALS, *([metric] if metric not in GOALS else [])]


@pytest.mark.slow
def test_a_scenario_ranks_each_chip_at_the_mode_that_fits(joulemap: Run, workspace: Workspace) -> None:
    place = ("--precision", "int8", "--format", "json", "--db", workspace.path)
    done = joulemap("compare", "resnet18", "--where", "scenario=robot", "--metric", "efficiency", *place)
    document = json.loads(done.stdout)
    modes = dict(row["hardware"].partition("@")[::2] for row in document["rows"])
    assert (modes["jetson_orin_nano_8gb"], modes["kpu_t256"], modes["coral_edge_tpu"]) == ("15W", "15W", "")
    assert len(modes) == len(document["rows"])
    assert document["power_budget_w"] == 15.0
    assert document["left_out"]["rtx_4090"] == "at least 150 W"


@pytest.mark.sample(1)
@pytest.mark.parametrize("level", ["subgraph", "operator"])
def test_parts_add_up_to_their_runs(level: ModelDivision, workspace: Workspace) -> None:
    answer = workspace.compare_parts(["mobilenet_v2"], by=level, metric="edp")
    runs = {row.run_id: row for row in workspace.compare("mobilenet_v2").answered}
    for run_id, run in runs.items():
        rows = [row for row in answer.rows if row.run_id == run_id]
        assert_close(sum(row.energy_j for row in rows), run.energy_j)
        assert_close(sum(row.latency_s for row in rows), run.latency_s)
        assert_close(sum(row.edp_share_js for row in rows), run.edp_js)


@pytest.mark.sample(1)
@pytest.mark.parametrize("model", MODELS)
def test_the_tree_sums_to_the_run(model: str, workspace: Workspace) -> None:
    whole = {row.run_id: row.energy_j for row in workspace.compare(model).answered}
    for by in get_args(EnergyDivision):
        sums = Counter[int]()
        for row in workspace.compare_breakdowns([model], level="run", by=by).rows.rows:
            sums[row.run_id] += row.energy_fj
        assert sums.keys() == whole.keys()
        for run_id, energy_fj in sums.items():
            assert_close(energy_fj / 1e15, whole[run_id])


def test_what_cannot_be_compared_says_so(workspace: Workspace) -> None:
    with pytest.raises(UsageError, match="unknown metric 'beauty'; known: energy"):
        workspace.compare_models(["resnet18"], metric="beauty")  # type: ignore[call-overload]
    with pytest.raises(UsageError, match="unknown level 'tile'"):
        workspace.compare_parts(["resnet18"], by="tile")  # type: ignore[call-overload]
    with pytest.raises(UsageError, match="name a model"):
        workspace.compare_breakdowns([])
    with pytest.raises(UnsupportedError, match="coral_edge_tpu has no fp32"):
        workspace.compare("resnet18", hardware=["coral"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("resnet18", "vit_b_16", "--metric", "power"), "for the summary of one model"),
        (("resnet18", "--level", "operator", "--metric", "power"), "for the summary of one model"),
        (("resnet18", "--level", "operator", "--baseline", "tpu_v4"), "--baseline is for the summary"),
        (("resnet18", "--metric", "beauty"), "'beauty' is not one of 'energy'"),
    ],
)
def test_options_that_do_not_go_together(arguments: Sequence[str], message: str, joulemap: Run) -> None:
    done = joulemap("compare", *arguments)
    assert (done.returncode, done.stdout) == (ExitCode.USAGE, "")
    assert message in done.stderr
