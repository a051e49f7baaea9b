"""Device time of operators inside models: divided by hand, conserved, as it ships, and scored."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest

from blank import open_blank
from compare import assert_close
from joulemap.catalog.digest import ZOO
from joulemap.catalog.measurement import load_profiles
from joulemap.domain.measurement import Shape, TracedOperator
from joulemap.store.measurement import read_operator_file
from joulemap.store.workload import read_operators
from joulemap.store.zoo import Shipped, read_shipped
from joulemap.system.errors import NoMeasurementError
from joulemap.workspace import Workspace
from tools.lowering import ProfiledKernel, expect_kernels, find_key
from tools.profile import OperatorMeasurement, match_profile, read_kernels, write_operator_file

LEAST_MATCHED = 0.97
"""Least share of a profile that traced operators explain."""

H200 = {"hardware": ["h200_sxm"], "runtime": "graph"}


def kernel(aten: str, shapes: Sequence[Shape], calls: int, time: float, precision: str = "fp32") -> ProfiledKernel:
    return ProfiledKernel(
        model="made_up", precision=precision, batch=1, aten=aten, shapes=tuple(shapes), call_count=calls,
        device_time_us=time,
    )  # fmt: skip


def traced(index: int, operation: str, output: Shape, **known: Any) -> TracedOperator:
    defaults: dict[str, Any] = {
        "kind": "elementwise",
        "aten": f"aten.{operation}.default",
        "copied_shape": output,
        "input_elements": (math.prod(output),),
        "weight_shapes": (),
        "gemm": (0, 0, 0, 0),
        "shapes": "x".join(map(str, output)),
    }
    return TracedOperator(operator_index=index, operation=operation, output_shape=output, **{**defaults, **known})


def convolution(index: int, channels: int, kernel_size: int, **known: Any) -> TracedOperator:
    """8 channels of 4 x 4 from `channels` of 4 x 4, with a bias."""
    weight = (8, channels, kernel_size, kernel_size)
    defaults: dict[str, Any] = {
        "kind": "conv",
        "input_elements": (channels * 16,),
        "weight_shapes": (weight, (8,)),
        "shapes": f"{channels} {kernel_size}",
    }
    return traced(index, "conv2d", (1, 8, 4, 4), **{**defaults, **known})


CONVOLUTIONS = (
    kernel("cudnn_convolution", [(1, 3, 4, 4), (8, 3, 1, 1), (), ()], 1, 5.0),
    kernel("cudnn_convolution", [(1, 4, 4, 4), (8, 4, 3, 3), (), ()], 2, 14.0),
    kernel("add_", [(1, 8, 4, 4), (1, 8, 1, 1), ()], 3, 6.0),
)


def by_operation(rows: Sequence[OperatorMeasurement]) -> dict[tuple[str, str], OperatorMeasurement]:
    return {(row.operation, row.shapes): row for row in rows}


def test_a_row_is_divided_among_its_operators_by_calls() -> None:
    rows = match_profile(CONVOLUTIONS, (convolution(0, 3, 1), convolution(1, 4, 3), convolution(2, 4, 3)))
    by_shape = by_operation(rows)
    # three additions of a bias take 6 us: 2 us each
    assert_close(by_shape["conv2d", "3 1"].device_time_us, 5.0 + 2.0)
    assert_close(by_shape["conv2d", "4 3"].device_time_us, 14.0 + 2 * 2.0)
    assert [(row.operator_count, row.call_count, row.kernels) for row in rows] == [
        (1, 2, "add_ cudnn_convolution"),
        (2, 4, "add_ cudnn_convolution"),
    ]


def test_what_no_operator_explains_stays_a_row() -> None:
    alone = match_profile(CONVOLUTIONS, (convolution(0, 3, 1),))
    # one convolution of three biases: neither the biases nor then that convolution can be told apart
    assert [(row.operation, row.device_time_us) for row in alone] == [("", 5.0), ("", 14.0), ("", 6.0)]
    without_bias = convolution(0, 3, 1, weight_shapes=((8, 3, 1, 1),))
    measured = match_profile(CONVOLUTIONS, (without_bias, traced(1, "permute", (1, 4, 4, 8), kind="view")))
    assert [(row.operation, row.device_time_us) for row in measured] == [("conv2d", 5.0), ("", 14.0), ("", 6.0)]
    assert measured[1].shapes == "1x4x4x4 8x4x3x3"


def test_a_profile_that_lists_everything_twice_is_halved() -> None:
    operators = (convolution(0, 3, 1), convolution(1, 4, 3), convolution(2, 4, 3))
    once, twice = match_profile(CONVOLUTIONS, operators), match_profile(CONVOLUTIONS * 2, operators)
    assert [row.pass_count for row in twice] == [2, 2]
    assert [attrs.evolve(row, pass_count=1) for row in twice] == list(once)


def test_fp16_batch_norm_converts_its_parameters() -> None:
    norm = traced(0, "batch_norm", (1, 64, 8, 8), kind="batch_norm", weight_shapes=((64,),) * 4)
    rows = (
        kernel("native_batch_norm", [(1, 64, 8, 8), (64,), (64,), (64,), (64,)], 1, 4.0, "fp16"),
        kernel("copy_", [(64,), (64,)], 1, 1.0, "fp16"),
    )
    (measured,) = match_profile(rows, (norm,))
    assert (measured.device_time_us, measured.call_count) == (5.0, 2)
    assert [one.key[0] for one in expect_kernels(norm, "fp32")] == ["batch_norm"]


def test_an_attention_is_one_kernel_of_three_operators() -> None:
    parts = [
        traced(0, "scaled_dot_product_attention", (2, 12, 197, 197), kind="matmul", shapes="2x12x197"),
        traced(1, "scaled_dot_product_attention", (2, 12, 197, 197), kind="softmax", shapes="2x12x197"),
        traced(2, "scaled_dot_product_attention", (2, 12, 197, 64), kind="matmul", shapes="2x12x197"),
    ]
    flash = kernel("_cudnn_attention_forward", [(2, 12, 197, 64)] * 3, 1, 30.0)
    memory_efficient = kernel("_efficient_attention_forward", [(2, 197, 12, 64)] * 3, 1, 30.0)
    assert find_key(flash) == find_key(memory_efficient)
    (one,) = match_profile((flash,), parts)
    assert (one.operator_count, one.call_count, one.device_time_us) == (3, 1, 30.0)


def test_copies_that_depend_on_a_layout_are_taken_where_they_are_listed() -> None:
    product = traced(
        0, "matmul", (2, 3, 5, 7), kind="matmul", aten="aten.matmul.default", gemm=(6, 5, 7, 4), shapes="made up"
    )
    rows = (kernel("bmm", [(6, 5, 4), (6, 4, 7)], 1, 4.0), kernel("copy_", [(2, 3, 4, 7)] * 2, 1, 2.0))
    for listed, time, calls in ((rows, 6.0, 2), (rows[:1], 4.0, 1)):
        (one,) = match_profile(listed, (product,))
        assert (one.device_time_us, one.call_count) == (time, calls)


def shipped_rows() -> list[dict[str, Any]]:
    connection = open_blank()
    for profile in load_profiles():
        read_operator_file(
            connection, profile.operators, hardware=profile.hardware, runtime=profile.runtime, source=profile.source,
            matmul_precision=profile.matmul_precision, conditions=profile.conditions, find_seen=lambda model: "",
        )  # fmt: skip
    cursor = connection.execute("FROM operator_measurements")
    names = [column[0] for column in cursor.description or ()]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def test_what_ships_has_all_the_time_of_its_profile_and_operators_for_most_of_it() -> None:
    rows = shipped_rows()
    (profile,) = load_profiles()
    for (model, precision, batch), kernels in read_kernels(profile).items():
        own = [row for row in rows if (row["model"], row["precision"], row["batch"]) == (model, precision, batch)]
        total = math.fsum(row["device_time_s"] for row in own)
        passes = 2 if "is listed 2 times" in own[0]["conditions"] else 1
        assert (passes == 2) == ((model, precision, batch) == ("densenet121", "fp32", 1))
        assert_close(total * passes, math.fsum(one.device_time_us for one in kernels) / 1e6, rel=1e-5)
        matched = math.fsum(row["device_time_s"] for row in own if row["operation"])
        assert matched / total >= LEAST_MATCHED
    assert {row["operation"] for row in rows if row["is_overlapping"]} == {"conv2d"}
    assert {row["model"] for row in rows if row["is_overlapping"]} == {"regnet_y_8gf"}


@pytest.mark.sample(1)
@pytest.mark.parametrize(("model", "batch"), [("resnet18", 32), ("swin_t", 1)])
def test_what_ships_is_what_the_profile_and_the_trace_give(model: str, batch: int, tmp_path: Path) -> None:
    connection = open_blank()
    (number,) = read_shipped(connection, ZOO, [Shipped(model, batch, workload_key="")])
    (profile,) = load_profiles()
    measurements = [
        row
        for configuration, kernels in read_kernels(profile).items()
        if (configuration[0], configuration[2]) == (model, batch)
        for row in match_profile(kernels, read_operators(connection, number))
    ]
    write_operator_file(tmp_path / "own.parquet", measurements)
    read = "SELECT * FROM read_parquet($path) WHERE model = $model AND batch = $batch ORDER BY ALL"
    mine, shipped = (
        connection.execute(read, {"path": str(path), "model": model, "batch": batch}).fetchall()
        for path in (tmp_path / "own.parquet", profile.operators)
    )
    assert mine == shipped


def test_the_prediction_of_a_group_is_its_operators_without_gaps(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "own.duckdb")
    workspace.evaluate("resnet18", precision="fp16", batch=32, **H200)  # type: ignore[call-overload]
    # of the hardware as the run used it: under its calibration
    (gap,) = workspace.sql(
        "SELECT product(CASE f.quantity WHEN 'clock_boost' THEN 1 / f.value ELSE f.value END) "
        "FROM internal.run AS r JOIN internal.hardware_fact AS f USING (hardware_digest) "
        "WHERE f.quantity IN ('coefficient.gap_clocks', 'clock_boost', 'coefficient.launch_time_scale')"
    ).rows[0]
    assert 1e-7 < gap < 2e-6
    own = workspace.sql(
        "SELECT count(*), sum(o.latency_s) FROM operator_results AS o JOIN runs AS r USING (run_id) "
        "JOIN operators AS w ON w.workload_id = r.workload_id AND w.operator_index = o.operator_index "
        "WHERE o.operation = 'batch_norm' AND w.output_shape = '32x64x56x56'"
    ).rows[0]
    (row,) = workspace.sql(
        "SELECT operator_count, predicted_s, measured_s, error_fraction, kind, is_overlapping "
        "FROM operator_prediction_errors WHERE operation = 'batch_norm' AND shapes LIKE '%-> 32x64x56x56'"
    ).rows
    assert row[0] == own[0] == 4
    assert_close(row[1], own[1] - 4 * gap)
    assert_close(row[3], row[1] / row[2] - 1.0)
    assert row[4:] == ("batch_norm", False)


def test_scores_are_those_of_the_rows(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "own.duckdb")
    answer = workspace.validate_operators("h200_sxm", "regnet_y_8gf", precision="fp16")
    rows = workspace.sql("FROM operator_prediction_errors").records()
    assert {row["precision"] for row in rows} == {"fp16"}
    total = sum(row["measured_s"] for row in rows)
    scores = {row["kind"]: row for row in answer.records()}
    assert answer.records()[0]["kind"] == "all"
    for kind, score in scores.items():
        own = [row for row in rows if row["kind"] == kind or (kind == "all" and not row["is_overlapping"])]
        scored = [abs(row["error_fraction"]) for row in own if row["measured_per_operator_s"] > 5e-6]
        measured = sum(row["measured_s"] for row in own)
        assert (score["group_count"], score["scored_count"]) == (len(own), len(scored))
        assert_close(score["device_time_fraction"], measured / total)
        assert_close(
            score["time_weighted_error_fraction"],
            sum(abs(row["predicted_s"] - row["measured_s"]) for row in own) / measured,
        )
        if scored:
            assert_close(score["mean_error_fraction"], sum(scored) / len(scored))
            assert_close(abs(score["worst_error_fraction"]), max(scored))
    assert scores["grouped_conv"]["is_overlapping"]
    assert_close(scores["all"]["device_time_fraction"] + scores["grouped_conv"]["device_time_fraction"], 1.0)
    with pytest.raises(NoMeasurementError, match="no measurement of resnet34"):
        workspace.validate_operators(model="resnet34")
