"""Operators to subgraphs, and the traffic that a subgraph keeps on chip."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, strategies as st
from torch import Tensor, nn
from torch.nn import functional

from joulemap.physics.fuse import partition
from joulemap.physics.record.kind import KINDS
from joulemap.physics.record.workload import Edge, Operator, Subgraph, Workload
from models import (
    Attention,
    Chain,
    ConvBlock,
    Depthwise,
    Function,
    Masked,
    Mlp,
    Residual,
    SelfAttention,
    SliceWrite,
    Views,
    accesses_of,
    image,
    meta,
    patterns,
    trace,
    trace_zoo,
)

SMALL = {
    "mlp": lambda: trace(Mlp(), meta(2, 8)),
    "conv": lambda: trace(ConvBlock(), image(1, 3, 8)),
    "residual": lambda: trace(Residual(), image(1, 4, 8)),
    "depthwise": lambda: trace(Depthwise(), image(1, 8, 6)),
    "attention": lambda: trace(Attention(), meta(2, 3, 5, 8), meta(2, 3, 7, 8), meta(2, 3, 7, 6)),
    "self attention": lambda: trace(SelfAttention(), meta(2, 5, 16)),
    "masked": lambda: trace(Masked(), meta(2, 8)),
    "slice write": lambda: trace(SliceWrite(), meta(2, 4, 3)),
    "views": lambda: trace(Views(), meta(2, 4, 3)),
    "chain": lambda: trace(Chain(), meta(2, 8)),
    "resnet18": lambda: trace_zoo("resnet18"),
    "swin_t": lambda: trace_zoo("swin_t"),
}


@pytest.fixture(name="workload", params=SMALL, scope="module")
def _workload(request: pytest.FixtureRequest) -> Workload:
    return SMALL[request.param]()


class Gated(nn.Module):
    """A squeeze-and-excitation block as torchvision builds it."""

    def __init__(self) -> None:
        super().__init__()
        self.squeeze = nn.Conv2d(8, 2, 1)
        self.excite = nn.Conv2d(2, 8, 1)

    def forward(self, x: Tensor) -> Tensor:
        gate = self.excite(functional.silu(self.squeeze(functional.adaptive_avg_pool2d(x, 1))))
        return torch.sigmoid(gate) * x


def test_a_squeeze_and_excitation_gate_is_one_subgraph() -> None:
    workload = trace(Gated(), image(1, 8, 6))
    assert patterns(workload) == ["squeeze_excitation", "mul"]
    # the gate reads the feature map and writes eight values; what is between stays on chip
    inside = sum(a.fused_byte_count for a in workload.accesses if a.operator_index < 5 and a.role != "weight")
    assert inside == 4 * (8 * 6 * 6 + 8)


def test_a_mean_before_a_classifier_is_no_gate() -> None:
    head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4))
    assert patterns(trace(head, image(1, 8, 6))) == ["adaptive_avg_pool", "linear"]


def test_pointwise_operators_join_the_convolution_before_them() -> None:
    assert patterns(trace(ConvBlock(), image(1, 3, 8))) == ["conv2d+batch_norm+relu"]
    assert patterns(trace(ConvBlock(inplace=True), image(1, 3, 8))) == ["conv2d+batch_norm+relu"]


class Sampled(nn.Module):
    """A convolution whose result is sampled at given positions."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 1)

    def forward(self, x: Tensor, grid: Tensor) -> Tensor:
        return nn.functional.grid_sample(self.conv(x), grid, align_corners=False)


def test_sampling_reads_all_of_a_convolution_and_is_its_own_kernel() -> None:
    assert patterns(trace(Sampled(), image(1, 3, 8), meta(1, 8, 8, 2))) == ["conv2d", "grid_sample"]


def test_a_residual_addition_joins_the_branch_that_ends_in_it() -> None:
    assert patterns(trace(Residual(), image(1, 4, 8))) == ["conv2d+batch_norm+relu", "conv2d+batch_norm+add+relu"]


def test_two_convolutions_are_two_kernels() -> None:
    assert patterns(trace(Depthwise(), image(1, 8, 6))) == ["conv2d+clamp", "conv2d"]


def test_attention_is_one_kernel() -> None:
    assert patterns(trace(Attention(), meta(2, 3, 5, 8), meta(2, 3, 7, 8), meta(2, 3, 7, 6))) == ["attention"]


def test_two_products_without_a_softmax_are_two_kernels() -> None:
    workload = trace(Function(lambda a, b, c: (a @ b) @ c), meta(2, 5, 8), meta(2, 8, 7), meta(2, 7, 6))
    assert patterns(workload) == ["matmul", "matmul"]


