"""Operators beyond the zoo: each traces, has the MACs that torch's own counter sees, and is never silently free."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

from joulemap.physics.record.configuration import FLOPS_PER_MAC
from joulemap.physics.record.workload import Workload
from joulemap.trace.module import build_on_meta
from laws.network import Layer, Network
from laws.part import BLOCKS, SIZES, Part
from models import Function, meta, trace

FREE: Final = frozenset({"view", "data_movement"})
"""Kinds without arithmetic."""

UNSEEN: Final = frozenset({
    "cdist", "deformed", "affine_grid", "addbmm", "vectors", "int_mm", "int4 weights", "grouped products",
})  # fmt: skip
"""Parts with products that torch's counter leaves out."""

SIZED_BY_DATA: Final = frozenset({
    "nms", "nms of classes", "unique", "unique_consecutive", "unique_dim", "nonzero", "selected", "bincount", "solve",
    "factors",
})  # fmt: skip
"""Parts that torch does not run without data."""


def assert_nothing_is_free(workload: Workload) -> None:
    for one in workload.operators:
        is_counted = one.mac_count or one.elementwise_count or one.special_count
        assert is_counted or one.kind in FREE or one.kind == "uncounted" or not one.output_element_count, one.aten


@pytest.mark.sample(50)
@pytest.mark.parametrize(
    "part", [one for one in BLOCKS if one.name not in UNSEEN | SIZED_BY_DATA], ids=lambda part: part.name
)
def test_an_operator_has_the_macs_that_torch_counts(part: Part) -> None:
    """Those of the parts of random networks, each with the second of its sizes."""
    network = Network((Layer(part, tuple((name, values[1]) for name, values in SIZES.items())),))
    names: dict[str, Any] = {}
    exec(network.write(2), names)
    with build_on_meta():
        module, inputs = names["net"]()
    workload = network.trace(2)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        module.to("meta").eval()(*(one.to("meta") for one in inputs))
    assert workload.mac_count * FLOPS_PER_MAC == counter.get_total_flops()
    assert {one.operation for one in workload.operators if one.kind == "uncounted"} == set()
    assert_nothing_is_free(workload)


@pytest.mark.parametrize(
    ("function", "inputs", "expected"),
    [
        # 3 x 7 outputs, each 5 x 6 products
        (functional.bilinear, (meta(3, 5), meta(3, 6), meta(7, 5, 6)), 3 * 7 * 5 * 6),
        (lambda t: functional.affine_grid(t, [2, 4, 8, 8], align_corners=False), (meta(2, 2, 3),), 2 * 64 * 6),
        (torch.addbmm, (meta(3, 5), meta(2, 3, 4), meta(2, 4, 5)), 2 * 3 * 4 * 5),
        (torch.vdot, (meta(6), meta(6)), 6),
    ],
)
def test_an_operator_that_torch_leaves_out_has_its_macs(
    function: Callable[..., Tensor], inputs: tuple[Tensor, ...], expected: int
) -> None:
    workload = trace(Function(function), *inputs)
    assert workload.mac_count == expected
    assert all(one.gemm_m * one.gemm_n * one.gemm_k * one.gemm_groups == one.mac_count for one in workload.operators)
    assert_nothing_is_free(workload)


def test_sorting_counts_the_sorted_dimension() -> None:
    for dimension, length in ((0, 8), (1, 2)):
        workload = trace(Function(lambda x, dim=dimension: torch.sort(x, dim)[0]), meta(8, 2))
        assert workload.operators[0].elementwise_count == 16 * (length.bit_length() - 1)


def test_an_embedding_bag_reads_its_rows() -> None:
    ids = torch.zeros(4, 5, dtype=torch.int64, device="meta")
    workload = trace(nn.EmbeddingBag(100, 8, mode="sum", device="meta"), ids)
    (bag,) = (index for index, one in enumerate(workload.operators) if one.operation == "embedding_bag")
    (rows,) = (
        one for one in workload.accesses if one.operator_index == bag and one.role == "weight" and one.item_bytes
    )
    assert rows.byte_count == 4 * 5 * 8 * 4
    assert workload.operators[bag].elementwise_count == 4 * 5 * 8


def test_a_view_in_place_moves_nothing() -> None:
    workload = trace(Function(lambda x: (x + 1).transpose_(0, 1)), meta(6, 4))
    assert [one.kind for one in workload.operators] == ["elementwise", "view"]
