"""Answers of the page: sentences, numbers and chances of the command line, and one line for what is wrong."""

from __future__ import annotations

import json
import shlex
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from command import run_here
from compare import assert_close
from gguf_file import llama_3_1_8b, write_gguf
from joulemap import Passes, predict, predict_step
from joulemap.bundle.chip import load_chips
from joulemap.show.view import draw
from joulemap.wing.llm import Serving
from joulemap.wing.tab import reply
from joulemap.wing.tab.renderer import spell_names
from joulemap.wing.tab.state import DEFAULTS
from joulemap.workspace import Workspace

CHIPS = "h100_sxm5,l4,rtx_4090,hailo_8,xeon_8490h"


def find(**state: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(reply.answer(json.dumps(state)))
    return answer


def find_block(answer: dict[str, Any], kind: str, number: int = 0) -> dict[str, Any]:
    blocks: list[dict[str, Any]] = [one for one in answer["blocks"] if one["kind"] == kind]
    return blocks[number]


COMPARED = (
    {"model": "resnet50", "chips": CHIPS},
    {"model": "mobilenet_v2", "chips": "h100_sxm5,l4,kpu_t256", "precision": "int8", "runtime": "fused"},  # not sold
    {"model": "resnet18", "chips": "hailo_8,l4", "precision": "fp16"},  # the first has none
)

MORE = (
    {"model": "gemm(m=8,n=4096,k=4096)", "chips": "l4,h100_sxm5,rtx_4090", "precision": "bf16"},
    {"model": "resnet18", "chips": "l4", "precision": "int8"},
    {"model": "vit_b_16", "chips": "l4,hailo_8,h100_sxm5", "batch": "8"},
    {"model": "bert-base-uncased", "chips": "l4,t4,a10g", "precision": "fp16", "runtime": "eager"},
)


@pytest.mark.parametrize(
    "state",
    [*COMPARED, *(pytest.param(one, marks=pytest.mark.slow) for one in MORE)],
    ids=lambda one: f"{one['model'][:6]} {one['chips'][:12]}",
)
def test_a_comparison_says_what_the_command_says(tmp_path: Path, state: dict[str, str]) -> None:
    """Decision with its chances, reasons, and the ranges; the command that the page shows is run."""
    answer = find(view="compare", **state)
    words = shlex.split(answer["command"])
    assert words[0] == "joulemap"
    done = run_here([*words[1:], "--format", "json", "--db", "page.duckdb"], tmp_path, {})
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert answer["line"] == told["answer"]
    values = {row["label"]: row for row in told["rows"] if row["status"] == "ok"}
    for metric, column in (("energy", "energy_j"), ("latency", "latency_s")):
        block = find_block(answer, "intervals", metric == "latency")
        assert [row["name"].removeprefix("~") for row in block["rows"]] == sorted(
            values, key=lambda name: (values[name][column], name)
        )
        for row in block["rows"]:
            stored = values[row["name"].removeprefix("~")]
            low, value, high = row["numbers"]
            assert value == stored[column]
            assert_close(np.log(high / value), stored[column.rpartition("_")[0] + "_half_width"])
            assert low <= value <= high
    table = run_here([*words[1:], "--db", "page.duckdb"], tmp_path, {}).stdout
    assert bool(answer["why"]) == bool(told.get("insights"))
    assert all(reason in table for reason in answer["left_out"])


def test_chances_are_those_of_a_database(tmp_path: Path) -> None:
    """Joint draws of several chips, which hang on the texts of each error's key."""
    state = {"model": "vit_b_16", "chips": "l4,hailo_8,h100_sxm5,rtx_4090", "precision": "int8", "runtime": "engine"}
    answer = find(view="compare", batch="1", **state)
    told = Workspace(tmp_path / "page.duckdb").compare(
        "vit_b_16", hardware=state["chips"].split(","), precision="int8", runtime="engine"
    )
    assert answer["line"] == draw(told).answer
    front = Workspace(tmp_path / "page.duckdb").pareto(
        "vit_b_16", hardware=state["chips"].split(","), precision="int8", runtime="engine", batch=1
    )
    likely = {row.hardware: row.probability_front for row in front.rows if row.probability_front is not None}
    for point in find_block(answer, "front")["points"]:
        if point["is_front"]:
            assert point["is_likely"] == (likely[point["name"]] >= 0.8)


def test_a_difference_adds_up_and_is_that_of_explain(tmp_path: Path) -> None:
    state = {"model": "resnet50", "chips": "h100_sxm5,l4", "precision": "int8", "batch": "4", "runtime": "engine"}
    answer = find(view="why", **state)
    words = shlex.split(answer["command"])
    told = json.loads(run_here([*words[1:], "-f", "json", "--db", "page.duckdb"], tmp_path, {}).stdout)
    assert answer["line"] == told["answer"]
    terms = {row["category"]: row["difference_exact"] for row in told["categories"]}
    steps = find_block(answer, "waterfall")["steps"]
    assert [int(one["exact"]) for one in steps] == [one for one in terms.values() if one]
    found = predict("resnet50", ["h100_sxm5", "l4"], precision="int8", batch=4, runtime="engine")
    whole = round(1e15 * float(found.energy_j[1])) - round(1e15 * float(found.energy_j[0]))
    assert sum(int(one["exact"]) for one in steps) == whole
    ends = find_block(answer, "waterfall")["ends"]
    assert steps[0]["from"] == ends[0]["to"] == 1.0
    assert_close(steps[-1]["to"], ends[1]["to"])
    assert all(one["to"] == other["from"] for one, other in pairwise(steps))


def test_parts_and_static_numbers_are_predictions() -> None:
    answer = find(**{"view": "compare", **DEFAULTS["compare"]})
    chips = DEFAULTS["compare"]["chips"].split(",")
    found = predict("resnet50", chips, precision="int8", runtime="engine")
    energy = dict(zip(chips, zip(found.energy_low_j, found.energy_j, found.energy_high_j, strict=True), strict=True))
    for row in find_block(answer, "intervals")["rows"]:
        np.testing.assert_allclose(row["numbers"], energy[row["name"]], rtol=1e-14)
    for row in find_block(answer, "parts")["rows"]:
        assert_close(sum(row["shares"]), 1.0)
        static = dict(zip(find_block(answer, "parts")["names"], row["shares"], strict=True))["static power"]
        place = chips.index(row["name"])
        assert_close(static, float(found.parts_j["static"][place] / found.energy_j[place]))


@pytest.mark.slow
@pytest.mark.parametrize(("power", "bandwidth"), [pytest.param("100", "100", marks=pytest.mark.slow), ("60", "120")])
def test_a_gpu_serves_as_llm_says(tmp_path: Path, power: str, bandwidth: str) -> None:
    answer = find(view="gpu", chip="rtx_4090", prompt="700", power=power, bandwidth=bandwidth)
    rate, joules = (find_block(answer, "intervals", number)["rows"] for number in (0, 1))
    names = [row["name"] for row in rate]
    assert "llama-3.1-8b" in names
    assert "llama-3.1-70b: needs" in answer["left_out"][0]
    place = names.index("llama-3.1-8b")
    changes = {"tdp": f"x{int(power) / 100:g}", "memory_bandwidth": f"x{int(bandwidth) / 100:g}"}
    told: Any = Workspace(tmp_path / "llm.duckdb").llm(
        "llama-3.1-8b",
        hardware=["rtx_4090"],
        batch=1,
        precision="bf16",
        weight_precision="q4_k_m",
        serving=Serving(prompt=700, output=2, engine="llamacpp"),
        changes={name: value for name, value in changes.items() if value != "x1"},
    )
    (row,) = told.rows
    assert rate[place]["numbers"][1] == 1.0 / row.between_s
    assert_close(joules[place]["numbers"][1], row.output_token_j)
    low, value, _ = rate[place]["numbers"]
    assert_close(np.log(value / low), row.between_half_width)
    words = shlex.split(answer["command"])
    done = run_here([*words[1:], "--db", "page.duckdb"], tmp_path, {})
    assert done.returncode == 0, done.stderr
    assert [one for one in words if one.startswith(("tdp=", "memory_bandwidth="))] == [
        f"{name}={value}" for name, value in changes.items() if value != "x1"
    ]


def test_a_file_of_weights_is_priced_by_its_header(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "own model.gguf", *llama_3_1_8b())
    with path.open("r+b") as file:
        file.truncate(10 * 10**9)  # as large as the whole model and more; the rest is not read
    answer = find(view="gpu", chip="l4", prompt="512", file=str(path))
    assert answer["line"].startswith("Expect ") and answer["line"].endswith(" from own model.gguf on l4.")
    assert shlex.split(answer["command"])[:4] == ["joulemap", "llm", "./own model.gguf", "l4"]
    steps = predict_step(str(path), "l4", engine="llamacpp")
    found = steps.price(Passes.of([1.0], context=[512.0]))
    row = find_block(answer, "intervals")["rows"][0]
    assert row["numbers"][1] == 1.0 / float(found.latency_s[0])
    assert "none.gguf cannot be read" in find(view="gpu", chip="l4", file=str(tmp_path / "none.gguf"))["error"]


@pytest.mark.parametrize(
    ("state", "text"),
    [
        ({"view": "other"}, "no view 'other'"),
        ({"model": "resnet5"}, "unknown model 'resnet5'; did you mean resnet50"),
        ({"chips": "nothing"}, "unknown hardware 'nothing'"),
        ({"chips": " , "}, "no chip is named"),
        ({"precision": "fp7"}, "unknown precision 'fp7'"),
        ({"runtime": "fast"}, "unknown runtime 'fast'"),
        ({"batch": "-3"}, "batch is '-3', expected a whole number from 1 to 65,536"),
        ({"batch": "9" * 5000}, "expected a whole number"),
        ({"batch": "²"}, "expected a whole number"),
        ({"view": "why", "chips": "l4"}, "Name two chips"),
        ({"view": "gpu", "chip": "nothing"}, "unknown hardware 'nothing'"),
        ({"view": "gpu", "chip": "l4@50W"}, "l4@50W names a power mode"),
        ({"chips": "l4[tdp=60W]"}, "l4[tdp=60W] sets constants"),
        ({"view": "gpu", "power": "0"}, "power is '0'"),
        ({"view": "gpu", "prompt": "many"}, "prompt is 'many'"),
    ],
)
def test_a_wrong_state_is_one_line(state: dict[str, str], text: str) -> None:
    answer = find(**state)
    assert set(answer) == {"error"}
    assert text in answer["error"]
    assert "\n" not in answer["error"]


def test_an_unknown_chip_among_others_is_left_out() -> None:
    answer = find(view="compare", chips="l4,nothing,h100_sxm5,L4")
    assert [row["name"] for row in find_block(answer, "intervals")["rows"]] == ["l4", "h100_sxm5"]
    assert len(answer["left_out"]) == 1
    assert "unknown hardware 'nothing'" in answer["left_out"][0]
    many = find(view="compare", chips=",".join(sorted(load_chips().ids)[:100]))
    assert any("40 more chips are left out" in line for line in many["left_out"])


@pytest.mark.parametrize(
    ("renderer", "chip"),
    [
        ("ANGLE (NVIDIA, NVIDIA GeForce RTX 4090 (0x00002684) Direct3D11 vs_5_0 ps_5_0, D3D11)", "rtx_4090"),
        ("ANGLE (Apple, ANGLE Metal Renderer: Apple M1 Pro, Unspecified Version)", "apple_m1_pro"),
        ("ANGLE (AMD, AMD Radeon RX 7900 XTX Direct3D11 vs_5_0 ps_5_0, D3D11)", "rx_7900_xtx"),
        (
            "ANGLE (NVIDIA Corporation, NVIDIA GeForce RTX 4070 Laptop GPU/PCIe/SSE2, OpenGL 4.5.0)",
            "rtx_4070_laptop_gpu",
        ),
        ("AMD Radeon RX 6800 XT (navi21, LLVM 15.0.7, DRM 3.49, 6.1.0)", "rx_6800_xt"),
        ("NVIDIA GeForce RTX 3060/PCIe/SSE2", "rtx_3060"),
        ("ANGLE (Intel, Intel(R) Arc(TM) A770 Graphics Direct3D11 vs_5_0 ps_5_0, D3D11)", "arc_a770"),
        ("Google SwiftShader", ""),
        ("Apple GPU", ""),
        ("<img src=x>" * 1000, ""),
        ("", ""),
    ],
)
def test_a_gpu_is_known_by_the_name_that_webgl_tells(renderer: str, chip: str) -> None:
    found = json.loads(reply.match_renderer(renderer))
    assert found["chip"] == chip
    assert "\n" not in found["line"]
    if chip:
        assert chip in found["line"]
        assert next(spell_names(renderer)) in found["line"]


@pytest.mark.parametrize(
    ("name", "text"),
    [("a.onnx", "install joulemap[onnx]"), ("a.tflite", "`joulemap compare a.tflite`"), ("a", "is not a GGUF file")],
)
def test_other_files_are_one_line(name: str, text: str) -> None:
    assert text in json.loads(reply.check_file(name))["line"]
    assert json.loads(reply.check_file("Model-00001-of-00002.GGUF")) == {"line": ""}
