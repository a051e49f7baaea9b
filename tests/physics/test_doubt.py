"""Intervals and probabilities: worked out by hand, and as measurements have it.

docs/doubt.md says the same in words.
"""

from __future__ import annotations

import math
import runpy
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest

from blank import open_blank
from compare import assert_close
from joulemap.calibrate.error_fit import Residual
from joulemap.catalog.error_scale import load_doubt
from joulemap.catalog.load import load_catalogue
from joulemap.domain.metric import METRIC, MetricName
from joulemap.physics.interval.error_scale import (
    COMPILER_LEVEL,
    FULL_GROUPS,
    LOGISTIC,
    OWN_LEVEL,
    UNMEASURED,
    ErrorShare,
    find_peak,
)
from joulemap.physics.interval.scale import Subject, find_scale as find_subject_scale
from joulemap.physics.interval.standing import draw_errors
from joulemap.physics.record.quantity import BASES, Quantity
from joulemap.physics.record.spread import BASIS_SPREAD
from joulemap.store.catalogue import write_doubt
from joulemap.store.computed import load_facts
from joulemap.store.connection import reading, writing
from joulemap.workspace import Workspace
from tools.error_fit import WIDENED, find_scale, fit_scales, fit_shares
from tools.left_out import describe_left_out, read_left_out

SURENESS = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "sureness.py"))
"""How predictions are judged, as docs/accuracy.md has it."""

A = Residual(
    quantity="latency",
    architecture="gpu",
    work="model",
    runtime="fused",
    precision="fp16",
    hardware="a",
    model="resnet50",
    batch=1,
    family="resnet",
    error=0.2,
    predicted=1.0,
    measured=math.exp(0.2),
)


def share(factor: str, value: float) -> ErrorShare:
    """Return a share of latencies."""
    return ErrorShare(
        quantity="latency", factor=factor, share=Quantity(value=value, unit="1", basis="assumed", source="s", note="")
    )


def test_one_group_of_errors_is_its_own_interval() -> None:
    # all errors 0.2: every level's 80 % is 0.2, whatever is shrunk towards what; of other classes it is widened
    scales = fit_scales([A, attrs.evolve(A, batch=8, error=-0.2)])
    for one in scales:
        assert_close(one.half_width, 0.2 * (WIDENED if one.level < 2 else 1.0))
    assert [one.level for one in scales] == [0, 1, 2, 3, 4, 5, 7]
    assert scales[-1].group_count == 1
    assert scales[-1].row_count == 2


def test_a_class_whose_rows_were_all_in_view_of_a_coefficient_is_one_that_nobody_measured() -> None:
    # an npu's 0.1 was fitted to: another npu is as far off as all classes may be, widened, and the npu itself is shrunk
    # towards that; the gpu, which nobody fitted, is as if unseen
    rows = [attrs.evolve(A, error=0.4), attrs.evolve(A, architecture="npu", hardware="b", error=0.1, seen="its pace")]
    plain = fit_scales([attrs.evolve(one, seen="") for one in rows])
    of_all = next(one.half_width for one in plain if one.level == 1)
    assert of_all > 0.1
    own = math.sqrt((0.1**2 + FULL_GROUPS * of_all**2) / (1.0 + FULL_GROUPS))
    for one, unseen in zip(fit_scales(rows), plain, strict=True):
        width = {"": of_all, "b": own}[one.hardware] if one.architecture == "npu" else unseen.half_width
        assert_close(one.half_width, width)


def test_a_new_board_takes_the_errors_without_the_numbers_that_boards_own_measurements_gave() -> None:
    # off by 0.1 with its static power and by 0.4 without it, as another class is: another board is off by 0.4. The
    # board's own 0.1 is shrunk four times towards the spread of errors with own numbers: (0.1^2 + 0.4^2) / 2
    row = attrs.evolve(A, error=0.1, foreign_error=-0.4, seen="static power")
    other = attrs.evolve(A, architecture="npu", hardware="b", error=0.4)
    square = (0.1**2 + 0.4**2) / 2.0
    for _ in range(4):
        square = (0.1**2 + FULL_GROUPS * square) / (1.0 + FULL_GROUPS)
    for one in fit_scales([row, other]):
        if one.architecture == "gpu":
            assert_close(one.half_width, math.sqrt(square) if one.hardware else 0.4)
    # an error that says nothing about the board itself leaves its own width alone
    load = attrs.evolve(row, error=-0.9, foreign_error=-0.9, is_foreign=True, batch=2)
    own = [one.half_width for one in fit_scales([row, other, load]) if one.hardware == "a"]
    assert own == [one.half_width for one in fit_scales([row, other]) if one.hardware == "a"]


