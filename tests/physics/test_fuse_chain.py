"""Chains that models write out, and that a compiler makes one kernel of."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from joulemap.physics.fuse import partition
from joulemap.physics.fuse.pattern import name_chain
from joulemap.physics.kernel import form_kernels
from joulemap.physics.record.workload import Edge, Operator, Workload
from joulemap.physics.workload import columns_of
from models import Function, image, meta, patterns, trace

if TYPE_CHECKING:
    from _typeshed import TraceFunction


def rms_norm(x: Tensor, scale: Tensor) -> Tensor:
    return scale * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


def layer_norm(x: Tensor, scale: Tensor) -> Tensor:
    mean = x.mean(-1, keepdim=True)
    variance = (x - mean).pow(2).mean(-1, keepdim=True)
    return (x - mean) / torch.sqrt(variance + 1e-6) * scale


def rotary(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    half = x.shape[-1] // 2
    turned = torch.cat((-x[..., half:], x[..., :half]), dim=-1)
    return x * cosine + turned * sine


def gelu(x: Tensor) -> Tensor:
    return 0.5 * x * (1.0 + torch.tanh(0.797885 * (x + 0.044715 * torch.pow(x, 3.0))))


def softmax(x: Tensor) -> Tensor:
    exponent = torch.exp(x - x.amax(-1, keepdim=True))
    return exponent / exponent.sum(-1, keepdim=True)


CHAINS: dict[str, tuple[Callable[..., Tensor], tuple[tuple[int, ...], ...]]] = {
    "rms_norm": (rms_norm, ((2, 8, 64), (64,))),
    "layer_norm": (layer_norm, ((2, 8, 64), (64,))),
    "rotary": (rotary, ((2, 4, 8, 16), (8, 16), (8, 16))),
    "gelu": (gelu, ((2, 8, 64),)),
    "softmax": (softmax, ((2, 8, 64),)),
    "swiglu": (lambda gate, value: functional.silu(gate) * value, ((2, 8, 64), (2, 8, 64))),
}


def outside_bytes(workload: Workload) -> dict[str, int]:
    """Return what kernels read and write."""
    found = {"input": 0, "weight": 0, "output": 0}
    for access in workload.accesses:
        found[access.role] += access.fused_byte_count
    return found


@pytest.mark.parametrize("name", CHAINS)
def test_a_chain_is_one_kernel_with_its_name(name: str) -> None:
    function, shapes = CHAINS[name]
    workload = trace(Function(function), *(meta(*shape) for shape in shapes))
    assert patterns(workload) == [name]
    # each input is read once and the result written: nothing between is
    inputs = [4 * torch.Size(shape).numel() for shape in shapes]
    largest = max(inputs)
    assert outside_bytes(workload) == {"input": sum(inputs), "weight": 0, "output": largest}


def test_a_chain_between_products_takes_what_leads_to_it() -> None:
    layer = nn.Linear(64, 64, bias=False, device="meta")
    workload = trace(Function(lambda x, s: layer(rms_norm(x + 1.0, s))), meta(2, 8, 64), meta(64))
    assert patterns(workload) == ["add+rms_norm", "linear"]


def test_a_norm_and_a_rotation_of_its_rows_are_one_kernel() -> None:
    workload = trace(
        Function(lambda x, s, c, n: rotary(rms_norm(x, s).transpose(1, 2), c, n)),
        meta(2, 8, 4, 16), meta(16), meta(8, 16), meta(8, 16),
    )  # fmt: skip
    assert len(workload.subgraphs) == 1


def test_joined_channels_go_through_the_norm_that_follows() -> None:
    norm = nn.BatchNorm2d(8, device="meta").eval()
    function = Function(lambda x, y: torch.relu(norm(torch.cat((x, y), dim=1))))
    workload = trace(function, image(1, 3, 8), image(1, 5, 8))
    assert patterns(workload) == ["cat+batch_norm+relu"]


def test_a_pad_takes_what_it_pads() -> None:
    workload = trace(Function(lambda x: functional.pad(torch.relu(x), (1, 1))), meta(2, 8))
    assert patterns(workload) == ["relu+pad"]


def test_a_product_ends_what_leads_to_it() -> None:
    workload = trace(Function(lambda x, w: torch.relu(x) @ w), meta(4, 8), meta(8, 4))
    assert patterns(workload) == ["relu", "matmul"]


def test_a_value_that_leads_around_a_product_is_not_joined_across_it() -> None:
    # tanh(x) is read by the product and by what follows it: in one kernel the product would have to lie inside
    def function(x: Tensor, weight: Tensor) -> Tensor:
        y = torch.tanh(x)
        return (y @ weight).softmax(-1) * y

    assert patterns(trace(Function(function), meta(8, 8), meta(8, 8))) == ["tanh", "matmul+softmax+mul"]


def test_rows_of_two_lengths_are_two_kernels() -> None:
    workload = trace(Function(lambda x: x.softmax(-1).sum(0)), meta(16, 32))
    assert patterns(workload) == ["softmax", "reduce"]


def test_a_few_elements_are_reduced_where_the_sum_is_used() -> None:
    workload = trace(Function(lambda x: torch.relu(x.sum(1)).softmax(-1)), meta(16, 2, 32))
    assert patterns(workload) == ["reduce+relu+softmax"]


def test_rows_are_looked_up_where_they_are_used() -> None:
    table = nn.Embedding(10, 16, device="meta")
    workload = trace(
        Function(lambda ids, s: rms_norm(table(ids), s)), torch.zeros(2, 8, dtype=torch.long, device="meta"), meta(16)
    )
    assert patterns(workload) == ["embedding+rms_norm"]


def test_sorting_is_a_kernel_of_its_own() -> None:
    workload = trace(Function(lambda x: torch.relu(torch.sort(torch.relu(x)).values)), meta(4, 64))
    assert patterns(workload) == ["relu", "sort", "relu"]


def test_what_is_computed_once_is_not_part_of_what_is_computed_every_time() -> None:
    workload = trace(Function(lambda x: x + torch.arange(8, device="meta").float().cos()), meta(4, 8))
    owner = {index: one for one in workload.subgraphs for index in one.operator_indices}
    for subgraph in workload.subgraphs:
        foldable = {workload.operators[index].is_foldable for index in subgraph.operator_indices}
        assert len(foldable) == 1
    # the constant is read, as a compiler reads it that has folded it
    assert any(
        access.fused_byte_count and owner[access.operator_index].pattern == "add" and not access.is_boundary
        for access in workload.accesses
        if access.role == "input"
    )


def test_what_a_kernel_loops_over_rides_on_its_leader() -> None:
    workload = trace(Function(rms_norm), meta(2, 8, 64), meta(64))
    kernels = form_kernels(columns_of(workload), "fp16", "fused")
    assert kernels.kernel_count == 1
    assert int(kernels.rides.sum()) == kernels.work.operator_count - 1


def test_long_patterns_say_how_much_more_there_is() -> None:
    assert name_chain(("exp", "exp", "add")) == "exp+add"
    assert name_chain(tuple("abcdefgh")) == "a+b+c+d+e+3_more"


def test_a_large_graph_is_cut_in_time_that_grows_with_it() -> None:
    def operator(index: int) -> Operator:
        kind = "linear" if index % 7 == 0 else "elementwise"
        return Operator(
            name=str(index), module_path="", operation=kind, kind=kind, aten="", output_shape=(8, 8), dtype="fp32",
            output_element_count=64,
        )  # fmt: skip

    def count_lines(count: int) -> int:
        """Lines that are executed: the same on any machine, however busy."""
        operators = [operator(index) for index in range(count)]
        edges = [
            Edge(producer_index=index - back, consumer_index=index, tensor_index=0)
            for index in range(count)
            for back in (1, 2, 7, 50)
            if back <= index
        ]
        edges += [Edge(producer_index=1, consumer_index=index, tensor_index=0) for index in range(60, count)]
        lines = 0

        def follow(_frame: FrameType, event: str, _argument: object) -> TraceFunction:
            nonlocal lines
            lines += event == "line"
            return follow

        before = sys.gettrace()
        sys.settrace(follow)
        try:
            partition(operators, edges)
        finally:
            sys.settrace(before)
        return lines

    assert count_lines(1000) < 7 * count_lines(250)  # 16 where each pair of operators is looked at


def test_what_a_gate_reduces_does_not_ride_on_its_products() -> None:
    gate = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(8, 2, 1), nn.SiLU(), nn.Conv2d(2, 8, 1), nn.Sigmoid())
    kernels = form_kernels(columns_of(trace(gate.to("meta"), image(1, 8, 6))), "fp16", "fused")
    assert kernels.kernel_count == 1
    assert kernels.work.operation[kernels.rides].tolist() == ["silu", "sigmoid"]
