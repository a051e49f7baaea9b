"""NPUs outside data centers run the engine of their vendor, which the compiler of other networks does not limit."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import evolve

from compare import assert_close
from conftest import Run
from joulemap.catalog.load import find_hardware
from joulemap.system.errors import ExitCode, UnsupportedError
from joulemap.wing.llm.row import ServingRow
from joulemap.wing.llm.setting import Serving
from joulemap.workspace import Workspace
from served_case import predict_row

MEASURED = {
    ("rk3588_npu", "TinyLlama/TinyLlama-1.1B-Chat-v1.0"): 0.0409333,
    ("rk3588_npu", "microsoft/Phi-3-mini-4k-instruct"): 0.134228,
    ("rk3588_npu", "THUDM/chatglm3-6b"): 0.200803,
    ("rk3576_npu", "TinyLlama/TinyLlama-1.1B-Chat-v1.0"): 0.0821018,
    ("rk3576_npu", "THUDM/chatglm3-6b"): 0.403226,
    ("rk3562_npu", "Qwen/Qwen2-0.5B"): 0.0737463,
}
"""(Chip, model) -> seconds of a token at int8 with RKLLM, 128 tokens in and 64 out.

Source: airockchip/rknn-llm, commit 878f936, benchmark.md.
"""


def row(hardware: str, model: str, engine: str = "rkllm") -> ServingRow:
    """Return a request as the publisher measured it."""
    return ServingRow(
        source="rknn", hardware=hardware, model=model, scope="request", engine=engine, date="2026-06", batch=1.0,
        weight_precision="int8", activation_precision="int8", prompt_tokens=128.0, output_tokens=64.0,
    )  # fmt: skip


DECODED = {
    ("fastflowlm", "ryzen_ai_7_350_npu", "llama-3.1-8b", "q4_1", "bf16", 1024.0): 1.0 / 12.8,
    ("fastflowlm", "ryzen_ai_7_350_npu", "qwen3-8b", "q4_1", "bf16", 32768.0): 1.0 / 7.2,
    ("openvino_genai", "lunar_lake_npu", "llama-2-7b", "int4:row", "fp16", 704.0): 1.0 / 18.55,
    ("openvino_genai", "meteor_lake_npu", "llama-3.1-8b", "int4:row", "fp16", 1024.0): 0.1631,
    ("openvino_genai", "arc_140t", "phi-2", "int4", "fp16", 1024.0): 0.0358,
    ("ax_llm", "ax650n_npu", "llama-3-8b", "int8:row", "fp16", 128.0): 1.0 / 2.5,
    ("hailort_genai", "hailo_10h", "llama-3.2-3b", "int4:row", "int8", 1024.0): 1.0 / 2.67,
}
"""(Engine, chip, model, weights, activations, cached tokens) -> seconds of a token.

