"""Products of int8, fp8 and packed weights: MACs as of any other, bytes at the width of their operands."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from joulemap.physics.kernel import form_kernels
from joulemap.physics.record.workload import Operator, Workload
from joulemap.physics.workload import columns_of
from models import Function, trace

M, N, K = 32, 48, 64
FP8 = torch.float8_e4m3fn


def meta(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.empty(shape, device="meta", dtype=dtype)


def columns_first(rows: int, columns: int, dtype: torch.dtype) -> Tensor:
    """Return a matrix laid out by columns, as a weight that is transposed."""
    return meta(columns, rows, dtype=dtype).t()


def only(function: Callable[..., Tensor], *inputs: Tensor) -> tuple[Workload, Operator]:
    workload = trace(Function(function), *inputs)
    (found,) = (one for one in workload.operators if not one.is_view)
    return workload, found


CASES: dict[str, tuple[Callable[..., Tensor], tuple[Tensor, ...], int]] = {
    "int8": (torch._int_mm, (meta(M, K, dtype=torch.int8), meta(K, N, dtype=torch.int8)), 0),
    # two multiplications by scales
    "fp8": (
        lambda a, b, x, y: torch._scaled_mm(a, b, x, y, out_dtype=torch.bfloat16),
        (meta(M, K, dtype=FP8), columns_first(K, N, FP8), meta(), meta()),
        2 * M * N,
    ),
    "fp8 with a bias": (
        lambda a, b, x, y, bias: torch._scaled_mm(a, b, x, y, bias=bias, out_dtype=torch.bfloat16),
        (meta(M, K, dtype=FP8), columns_first(K, N, FP8), meta(), meta(), meta(N, dtype=torch.bfloat16)),
        3 * M * N,
    ),
    "int8 weights": (
        torch._weight_int8pack_mm,
        (meta(M, K, dtype=torch.bfloat16), meta(N, K, dtype=torch.int8), meta(N, dtype=torch.bfloat16)),
        M * N,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_macs_are_those_of_the_shape(name: str) -> None:
    function, inputs, elementwise = CASES[name]
    _, one = only(function, *inputs)
    assert one.mac_count == M * N * K
    assert (one.gemm_m, one.gemm_n, one.gemm_k, one.gemm_groups) == (M, N, K, 1)
    assert one.elementwise_count == elementwise


@pytest.mark.parametrize("precision", ["bf16", "fp32"])
@pytest.mark.parametrize("name", ["int8", "fp8"])
def test_operands_of_one_byte_move_one_byte_at_every_precision(name: str, precision: str) -> None:
    function, inputs, _ = CASES[name]
    workload, _ = only(function, *inputs)
    kernels = form_kernels(columns_of(workload), precision, "fused")
    scales = 8 * {"bf16": 0.5, "fp32": 1.0}[precision] if name == "fp8" else 0.0
    assert float(kernels.input_bytes.sum()) == M * K + K * N + scales


def test_scaled_groups_are_counted_as_groups() -> None:
    def forward(rows: Tensor, weights: Tensor, x: Tensor, y: Tensor, ends: Tensor) -> Tensor:
        return torch._scaled_grouped_mm(rows, weights.transpose(1, 2), x, y, ends, out_dtype=torch.bfloat16)

    _, one = only(
        forward,
        meta(64, K, dtype=FP8),
        meta(4, N, K, dtype=FP8),
        meta(64),
        meta(4, N),
        meta(4, dtype=torch.int32),
    )
    assert one.mac_count == 64 * N * K
    assert (one.gemm_m, one.gemm_n, one.gemm_k, one.gemm_groups) == (16, N, K, 4)
    assert one.elementwise_count == 2 * 64 * N
