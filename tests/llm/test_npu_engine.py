"""NPUs outside data centers run the engine of their vendor, which the compiler of other networks does not limit."""

from __future__ import annotations

from pathlib import Path

import pytest

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
        (("snapdragon_x_elite", "l4"), "", "fp16"),
    ],
)
def test_npus_run_the_engine_of_their_vendor(
    chips: tuple[str, ...], engine: str, precision: str, workspace: Workspace
) -> None:
    answer = workspace.llm("llama-3.2-1b", hardware=chips, batch=1, serving=Serving(prompt=128))
    assert answer.serving.engine == engine
    assert {row.precision for row in answer.rows if row.label.startswith(chips[0])} == {precision}


def test_a_chip_whose_compiler_does_not_run_the_passes_is_left_out(joulemap: Run, database: Path) -> None:
    asked = ("llm", "llama-3.2-1b", "rk3588_npu", "--batch", "1", "--db", database)
    both = joulemap(*asked, "l4")
    assert both.returncode == 0
    assert "--engine rkllm" in both.stdout
    for others in (("rk3588_npu", "--engine", "vllm"), ("rk3568_npu", "--engine", "rkllm"), ("rk3568_npu",)):
        alone = joulemap("llm", "llama-3.2-1b", *others, "--batch", "1", "--db", database)
        assert (alone.returncode, alone.stdout) == (ExitCode.UNSUPPORTED, "")
