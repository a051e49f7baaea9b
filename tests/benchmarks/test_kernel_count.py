"""Our kernels beside those of torch's own compiler."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest
from torch import nn

from models import ConvBlock, Depthwise, image, trace

ROOT = Path(__file__).parents[2]


@pytest.fixture(name="script", scope="module")
def _script() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "benchmarks" / "kernel_count.py"))


def test_what_follows_a_product_is_a_launch_of_its_own(script: dict[str, Any]) -> None:
    assert script["count_ours"](trace(ConvBlock(), image(1, 3, 8))) == (1, 2)
    assert script["count_ours"](trace(Depthwise(), image(1, 8, 6))) == (2, 3)


def test_a_gate_starts_its_reduction_and_both_of_its_products(script: dict[str, Any]) -> None:
    gate = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(8, 2, 1), nn.SiLU(), nn.Conv2d(2, 8, 1), nn.Sigmoid()).to(
        "meta"
    )
    # mean, two convolutions, and what follows them
    assert script["count_ours"](trace(gate, image(1, 8, 6))) == (1, 4)


def test_calls_of_a_program_are_counted(script: dict[str, Any]) -> None:
    program = """
        buf0 = empty_strided_cpu((32, 64), (64, 1), torch.float32)
        cpp_fused_add_0(arg0_1, buf0)
        extern_kernels.mm(buf0, reinterpret_tensor(arg1_1, (64, 64), (1, 64), 0), out=buf1)
        # Source Nodes: [attention], Original ATen: [aten.mm(]
        buf2 = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default(buf1, buf1, buf1)
        assert_size_stride(buf2, (32, 64), (64, 1), 'torch.ops.aten.mm.default')
        buf3 = buf2[0]
"""
    assert len(script["CALLS"].findall(program)) == 3


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        *("resnet18", "mobilenet_v2", "vit_b_16", pytest.param("swin_t", marks=pytest.mark.long), "convnext_tiny"),
        *("bert", "gpt2", "llama", "qwen3", "t5", "mixtral"),
    ],
)
def test_launches_are_within_a_quarter_of_inductors(script: dict[str, Any], name: str) -> None:
    if name in script["TRANSFORMERS"]:
        pytest.importorskip("transformers")
    assert 0.75 <= script["count"](name).ratio <= 1.25
