"""Measurements in, predictions scored: by hand on made-up rows, and on what ships."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from compare import assert_close
from conftest import Run
from joulemap.catalog.measurement import load_measurements
from joulemap.catalog.model import load_models
from joulemap.errors import CatalogueError, ExitCode, UnknownNameError
from joulemap.workspace.workspace import Workspace

HEADER = "hardware,model,precision,batch,runtime,latency_s,power_w,source\n"
GOOD = "H100,resnet18,fp16,1,graph,0.001,,a bench\n"


def test_what_ships_names_models_hardware_and_sources() -> None:
    rows = load_measurements()
    assert len(rows) > 900
    known = load_models()
    for row in rows:
        assert row.model in known
        assert row.source
        assert row.conditions
        assert row.latency_s or row.power_w
    assert {row.hardware for row in rows if not row.seen} >= {"rtx_4090", "a100_sxm4_40gb", "v100_sxm2", "t4"}
    assert all(row.seen for row in rows if row.hardware == "h200_sxm")


def test_scores_by_hand(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "own.duckdb")
    names = ("resnet18", "resnet34", "mlp", "conv_block")
    rows = {
        model: workspace.compare(model, hardware=["gaudi3"], precision="bf16", runtime="graph").rows[0]
        for model in names
    }
    factors = dict(zip(names, (0.5, 0.8, 1.25, 2.0), strict=True))
    lines = [
        f"gaudi3,{model},bf16,1,graph,{row.latency_s / factors[model]!r},{row.average_power_w!r},made up"  # type: ignore[operator]
        for model, row in rows.items()
    ]
    path = tmp_path / "mine.csv"
    path.write_text(HEADER + "\n".join(lines))
    assert workspace.import_measurements(path) == (4, 0)
    assert workspace.import_measurements(path) == (0, 4)
    (latency, power) = workspace.validate("Gaudi-3").records()
    # errors: -0.5, -0.2, 0.25, 1.0
    assert (latency["quantity"], latency["measurement_count"], latency["part"]) == ("latency", 4, "graph")
    assert_close(latency["mean_error_fraction"], (0.5 + 0.2 + 0.25 + 1.0) / 4, rel=1e-9)
    assert_close(latency["median_error_fraction"], (0.25 + 0.5) / 2, rel=1e-9)
    assert_close(latency["bias_fraction"], (-0.5 - 0.2 + 0.25 + 1.0) / 4, rel=1e-9)
    assert_close(latency["worst_error_fraction"], 1.0, rel=1e-9)
    assert latency["worst_case"] == "conv_block bf16 batch 1 graph"
    assert -1.0 <= latency["rank_correlation"] <= 1.0
    assert (latency["seen_fraction"], latency["seen"]) == (0.0, "")
    assert power["quantity"] == "power"
    assert power["mean_error_fraction"] < 1e-9
    by_family = workspace.validate("gaudi3", by="family").records()
    assert {row["part"] for row in by_family} == {"resnet", "block"}


WRONG = {
    "unknown model": ("H100,resnet19,fp16,1,graph,0.001,,x", "line 3: unknown model 'resnet19'; did you mean resnet18"),
    "unknown hardware": ("H1,resnet18,fp16,1,graph,0.001,,x", "line 3: unknown hardware 'H1'"),
    "negative latency": ("H100,resnet18,fp16,1,graph,-0.001,,x", "latency_s is '-0.001', expected a number above 0"),
    "nothing measured": ("H100,resnet18,fp16,1,graph,,,x", "none of latency_s, energy_j, power_w"),
    "no number": ("H100,resnet18,fp16,1,graph,soon,,x", "latency_s is 'soon', expected a number"),
    "endless": ("H100,resnet18,fp16,1,graph,inf,,x", "latency_s is 'inf', expected a finite number"),
    "half a batch": ("H100,resnet18,fp16,0.5,graph,0.001,,x", "batch is '0.5', expected a whole number from 1"),
    "precision": ("H100,resnet18,fp17,1,graph,0.001,,x", "precision is 'fp17', expected one of fp64"),
    "runtime": ("H100,resnet18,fp16,1,slow,0.001,,x", "runtime is 'slow', expected one of eager"),
    "no source": ("H100,resnet18,fp16,1,graph,0.001,,", "source is missing"),
    "too few cells": ("H100,resnet18", "line 3: fewer cells than the header has"),
    "mode": ("H100@9W,resnet18,fp16,1,graph,0.001,,x", "unknown power mode '9W'; h100_sxm5 has none"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_bad_line_is_named_and_nothing_is_stored(case: str, tmp_path: Path) -> None:
    line, reason = WRONG[case]
    path = tmp_path / "mine.csv"
    path.write_text(f"{HEADER}{GOOD}{line}\n")
    workspace = Workspace(tmp_path / "own.duckdb")
    with pytest.raises(CatalogueError) as caught:
        workspace.import_measurements(path)
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "own.duckdb").exists()


def test_json_and_empty_files(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "own.duckdb")
    row = {"hardware": "H100", "model": "resnet18", "precision": "fp16", "batch": 1, "runtime": "graph",
           "latency_s": 0.001, "source": "a bench"}  # fmt: skip
    path = tmp_path / "mine.json"
    path.write_text(json.dumps([row]))
    assert workspace.import_measurements(path) == (1, 0)
    path.write_text(json.dumps([{**row, "latency_s": True}]))
    with pytest.raises(CatalogueError, match="row 1: latency_s is True, expected a number"):
        workspace.import_measurements(path)
    for text in ("{}", "[1]", "nonsense", ""):
        path.write_text(text)
        with pytest.raises(CatalogueError, match=r"not valid JSON|expected a list of objects"):
            workspace.import_measurements(path)
    empty = tmp_path / "empty.csv"
    empty.write_text(HEADER)
    with pytest.raises(CatalogueError, match="there is no row; columns are hardware, model"):
        workspace.import_measurements(empty)
    empty.write_text("colour\nred\n")
    with pytest.raises(CatalogueError, match="line 2: unknown column colour; known: hardware"):
        workspace.import_measurements(empty)
    with pytest.raises(CatalogueError, match="cannot be read"):
        workspace.import_measurements(tmp_path / "none.csv")


def test_nothing_measured_is_said(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="unknown measurement of 'gaudi2'"):
        Workspace(tmp_path / "own.duckdb").validate("gaudi2")


def test_the_score_on_the_command_line(joulemap: Run) -> None:
    done = joulemap("validate", "--hardware", "T4", "--model", "resnet50", "--format", "json")
    assert done.returncode == ExitCode.OK
    rows = json.loads(done.stdout)
    assert {row["hardware"] for row in rows} == {"t4"}
    assert all(row["measurement_count"] > 0 and row["mean_error_fraction"] >= 0.0 for row in rows)
    shown = joulemap("measurements", "list", "--hardware", "T4", "--model", "resnet50")
    assert shown.returncode == ExitCode.OK
    assert "t4" in shown.stdout