def test_errors_with_an_inherited_calibration_say_nothing_about_other_boards() -> None:
    # the board's own 0.1 is shrunk towards the 0.4 of the other boards, which it does not change
    sibling = attrs.evolve(A, hardware="b", error=0.1, is_inherited=True)
    alone = fit_scales([attrs.evolve(A, error=0.4)])
    *others, own = fit_scales([attrs.evolve(A, error=0.4), sibling])
    assert (own.hardware, own.level, own.group_count, own.row_count) == ("b", alone[-1].level, 1, 1)
    assert_close(own.half_width, math.sqrt((0.1**2 + FULL_GROUPS * 0.4**2) / (1.0 + FULL_GROUPS)))
    assert others == list(alone)


def test_without_its_measurements_a_board_has_the_numbers_of_the_rule() -> None:
    for name, rows in read_left_out().items():
        board, own = describe_left_out(name), load_catalogue().hardware[name]
        assert board.id == f"{name}_left_out"
        assert all(row["source"] for row in rows)
        for row in rows:
            number, _, mode = row["number"].partition("@")
            if number == "loads":
                assert own.loads
                assert not board.loads
            elif number == "static_power":
                watts = [(one.in_mode(mode) if mode else one).static_power.value for one in (board, own)]
                assert_close(watts[0], float(row["value"]))
                assert watts[0] != watts[1]
            elif number == "tdp":
                assert board.tdp.value != own.tdp.value
                # a limit that bound the board's power would hide an error of its energies
                assert board.tdp.value > board.reference.prices_fj[0] / 1e15 * board.clock.value or len(rows) != 2
            else:
                changed = zip(board.reference.actions, own.reference.actions, strict=True)
                assert any(one.energy_per_action_fj != other.energy_per_action_fj for one, other in changed)


def test_a_group_is_shrunk_towards_the_one_above() -> None:
    # two boards, one group of rows each, errors 0.1 and 0.4: a third one's is the root of their mean square, and so on
    # up; a board's own is h^2 = (1 x q^2 + F x above^2) / (1 + F)
    scales = fit_scales([attrs.evolve(A, error=0.1), attrs.evolve(A, error=0.4, hardware="b")])
    above = math.sqrt((0.01 + 0.16) / 2.0)
    for one in scales:
        if one.hardware:
            q = {"a": 0.1, "b": 0.4}[one.hardware]
            assert_close(one.half_width, math.sqrt((q * q + FULL_GROUPS * above * above) / (1.0 + FULL_GROUPS)))
        else:
            assert_close(one.half_width, above * (WIDENED if one.level < 2 else 1.0))
    found = find_scale(scales, attrs.evolve(A, hardware="b"))
    assert found is not None
    assert found.hardware == "b"
    unseen = find_scale(scales, attrs.evolve(A, hardware="c"))
    assert unseen is not None
    assert (unseen.level, unseen.hardware) == (5, "")
    other = find_scale(scales, attrs.evolve(A, architecture="kpu"))
    assert other is not None
    assert_close(other.half_width, above * WIDENED)


def test_boards_of_one_compiler_are_a_group() -> None:
    # a (0.1) and b (0.4) share a compiler, c (0.3) has another, d (0.2) none; each is one group. The compiler's is the
    # root mean square of a and b, shrunk towards that of all four, as a board is
    chips = {"a": 0.1, "b": 0.4, "c": 0.3, "d": 0.2}
    rows = [attrs.evolve(A, architecture="npu", hardware=name, error=error) for name, error in chips.items()]
    compilers = {"a": "x", "b": "x", "e": "x", "c": "y", "f": "z"}
    scales = fit_scales(rows, compilers)
    pair = (0.1**2 + 0.4**2) / 2.0
    above = (0.1**2 + 0.4**2 + 0.3**2 + 0.2**2) / 4.0
    widths = {one.hardware: one.half_width for one in scales if one.level == COMPILER_LEVEL}
    assert set(widths) == {"e"}
    joined = (2.0 * pair + FULL_GROUPS * above) / (2.0 + FULL_GROUPS)
    assert_close(widths["e"], math.sqrt(joined))
    own = {one.hardware: one.half_width for one in scales if one.level == OWN_LEVEL}
    assert_close(own["a"], math.sqrt((0.01 + FULL_GROUPS * above) / (1.0 + FULL_GROUPS)))
    assert_close(own["d"], math.sqrt((0.04 + FULL_GROUPS * above) / (1.0 + FULL_GROUPS)))
    # a chip of a measured compiler has this width, one of another compiler at least that of an unmeasured accelerator
    for name, expected in (("e", math.sqrt(joined)), ("f", UNMEASURED)):
        like = Subject(work="model", architecture="npu", runtime="fused", precision="fp16", hardware=name)
        found = find_subject_scale(
            [attrs.evolve(one, runtime="engine") if one.runtime else one for one in scales], "latency", like
        )
        assert found is not None
        assert_close(found.half_width, expected)


