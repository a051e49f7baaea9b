"""Which operators run together, what crosses their kernels, and how a total is split without loss."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st

from compare import assert_close
from joulemap.physics.kernel import form_kernels, share_exactly
from joulemap.physics.record.runtime import RUNTIME_NAMES
from models import ConvBlock, Embedded, Function, Masked, Mlp, Residual, SelfAttention, columns, image, meta


def test_fused_runs_a_kernel_per_subgraph() -> None:
    work = columns(Residual(), image(1, 4, 8))
    kernels = form_kernels(work, "fp32", "fused")
    assert kernels.kernel_index.tolist() == [0, 0, 0, 1, 1, 1, 1]
    assert kernels.kernel_count == 2


@pytest.mark.parametrize("runtime", ["eager", "graph"])
def test_otherwise_a_kernel_per_operator(runtime: str) -> None:
    work = columns(Residual(), image(1, 4, 8))
    assert form_kernels(work, "fp32", runtime).kernel_index.tolist() == list(range(7))


def test_views_belong_to_no_kernel() -> None:
    work = columns(SelfAttention(), meta(2, 5, 16))
    for runtime in RUNTIME_NAMES:
        kernels = form_kernels(work, "fp32", runtime)
        assert kernels.operator_index.tolist() == np.flatnonzero(~work.is_view).tolist()
    # projection, attention, projection, whatever the runtime: attention is one call
    for runtime in RUNTIME_NAMES:
        assert form_kernels(work, "fp32", runtime).kernel_count == 3


def test_fused_computes_once_what_depends_on_no_input() -> None:
    work = columns(Masked(), meta(2, 8))
    assert form_kernels(work, "fp32", "fused").operator_index.tolist() == [1]
    assert form_kernels(work, "fp32", "graph").operator_index.tolist() == [0, 1]


def test_the_leader_has_the_most_macs() -> None:
    kernels = form_kernels(columns(ConvBlock(), image(1, 3, 8)), "fp32", "fused")
    assert kernels.leader.tolist() == [0]


def test_without_macs_the_leader_has_the_most_elementwise_work() -> None:
    work = columns(Function(lambda x: torch.sigmoid(torch.relu(x))), meta(2, 8))
    assert form_kernels(work, "fp32", "fused").leader.tolist() == [1]


def test_between_equals_the_first_leads() -> None:
    work = columns(Function(lambda x: torch.relu(torch.neg(x))), meta(2, 8))
    assert form_kernels(work, "fp32", "fused").leader.tolist() == [0]


def test_bytes_follow_the_precision() -> None:
    work = columns(Mlp(), meta(2, 8))
    for precision, item in (("fp64", 8.0), ("fp32", 4.0), ("fp16", 2.0), ("int8", 1.0), ("int4", 0.5)):
        kernels = form_kernels(work, precision, "graph")
        # 8 -> 16, relu, 16 -> 4 of two rows
        assert kernels.input_bytes.tolist() == [16 * item, 32 * item, 32 * item]
        assert kernels.weight_bytes.tolist() == [144 * item, 0.0, 68 * item]
        assert kernels.output_bytes.tolist() == [32 * item, 32 * item, 8 * item]
        assert kernels.total_weight_bytes == 212 * item


def test_whole_numbers_keep_their_width() -> None:
    work = columns(Embedded(), torch.empty(2, 5, dtype=torch.int64, device="meta"))
    kernels = form_kernels(work, "fp16", "graph")
    # ten tokens of 8 bytes, ten rows of eight elements
    assert kernels.input_bytes.tolist() == [80.0]
    assert kernels.weight_bytes.tolist() == [160.0]


def test_a_fused_kernel_moves_only_what_crosses_it() -> None:
    kernels = form_kernels(columns(Mlp(), meta(2, 8)), "fp32", "fused")
    # the first layer's values go to its relu on chip
    assert kernels.input_bytes.tolist() == [64.0, 0.0, 128.0]
    assert kernels.output_bytes.tolist() == [0.0, 128.0, 32.0]
    assert kernels.entering_bytes.tolist() == [64.0, 0.0, 0.0]
    assert kernels.leaving_bytes.tolist() == [0.0, 0.0, 32.0]


def test_a_part_of_a_batch_reads_an_operand_without_batch_whole() -> None:
    class Table(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.zeros(6, 8, 16, device="meta"))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.einsum("bd,edf->bef", x, self.weight)

    kernels = form_kernels(columns(Table(), meta(4, 8)), "fp32", "fused")
    at = int(np.argmax(kernels.work.mac_count))
    part = kernels.part(np.full(len(kernels.work.mac_count), 2.0))
    assert (part.work.gemm_m[at], kernels.work.gemm_m[at]) == (2, 4)
    assert kernels.input_bytes[at] == 4 * (4 * 8 + 8 * 6 * 16)
    assert_close(float(part.input_bytes[at]), 4 * (2 * 8 + 8 * 6 * 16))
    assert_close(float(part.own_read_bytes[at]), 4 * (2 * 8 + 8 * 6 * 16))


def test_values_go_to_kernels_and_back() -> None:
    work = columns(Residual(), image(1, 4, 8))
    kernels = form_kernels(work, "fp32", "fused")
    summed = kernels.per_kernel(np.arange(7.0))
    assert summed.tolist() == [0.0 + 1 + 2, 3.0 + 4 + 5 + 6]
    assert kernels.per_operator(summed).tolist() == [3.0] * 3 + [18.0] * 4
    assert kernels.at_leader(np.array([5.0, 7.0])).tolist() == [5.0, 0, 0, 7.0, 0, 0, 0]


def split(total: list[int], weights: list[float], group: list[int]) -> list[int]:
    shares: list[int] = share_exactly(np.array(total), np.array(weights), np.array(group, dtype=np.int64)).tolist()
    return shares


def test_shares_are_proportional() -> None:
    assert split([100, 8], [1.0, 3.0, 1.0, 1.0], [0, 0, 1, 1]) == [25, 75, 4, 4]


def test_members_need_not_be_in_order() -> None:
    assert split([100, 8], [1.0, 1.0, 3.0, 1.0], [0, 1, 0, 1]) == [25, 4, 75, 4]


def test_what_does_not_divide_is_not_lost() -> None:
    assert split([10], [1.0, 1.0, 1.0], [0, 0, 0]) == [3, 3, 4]


def test_without_weights_shares_are_equal() -> None:
    assert split([9], [0.0, 0.0, 0.0], [0, 0, 0]) == [3, 3, 3]


def test_no_members_have_no_shares() -> None:
    assert split([], [], []) == []


Split = tuple[list[int], list[float], list[int]]


@st.composite
def splits(draw: st.DrawFn, largest: int, weights: st.SearchStrategy[float]) -> Split:
    sizes = draw(st.lists(st.integers(1, 6), min_size=1, max_size=5))
    group = draw(st.permutations([index for index, size in enumerate(sizes) for _ in range(size)]))
    total = draw(st.lists(st.integers(0, largest), min_size=len(sizes), max_size=len(sizes)))
    return total, draw(st.lists(weights, min_size=len(group), max_size=len(group))), list(group)


ANY_WEIGHT = st.floats(0.0, 1e6)
TIMES = st.one_of(st.just(0.0), st.floats(1e-7, 1e-3))


@given(splits(10**18, ANY_WEIGHT))
def test_shares_sum_to_their_totals_exactly(case: Split) -> None:
    total, _, group = case
    shares = split(*case)
    assert all(share >= 0 for share in shares)
    for index, expected in enumerate(total):
        assert sum(share for share, of in zip(shares, group, strict=True) if of == index) == expected


@given(splits(10**9, TIMES))
def test_a_larger_weight_never_gets_less(case: Split) -> None:
    _, weights, group = case
    shares = split(*case)
    members = list(zip(group, weights, shares, strict=True))
    for group_a, weight_a, share_a in members:
        for group_b, weight_b, share_b in members:
            # groups without weights stand in the same running sum as 1 each, which costs a time its last digits
            if group_a == group_b and weight_a > weight_b * (1.0 + 1e-6):
                # cumulative rounding moves a share by less than one unit each way
                assert share_a >= share_b - 1
