"""Device time of operators inside models: conserved, as it ships, and scored."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Any

import pytest

from blank import open_blank
from compare import assert_close
from joulemap.catalog.measurement import load_profiles
from joulemap.store.measurement import read_operator_file
from joulemap.system.errors import NoMeasurementError
from joulemap.workspace import Workspace

LEAST_MATCHED = 0.97
"""Least share of a profile that traced operators explain."""

H200 = {"hardware": ["h200_sxm"], "runtime": "graph"}


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
    recorded: dict[tuple[str, str, int], list[float]] = {}
    with profile.path.with_suffix(".csv").open(newline="", encoding="utf-8") as file:
        for one in csv.DictReader(file):
            configuration = one["model"], one["precision"], int(one["batch"])
            recorded.setdefault(configuration, []).append(float(one["device_time_us_total"]))
    for (model, precision, batch), times_us in recorded.items():
        own = [row for row in rows if (row["model"], row["precision"], row["batch"]) == (model, precision, batch)]
        total = math.fsum(row["device_time_s"] for row in own)
        passes = 2 if "is listed 2 times" in own[0]["conditions"] else 1
        assert (passes == 2) == ((model, precision, batch) == ("densenet121", "fp32", 1))
        assert_close(total * passes, math.fsum(times_us) / 1e6, rel=1e-5)
        matched = math.fsum(row["device_time_s"] for row in own if row["operation"])
        assert matched / total >= LEAST_MATCHED
    assert {row["operation"] for row in rows if row["is_overlapping"]} == {"conv2d"}
    assert {row["model"] for row in rows if row["is_overlapping"]} == {"regnet_y_8gf"}


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
        assert_close(score["share_fraction"], measured / total)
        assert_close(
            score["time_weighted_error_fraction"],
            sum(abs(row["predicted_s"] - row["measured_s"]) for row in own) / measured,
        )
        if scored:
            assert_close(score["mean_error_fraction"], sum(scored) / len(scored))
            assert_close(abs(score["worst_error_fraction"]), max(scored))
    assert scores["grouped_conv"]["is_overlapping"]
    assert_close(scores["all"]["share_fraction"] + scores["grouped_conv"]["share_fraction"], 1.0)
    with pytest.raises(NoMeasurementError, match="no measurement of resnet34"):
        workspace.validate_operators(model="resnet34")
