"""Measurements in, predictions scored: by hand on made-up rows, and on what ships."""

from __future__ import annotations

import json
from pathlib import Path

import attrs
import pytest

from calibration_case import hardware as target, made
from compare import assert_close
from conftest import Run
from joulemap.ask.measurement import find_described as find_stored
from joulemap.catalog.measurement import load_measurements
from joulemap.catalog.sheet import load_models
from joulemap.domain.measurement import Measurement
from joulemap.domain.operator.name import is_operator, spell
from joulemap.plan.source import Source
from joulemap.show.validate import ERROR, SCORED, describe_scores
from joulemap.store.connection import transaction, writing
from joulemap.store.measurement import read_measurements, update_measurements, write_measurements
from joulemap.system.errors import CatalogueError, NoMeasurementError
from joulemap.workspace import Workspace

ROOT = Path(__file__).resolve().parents[2]

HEADER = "hardware,model,precision,batch,runtime,latency_s,power_w,source\n"
GOOD = "H100,resnet18,fp16,1,graph,0.001,,a bench\n"


def test_what_ships_names_models_hardware_and_sources() -> None:
    rows = load_measurements()
    assert len(rows) > 900
    known = load_models()
    for row in rows:
        assert row.model in known or is_operator(row.model) or row.model.startswith("train(")
        assert row.source
        assert row.conditions
        assert row.latency_s or row.throughput_per_s or row.power_w or row.wall_power_w
    assert {row.hardware for row in rows if not row.seen} >= {"rtx_4090", "a100_sxm4_40gb", "v100_sxm2", "t4"}
    unseen = {row.model for row in rows if row.hardware == "h200_sxm" and not row.seen}
    assert unseen == {"bert_encoder_128", "bert_encoder_384"}


def test_measured_operators_have_one_spelling() -> None:
    names = {row.model for row in load_measurements() if is_operator(row.model)}
    assert len(names) == 50
    assert {spell(name) for name in names} == names


def test_the_accuracy_page_names_the_number_of_measurements_that_ship() -> None:
    """A row that two tables tell alike is one measurement."""
    count = len(set(load_measurements()))
    assert f"{count:,} rows of " in (ROOT / "docs" / "accuracy.md").read_text(encoding="utf-8")


def test_splits_say_how_new_a_row_is(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "own.duckdb")
    lines = ["h200_sxm,resnet34,fp16,1,graph,0.001,,a bench", "H200,hf:BertConfig,fp16,1,graph,0.001,,a bench",
             "gaudi3,resnet18,bf16,1,graph,0.001,,a bench"]  # fmt: skip
    path = tmp_path / "mine.csv"
    path.write_text(HEADER + "\n".join(lines))
    workspace.import_measurements(path)
    rows = workspace.sql(
        "SELECT DISTINCT m.hardware, m.model, s.split, m.source = 'a bench' AS is_own "
        "FROM measurements AS m JOIN measurement_splits AS s USING (measurement_id)"
    ).records()
    split = {(row["hardware"], row["model"], row["is_own"]): row["split"] for row in rows}
    assert split["h200_sxm", "resnet50", False] == "fitted"
    assert split["h200_sxm", "bert_encoder_128", False] == "unseen family"
    assert split["v100_sxm2", "resnet50", False] == "unseen hardware"
    assert split["gaudi3", "resnet18", True] == "unseen hardware"
    assert split["h200_sxm", "hf:BertConfig", True] == "unseen family"
    assert split["h200_sxm", "resnet34", True] == "same family"


