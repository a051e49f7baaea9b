"""Operators beyond the zoo: each traces, has the MACs that torch's own counter sees, and is never silently free."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

from joulemap.physics.record.configuration import FLOPS_PER_MAC
from joulemap.physics.record.workload import Workload
from joulemap.trace.module import build_on_meta
from models import Function, meta, trace

Case = tuple[Callable[[], nn.Module], tuple[Tensor, ...]]
"""What makes a module, and its inputs."""

FREE = frozenset({"view", "data_movement"})
"""Kinds without arithmetic."""


def ids(*shape: int) -> Tensor:
    return torch.zeros(*shape, dtype=torch.int64, device="meta")


IMAGES = {1: (2, 4, 16), 2: (2, 4, 16, 16), 3: (2, 4, 8, 8, 8)}


def built(make: Callable[[], nn.Module], *inputs: Tensor) -> Case:
    return make, inputs


def called(function: Callable[..., Any], *inputs: Tensor) -> Case:
    return lambda: Function(function), inputs


def build(case: Case) -> tuple[nn.Module, tuple[Tensor, ...]]:
    make, inputs = case
    with build_on_meta():
        return make(), inputs


def windows() -> dict[str, Case]:
    found: dict[str, Case] = {}
    for dimensions, shape in IMAGES.items():
        image = meta(*shape)
        layers: dict[str, tuple[Any, ...]] = {
            "AvgPool": (3, 2, 1), "MaxPool": (3, 2, 1), "LPPool": (2, 2), "AdaptiveAvgPool": (3,),
            "AdaptiveMaxPool": (3,), "Conv": (4, 6, 3, 2, 1), "ConvTranspose": (4, 6, 3, 2), "BatchNorm": (4,),
            "InstanceNorm": (4,),
        }  # fmt: skip
        for name, arguments in layers.items():
            layer = getattr(nn, f"{name}{dimensions}d")
            found[f"{name}{dimensions}d"] = built(partial(layer, *arguments), image)
        grouped = getattr(nn, f"ConvTranspose{dimensions}d")
        found[f"ConvTranspose{dimensions}d grouped"] = built(
            partial(grouped, 4, 8, 3, stride=2, groups=2, output_padding=1, bias=False), image
        )
        for mode in ("constant", "reflect", "replicate", "circular"):
            found[f"pad{dimensions}d {mode}"] = called(
                lambda x, mode=mode: functional.pad(x, (1, 1) * (x.dim() - 2), mode=mode), image
            )
        pool = getattr(functional, f"max_pool{dimensions}d")
        unpool = getattr(functional, f"max_unpool{dimensions}d")
        found[f"max_unpool{dimensions}d"] = called(
            lambda x, pool=pool, unpool=unpool: unpool(*pool(x, 2, return_indices=True), 2), image
        )
    return found


def resampling() -> dict[str, Case]:
    found: dict[str, Case] = {}
    by_mode: dict[str, tuple[int, ...]] = {"linear": (1,), "bilinear": (2,), "bicubic": (2,), "trilinear": (3,)}
    by_mode |= dict.fromkeys(("nearest", "nearest-exact", "area"), (1, 2, 3))
    for mode, dimensions in by_mode.items():
        for dimension in dimensions:
            found[f"upsample {mode} {dimension}d"] = called(
                lambda x, mode=mode: functional.interpolate(x, scale_factor=2, mode=mode), meta(*IMAGES[dimension])
            )
    for mode in ("bilinear", "bicubic"):
        found[f"upsample {mode} antialias"] = called(
            lambda x, mode=mode: functional.interpolate(x, size=(7, 7), mode=mode, antialias=True), meta(*IMAGES[2])
        )
    for mode, dimension in (("bilinear", 2), ("nearest", 2), ("bicubic", 2), ("bilinear", 3), ("nearest", 3)):
        found[f"grid_sample {mode} {dimension}d"] = called(
            lambda x, grid, mode=mode: functional.grid_sample(x, grid, mode=mode, align_corners=False),
            meta(*IMAGES[dimension]),
            meta(2, *(5,) * dimension, dimension),
        )
    found["pixel_shuffle"] = built(lambda: nn.PixelShuffle(2), meta(*IMAGES[2]))
    found["pixel_unshuffle"] = built(lambda: nn.PixelUnshuffle(2), meta(*IMAGES[2]))
    found["unfold"] = built(lambda: nn.Unfold(3), meta(*IMAGES[2]))
    found["fold"] = built(lambda: nn.Fold((4, 4), 2), meta(2, 16, 9))
    return found


def recurrent() -> dict[str, Case]:
    found: dict[str, Case] = {}
    for name in ("LSTM", "GRU", "RNN"):
        layer, cell = getattr(nn, name), getattr(nn, f"{name}Cell")
        found[name] = built(partial(layer, 5, 7), meta(3, 2, 5))
        found[f"{name} both ways"] = built(
            partial(layer, 5, 7, num_layers=2, bidirectional=True, batch_first=True), meta(2, 3, 5)
        )
        found[f"{name}Cell"] = built(partial(cell, 5, 7), meta(2, 5))
    found["LSTM projected"] = built(lambda: nn.LSTM(5, 7, proj_size=3), meta(3, 2, 5))
    return found


def attention() -> dict[str, Case]:
    attend = functional.scaled_dot_product_attention
    query, key = meta(2, 4, 6, 8), meta(2, 4, 9, 8)
    return {
        "sdpa": called(attend, query, key, meta(2, 4, 9, 5)),
        "sdpa causal": called(
            lambda q, k, v: attend(q, k, v, is_causal=True), query, meta(2, 4, 6, 8), meta(2, 4, 6, 8)
        ),
        "sdpa mask": called(attend, query, key, meta(2, 4, 9, 8), meta(6, 9)),
        "sdpa grouped": called(
            lambda q, k, v: attend(q, k, v, enable_gqa=True), query, meta(2, 2, 9, 8), meta(2, 2, 9, 8)
        ),
        "sdpa three dimensions": called(attend, meta(2, 6, 8), meta(2, 9, 8), meta(2, 9, 8)),
        "sdpa broadcast": called(attend, query, meta(1, 4, 9, 8), meta(1, 4, 9, 8)),
        "MultiheadAttention": built(
            lambda: nn.MultiheadAttention(8, 2, batch_first=True), meta(2, 5, 8), meta(2, 5, 8), meta(2, 5, 8)
        ),
        "TransformerEncoderLayer": built(lambda: nn.TransformerEncoderLayer(8, 2, 16), meta(5, 2, 8)),
        "TransformerDecoderLayer": built(lambda: nn.TransformerDecoderLayer(8, 2, 16), meta(5, 2, 8), meta(4, 2, 8)),
    }


def products_and_orders() -> dict[str, Case]:
    equations = {
        "ij,jk->ik": ((3, 4), (4, 5)), "bhqd,bhkd->bhqk": ((2, 3, 4, 5), (2, 3, 6, 5)),
        "bij,bjk->bik": ((2, 3, 4), (2, 4, 5)), "i,j->ij": ((3,), (4,)), "ij->j": ((3, 4),),
        "bn,anm,bm->ba": ((2, 3), (4, 3, 5), (2, 5)), "bhqk,bkhd->bqhd": ((2, 3, 4, 6), (2, 6, 3, 5)),
    }  # fmt: skip
    found = {
        f"einsum {equation}": called(
            lambda *operands, equation=equation: torch.einsum(equation, *operands), *(meta(*shape) for shape in shapes)
        )
        for equation, shapes in equations.items()
    }
    for name in ("cumsum", "cumprod", "cummax", "cummin", "logcumsumexp", "sort", "argsort", "median"):
        found[name] = called(lambda x, name=name: getattr(x, name)(0), meta(6, 4))
    for name in ("topk", "kthvalue"):
        found[name] = called(lambda x, name=name: getattr(x, name)(2, 0), meta(6, 4))
    found["in place"] = called(lambda x: (x + 1).floor_().lerp_(x, 0.5).transpose_(0, 1), meta(6, 4))
    found["scatter_add"] = called(lambda x: x.scatter_add(1, ids(6, 4), x), meta(6, 4))
    found["weight_norm"] = built(lambda: nn.utils.parametrizations.weight_norm(nn.Linear(4, 5)), meta(6, 4))
    for mode in ("sum", "mean", "max"):
        found[f"EmbeddingBag {mode}"] = built(partial(nn.EmbeddingBag, 100, 8, mode=mode), ids(4, 5))
    found["EmbeddingBag offsets"] = built(lambda: nn.EmbeddingBag(100, 8, mode="sum"), ids(20), ids(4))
    return found


CASES = windows() | resampling() | recurrent() | attention() | products_and_orders()

UNSEEN: dict[str, tuple[Case, int]] = {
    # 3 x 7 outputs, each 5 x 6 products
    "Bilinear": (built(lambda: nn.Bilinear(5, 6, 7), meta(3, 5), meta(3, 6)), 3 * 7 * 5 * 6),
    "affine_grid": (
        called(lambda t: functional.affine_grid(t, [2, 4, 8, 8], align_corners=False), meta(2, 2, 3)),
        2 * 64 * 6,
    ),
    "addbmm": (called(torch.addbmm, meta(3, 5), meta(2, 3, 4), meta(2, 4, 5)), 2 * 3 * 4 * 5),
    "vdot": (called(torch.vdot, meta(6), meta(6)), 6),
}
"""What torch's counter leaves out -> MACs by hand."""