def test_a_softmax_does_not_join_a_linear_layer() -> None:
    workload = trace(nn.Sequential(nn.Linear(8, 4), nn.Softmax(dim=1)), meta(2, 8))
    assert patterns(workload) == ["linear", "softmax"]


def test_a_row_norm_starts_its_own_kernel_and_takes_what_follows() -> None:
    workload = trace(Function(lambda x: torch.relu(functional.layer_norm(x, (8,)))), meta(2, 8))
    assert patterns(workload) == ["layer_norm+relu"]


def test_a_value_with_two_readers_ends_the_kernel_of_a_product() -> None:
    layer = nn.Linear(8, 8)
    workload = trace(
        Function(lambda x: (y := torch.relu(functional.linear(x, layer.weight.to("meta")))) @ y), meta(8, 8)
    )
    assert patterns(workload)[-2:] == ["linear+relu", "matmul"]


def test_a_value_with_two_readers_stays_in_a_kernel_that_computes_both() -> None:
    workload = trace(Function(lambda x: torch.relu(x) + torch.relu(x).sum()), meta(2, 8))
    assert patterns(trace(Chain(), meta(2, 8))) == ["relu+sigmoid+reduce+add"]
    assert patterns(workload) == ["relu+reduce+add"]


def test_an_operator_of_another_size_does_not_join() -> None:
    workload = trace(Function(lambda x: functional.max_pool2d(torch.relu(x), 2)), image(1, 3, 8))
    assert patterns(workload) == ["relu", "max_pool"]


def test_resnet18_falls_into_its_known_groups() -> None:
    found = patterns(trace_zoo("resnet18"))
    # eight blocks of two convolutions, the stem, three shortcuts; pooling twice, the classifier
    assert found.count("conv2d+batch_norm+relu") == 9
    assert found.count("conv2d+batch_norm+add+relu") == 8
    assert found.count("conv2d+batch_norm") == 3
    assert len(found) == 23


def test_a_subgraph_is_named_by_its_anchor() -> None:
    assert trace(Residual(), image(1, 4, 8)).subgraphs[1].name == "conv2"


@pytest.mark.sample(4)
def test_every_operator_is_in_exactly_one_subgraph(workload: Workload) -> None:
    members = [index for subgraph in workload.subgraphs for index in subgraph.operator_indices]
    assert sorted(members) == list(range(len(workload.operators)))


@pytest.mark.sample(4)
def test_no_path_leaves_a_subgraph_and_returns(workload: Workload) -> None:
    assert_convex(workload.subgraphs, workload.edges, len(workload.operators))
    assert_executable(workload.subgraphs, workload.edges)


@pytest.mark.sample(4)
def test_inputs_and_outputs_of_the_model_always_cross(workload: Workload) -> None:
    owner = {index: which for which, one in enumerate(workload.subgraphs) for index in one.operator_indices}
    outputs = [access for access in workload.accesses if access.is_boundary and access.role == "output"]
    assert outputs
    assert all(access.fused_byte_count == access.byte_count for access in outputs)
    read: dict[tuple[int, int], tuple[int, int]] = {}
    for access in workload.accesses:
        if access.is_boundary and access.role == "input":
            key = (owner[access.operator_index], access.tensor_index)
            most, fused = read.get(key, (0, 0))
            read[key] = (max(most, access.byte_count), fused + access.fused_byte_count)
    assert all(fused >= most for most, fused in read.values())


@pytest.mark.sample(4)
def test_what_is_hidden_is_neither_written_nor_read_elsewhere(workload: Workload) -> None:
    owner = {index: which for which, one in enumerate(workload.subgraphs) for index in one.operator_indices}
    for write in workload.accesses:
        if write.role == "output" and write.byte_count and not write.fused_byte_count:
            readers = [
                one for one in workload.accesses if one.role == "input" and one.tensor_index == write.tensor_index
            ]
            assert readers
            assert {owner[one.operator_index] for one in readers} == {owner[write.operator_index]}
            assert all(one.fused_byte_count == 0 for one in readers)


@pytest.mark.sample(4)
def test_what_is_read_elsewhere_is_written(workload: Workload) -> None:
    writes = {one.tensor_index: one for one in workload.accesses if one.role == "output"}
    for read in workload.accesses:
        if read.fused_byte_count and read.tensor_index in writes:
            assert writes[read.tensor_index].fused_byte_count == writes[read.tensor_index].byte_count


def test_a_hidden_buffer_is_not_kept_by_a_fused_kernel() -> None:
    workload = trace(ConvBlock(), image(1, 3, 8))
    # the input and the result stay; the convolution's and the batch norm's values do not
    assert [buffer.is_hidden for buffer in workload.buffers] == [False, True, True, False]