@pytest.mark.parametrize(
    ("architecture", "runtime", "work", "expected"),
    [
        ("cpu", "engine", "model", 0.2),
        ("gpu", "engine", "model", 0.1),
        ("npu", "engine", "model", 0.0),
        ("gpu", "fused", "model", 0.0),
        ("cpu", "engine", "sort", 0.0),
    ],
)
def test_an_engine_of_a_processor_is_a_new_source(architecture: str, runtime: str, work: str, expected: float) -> None:
    scales = fit_scales([attrs.evolve(A, architecture=architecture, work=work, runtime=runtime)])
    like = Subject(work=work, architecture=architecture, runtime=runtime, precision="fp16", hardware="a")
    found = find_subject_scale(scales, "latency", like)
    assert found is not None
    assert_close(found.half_width, math.hypot(0.2, expected))
    single = find_subject_scale(scales, "latency", attrs.evolve(like, is_single=True))
    assert single is not None
    assert_close(single.half_width, math.hypot(0.2, 0.25 if architecture == "gpu" and expected else expected))


@pytest.mark.wings
def test_a_training_framework_is_a_new_source() -> None:
    scales = fit_scales([attrs.evolve(A, work="training")])
    like = Subject(work="training", architecture="gpu", runtime="fused", precision="fp16", hardware="a")
    found = find_subject_scale(scales, "latency", like)
    assert found is not None
    assert_close(found.half_width, math.hypot(0.2, 0.2))
    powers = fit_scales([attrs.evolve(A, work="training", quantity="power")])
    found = find_subject_scale(powers, "power", like)
    assert found is not None
    assert_close(found.half_width, 0.2)


def test_work_that_a_class_has_no_rows_of_takes_the_spread_of_all_its_work() -> None:
    # two sorts of work on one class, 0.3 and 0.1, each one sort: their root mean square, shrunk towards that of all
    # classes, (0.3^2 + 0.1^2 + 0.2^2) / 3, as one on a second class has; n is 2
    image, product = attrs.evolve(A, error=0.3, work="conv2d"), attrs.evolve(A, error=0.1, work="gemm")
    other = attrs.evolve(A, architecture="cpu", work="sort", error=0.2)
    scales = fit_scales([image, product, other])
    found = find_scale(scales, attrs.evolve(A, work="decode"))
    assert found is not None
    assert (found.level, found.work, found.architecture, found.group_count) == (2, "", "gpu", 2)
    everything = (0.09 + 0.01 + 0.04) / 3.0
    assert_close(found.half_width, math.sqrt((2.0 * 0.05 + FULL_GROUPS * everything) / (2.0 + FULL_GROUPS)))
    # no surer than its whole models
    models = [attrs.evolve(A, error=0.9, family=str(family)) for family in range(9)]
    scaled = fit_scales([*models, product])
    sure, unsure = (find_scale(scaled, attrs.evolve(A, work=work, runtime="eager")) for work in ("model", "decode"))
    assert sure is not None
    assert unsure is not None
    assert sure.half_width == unsure.half_width

    nowhere = find_scale(scales, attrs.evolve(A, architecture="tpu", work="decode"))
    assert nowhere is not None
    assert_close(nowhere.half_width, math.sqrt(everything) * WIDENED)


def test_many_rows_of_one_family_weigh_as_one() -> None:
    many = [attrs.evolve(A, error=0.1, batch=batch) for batch in range(1, 100)]
    few = [attrs.evolve(A, error=0.5, family="vit", model="vit_b_16")]
    board = [one for one in fit_scales([*many, *few]) if one.level == OWN_LEVEL]
    assert [one.group_count for one in board] == [2]
    assert board[0].half_width > 0.3  # half of the weight is at 0.5


def with_shares(path: Path, shares: Sequence[ErrorShare]) -> Workspace:
    """Return a workspace in whose database runs share these parts of the errors of latency, and none of power."""
    workspace = Workspace(path)
    workspace.evaluate("alexnet", hardware=["l4"])
    powers = (attrs.evolve(one, quantity="power", share=attrs.evolve(one.share, value=0.0)) for one in shares)
    with writing(path) as connection:
        write_doubt(connection, attrs.evolve(load_doubt(), shares=(*shares, *powers)))
    return workspace


