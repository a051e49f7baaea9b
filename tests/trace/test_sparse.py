"""Graph networks and others with sparse tensors: a product for each stored number, refused where another reads one.

The graph has 64 nodes of 4 edges each: 256 numbers, with 16 bytes of coordinates and 4 of a value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from joulemap.physics.record.workload import Workload
from joulemap.system.errors import ModelError
from joulemap.trace.module import trace_module
from models import KEY

NODES, EDGES, WIDTH, OUT = 64, 256, 16, 8
LAYER = NODES * WIDTH * OUT
"""MACs of the linear layer on all nodes."""

X = torch.zeros(NODES, WIDTH)
Forward = Callable[["Graph", Tensor], Any]


def edges() -> Tensor:
    source = torch.arange(NODES).repeat_interleave(4)
    return torch.stack([source, (source + torch.arange(4).repeat(NODES)) % NODES])


def graph() -> Tensor:
    return torch.sparse_coo_tensor(edges(), torch.ones(EDGES), (NODES, NODES)).coalesce()


class Graph(nn.Module):
    def __init__(self, forward: Forward, adjacency: Tensor | None = None) -> None:
        super().__init__()
        self.lin = nn.Linear(WIDTH, OUT, bias=False)
        self.register_buffer("adj", graph() if adjacency is None else adjacency)
        self.function = forward
        self.adj: Tensor

    def forward(self, *given: Any) -> Any:
        return self.function(self, *given)


def traced(forward: Callable[..., Any], *inputs: Tensor, adjacency: Tensor | None = None) -> Workload:
    return trace_module(Graph(forward, adjacency), inputs or (X,), key=KEY, model="graph", batch=NODES)


def macs(workload: Workload) -> dict[str, int]:
    return {one.name: one.mac_count for one in workload.operators if one.mac_count}


@pytest.mark.parametrize(
    "forward",
    [
        lambda net, x: net.adj @ net.lin(x),
        lambda net, x: torch.sparse.mm(net.adj, net.lin(x)),
        lambda net, x: torch.matmul(net.lin(x).t(), net.adj),
        lambda net, x: net.adj.t() @ net.lin(x),
        lambda net, x: (2 * net.adj).to(x.device, torch.float32).coalesce() @ net.lin(x),
        lambda net, x: nn.functional.linear(net.lin(x).t(), net.adj),
    ],
)
def test_a_sparse_product_counts_a_mac_for_each_number_and_column(forward: Forward) -> None:
    assert macs(traced(forward)) == {"lin": LAYER, "sparse_mm": EDGES * OUT}


def test_indices_and_values_are_read_at_their_own_width() -> None:
    weights = 4 * WIDTH * OUT
    for adjacency, index_bytes in ((graph(), 2 * 8 * EDGES), (graph().to_sparse_csr(), 8 * (NODES + 1 + EDGES))):
        workload = traced(lambda net, x: net.adj @ net.lin(x), adjacency=adjacency)
        assert workload.weight_bytes == weights + index_bytes + 4 * EDGES
        product = next(index for index, one in enumerate(workload.operators) if one.operation == "sparse_mm")
        moved = sum(one.byte_count for one in workload.accesses if one.operator_index == product)
        assert moved == index_bytes + 4 * EDGES + 2 * 4 * NODES * OUT
        scaled = sum(one.byte_count for one in workload.accesses if one.operator_index == product and one.item_bytes)
        assert scaled == moved - index_bytes, "a precision does not make indices narrower"


def test_what_is_added_to_a_sparse_product_is_an_operation_for_each_output() -> None:
    workload = traced(lambda net, x: torch.sparse.addmm(torch.ones(NODES, OUT), net.adj, net.lin(x)))
    product = next(one for one in workload.operators if one.operation == "sparse_mm")
    assert (product.mac_count, product.elementwise_count) == (EDGES * OUT, NODES * OUT)


def test_a_sparse_parameter_multiplies_a_vector() -> None:
    class Weight(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(graph())

        def forward(self, x: Tensor) -> Tensor:
            return self.weight @ x

    workload = trace_module(Weight(), (torch.zeros(NODES),), key=KEY, model="weight", batch=1)
    assert macs(workload) == {"sparse_mm": EDGES}
    assert {one.name for one in workload.tensors if one.role == "parameter"} == {"weight.indices", "weight.values"}


def test_sparse_tensors_may_be_given_or_made_of_what_is_given() -> None:
    assert macs(traced(lambda net, x, a: a @ net.lin(x), X, graph())) == {"lin": LAYER, "sparse_mm": EDGES * OUT}

    def attend(net: Graph, x: Tensor, pairs: Tensor) -> Any:
        h = net.lin(x)
        scores = (h[pairs[0]] * h[pairs[1]]).sum(-1)
        return torch.sparse_coo_tensor(pairs, scores, (NODES, NODES)).coalesce() @ h

    workload = traced(attend, X, edges())
    assert macs(workload) == {"lin": LAYER, "sparse_mm": EDGES * OUT}
    assert [one.elementwise_count for one in workload.operators if one.operation == "sort"] == [EDGES * 8]
    assert any("assumed to be all different" in note for note in workload.notes)


def test_a_sparse_buffer_may_be_held_and_asked_for_its_indices() -> None:
    heads = torch.tensor([[False, True, False], [False, True, True]]).to_sparse()
    assert macs(traced(lambda net, x: net.lin(x), adjacency=heads)) == {"lin": LAYER}

    def pick(net: Graph, x: Tensor) -> Tensor:
        return torch.stack([net.lin(x)[int(row)] for row, _ in net.adj.indices().T])

    assert sum(macs(traced(pick, adjacency=heads)).values()) == 3 * LAYER
    assert macs(traced(lambda net, x: net.lin(x) * net.adj.to_dense().sum(), adjacency=heads)) == {"lin": LAYER}


def test_the_read_of_a_sparse_buffer_that_is_no_product_is_refused_by_name() -> None:
    for forward in (
        lambda net, x: net.lin(x) * torch.sparse.sum(net.adj),
        lambda net, x: net.lin(x) * torch.sparse.softmax(net.adj.float(), 1).to_dense(),
        lambda net, x: torch.sparse.mm(net.adj, net.adj) @ net.lin(x),
    ):
        with pytest.raises(ModelError, match=r"^\w+ reads adj, which is sparse_coo: "):
            traced(forward)
    with pytest.raises(ModelError, match="depends on data"):
        traced(lambda net, x: x.to_sparse() @ net.lin.weight.t())