def uncounted(workload: Workload) -> set[str]:
    return {one.operation for one in workload.operators if one.kind == "uncounted"}


def assert_nothing_is_free(workload: Workload) -> None:
    for one in workload.operators:
        is_counted = one.mac_count or one.elementwise_count or one.special_count
        assert is_counted or one.kind in FREE or one.kind == "uncounted" or not one.output_element_count, one.aten


@pytest.mark.sample(50)
@pytest.mark.parametrize("name", CASES)
def test_an_operator_has_the_macs_that_torch_counts(name: str) -> None:
    module, inputs = build(CASES[name])
    workload = trace(module, *inputs)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        module.to("meta").eval()(*inputs)
    assert workload.mac_count * FLOPS_PER_MAC == counter.get_total_flops()
    assert uncounted(workload) == set()
    assert_nothing_is_free(workload)


@pytest.mark.parametrize("name", UNSEEN)
def test_an_operator_that_torch_leaves_out_has_its_macs(name: str) -> None:
    case, expected = UNSEEN[name]
    module, inputs = build(case)
    workload = trace(module, *inputs)
    assert workload.mac_count == expected
    assert all(one.gemm_m * one.gemm_n * one.gemm_k * one.gemm_groups == one.mac_count for one in workload.operators)
    assert_nothing_is_free(workload)


def test_sorting_counts_the_sorted_dimension() -> None:
    for dimension, length in ((0, 8), (1, 2)):
        workload = trace(Function(lambda x, dim=dimension: torch.sort(x, dim)[0]), meta(8, 2))
        assert workload.operators[0].elementwise_count == 16 * (length.bit_length() - 1)


def test_an_embedding_bag_reads_its_rows() -> None:
    workload = trace(build(CASES["EmbeddingBag sum"])[0], ids(4, 5))
    (bag,) = (index for index, one in enumerate(workload.operators) if one.operation == "embedding_bag")
    (rows,) = (
        one for one in workload.accesses if one.operator_index == bag and one.role == "weight" and one.item_bytes
    )
    assert rows.byte_count == 4 * 5 * 8 * 4
    assert workload.operators[bag].elementwise_count == 4 * 5 * 8


def test_a_view_in_place_moves_nothing() -> None:
    workload = trace(Function(lambda x: (x + 1).transpose_(0, 1)), meta(6, 4))
    assert [one.kind for one in workload.operators] == ["elementwise", "view"]
