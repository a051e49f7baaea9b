"""Counts of single operators, each worked out by hand beside the assertion."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from joulemap.physics.record.workload import Operator
from joulemap.trace.formula import Call, Cost, formula
from models import Function, meta, trace

Gemm = tuple[int, int, int, int]


def operators(function: Callable[..., Tensor], *inputs: Tensor) -> list[Operator]:
    return [one for one in trace(Function(function), *inputs).operators if not one.is_view]


def only(function: Callable[..., Tensor], *inputs: Tensor) -> Operator:
    (found,) = operators(function, *inputs)
    return found


def gemm(one: Operator) -> Gemm:
    return (one.gemm_m, one.gemm_n, one.gemm_k, one.gemm_groups)


@attrs.frozen
class Expected:
    """What one operator must count."""

    kind: str
    macs: int
    elementwise: int
    gemm: Gemm


CONVOLUTIONS: dict[str, tuple[Callable[..., Tensor], tuple[Tensor, ...], Expected]] = {
    # 8 + 2 - 3 over stride 2 gives 4 x 4 outputs; 27 = 3 channels x 9 taps
    "stride and padding": (
        lambda x, w: functional.conv2d(x, w, stride=2, padding=1),
        (meta(1, 3, 8, 8), meta(6, 3, 3, 3)),
        Expected("conv", 6 * 16 * 27, 0, (16, 6, 27, 1)),
    ),
    "a bias adds once per output": (
        lambda x, w, b: functional.conv2d(x, w, b, stride=2, padding=1),
        (meta(1, 3, 8, 8), meta(6, 3, 3, 3), meta(6)),
        Expected("conv", 6 * 16 * 27, 96, (16, 6, 27, 1)),
    ),
    "batch multiplies the rows": (
        lambda x, w: functional.conv2d(x, w),
        (meta(5, 3, 4, 4), meta(6, 3, 1, 1)),
        Expected("conv", 5 * 16 * 6 * 3, 0, (80, 6, 3, 1)),
    ),
    "without a batch dimension": (
        lambda x, w: functional.conv2d(x, w),
        (meta(3, 8, 8), meta(6, 3, 3, 3)),
        Expected("conv", 6 * 36 * 27, 0, (36, 6, 27, 1)),
    ),
    "dilation widens the window, not the work": (
        lambda x, w: functional.conv2d(x, w, dilation=2),
        (meta(1, 3, 8, 8), meta(6, 3, 3, 3)),
        Expected("conv", 6 * 16 * 27, 0, (16, 6, 27, 1)),
    ),
    "padding by name": (
        lambda x, w: functional.conv2d(x, w, padding="same"),
        (meta(1, 3, 8, 8), meta(6, 3, 3, 3)),
        Expected("conv", 6 * 64 * 27, 0, (64, 6, 27, 1)),
    ),
    # each of 2 groups: 2 channels in x 9 taps, 3 channels out
    "groups": (
        lambda x, w: functional.conv2d(x, w, groups=2),
        (meta(1, 4, 5, 5), meta(6, 2, 3, 3)),
        Expected("grouped_conv", 6 * 9 * 18, 0, (9, 3, 18, 2)),
    ),
    "depthwise": (
        lambda x, w: functional.conv2d(x, w, groups=4),
        (meta(1, 4, 5, 5), meta(4, 1, 3, 3)),
        Expected("depthwise_conv", 4 * 9 * 9, 0, (9, 1, 9, 4)),
    ),
    "depthwise with a multiplier of two": (
        lambda x, w: functional.conv2d(x, w, groups=4),
        (meta(1, 4, 5, 5), meta(8, 1, 3, 3)),
        Expected("depthwise_conv", 8 * 9 * 9, 0, (9, 2, 9, 4)),
    ),
    "one dimension": (
        lambda x, w: functional.conv1d(x, w),
        (meta(2, 3, 10), meta(4, 3, 3)),
        Expected("conv", 2 * 4 * 8 * 9, 0, (16, 4, 9, 1)),
    ),
    "three dimensions": (
        lambda x, w: functional.conv3d(x, w),
        (meta(1, 2, 4, 4, 4), meta(3, 2, 2, 2, 2)),
        Expected("conv", 3 * 27 * 16, 0, (27, 3, 16, 1)),
    ),
    # every input pixel of 9 meets 6 x 4 weights in each of 4 channels; 6 x 6 outputs
    "transposed": (
        lambda x, w, b: functional.conv_transpose2d(x, w, b, stride=2),
        (meta(1, 4, 3, 3), meta(4, 6, 2, 2), meta(6)),
        Expected("conv", 36 * 24, 216, (9, 24, 4, 1)),
    ),
    "transposed in groups": (
        lambda x, w: functional.conv_transpose2d(x, w, stride=2, groups=2),
        (meta(1, 4, 3, 3), meta(4, 3, 2, 2)),
        Expected("grouped_conv", 36 * 12, 0, (9, 12, 2, 2)),
    ),
}

PRODUCTS: dict[str, tuple[Callable[..., Tensor], tuple[Tensor, ...], Expected]] = {
    "linear": (
        lambda x, w: functional.linear(x, w),
        (meta(5, 8), meta(16, 8)),
        Expected("linear", 640, 0, (5, 16, 8, 1)),
    ),
    "linear of a sequence, with a bias": (
        lambda x, w, b: functional.linear(x, w, b),
        (meta(2, 5, 8), meta(16, 8), meta(16)),
        Expected("linear", 1280, 160, (10, 16, 8, 1)),
    ),
    "matmul by a matrix joins the batch": (
        torch.matmul,
        (meta(2, 5, 8), meta(8, 7)),
        Expected("matmul", 560, 0, (10, 7, 8, 1)),
    ),
    "matmul by a vector": (torch.matmul, (meta(5, 8), meta(8)), Expected("matmul", 40, 0, (5, 1, 8, 1))),
    "vector by a stack of matrices": (
        torch.matmul,
        (meta(8), meta(2, 8, 7)),
        Expected("matmul", 112, 0, (1, 7, 8, 2)),
    ),
    "dot": (torch.dot, (meta(8), meta(8)), Expected("matmul", 8, 0, (1, 1, 8, 1))),
    "bmm": (torch.bmm, (meta(2, 5, 8), meta(2, 8, 7)), Expected("matmul", 560, 0, (5, 7, 8, 2))),
    "addmm": (
        torch.addmm,
        (meta(5, 7), meta(5, 8), meta(8, 7)),
        Expected("matmul", 280, 35, (5, 7, 8, 1)),
    ),
    "baddbmm": (
        torch.baddbmm,
        (meta(2, 5, 7), meta(2, 5, 8), meta(2, 8, 7)),
        Expected("matmul", 560, 70, (5, 7, 8, 2)),
    ),
}

WITH_MACS = {**CONVOLUTIONS, **PRODUCTS}


@pytest.mark.parametrize("case", WITH_MACS)
def test_macs_elementwise_and_gemm_view(case: str) -> None:
    function, inputs, expected = WITH_MACS[case]
    found = only(function, *inputs)
    assert Expected(found.kind, found.mac_count, found.elementwise_count, gemm(found)) == expected


def test_a_product_that_broadcasts_copies_its_operands() -> None:
    # six products; neither operand has a view of six matrices one behind the other
    left, right, product = operators(torch.matmul, meta(2, 1, 5, 8), meta(3, 8, 7))
    assert [one.kind for one in (left, right)] == ["data_movement"] * 2
    assert (left.output_element_count, right.output_element_count) == (6 * 5 * 8, 6 * 8 * 7)
    assert product.mac_count == 6 * 5 * 7 * 8
    assert gemm(product) == (5, 7, 8, 6)


SIMPLE: dict[str, tuple[Callable[..., Tensor], tuple[Tensor, ...], str, int, int]] = {
    # y = a x + b on 96 elements
    "batch norm": (
        lambda x, m, v: functional.batch_norm(x, m, v),
        (meta(2, 3, 4, 4), meta(3), meta(3)),
        "batch_norm",
        192,
        0,
    ),
    # eight operations on 80 elements, one rsqrt for each of 10 rows
    "layer norm": (lambda x: functional.layer_norm(x, (8,)), (meta(2, 5, 8),), "normalization", 640, 10),
    "layer norm over two dimensions": (
        lambda x: functional.layer_norm(x, (5, 8)),
        (meta(2, 5, 8),),
        "normalization",
        640,
        2,
    ),
    # 3 samples x 2 groups
    "group norm": (lambda x: functional.group_norm(x, 2), (meta(3, 4, 2, 2),), "normalization", 384, 6),
    # multiply, add, multiply, multiply
    "rms norm": (lambda x: functional.rms_norm(x, (8,)), (meta(2, 5, 8),), "normalization", 320, 10),
    # 3 samples x 4 channels
    "instance norm": (lambda x: functional.instance_norm(x), (meta(3, 4, 2, 2),), "normalization", 384, 12),
    "softmax": (lambda x: functional.softmax(x, dim=-1), (meta(2, 5),), "softmax", 40, 10),
    # 8 x 8 to 4 x 4, nine comparisons each
    "max pool": (
        lambda x: functional.max_pool2d(x, 3, stride=2, padding=1),
        (meta(1, 2, 8, 8),),
        "pool",
        288,
        0,
    ),
    # four additions and one multiplication for each of 8 outputs
    "average pool": (lambda x: functional.avg_pool2d(x, 2), (meta(1, 2, 4, 4),), "pool", 40, 0),
    # 32 inputs added once, 2 outputs multiplied
    "global average pool": (
        lambda x: functional.adaptive_avg_pool2d(x, 1),
        (meta(1, 2, 4, 4),),
        "reduction",
        34,
        0,
    ),
    "relu": (torch.relu, (meta(2, 8),), "elementwise", 16, 0),
    "relu6": (functional.relu6, (meta(2, 8),), "elementwise", 32, 0),
    "gelu": (functional.gelu, (meta(2, 8),), "elementwise", 64, 16),
    "silu": (functional.silu, (meta(2, 8),), "elementwise", 48, 16),
    "hardswish": (functional.hardswish, (meta(2, 8),), "elementwise", 80, 0),
    "sigmoid": (torch.sigmoid, (meta(2, 8),), "elementwise", 32, 16),
    "one bound": (lambda x: x.clamp(min=0.0), (meta(2, 8),), "elementwise", 16, 0),
    "two bounds": (lambda x: x.clamp(min=0.0, max=1.0), (meta(2, 8),), "elementwise", 32, 0),
    "a cube is two products": (lambda x: x**3, (meta(2, 8),), "elementwise", 32, 0),
    "a broken power is exp and log": (lambda x: x**2.5, (meta(2, 8),), "elementwise", 0, 32),
    "prelu": (lambda x, w: functional.prelu(x, w), (meta(2, 8), meta(1)), "elementwise", 32, 0),
    "log sigmoid": (functional.logsigmoid, (meta(2, 8),), "elementwise", 32, 16),
    "square": (torch.square, (meta(2, 8),), "elementwise", 16, 0),
    "tanh": (torch.tanh, (meta(2, 8),), "elementwise", 0, 16),
    "add broadcasts to its output": (torch.add, (meta(2, 8), meta(8)), "elementwise", 16, 0),
    "mean": (lambda x: x.mean(dim=1), (meta(2, 8),), "reduction", 18, 0),
    # 7 = 4 multiplications and 3 additions of the four taps
    "bilinear upsampling": (
        lambda x: functional.interpolate(x, scale_factor=2, mode="bilinear"),
        (meta(1, 1, 2, 2),),
        "elementwise",
        112,
        0,
    ),
    "nearest upsampling only moves": (
        lambda x: functional.interpolate(x, scale_factor=2, mode="nearest"),
        (meta(1, 1, 2, 2),),
        "data_movement",
        0,
        0,
    ),
    "concatenation only moves": (
        lambda x, y: torch.cat([x, y]),
        (meta(2, 8), meta(3, 8)),
        "data_movement",
        0,
        0,
    ),
}


@pytest.mark.parametrize("case", SIMPLE)
def test_elementwise_and_special_counts(case: str) -> None:
    function, inputs, kind, elementwise, special = SIMPLE[case]
    found = only(function, *inputs)
    assert (found.kind, found.elementwise_count, found.special_count) == (kind, elementwise, special)
    assert (found.mac_count, gemm(found)) == (0, (0, 0, 0, 0))


def test_a_pool_knows_its_window() -> None:
    assert only(lambda x: functional.max_pool2d(x, (3, 2)), meta(1, 2, 8, 8)).tap_count == 6


def test_einsum_counts_its_contraction() -> None:
    found = operators(lambda q, k: torch.einsum("bqd,bkd->bqk", q, k), meta(2, 5, 8), meta(2, 7, 8))
    assert sum(one.mac_count for one in found) == 2 * 5 * 7 * 8


def test_a_second_formula_for_an_operator_is_refused() -> None:
    def other(_call: Call) -> Cost:
        return Cost(kind="elementwise", operation="other")

    with pytest.raises(ValueError, match="the operator conv2d has two formulas"):
        formula("conv2d")(other)