def test_what_two_runs_share_does_not_part_them(tmp_path: Path) -> None:
    workspace = with_shares(tmp_path / "a.duckdb", [share("class", 0.5), share("model", 0.1), share("case", 0.2)])
    cases: tuple[tuple[dict[str, Any], float], ...] = (
        # half-widths 0.3 and 0.4 that share nothing: 0.5
        ({"architecture": "tpu"}, 0.5),
        # sharing half and a tenth: 0.09 + 0.16 - 2 x 0.6 x 0.12; and a fifth more where all else is alike
        ({"precision": "fp32"}, math.sqrt(0.106)),
        ({}, math.sqrt(0.058)),
    )
    for changes, width in cases:
        other = attrs.evolve(A, hardware="b", predicted=2.0, **changes)
        ((called, _),) = SURENESS["call_pairs"](workspace, [(other, 0.4), (A, 0.3)])
        assert_close(called, 1.0 / (1.0 + math.exp(-LOGISTIC * math.log(2.0) / width)))


def test_parts_of_an_error_are_all_of_it() -> None:
    parts = load_doubt().complete_shares()
    for quantity, whole in (("latency", 1.0), ("power", 1.0)):
        assert_close(sum(one.share.value for one in parts if one.quantity == quantity), whole)


@pytest.mark.slow
def test_shares_and_intervals_are_found_again(tmp_path: Path) -> None:
    """Of errors made with known shares: 0.3 of the board, 0.2 of the model, the rest of each alone; standard 0.2."""
    made = np.random.default_rng(7)
    boards, models = made.normal(size=40), made.normal(size=30)
    rows = [
        attrs.evolve(
            A,
            hardware=f"board {board}",
            model=f"model {model}",
            family=f"family {model}",
            precision=("fp16", "fp32")[(board + model) % 2],
            error=(error := 0.2 * float(
                math.sqrt(0.3) * boards[board] + math.sqrt(0.2) * models[model] + math.sqrt(0.5) * made.normal()
            )),
            measured=math.exp(error),
        )
        for board in range(40)
        for model in range(30)
    ]  # fmt: skip
    scales = fit_scales(rows)
    found = {one.factor: one.share.value for one in fit_shares(rows, scales)}
    assert 0.1 < found["board"] < 0.42  # a board far off is told to be by its own interval too
    assert 0.1 < found["model"] + found["case"] < 0.32
    assert found["class"] < 0.06
    for part in ("hardware", "family"):
        judged = SURENESS["leave_out"](rows, lambda one, part=part: getattr(one, part))
        (coverage,) = SURENESS["score_coverage"](judged, lambda one: one.architecture)
        assert 0.76 < coverage.covered_fraction < 0.84
        assert 0.23 < coverage.median_half_width < 0.29  # 0.2 x 1.28
    workspace = with_shares(tmp_path / "a.duckdb", fit_shares(rows, scales))
    for one in SURENESS["score_calls"](
        SURENESS["call_pairs"](workspace, SURENESS["leave_out"](rows, lambda one: one.hardware))
    ):
        assert abs(one.called_fraction - one.right_fraction) < 0.08 or one.pair_count < 200


def test_what_ships_is_complete() -> None:
    doubt = load_doubt()
    assert {one.number_basis for one in doubt.spreads} == set(BASES)
    for quantity in ("latency", "power"):
        assert 0.0 < sum(one.share.value for one in doubt.shares if one.quantity == quantity) < 1.0
        levels = {one.level for one in doubt.scales if one.quantity == quantity}
        assert levels == {0, 1, 2, 3, 4, 5, OWN_LEVEL} | ({COMPILER_LEVEL} if quantity == "latency" else set())


def test_a_stated_constant_is_one() -> None:
    connection = open_blank()
    for basis, factor in BASIS_SPREAD.items():
        ((width,),) = connection.execute("SELECT find_price_half_width($basis)", {"basis": basis}).fetchall()
        assert_close(width, math.log(factor))


def compare_runs(workspace: Workspace, *, metric: str = "") -> list[dict[str, Any]]:
    """Return each pair of the runs that are stored, with the probability that the first is better."""
    runs = [run for (run,) in workspace.sql("SELECT run_id FROM runs")]
    found = workspace.query("compare.probability", {"run_ids": runs, "metric": metric})
    return [dict(zip((column.name for column in found.columns), row, strict=True)) for row in found.rows]


