"""Weights that a model makes wide itself: they move as they are stored, in the kernel of their product."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from joulemap.catalog.load import load_catalogue
from joulemap.physics.kernel import form_kernels
from joulemap.physics.pipeline import Evaluator
from joulemap.physics.record.configuration import Configuration
from joulemap.physics.record.workload import Workload
from joulemap.physics.width import Widths
from joulemap.physics.workload import columns_of
from models import patterns, trace

ROWS, COLUMNS, GROUP = 512, 256, 64
COUNT = ROWS * COLUMNS


def buffer(*shape: int, dtype: torch.dtype) -> Tensor:
    return torch.empty(*shape, dtype=dtype, device="meta")


def x(batch: int = 1) -> Tensor:
    return buffer(batch, COLUMNS, dtype=torch.bfloat16)


class Quantized(nn.Module):
    """Buffers by name, and what is made of them and the input."""

    def __init__(self, forward: Callable[[Any, Tensor], Tensor], **buffers: Tensor) -> None:
        super().__init__()
        self.function = forward
        for name, value in buffers.items():
            self.register_buffer(name, value)

    def forward(self, given: Tensor) -> Tensor:
        made: Tensor = self.function(self, given)
        return made


def int8() -> nn.Module:
    return Quantized(
        lambda own, given: functional.linear(given, own.weight.to(given.dtype) * own.scale),
        weight=buffer(ROWS, COLUMNS, dtype=torch.int8),
        scale=buffer(ROWS, 1, dtype=torch.bfloat16),
    )


def fp8() -> nn.Module:
    return Quantized(
        lambda own, given: given @ (own.weight.to(given.dtype) * own.scale).t(),
        weight=buffer(ROWS, COLUMNS, dtype=torch.float8_e4m3fn),
        scale=buffer(ROWS, 1, dtype=torch.bfloat16),
    )


def _unpack(own: Any, given: Tensor) -> Tensor:
    halves = torch.stack((own.weight & 15, own.weight >> 4), dim=-1).view(ROWS, COLUMNS // GROUP, GROUP)
    wide = (halves.to(given.dtype) - own.zero.to(given.dtype)) * own.scale
    return functional.linear(given, wide.view(ROWS, COLUMNS))


def int4() -> nn.Module:
    return Quantized(
        _unpack,
        weight=buffer(ROWS, COLUMNS // 2, dtype=torch.uint8),
        zero=buffer(ROWS, COLUMNS // GROUP, 1, dtype=torch.uint8),
        scale=buffer(ROWS, COLUMNS // GROUP, 1, dtype=torch.bfloat16),
    )


def codebook() -> nn.Module:
    return Quantized(
        lambda own, given: functional.linear(given, own.code[own.weight.long()] * own.scale),
        weight=buffer(ROWS, COLUMNS, dtype=torch.uint8),
        code=buffer(16, dtype=torch.bfloat16),
        scale=buffer(ROWS, 1, dtype=torch.bfloat16),
    )


def convolution() -> nn.Module:
    return Quantized(
        lambda own, given: functional.conv2d(given.view(1, 64, 2, 2), own.weight.to(given.dtype) * own.scale),
        weight=buffer(128, 64, 1, 1, dtype=torch.int8),
        scale=buffer(128, 1, 1, 1, dtype=torch.bfloat16),
    )


STORED = {
    int8: COUNT + ROWS * 2,
    fp8: COUNT + ROWS * 2,
    int4: COUNT // 2 + COUNT // GROUP * 3,
    codebook: COUNT + 32 + ROWS * 2,
    convolution: 128 * 64 + 128 * 2,
}
"""Model -> bytes of its weights, scales and zeros."""


def fused_weights(workload: Workload) -> int:
    return sum(one.fused_byte_count for one in workload.accesses if one.role == "weight")


@pytest.mark.parametrize("build", STORED, ids=lambda one: one.__name__)
def test_the_kernel_of_the_product_reads_what_is_stored(build: Callable[[], nn.Module]) -> None:
    workload = trace(build(), x())
    (pattern,) = patterns(workload)
    assert pattern.startswith("dequantize+")
    assert not any(one.is_foldable for one in workload.operators)
    assert fused_weights(workload) == workload.weight_bytes == STORED[build]
    inner = sum(one.fused_byte_count for one in workload.accesses if one.role != "weight" and not one.is_boundary)
    assert inner == 0
    work = columns_of(workload)
    # whatever the rest runs at, whole numbers and eight bits keep their width
    wide = form_kernels(work, "fp32", "fused").weight_bytes.sum()
    scales = sum(one.byte_count for one in workload.accesses if one.role == "weight" and one.item_bytes)
    assert wide == STORED[build] + scales
    assert Widths(work, "bf16").peak_activation_bytes(is_fused=True) < 4096
    assert form_kernels(work, "bf16", "fused").kernel_count == 1


def test_operator_by_operator_the_wide_matrix_is_written_and_read() -> None:
    work = columns_of(trace(int8(), x()))
    kernels = form_kernels(work, "bf16", "eager")
    assert kernels.kernel_count == 3
    # convert, scale, multiply: bytes at two each
    assert kernels.moved_bytes.tolist() == [
        COUNT + 2 * COUNT, 2 * COUNT + 2 * ROWS + 2 * COUNT, 2 * COUNT + 2 * COLUMNS + 2 * ROWS,
    ]  # fmt: skip
    assert Widths(work, "bf16").peak_activation_bytes(is_fused=False) >= 2 * COUNT


def test_what_follows_the_product_still_follows() -> None:
    both = nn.Sequential(int8(), nn.ReLU(), nn.Linear(ROWS, 8, device="meta", dtype=torch.bfloat16))
    assert patterns(trace(both, x())) == ["dequantize+linear+relu", "linear"]


def test_a_matrix_that_two_products_read_has_a_kernel_of_its_own() -> None:
    def twice(own: Any, given: Tensor) -> Tensor:
        wide = own.weight.to(given.dtype) * own.scale
        return functional.linear(given, wide) + functional.linear(given * 2, wide)

    module = Quantized(
        twice, weight=buffer(ROWS, COLUMNS, dtype=torch.int8), scale=buffer(ROWS, 1, dtype=torch.bfloat16)
    )
    workload = trace(module, x())
    assert not any("dequantize" in pattern for pattern in patterns(workload))
    assert not any(one.is_foldable for one in workload.operators)
    assert fused_weights(workload) == STORED[int8]


def test_what_two_products_share_on_the_way_stays_folded() -> None:
    def halves(own: Any, given: Tensor) -> Tensor:
        scale = torch.exp(own.scale)
        first = functional.linear(given, own.first.to(given.dtype) * scale)
        return first + functional.linear(given, own.second.to(given.dtype) * scale)

    module = Quantized(
        halves,
        first=buffer(ROWS, COLUMNS, dtype=torch.int8),
        second=buffer(ROWS, COLUMNS, dtype=torch.int8),
        scale=buffer(ROWS, 1, dtype=torch.bfloat16),
    )
    workload = trace(module, x())
    assert sum(pattern.startswith("dequantize+linear") for pattern in patterns(workload)) == 2
    assert [one.operation for one in workload.operators if one.is_foldable] == ["exp"]


def test_constants_that_are_no_weights_are_folded() -> None:
    def biased(own: Any, given: Tensor) -> Tensor:
        bias = own.table[own.index].view(1, 1, 16, 16)
        heads = given.view(1, 1, 16, 16)
        return functional.scaled_dot_product_attention(heads, heads, heads, attn_mask=bias)

    module = Quantized(biased, table=buffer(100, dtype=torch.bfloat16), index=buffer(256, dtype=torch.uint8))
    workload = trace(module, x())
    assert [one.operation for one in workload.operators if one.is_foldable and not one.is_view] == ["index"]

    def prepared(own: Any, given: Tensor) -> Tensor:
        return functional.linear(given, own.weight * own.scale)

    float_weights = Quantized(
        prepared, weight=buffer(ROWS, COLUMNS, dtype=torch.bfloat16), scale=buffer(ROWS, 1, dtype=torch.bfloat16)
    )
    assert trace(float_weights, x()).operators[0].is_foldable


@pytest.mark.parametrize("name", ["l4", "xeon_8490h", "tpu_v5e", "kpu_t256"])
def test_a_run_is_that_of_the_same_weights_stored_narrow(name: str) -> None:
    hardware = load_catalogue().find(name)
    plain = nn.Linear(COLUMNS, ROWS, bias=False, dtype=torch.bfloat16, device="meta")
    written, asked = columns_of(trace(int8(), x())), columns_of(trace(plain, x()))
    runs = [
        Evaluator(work).evaluate(hardware, Configuration(hardware=name, precision="bf16", weight_precision=weights))
        for work, weights in ((written, ""), (asked, f"int8:{COLUMNS}"), (asked, ""))
    ]
    by_hand, stored, wide = (int(one.operators.latency_fs.sum()) for one in runs)
    assert runs[0].weight_bytes == runs[1].weight_bytes < runs[2].weight_bytes
    if name != "xeon_8490h":  # weights in its cache save no time, and a core converts them
        assert by_hand <= wide and stored <= wide
    assert runs[0].operators.moved_bytes.sum() == runs[1].operators.moved_bytes.sum()
    lines = np.bincount(runs[0].ledger.operator_index, minlength=3)
    assert (lines[:2] > 0).all()
    assert runs[0].operators.latency_fs.sum() == runs[0].subgraphs.latency_fs.sum()


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["Int8WeightOnlyConfig", "Int8DynamicActivationInt8WeightConfig", "Float8WeightOnlyConfig"]
)
def test_torchao_moves_what_it_stores(name: str) -> None:
    quantization = pytest.importorskip("torchao.quantization")
    model = nn.Sequential(nn.Linear(COLUMNS, ROWS, bias=False), nn.ReLU(), nn.Linear(ROWS, 64, bias=False))
    model = model.to(torch.bfloat16).eval()
    quantization.quantize_(model, getattr(quantization, name)())
    workload = trace(model.to("meta"), x())
    stored = COUNT + 64 * ROWS
    assert sum(pattern.startswith("dequantize+") for pattern in patterns(workload)) == 2
    narrow = [one for one in workload.accesses if one.role == "weight" and not one.item_bytes]
    assert sum(one.fused_byte_count for one in narrow) == stored
    assert stored <= fused_weights(workload) < 1.1 * stored