@pytest.mark.slow
def test_scores_by_hand(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "own.duckdb")
    names = ("resnet18", "resnet_block", "mlp", "conv_block")
    workspace.evaluate(names, hardware=["gaudi3"], precision="bf16", runtime="graph")
    rows = {row["model"]: row for row in workspace.sql("SELECT model, latency_s, average_power_w FROM runs").records()}
    factors = dict(zip(names, (0.5, 0.8, 1.25, 2.0), strict=True))
    lines = [
        f"gaudi3,{model},bf16,1,graph,{rows[model]['latency_s'] / factors[model]!r},"
        f"{rows[model]['average_power_w']!r},board,made up{where}"
        for model, where in zip(names, ("", "", ": page 1", ": page 2"), strict=True)
    ]
    path = tmp_path / "mine.csv"
    path.write_text(HEADER.replace("source", "boundary,source") + "\n".join(lines))
    assert workspace.import_measurements(path) == (4, 0)
    assert workspace.import_measurements(path) == (0, 4)
    scored = workspace.validate("Gaudi-3")
    (latency, power) = scored.records()
    # errors: -0.5, -0.2, 0.25, 1.0
    assert (latency["quantity"], latency["measurement_count"], latency["part"]) == ("latency_s", 4, "graph")
    assert_close(latency["mean_error_fraction"], (0.5 + 0.2 + 0.25 + 1.0) / 4)
    assert_close(latency["median_error_fraction"], (0.25 + 0.5) / 2)
    assert_close(latency["bias_fraction"], (-0.5 - 0.2 + 0.25 + 1.0) / 4)
    assert_close(latency["worst_error_fraction"], 1.0)
    assert latency["worst_case"] == "conv_block bf16 batch 1 graph"
    assert -1.0 <= latency["rank_correlation"] <= 1.0
    assert (latency["seen_fraction"], latency["seen"]) == (0.0, "")
    covered = sum((row.covered_fraction or 0.0) * row.measurement_count for row in scored) / 8
    errors = [
        ERROR(error=row.median_error_fraction, quantity=name)
        for row, name in zip(scored, ("latency", "power"), strict=True)
    ]
    assert describe_scores(scored) == SCORED(errors=errors, covered=covered, count=8)
    assert power["quantity"] == "power_w"
    assert power["mean_error_fraction"] < 1e-9
    by_family = workspace.validate("gaudi3", by="family").records()
    assert {row["part"] for row in by_family} == {"resnet", "block"}
    by_source = [row for row in workspace.validate("gaudi3", by="source").records() if row["quantity"] == "latency_s"]
    assert [(row["part"], row["measurement_count"]) for row in by_source] == [("made up", 4)]


@pytest.mark.slow
def test_rates_and_wall_power_by_hand(tmp_path: Path) -> None:
    # a fabric: images overlap, so that a rate is no reciprocal of a latency and power is over the interval
    workspace = Workspace(tmp_path / "own.duckdb")
    names = {"resnet18": 0.8, "resnet34": 1.25}
    rows = {
        model: workspace.compare(model, hardware=["cloud_ai_100_pro"], precision="int8", runtime="engine").rows[0]
        for model in names
    }
    path = tmp_path / "mine.csv"
    head = (
        "hardware,model,precision,batch,runtime,throughput_per_s,power_w,wall_power_w,device_count,scope,boundary,"
        "source\n"
    )
    lines = []
    for (model, factor), count in zip(names.items(), (1, 4), strict=True):
        row = rows[model]
        assert row.throughput_per_s is not None and row.average_power_w is not None and row.latency_s is not None
        assert row.throughput_per_s > 1.5 / row.latency_s
        figures = f"{row.throughput_per_s / factor!r},{row.average_power_w!r},{row.average_power_w / factor!r}"
        lines.append(f"cloud_ai_100_pro,{model},int8,1,engine,{figures},{count},made up,board,a bench")
    path.write_text(head + "\n".join(lines))
    assert workspace.import_measurements(path) == (2, 0)
    assert workspace.import_measurements(path) == (0, 2)
    listed = [row for row in workspace.measurements("cloud_ai_100_pro").records() if row["source"] == "a bench"]
    assert [row["latency_s"] for row in listed] == [None, None]
    assert all(row["throughput_per_s"] and row["wall_power_w"] for row in listed)
    scores = {
        row["quantity"]: row for row in workspace.validate("cloud_ai_100_pro", by="scope", source="a bench").records()
    }
    assert set(scores) == {"throughput_per_s", "power_w", "wall_power_w"}
    # errors: -0.2 and 0.25
    assert_close(scores["throughput_per_s"]["mean_error_fraction"], 0.225)
    assert_close(scores["throughput_per_s"]["bias_fraction"], 0.025)
    assert scores["throughput_per_s"]["worst_case"] == "resnet34 int8 batch 1 engine"
    assert scores["power_w"]["mean_error_fraction"] < 1e-9
    errors = workspace.sql(
        "SELECT e.error_fraction, e.quantity, e.predicted = CASE e.quantity WHEN 'throughput_per_s' "
        "THEN r.throughput_per_s ELSE r.average_power_w END FROM prediction_errors AS e "
        "JOIN runs AS r USING (run_id) WHERE e.source = 'a bench' AND e.quantity <> 'wall_power_w' "
        "ORDER BY e.model, e.quantity"
    ).rows
    assert [row[1:] for row in errors] == [("power_w", True), ("throughput_per_s", True)] * 2
    assert_close(errors[1][0], -0.2)
    # at the wall: 1.25 J per joule of the card, and a whole host of 180 W for one card; a quarter of it for four
    walls: dict[int, float] = dict(
        workspace.sql(
            "SELECT m.device_count, p.predicted FROM prediction_errors AS p JOIN measurements AS m USING "
            "(measurement_id) WHERE p.source = 'a bench' AND p.quantity = 'wall_power_w'"
        ).rows
    )
    card_w = {model: row.average_power_w or 0.0 for model, row in rows.items()}
    assert_close(walls[1], 1.25 * card_w["resnet18"] + 180.0)
    assert_close(walls[4], 1.25 * card_w["resnet34"] + 45.0)
    path.write_text(head + "hailo_8,resnet18,int8,1,engine,-5,,,,x,,y\n")
    with pytest.raises(CatalogueError, match="throughput_per_s is '-5', expected a number above 0"):
        workspace.import_measurements(path)


