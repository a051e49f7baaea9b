"""Weights that a model stores narrow and makes wide in its forward pass, found by the data flow.

    weights ─► unpack, convert, subtract, multiply … ─► the matrix of a product

What no input has a part in is folded by a compiler, which would store the wide result. It is not where the result is
the matrix of a product and larger than what it is made of: the kernel of the product then reads the narrow weights and
makes them wide on chip. Where several products read the result, a kernel of its own makes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import attrs

from joulemap.domain.workload import Access, Operator, Subgraph, Workload

DEQUANTIZE: Final = "dequantize"
"""What stands for such operators in the pattern of a subgraph."""

ATTENTION: Final = "scaled_dot_product_attention"
"""The call whose products multiply no weights."""


def find_dequantizations(workload: Workload) -> Mapping[int, tuple[int, ...]]:
    """Return product -> the operators that make its matrix of narrower weights, in execution order."""
    producers: dict[int, set[int]] = {}
    for edge in workload.edges:
        if workload.operators[edge.producer_index].is_foldable:
            producers.setdefault(edge.consumer_index, set()).add(edge.producer_index)
    accesses: dict[int, list[Access]] = {}
    for access in workload.accesses:
        accesses.setdefault(access.operator_index, []).append(access)
    found: dict[int, tuple[int, ...]] = {}
    for index, operator in enumerate(workload.operators):
        if operator.is_foldable or not operator.mac_count or ATTENTION in operator.aten or index not in producers:
            continue
        chain: list[int] = []
        for first in sorted(producers[index]):
            members = _trace_back(first, producers)
            if _is_widening(workload, members, accesses, index):
                chain += members
        if chain:
            found[index] = tuple(sorted(set(chain)))
    return found


def _trace_back(last: int, producers: Mapping[int, Iterable[int]]) -> list[int]:
    """Return an operator and all that it is computed from."""
    members, waiting = {last}, [last]
    while waiting:
        for producer in producers.get(waiting.pop(), ()):
            if producer not in members:
                members.add(producer)
                waiting.append(producer)
    return sorted(members)


def _is_widening(
    workload: Workload, members: Sequence[int], accesses: Mapping[int, Sequence[Access]], product: int
) -> bool:
    """Whether operators make a matrix of a product of weights that are narrower, some of them no floating point."""
    made = {access.tensor_index for index in members for access in accesses.get(index, ()) if access.role == "output"}
    read: dict[int, int] = {}
    has_narrow = False
    for index in members:
        for access in accesses.get(index, ()):
            if access.role == "weight":
                read[access.tensor_index] = max(read.get(access.tensor_index, 0), access.byte_count)
                has_narrow |= access.item_bytes == 0
    taken = [access for access in accesses.get(product, ()) if access.role != "output" and access.tensor_index in made]
    operator = workload.operators[product]
    matrices = operator.gemm_k * operator.gemm_groups * min(operator.gemm_m, operator.gemm_n)
    whole = max((_count(workload, access) for access in taken), default=0)
    width = sum(access.byte_count for access in taken)
    return has_narrow and whole >= matrices and sum(read.values()) < width


def _count(workload: Workload, access: Access) -> int:
    """Return the elements that an access reads."""
    tensor = workload.tensors[access.tensor_index]
    elements = 1
    for size in tensor.shape:
        elements *= size
    item = tensor.byte_count // elements if elements else 0
    return access.byte_count // item if item else 0


def keep_unfolded(operators: Sequence[Operator], dequantizations: Mapping[int, Sequence[int]]) -> tuple[Operator, ...]:
    """Return the operators, those that make weights wide no longer foldable."""
    kept = {index for members in dequantizations.values() for index in members}
    return tuple(
        attrs.evolve(operator, is_foldable=False) if index in kept else operator
        for index, operator in enumerate(operators)
    )


def join_products(
    subgraphs: Sequence[Subgraph], workload: Workload, dequantizations: Mapping[int, Sequence[int]]
) -> tuple[Subgraph, ...]:
    """Return the subgraphs, each product's with the operators that make its matrix, unless others read of them too.

    All of them lead to the product alone, so that a subgraph stays convex.
    """
    consumers: dict[int, set[int]] = {}
    for edge in workload.edges:
        consumers.setdefault(edge.producer_index, set()).add(edge.consumer_index)
    joined: dict[int, int] = {}
    for product, members in dequantizations.items():
        inside = {product, *members}
        if all(consumers.get(index, set()) <= inside for index in members):
            joined.update(dict.fromkeys(members, product))
    if not joined:
        return tuple(subgraphs)
    told: list[Subgraph] = []
    for subgraph in subgraphs:
        own = [index for index in subgraph.operator_indices if index not in joined]
        more = [index for index, product in joined.items() if product in own]
        if not own:
            continue
        if not more and len(own) == len(subgraph.operator_indices):
            told.append(subgraph)
            continue
        told.append(
            attrs.evolve(
                subgraph,
                operator_indices=tuple(sorted((*own, *more))),
                pattern=f"{DEQUANTIZE}+{subgraph.pattern}",
            )
        )
    return tuple(told)
