"""Several devices of llama.cpp: each has its own layers, so tokens are no faster, and passes of a prompt overlap.

`several_devices.csv` has the rates of tokens after 1,024 others and of prompts of 4,096 tokens on 2 to 8 boards, Llama
3 8B and 70B with llama.cpp of May 2024. Source: XiongjieDai/GPU-Benchmarks-on-LLM-Inference, commit aa72e0e. No number
was fitted to these rows.
"""

from __future__ import annotations

import csv
from pathlib import Path
from statistics import median

import attrs
import pytest

import chip
from compare import assert_close
from deployed import deploy_decoder, known_decoder
from joulemap.catalog.load import find_hardware
from joulemap.plan.anchor import anchor_hardware
from joulemap.wing.decoder.engine.stack import find_stack
from joulemap.wing.llm.row import Prediction, ServingRow
from joulemap.wing.llm.serving.deployment import Deployment
from joulemap.wing.llm.serving.predict import find_deployment, predict_together
from joulemap.wing.llm.serving.surface import Passes
from joulemap.wing.llm.step import predict_step

MEASURED = Path(__file__).parents[1] / "data" / "llm" / "several_devices.csv"


def predict_measured(scope: str, prompt_tokens: float, output_tokens: float) -> list[tuple[Prediction, dict[str, str]]]:
    """Return (prediction, row of the file) of every row for a scope."""
    with MEASURED.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    asked = [
        (
            ServingRow(
                source="gpu_benchmarks",
                hardware=row["hardware"],
                model=f"meta-llama/Meta-Llama-3-{row['model']}",
                scope=scope,
                engine="llama.cpp",
                date="2024-05",
                device_count=int(row["device_count"]),
                weight_precision="gguf_q4_k_m" if row["weight_precision"] == "Q4_K_M" else "fp16",
                batch=1.0,
                prompt_tokens=prompt_tokens,
                output_tokens=output_tokens,
            ),
            find_hardware(row["hardware"]),
        )
        for row in rows
    ]
    predicted = predict_together(asked)
    assert all(isinstance(one, Prediction) for one in predicted)
    return [(one, row) for one, row in zip(predicted, rows, strict=True) if isinstance(one, Prediction)]


@pytest.mark.slow
def test_published_rates_of_several_boards_are_met() -> None:
    """The figures of docs/serving.md; with a part of every layer on each board, they are 60 and 37 %."""
    tokens = [
        (one.inter_token_latency_s or 0.0) * float(row["tokens_per_s"]) - 1.0
        for one, row in predict_measured("decode_step", prompt_tokens=0.0, output_tokens=1024.0)
    ]
    prompts = [
        (one.time_to_first_token_s or 0.0) * float(row["prompt_tokens_per_s"]) / 4096.0 - 1.0
        for one, row in predict_measured("prefill_step", prompt_tokens=4096.0, output_tokens=0.0)
    ]
    assert len(tokens) == len(prompts) == 48
    assert_close(median(map(abs, tokens)), 0.047, rel=0.02)
    assert_close(median(map(abs, prompts)), 0.117, rel=0.02)


def deploy(stages: int) -> Deployment:
    """Return Llama 3.1 8B on llama.cpp, divided into stages of one board."""
    decoder = known_decoder("llama-3.1-8b")
    return deploy_decoder(
        decoder,
        find_hardware("rtx_4090"),
        find_stack("llama.cpp"),
        precision="fp16",
        weight_precision="q4_k_m",
        stages=stages,
    )


def test_a_board_that_waits_for_other_stages_holds_its_cap_in_the_mean_alone() -> None:
    """Two of three boards wait at any time, so a cap that slows one board leaves the tokens of three as they are.

    Six RTX 3090 under 350, 250 and 150 W make 72.6, 70.7 and 62.6 tokens a second (llmgarage.ai).
    """
    one, three = (
        attrs.evolve(deploy(stages), hardware=anchor_hardware(find_hardware("rtx_3090"))) for stages in (1, 3)
    )
    token, prompt = Passes.of(1.0, context=512.0), Passes.of(0.0, tokens=0.0, chunk=512.0)
    for full in (one, three):
        capped = attrs.evolve(full, hardware=chip.bound(full.hardware, "200W", "board"))
        slower = float(capped.price(token).seconds / full.price(token).seconds)
        assert slower > 1.8 if full is one else slower < 1.02
        assert capped.price(prompt).seconds > 1.2 * full.price(prompt).seconds
        power_w = float(capped.price(token).joules / capped.price(token).seconds)
        assert power_w <= 200.0 * full.stages


def test_four_passes_of_a_prompt_overlap_and_no_more() -> None:
    """k passes of s stages take (k + s - 1) / (k s) of the time of stages in turn; of 16 passes, 4 are one group."""
    for stages, passes, share in ((2, 1, 1.0), (2, 4, 5 / 8), (4, 4, 7 / 16), (4, 2, 5 / 8), (2, 16, 5 / 8)):
        one = deploy(stages)
        prompt = Passes.of(0.0, tokens=0.0, chunk=512.0, chunk_context=1024.0, following=float(passes))
        alone = attrs.evolve(prompt, following=prompt.following * 0.0 + 1.0)
        assert_close(float(one.price(prompt).seconds / one.price(alone).seconds), share)


def test_a_run_that_states_its_division_is_predicted_so() -> None:
    row = ServingRow(
        source="us", hardware="rtx_4090", model="llama-3.1-8b", scope="decode_step", engine="llama.cpp",
        weight_precision="gguf_q4_k_m", device_count=2, output_tokens=128.0,
    )  # fmt: skip
    chip = find_hardware("rtx_4090")
    for stages in (None, 2):
        one = find_deployment(attrs.evolve(row, pipeline_parallel=stages), chip)
        assert (one.devices, one.stages) == (1, 2)
    one = find_deployment(attrs.evolve(row, tensor_parallel=2), chip)
    assert (one.devices, one.stages) == (2, 1)


def test_devices_of_llama_cpp_are_stages_and_those_of_vllm_are_not() -> None:
    assert find_stack("llama.cpp").divide(4, 1) == (1, 4)
    assert find_stack("llamafile").divide(2, 2) == (1, 4)
    assert find_stack("transformers").divide(4, 1) == (1, 4)
    assert find_stack("vllm").divide(4, 2) == (4, 2)
    passes = Passes.of(1.0, context=1024.0)
    several, stages = (
        predict_step("llama-3.1-8b", "rtx_4090", engine="llamacpp", devices=devices, pipeline_devices=2 // devices)
        for devices in (2, 1)
    )
    assert several.price(passes).latency_s == stages.price(passes).latency_s