Sources: ROCm/FastFlowLM at 8b8399c1; Intel, MLPerf Client 0.6; OpenVINO Model Hub;
openvinotoolkit/openvino at 02c5d80d; AXERA-TECH/ax-llm at c26dcbb;
hailo-ai/hailo_model_zoo_genai at 2af6c43.
"""

LAYER_S, LAYERS = 0.024, 32
"""Seconds of a layer of a prompt with FastFlowLM beside its kernels, and layers of Llama 3.1 8B."""


@pytest.mark.parametrize("case", DECODED)
def test_published_tokens_of_laptop_and_board_npus_are_met(case: tuple[str, str, str, str, str, float]) -> None:
    engine, hardware, model, weights, activations, cached = case
    asked = ServingRow(
        source="published", hardware=hardware, model=model, scope="decode_step", engine=engine, date="2026-07",
        weight_precision=weights, activation_precision=activations, prompt_tokens=cached, output_tokens=1.0, batch=1.0,
    )  # fmt: skip
    assert_close(predict_row(asked, find_hardware(hardware)).inter_token_latency_s, DECODED[case], rel=0.2)


def test_each_layer_of_a_prompt_takes_the_time_that_its_engine_adds() -> None:
    asked = ServingRow(
        source="published", hardware="ryzen_ai_7_350_npu", model="llama-3.1-8b", scope="prefill_step",
        engine="fastflowlm", date="2026-07", batch=1.0, weight_precision="q4_1", activation_precision="bf16",
        prompt_tokens=1.0, output_tokens=0.0,
    )  # fmt: skip
    hardware = find_hardware("ryzen_ai_7_350_npu")
    one, many = (predict_row(evolve(asked, prompt_tokens=count), hardware) for count in (64.0, 1024.0))
    assert one.time_to_first_token_s is not None
    assert many.time_to_first_token_s is not None
    assert LAYERS * LAYER_S < one.time_to_first_token_s < LAYERS * LAYER_S + 0.2
    assert_close(many.time_to_first_token_s, 1024.0 / 403.0, rel=0.1)


@pytest.mark.parametrize(("hardware", "model"), MEASURED)
def test_published_tokens_of_rockchip_npus_are_met(hardware: str, model: str) -> None:
    found = predict_row(row(hardware, model), find_hardware(hardware)).inter_token_latency_s
    assert_close(found, MEASURED[hardware, model], rel=0.2)


def test_an_engine_without_kernels_is_limited_by_the_compiler() -> None:
    with pytest.raises(UnsupportedError, match="does not run rotary"):
        predict_row(row("rk3588_npu", "THUDM/chatglm3-6b", "vllm"), find_hardware("rk3588_npu"))


@pytest.mark.parametrize(
    ("chips", "engine", "precision"),
    [
        (("rk3588_npu", "rk3576_npu"), "rkllm", "int8"),
        (("snapdragon_x_elite",), "genie", "fp16/int4"),
        (("lunar_lake_npu", "meteor_lake_npu"), "openvino_genai", "fp16/int4:row"),
        (("ryzen_ai_7_350_npu",), "fastflowlm", "bf16/q4_1"),
        (("radeon_890m", "ryzen_ai_9_hx_370"), "llamacpp", "bf16/q4_k_m"),
        (("snapdragon_x_elite", "l4"), "", "fp16"),
    ],
)
def test_npus_run_the_engine_of_their_vendor(
    chips: tuple[str, ...], engine: str, precision: str, workspace: Workspace
) -> None:
    answer = workspace.llm("llama-3.2-1b", hardware=chips, batch=1, serving=Serving(prompt=128))
    assert answer.serving.engine == engine
    assert {row.precision for row in answer.rows if row.label.startswith(chips[0])} == {precision}


@pytest.mark.slow
def test_a_chip_whose_compiler_does_not_run_the_passes_is_left_out(joulemap: Run, database: Path) -> None:
    asked = ("llm", "llama-3.2-1b", "rk3588_npu", "--batch", "1", "--db", database)
    both = joulemap(*asked, "l4")
    assert both.returncode == 0
    assert "--engine rkllm" in both.stdout
    refused: tuple[tuple[str, ...], ...] = (
        ("rk3588_npu", "--engine", "vllm"),
        ("rk3568_npu", "--engine", "rkllm"),
        ("rk3568_npu",),
        ("ryzen_ai_9_hx_370", "--engine", "fastflowlm"),  # a CPU of a family, on which only its NPU is served
    )
    for others in refused:
        alone = joulemap("llm", "llama-3.2-1b", *others, "--batch", "1", "--db", database)
        assert (alone.returncode, alone.stdout) == (ExitCode.UNSUPPORTED, "")


def test_the_only_chip_that_can_be_bought_is_compared_with_one_that_cannot(workspace: Workspace) -> None:
    chips = ("ryzen_ai_9_hx_370", "snapdragon_8_elite_cpu")
    answer = workspace.llm("llama-3.2-1b", hardware=chips, batch=1, serving=Serving(prompt=128))
    assert {row.hardware_count for row in answer.winners} == {2}
    assert answer.document()


def test_a_refused_precision_names_the_engine_that_the_chip_has(workspace: Workspace) -> None:
    with pytest.raises(UnsupportedError, match="try `--engine hailort_genai`"):
        workspace.llm("llama-3.2-1b", hardware=("hailo_10h", "hailo_8"), batch=1, serving=Serving(prompt=128))