def test_rates_that_ship_are_no_reciprocals_of_latencies() -> None:
    rows = load_measurements()
    offline = [row for row in rows if row.scope.startswith("MLPerf Inference, offline")]
    assert offline and all(row.latency_s is None for row in offline)
    assert {row.hardware for row in rows if row.throughput_per_s} >= {
        "hailo_8", "cloud_ai_100_pro", "dpu_b4096x3_zcu102", "xeon_8490h", "h100_pcie@215W", "l4", "l40s", "t4"
    }  # fmt: skip
    for row in rows:
        assert not (row.power_w and row.wall_power_w)
        if row.wall_power_w:
            assert "wall plug" in row.conditions


WRONG = {
    "unknown model": ("H100,resnet19,fp16,1,graph,0.001,,x", "line 3: unknown model 'resnet19'; did you mean resnet18"),
    "unknown hardware": ("H1,resnet18,fp16,1,graph,0.001,,x", "line 3: unknown hardware 'H1'"),
    "negative latency": ("H100,resnet18,fp16,1,graph,-0.001,,x", "latency_s is '-0.001', expected a number above 0"),
    "nothing measured": (
        "H100,resnet18,fp16,1,graph,,,x",
        "none of latency_s, throughput_per_s, energy_j, power_w, wall_power_w",
    ),
    "no number": ("H100,resnet18,fp16,1,graph,soon,,x", "latency_s is 'soon', expected a finite number"),
    "endless": ("H100,resnet18,fp16,1,graph,inf,,x", "latency_s is 'inf', expected a finite number"),
    "half a batch": ("H100,resnet18,fp16,0.5,graph,0.001,,x", "batch is '0.5', expected a whole number from 1"),
    "batch without end": (
        "H100,resnet18,fp16,1e30,graph,0.001,,x",
        "batch is '1e30', expected a whole number from 1 to",
    ),
    "parted digits": ("H100,resnet18,fp16,1,graph,1_0,,x", "latency_s is '1_0', expected a finite number"),
    "other digits": ("H100,resnet18,fp16,\u0663,graph,0.001,,x", "batch is '\u0663', expected a finite number"),
    "precision": ("H100,resnet18,fp17,1,graph,0.001,,x", "precision is 'fp17', expected one of fp64"),
    "runtime": ("H100,resnet18,fp16,1,slow,0.001,,x", "runtime is 'slow', expected one of eager"),
    "no source": ("H100,resnet18,fp16,1,graph,0.001,,", "source is missing"),
    "too few cells": ("H100,resnet18", "line 3: fewer cells than the header has"),
    "mode": (
        "H100@9W,resnet18,fp16,1,graph,0.001,,x",
        "unknown power mode '9W'; h100_sxm5 takes a power limit of 200 to 700 W",
    ),
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


def test_power_far_above_a_cap_is_a_wrong_unit(tmp_path: Path) -> None:
    """1.5 mJ in 0.5 ms are 3 W; written as 1.5 J they are 3 kW, on a board of 700 W."""
    workspace, path = Workspace(tmp_path / "own.duckdb"), tmp_path / "mine.csv"
    header = "hardware,model,precision,batch,runtime,boundary,latency_s,energy_j,power_w,source\n"
    for figures, is_right in ((",,3600", False), ("0.0005,1.9,", False), ("0.0005,0.4,", True), (",,800", True)):
        path.write_text(f"{header}H100,resnet18,fp16,1,graph,board,{figures},x\n")
        if is_right:
            assert workspace.import_measurements(path) == (1, 0)
        else:
            with pytest.raises(CatalogueError, match=r"at most 700 W: check the units"):
                workspace.import_measurements(path)


def test_headers_of_other_tools_are_read_or_explained(tmp_path: Path) -> None:
    workspace, path = Workspace(tmp_path / "own.duckdb"), tmp_path / "mine.csv"
    path.write_text(f"{HEADER}{GOOD}".replace(",", ", "))
    assert workspace.import_measurements(path) == (1, 0)
    for mark in (";", "\t"):
        path.write_text(f"{HEADER}{GOOD}".replace(",", mark))
        with pytest.raises(CatalogueError, match="expected commas"):
            workspace.import_measurements(path)
    path.write_text(f"{HEADER}{GOOD}".replace("latency_s", "latency_ms"))
    with pytest.raises(CatalogueError, match="unknown column latency_ms, expected latency_s"):
        workspace.import_measurements(path)


def test_json_and_empty_files(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "own.duckdb")
    row = {"hardware": "H100", "model": "resnet18", "precision": "fp16", "batch": 1, "runtime": "graph",
           "latency_s": 0.001, "source": "a bench"}  # fmt: skip
    path = tmp_path / "mine.json"
    path.write_text(json.dumps([row]))
    assert workspace.import_measurements(path) == (1, 0)
    path.write_text(json.dumps([{**row, "latency_s": True}]))
    with pytest.raises(CatalogueError, match="row 1: latency_s is True, expected a finite number"):
        workspace.import_measurements(path)
    for text in ("{}", "[1]", "nonsense", "", '[{"batch": 1, "batch": 2}]'):
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
    empty.write_text(HEADER.replace("power_w", "latency_s"))
    with pytest.raises(CatalogueError, match="line 1: the column 'latency_s'"):
        workspace.import_measurements(empty)
    with pytest.raises(CatalogueError, match="cannot be read"):
        workspace.import_measurements(tmp_path / "none.csv")


@pytest.mark.slow
def test_rows_name_no_code(tmp_path: Path, joulemap: Run) -> None:
    """A row names a model file: who imports it has not asked for its code to run."""
    own, ran = tmp_path / "own.py", tmp_path / "ran"
    own.write_text(
        f"import torch\nopen({str(ran)!r}, 'w')\ndef net(): return torch.nn.Linear(4, 4), torch.zeros(1, 4)\n"
    )
    (tmp_path / "mine.csv").write_text(f"{HEADER}gaudi3,{own}:net,bf16,1,graph,0.001,,a bench\n")
    workspace = Workspace(tmp_path / "joulemap.duckdb")
    workspace.import_measurements(tmp_path / "mine.csv")
    done = joulemap("validate", "--hardware", "gaudi3", "--format", "json")
    assert (
        done.stderr
        == f"joulemap: left out: 1 row of {own}:net, code that rows of a file name: JOULEMAP_TRUST=1 runs it\n"
    )
    assert (done.stdout, ran.exists()) == ("[]\n", False)
    (score,) = workspace.validate("gaudi3", by="model", trust=True)
    assert (score.part, ran.exists()) == (f"{own}:net", True)


def test_nothing_measured_is_said(tmp_path: Path) -> None:
    with pytest.raises(NoMeasurementError, match="no measurement of gaudi2"):
        Workspace(tmp_path / "own.duckdb").validate("gaudi2")


WORKSPACE_BYTES = 33 * 1024**2 + 1024
"""What torch's allocator keeps for a stream that has run a product: 33 MiB and 1 KiB."""


@pytest.mark.slow
def test_memory_is_scored_where_the_streams_of_the_process_are_told(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "own.duckdb")
    workspace.evaluate("resnet18", hardware=["h200_sxm"], precision="fp16")
    workspace.evaluate("resnet18", hardware=["xeon_8490h"], precision="fp16", runtime="eager")
    path = tmp_path / "mine.csv"
    path.write_text(
        "hardware,model,precision,batch,runtime,peak_memory_bytes,stream_count,source\n"
        "h200_sxm,resnet18,fp16,1,fused,1000,1,a bench\n"
        "h200_sxm,resnet18,fp16,1,fused,1000,3,a bench\n"
        "h200_sxm,resnet18,fp16,1,fused,1000,,a bench\n"
        "xeon_8490h,resnet18,fp16,1,eager,1000,,a bench\n"
    )
    workspace.import_measurements(path)
    rows = workspace.sql(
        "SELECT e.predicted - r.peak_memory_bytes FROM prediction_errors AS e JOIN runs AS r USING (run_id) "
        "WHERE e.source = 'a bench' AND e.quantity = 'peak_memory_bytes' ORDER BY measurement_id"
    ).rows
    assert rows == ((WORKSPACE_BYTES,), (3 * WORKSPACE_BYTES,), (0,))
    path.write_text(
        "hardware,model,precision,batch,runtime,latency_s,stream_count,source\n"
        "h200_sxm,resnet18,fp16,1,fused,1,1.5,bench\n"
    )
    with pytest.raises(CatalogueError, match=r"line 2: stream_count is '1.5', expected a whole number from 1"):
        workspace.import_measurements(path)


@pytest.mark.slow
def test_hardware_that_only_runs_describe_is_evaluated_anew_and_under_its_calibration(tmp_path: Path) -> None:
    mine = attrs.evolve(target("xeon_8490h"), id="mine", aliases=())
    workspace = Workspace(tmp_path / "own.duckdb")
    first = workspace.compare("resnet18", hardware=[mine], calibration="none").rows[0]
    row = Measurement(
        hardware="mine",
        model="resnet18",
        precision="fp32",
        batch=4,
        runtime="fused",
        scope="package",
        latency_s=1.0,
        source="a bench",
        conditions="none",
    )
    with writing(workspace.path) as connection:
        write_measurements(connection, [row])
    stored = find_stored(Source(path=workspace.path), "mine")
    assert stored is not None
    for calibration in ("none", made(stored)):
        (score,) = workspace.validate("mine", calibration=calibration).records()
        assert score["measurement_count"] == 1
    plain, scaled = workspace.sql(
        "SELECT predicted FROM calibrated_prediction_errors WHERE hardware = 'mine' ORDER BY 1"
    ).rows
    assert first.latency_s is not None
    assert first.latency_s < plain[0] < scaled[0]


@pytest.mark.slow
def test_a_row_that_an_older_catalogue_described_otherwise_is_replaced(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "own.duckdb")
    workspace.evaluate(["alexnet"], hardware=["l4"])
    shipped = load_measurements()
    row = next(one for one in shipped if "@" in one.hardware and one.wall_power_w)
    older = attrs.evolve(row, hardware=row.hardware.partition("@")[0], conditions="another mode")
    own = attrs.evolve(older, source="a bench")
    with writing(workspace.path) as connection, transaction(connection):
        write_measurements(connection, [older, own])
        update_measurements(connection, shipped)
        stored = read_measurements(connection)
    assert older not in stored
    assert own in stored
    assert len(stored) == len(set(shipped)) + 1
    assert not workspace.check().findings.rows


def test_a_long_list_of_measurements_tells_how_many_more_there_are(joulemap: Run, own_database: Path) -> None:
    done = joulemap("measurements", "list", "--limit", 2, "--db", own_database)
    count = len(joulemap("measurements", "list", "-f", "csv", "--db", own_database).stdout.splitlines()) - 1
    assert f"{count - 2} more rows; --limit {count} shows all" in done.stdout.replace(" ", " ").replace(",", "")
