"""Runs at fp32 where libraries compute convolutions, or all products, in TF32."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

import attrs
import numpy as np
import pytest

from conftest import Run
from joulemap.answer.scope import Scope
from joulemap.catalog.load import load_catalogue
from joulemap.cli.app import list_commands
from joulemap.domain.configuration import Configuration
from joulemap.domain.default import CANDIDATES, SETTINGS
from joulemap.domain.hardware import Hardware
from joulemap.domain.settings import Settings
from joulemap.domain.table import Table
from joulemap.model.pipeline import evaluate
from joulemap.model.run import RunColumns
from joulemap.workspace import Workspace
from models import shipped

CATALOGUE = load_catalogue().hardware
H100, T4 = CATALOGUE["h100_sxm5"], CATALOGUE["t4"]


def run_of(hardware: Hardware, model: str, precision: str = "fp32", runtime: str = "fused") -> RunColumns:
    configuration = Configuration(hardware=hardware.id, precision=precision, runtime=runtime)
    return evaluate(shipped(model), hardware, configuration)


def macs_of(run: RunColumns, component: str, action: str) -> float:
    row = run.hardware.reference.position((component, action))
    return float(run.ledger.action_count[run.ledger.action_index == row].sum())


@pytest.mark.parametrize("runtime", ["eager", "graph", "fused"])
def test_frameworks_compute_convolutions_in_tf32_and_other_products_in_fp32(runtime: str) -> None:
    # of resnet18 all but the last linear layer, whose 512 x 1000 MACs stay on CUDA cores
    mixed = run_of(H100.with_tf32(), "resnet18", runtime=runtime)
    plain, fast = (run_of(H100, "resnet18", precision, runtime) for precision in ("fp32", "tf32"))
    last = int(mixed.subgraphs.subgraph_index[-1])
    is_last = mixed.operators.subgraph_index == last
    assert np.array_equal(mixed.operators.latency_fs[~is_last], fast.operators.latency_fs[~is_last])
    assert np.array_equal(mixed.operators.latency_fs[is_last], plain.operators.latency_fs[is_last])
    assert macs_of(mixed, "cuda_core", "fp32_mac") < macs_of(plain, "cuda_core", "fp32_mac") / 100.0
    assert macs_of(mixed, "tensor_core", "tf32_mac") > 0.9 * macs_of(fast, "tensor_core", "tf32_mac")
    assert mixed.peak_ops_per_s == fast.peak_ops_per_s


def test_an_engine_computes_all_products_in_tf32() -> None:
    for model in ("resnet18", "transformer_encoder_layer"):
        mixed, fast = run_of(H100.with_tf32(), model, runtime="engine"), run_of(H100, model, "tf32", "engine")
        assert np.array_equal(mixed.operators.latency_fs, fast.operators.latency_fs)
        assert int(mixed.ledger.energy_fj.sum()) == int(fast.ledger.energy_fj.sum())


def test_a_model_without_convolutions_is_as_in_fp32() -> None:
    mixed, plain = run_of(H100.with_tf32(), "transformer_encoder_layer"), run_of(H100, "transformer_encoder_layer")
    assert np.array_equal(mixed.operators.latency_fs, plain.operators.latency_fs)
    assert int(mixed.ledger.energy_fj.sum()) == int(plain.ledger.energy_fj.sum())


def test_what_has_no_tf32_and_what_is_not_fp32_stays_as_it_is() -> None:
    for hardware, precision in ((T4, "fp32"), (H100, "bf16"), (H100, "tf32"), (H100, "fp64")):
        mixed, plain = (run_of(one, "resnet18", precision) for one in (hardware.with_tf32(), hardware))
        assert int(mixed.ledger.energy_fj.sum()) == int(plain.ledger.energy_fj.sum())
    assert (T4.with_tf32().tf32, H100.tf32, H100.with_tf32().tf32) == ("", "", "allowed")


def test_questions_allow_it_and_what_scores_measurements_does_not() -> None:
    assert (SETTINGS.tf32, CANDIDATES.tf32, Settings().tf32) == ("allowed", "allowed", "never")


@pytest.mark.slow
def test_runs_say_so_and_none_of_them_scores_a_measurement(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "a.duckdb")
    asked: dict[str, Any] = {"hardware": ["h200_sxm", "mi300x", "xeon_8490h"], "batch": 1, "calibration": "none"}
    allowed = workspace.compare("resnet50", **asked)
    assert "fp32 (TF32 convolutions, PyTorch's default)" in allowed.document().title
    never = workspace.compare("resnet50", **asked, tf32="never")
    assert "TF32" not in never.document().title
    energy = (
        {one.hardware: one.energy_j or 0.0 for one in allowed.rows},
        {one.hardware: one.energy_j or 0.0 for one in never.rows},
    )
    assert energy[0]["h200_sxm"] < energy[1]["h200_sxm"] / 2.0
    for name in ("mi300x", "xeon_8490h"):  # of another vendor, and of another class
        assert energy[0][name] == energy[1][name]
    rows = workspace.sql("SELECT hardware, tf32 FROM runs WHERE is_newest ORDER BY ALL").rows
    assert rows == (("h200_sxm", ""), ("h200_sxm", "allowed"), ("mi300x", ""), ("xeon_8490h", ""))
    scored = workspace.sql(
        "SELECT count(*) FROM prediction_errors AS e JOIN runs AS r USING (run_id) WHERE r.tf32 <> ''"
    ).rows
    assert scored == ((0,),)
    assert workspace.query("audit.conservation").rows == ()


TITLED: Final = {
    "analyze": "resnet18 l4",
    "architectures": "resnet18",
    "compare": "resnet18 --hardware l4,t4",
    "cost": "resnet18 --hardware l4",
    "diff": "resnet18 resnet34 --hardware l4",
    "edp": "resnet18 l4",
    "explain": "resnet18 l4 t4",
    "explore": "resnet18 --like l4 --vary unit_count=40,58",
    "fleet": "resnet18 l4 --rate 100/s --p99 50ms --batch 1",
    "flip": "resnet18 l4 t4",
    "fusion": "resnet18 l4",
    "llm": "llama-3.2-1b l4 --batch 1",
    "pareto": "resnet18 --hardware l4",
    "recommend": "resnet18 --hardware l4",
    "sensitivity": "resnet18 l4",
    "sweep": "resnet18 --hardware l4 --batch 1,2",
    "train": "resnet18 l4",
    "utilization": "resnet18 l4",
}
"""Command whose runs at fp32 may use TF32 -> what it is asked about a GPU."""

UNTITLED: Final = {
    "calibrate", "completion", "db", "export", "hardware", "here", "lake", "mcp", "measure", "measurements", "model",
    "place", "plot", "query", "report", "sql", "validate", "verify",
}  # fmt: skip
"""Commands without a title of their own (a report has those of its answers), or whose runs are plain fp32: those set
beside measurements, and placements."""


@pytest.mark.wings
def test_every_command_has_a_title_that_is_tested_or_none() -> None:
    assert TITLED.keys() | UNTITLED == set(list_commands())
    assert not TITLED.keys() & UNTITLED


@pytest.mark.sample(2)
@pytest.mark.parametrize("command", TITLED)
def test_every_title_at_fp32_says_what_runs_in_tf32(command: str, joulemap: Run) -> None:
    done = joulemap(command, *TITLED[command].split(), "--precision", "fp32")
    assert done.returncode == 0, done.stderr
    title = next(line for line in done.stdout.splitlines() if "fp32" in line)
    assert len(re.findall(r"\bfp32\b", title)) == 1
    assert re.search(r"fp32 \(TF32 (convolutions, PyTorch's|GEMMs, TensorRT's) default\)", title)


@pytest.mark.parametrize(
    ("title", "marked"),
    [
        ("net, fp32, fused: energy", "net, fp32 (T), fused, board: energy"),
        ("net: 5 requests/s, fp32, engine", "net, board: 5 requests/s, fp32 (T), engine"),
        ("net, fp32 and fp16: energy", "net, fp32 (T) and fp16, board: energy"),
        ("net: lowest energy", "net, fp32 (T), board: lowest energy"),
        ("net_fp32.onnx, fp32/int4 and fp32", "net_fp32.onnx, fp32/int4 and fp32 (T), board"),
    ],
)
def test_a_title_is_marked_once_where_it_names_the_precision(title: str, marked: str) -> None:
    scope = Scope(
        models=("net",),
        batches=(1,),
        settings=SETTINGS,
        precisions=(("fp32", "fp32"),),
        run_ids=(),
        refused={},
        hardware=(),
        projected=frozenset(),
        caveats=Table[Any](title="", columns=(), rows=(), sql="", parameters={}),
        calibrations=Table[Any](title="", columns=(), rows=(), sql="", parameters={}),
        uncalibrated_runs={},
        boundaries=("board",),
        tf32="T",
    )
    assert scope.bounded(title) == marked
    assert "(T)" not in attrs.evolve(scope, tf32="").bounded(title)


@pytest.mark.slow
def test_a_follow_up_command_asks_as_the_answer_was_asked(joulemap: Run) -> None:
    asked = ("compare", "resnet18", "--hardware", "h100_sxm5,a100_sxm4_80gb", "--calibration", "none")
    plain = joulemap(*asked, "--tf32", "never").stdout
    assert "--tf32 never" in plain and "TF32" not in plain.splitlines()[0]
    told = json.loads(joulemap(*asked, "--format", "json").stdout)
    again = json.loads(joulemap(*asked, "--tf32", "never", "--format", "json").stdout)
    assert told["precisions"] == again["precisions"] == ["fp32"]
    for one, other in zip(told["rows"], again["rows"], strict=True):
        assert one["energy_j"] < other["energy_j"]
