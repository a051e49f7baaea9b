"""Weights that a model stores in few bits and dequantizes in its forward pass.

    weights ─► unpack, convert, subtract, multiply … ─► the matrix of a GEMM

A compiler folds operators that depend on no input: it computes them once and stores their result. Here this would store
the wide weights. Such operators are not folded if their result is the matrix of a GEMM and larger than the weights,
some of which are integers. The kernel of the GEMM then reads the quantized weights and dequantizes them on chip. If
several GEMMs read the result, a separate kernel computes it. An intermediate value that several GEMMs share, such as a
table of shifts, stays folded.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Final

import attrs

from joulemap.physics.record.workload import DEQUANTIZE, Access, Operator, Subgraph, Workload

ATTENTION: Final = "scaled_dot_product_attention"
"""Part of the ATen name of an attention call. Its GEMMs multiply two activations, so they have no weights."""


@attrs.frozen(kw_only=True)
class Dequantizations:
    """Operators that dequantize the weights of GEMMs, as indices into the operators of a workload."""

    joined: Mapping[int, tuple[int, ...]]
    """GEMM -> operators that dequantize its weights within its kernel, in execution order."""
    apart: frozenset[int]
    """Operators that dequantize weights for several GEMMs, in separate kernels."""

    def mark(self, operators: Sequence[Operator]) -> tuple[Operator, ...]:
        """Return the operators of the workload. Operators that dequantize weights have the variant `DEQUANTIZE` and are
        no longer foldable.
        """
        kept = self.apart.union(*self.joined.values())
        if not kept:
            return tuple(operators)
        return tuple(
            attrs.evolve(operator, is_foldable=False, variant=DEQUANTIZE) if index in kept else operator
            for index, operator in enumerate(operators)
        )

    def join(self, subgraphs: Sequence[Subgraph]) -> tuple[Subgraph, ...]:
        """Return the subgraphs after moving dequantizing operators into the subgraph of their GEMM.

        The result of these operators is used only by the GEMM, so that its subgraph stays convex.
        """
        moved = frozenset[int]().union(*self.joined.values())
        if not moved:
            return tuple(subgraphs)
        merged: list[Subgraph] = []
        for subgraph in subgraphs:
            own = [index for index in subgraph.operator_indices if index not in moved]
            more = [index for product in own for index in self.joined.get(product, ())]
            if more:
                pattern = f"{DEQUANTIZE}+{subgraph.pattern}"
                merged.append(attrs.evolve(subgraph, operator_indices=tuple(sorted((*own, *more))), pattern=pattern))
            elif own:
                merged.append(attrs.evolve(subgraph, operator_indices=tuple(own)))
        return tuple(merged)


def find_dequantizations(workload: Workload) -> Dequantizations:
    """Find the operators of a workload that dequantize the weights of GEMMs."""
    if not any(operator.is_foldable for operator in workload.operators):
        return Dequantizations(joined={}, apart=frozenset())
    flow = _Flow.of(workload)
    joined: dict[int, tuple[int, ...]] = {}
    apart: set[int] = set()
    for product, operator in enumerate(workload.operators):
        if operator.is_foldable or not operator.mac_count or ATTENTION in operator.aten:
            continue
        taken: set[int] = set()
        for last in sorted(flow.producers.get(product, ())):
            members = flow.trace_back(last)
            own = flow.keep_own(members, product)
            if own and flow.is_widening(own, product):
                taken |= own
            elif flow.is_widening(members, product):
                apart |= members
        if taken:
            joined[product] = tuple(sorted(taken))
    return Dequantizations(joined=joined, apart=frozenset(apart.difference(*joined.values())))


@attrs.frozen
class _Flow:
    """Dependencies of a workload's foldable operators, which do not depend on its inputs."""

    workload: Workload
    producers: Mapping[int, set[int]]
    """Operator -> foldable operators whose results it reads."""
    consumers: Mapping[int, set[int]]
    accesses: Mapping[int, Sequence[Access]]

    @classmethod
    def of(cls, workload: Workload) -> _Flow:
        """Build the dependencies from the edges of a workload."""
        producers: dict[int, set[int]] = {}
        consumers: dict[int, set[int]] = {}
        for edge in workload.edges:
            if workload.operators[edge.producer_index].is_foldable:
                producers.setdefault(edge.consumer_index, set()).add(edge.producer_index)
                consumers.setdefault(edge.producer_index, set()).add(edge.consumer_index)
        accesses: dict[int, list[Access]] = {}
        for access in workload.accesses:
            accesses.setdefault(access.operator_index, []).append(access)
        return cls(workload, producers, consumers, accesses)

    def trace_back(self, last: int) -> set[int]:
        """Return an operator with all foldable operators on which it depends, directly or not."""
        members, waiting = {last}, [last]
        while waiting:
            fresh = self.producers.get(waiting.pop(), set()) - members
            members |= fresh
            waiting.extend(fresh)
        return members

    def keep_own(self, members: Collection[int], product: int) -> set[int]:
        """Return the members whose results reach only the GEMM `product`."""
        own = {product, *members}
        for index in sorted(members, reverse=True):
            if not self.consumers.get(index, set()) <= own:
                own.discard(index)
        return own - {product}

    def is_widening(self, members: Collection[int], product: int) -> bool:
        """Return whether the members compute the weights of the GEMM `product` from fewer bytes, some of them
        integers.
        """
        every = [access for index in members for access in self.accesses.get(index, ())]
        made = {access.tensor_index for access in every if access.role == "output"}
        read: dict[int, int] = {}
        for access in every:
            if access.role != "output" and access.tensor_index not in made:
                read[access.tensor_index] = max(read.get(access.tensor_index, 0), access.byte_count)
        has_narrow = any(access.role == "weight" and not access.item_bytes for access in every)
        taken = [
            access
            for access in self.accesses.get(product, ())
            if access.role != "output" and access.tensor_index in made
        ]
        operator = self.workload.operators[product]
        matrix = operator.gemm_k * operator.gemm_groups * min(operator.gemm_m, operator.gemm_n)
        whole = max((math.prod(self.workload.tensors[one.tensor_index].shape) for one in taken), default=0)
        return has_narrow and whole >= matrix and sum(read.values()) < sum(one.byte_count for one in taken)