def test_a_value_that_two_members_read_is_read_once() -> None:
    workload = trace(Function(lambda x: torch.sigmoid(x) * x), meta(2, 8))
    assert patterns(workload) == ["sigmoid+mul"]
    (first,) = accesses_of(workload, "sigmoid", "input")
    again = [access for access in accesses_of(workload, "mul", "input") if access.is_boundary]
    assert (first.fused_byte_count, [access.fused_byte_count for access in again]) == (64, [0])


def test_slices_of_one_value_are_each_read_by_a_fused_kernel() -> None:
    workload = trace(SelfAttention(), meta(2, 5, 16))
    packed = accesses_of(workload, "attention.linear", "output")[0]
    read = [one for one in workload.accesses if one.role == "input" and one.tensor_index == packed.tensor_index]
    # queries, keys and values: a third of the packed projection each
    assert [one.fused_byte_count for one in read] == [640, 640, 640]
    assert packed.fused_byte_count == 1920


def assert_convex(subgraphs: tuple[Subgraph, ...], edges: tuple[Edge, ...], operator_count: int) -> None:
    """Fail if an operator outside a subgraph both follows and precedes its members."""
    forward: list[set[int]] = [set() for _ in range(operator_count)]
    backward: list[set[int]] = [set() for _ in range(operator_count)]
    for edge in edges:
        forward[edge.producer_index].add(edge.consumer_index)
        backward[edge.consumer_index].add(edge.producer_index)
    for subgraph in subgraphs:
        members = set(subgraph.operator_indices)
        if len(members) > 1:
            between = (reachable(members, forward) & reachable(members, backward)) - members
            assert not between, f"{subgraph.name}: {sorted(between)} lie between its members"


def assert_executable(subgraphs: tuple[Subgraph, ...], edges: tuple[Edge, ...]) -> None:
    """Fail if a subgraph needs what one behind it makes."""
    place = {index: position for position, one in enumerate(subgraphs) for index in one.operator_indices}
    for edge in edges:
        assert place[edge.producer_index] <= place[edge.consumer_index], f"{edge} goes backwards"


def reachable(starts: set[int], neighbours: list[set[int]]) -> set[int]:
    found = set(starts)
    queue = deque(starts)
    while queue:
        for index in neighbours[queue.popleft()] - found:
            found.add(index)
            queue.append(index)
    return found


def shaped(operation: str, kind: str, shape: tuple[int, ...], elementwise_count: int = 0) -> Callable[[int], Operator]:
    """Return what makes an operator of this output, by its number."""
    return lambda index: Operator(
        name=str(index),
        module_path="",
        operation=operation,
        kind=kind,
        aten="",
        output_shape=shape,
        dtype="fp32",
        elementwise_count=elementwise_count,
        output_element_count=math.prod(shape),
    )


SHAPED = (
    *(shaped(kind, kind, (4, 16)) for kind in KINDS),
    *(shaped("mul", "elementwise", shape) for shape in ((4, 16), (4, 16), (4, 8), (4, 1), (2, 1))),
    *(shaped("reduce", "reduction", (4, 1), 68), shaped("reduce", "reduction", (4, 1), 36)),
    shaped("cat", "data_movement", (4, 16)),
    shaped("index", "data_movement", (4, 16)),
    shaped("fill", "data_movement", (4, 8)),
)
"""Rows of 16 and of 8, halves of them, and a value for each."""


@st.composite
def graphs(draw: st.DrawFn) -> tuple[tuple[Operator, ...], tuple[Edge, ...]]:
    """Random data flow: operators of any kind, most of them such that fuse, edges forward only."""
    count = draw(st.integers(1, 14))
    operators = tuple(draw(st.sampled_from(SHAPED))(index) for index in range(count))
    pairs = [(producer, consumer) for consumer in range(count) for producer in range(consumer)]
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=24)) if pairs else []
    edges = tuple(Edge(producer_index=a, consumer_index=b, tensor_index=0) for a, b in chosen)
    return operators, edges


@given(graphs())
def test_any_data_flow_is_cut_into_convex_disjoint_subgraphs(
    graph: tuple[tuple[Operator, ...], tuple[Edge, ...]],
) -> None:
    operators, edges = graph
    subgraphs = partition(operators, edges)
    members = [index for subgraph in subgraphs for index in subgraph.operator_indices]
    assert sorted(members) == list(range(len(operators)))
    assert_convex(subgraphs, edges, len(operators))
    assert_executable(subgraphs, edges)
    for subgraph in subgraphs:
        assert list(subgraph.operator_indices) == sorted(subgraph.operator_indices)