def test_pairs_agree_with_draws(tmp_path: Path) -> None:
    """The closed form of a pair, and the part of draws in which it is so, are two ways to one number."""
    workspace = Workspace(tmp_path / "a.duckdb")
    workspace.evaluate("resnet18", hardware=["t4", "l4", "tpu_v4"], precision="int8")
    pairs = [
        (row["metric"], row["run_id"], row["other_run_id"], row["better_ratio"], row["probability_better"])
        for row in compare_runs(workspace)
    ]
    assert len(pairs) == 3 * 2 * 5
    known = {(metric, one, other): probability for metric, one, other, _, probability in pairs}
    for (metric, one, other), probability in known.items():
        assert_close(probability + known[metric, other, one], 1.0)
    assert all((ratio > 1.0) == (probability > 0.5) for *_, ratio, probability in pairs if ratio != 1.0)
    metrics: tuple[MetricName, ...] = ("latency", "edp_per_inference")
    for metric in metrics:
        values: dict[int, float] = dict(
            workspace.sql("SELECT f.run_id, metric_value($metric, f) FROM runs AS f", {"metric": metric}).rows
        )
        with reading(workspace.path) as connection:
            errors = load_facts(connection, [{"run_id": run} for run in values], ["run_id"]).errors
        (draws,) = draw_errors(errors, 500)
        powers = METRIC[metric].latency_power, METRIC[metric].energy_power
        costs = {
            run: math.log(value) + powers[0] * draws.latency[place] + powers[1] * draws.energy[place]
            for (run, value), place in zip(values.items(), errors.find(list(values)), strict=True)
        }
        rows = [(one, other, float(np.mean(costs[one] < costs[other]))) for one, other in permutations(costs, 2)]
        count = 500
        for one, other, drawn in rows:
            right = known[metric, one, other]
            assert abs(drawn - right) < 4 * math.sqrt(right * (1.0 - right) / count) + 0.005


def test_what_stands_in_a_file_is_doubted_beyond_what_errors_know() -> None:
    # an assumed peak may be twice or half (one spread), a derived one 1.3x, as those of hardware that was scored:
    # sqrt((1.2816 ln 2)^2 - (1.2816 ln 1.3)^2); an assumed price 0.7, a derived one 0.4
    doubt = load_doubt()
    own = dict(zip((one.number_basis for one in doubt.spreads), doubt.own_half_widths(), strict=True))
    price, number = own["assumed"]
    assert_close(number, 1.2815515655 * math.sqrt(math.log(2.0) ** 2 - math.log(1.3) ** 2))
    assert_close(price, math.sqrt(0.7**2 - 0.4**2))
    assert own["measured"] == own["published"] == own["derived"] == (0.0, 0.0)


@pytest.mark.slow
@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ["plasticine", "dpu_b4096_kv260", "tpu_v4", "l4", "epyc_9654", "kpu_t256", "gaudi2"])
def test_the_peak_that_is_doubted_is_the_one_that_time_follows(tmp_path: Path, name: str) -> None:
    """No other moves the time of a run, but that of int8, published, which tells the bytes that tensor cores take."""
    workspace = Workspace(tmp_path / "a.duckdb")
    precision: Any = "int8" if name.startswith("dpu") else "fp32" if name in ("tpu_v4", "plasticine") else "bf16"
    rows = workspace.sensitivity("resnet18", hardware=name, precision=precision, metric="latency").rows
    asked = f"peak.{find_peak(load_catalogue().hardware[name].architecture, precision)}"
    moved = {row.constant for row in rows if row.kind == "peak" and abs(row.latency_elasticity or 0.0) > 1e-6}
    assert moved <= {asked, *(["peak.int8"] if name == "l4" else [])}


@pytest.mark.slow
def test_what_a_question_sets_is_taken_as_given(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "a.duckdb")
    workspace.evaluate("resnet18", hardware="kpu_t256", precision="int8")
    workspace.evaluate(
        "resnet18",
        hardware="kpu_t256",
        precision="int8",
        changes={"memory_bandwidth": "x1.0001", "clock": "x0.9999"},
    )
    workspace.evaluate("resnet18", hardware="kpu_t256", precision="int8", changes={"memory_bandwidth": "x1.0001"})
    (before,), (after,), (some,) = workspace.sql("SELECT latency_own_half_width FROM run_uncertainty ORDER BY run_id")
    assert before > 0.3
    assert after == 0.0
    assert 0.1 < some < before  # what computing takes is no surer for a bandwidth that is given
