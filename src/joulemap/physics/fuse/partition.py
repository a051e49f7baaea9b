"""Partition of operators into subgraphs, each of which one kernel can run.

Operators are placed in execution order. An operator joins the subgraph of an operator that it reads if one kernel can
run both (`group`). No path between both may lead through another subgraph (`order`). The subgraphs that it reads are
then merged if one kernel can run them. The fused epilogue of a GEMM is elementwise, along a chain of single readers. A
squeeze-and-excitation gate (mean, two small GEMMs with activations, sigmoid) is one subgraph, because all of it works
on one value per channel. Each operator is in one subgraph and computed once. A value that several subgraphs read is
written by the subgraph that computes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import attrs

from joulemap.physics.fuse.group import GATHERING, Group, begin, may_end, may_take, may_unite
from joulemap.physics.fuse.loop import Loop, describe_loop
from joulemap.physics.fuse.order import Order, sort_groups
from joulemap.physics.fuse.pattern import GATES, describe
from joulemap.physics.record.workload import Edge, Operator, Subgraph

PRODUCTS_IN_GATE: Final = 2
"""Maximum GEMMs of a squeeze-and-excitation gate: squeeze and excite. Some models need only one."""


def partition(operators: Sequence[Operator], edges: Sequence[Edge], loops: Sequence[Loop] = ()) -> tuple[Subgraph, ...]:
    """Return the subgraphs in an order that can be executed; each operator is in exactly one.

    Each of `loops` becomes one subgraph.
    """
    making = _Partition.of(operators, edges, loops)
    for index in range(len(operators)):
        making.place(index)
    return making.subgraphs(edges)


@attrs.define
class _Partition:
    operators: Sequence[Operator]
    producers: Sequence[Sequence[int]]
    consumers: Sequence[set[int]]
    sources: Sequence[Sequence[int]]
    """Operator -> operators that compute its inputs; views between them are skipped."""
    readers: Sequence[set[int]]
    """Operator -> operators that read its result; views between them are skipped."""
    order: Order = attrs.field(factory=Order)
    groups: dict[int, Group] = attrs.field(factory=dict)
    """Number in `order` -> group. Groups that were merged into another are removed."""
    home: list[int] = attrs.field(factory=list)
    """Operator -> number of the group in which it was placed; `order.find` returns the group after merges."""
    gates: dict[int, int] = attrs.field(factory=dict)
    """Operator of a squeeze-and-excitation gate -> first operator of the gate."""
    loops: dict[int, Loop] = attrs.field(factory=dict)
    """Operator -> its loop."""

    @classmethod
    def of(cls, operators: Sequence[Operator], edges: Sequence[Edge], loops: Sequence[Loop]) -> _Partition:
        """Return a partition before any operator is placed."""
        producers: list[list[int]] = [[] for _ in operators]
        consumers: list[set[int]] = [set() for _ in operators]
        for edge in edges:
            if edge.consumer_index not in consumers[edge.producer_index]:
                consumers[edge.producer_index].add(edge.consumer_index)
                producers[edge.consumer_index].append(edge.producer_index)
        sources: list[tuple[int, ...]] = []
        readers: list[set[int]] = [set() for _ in operators]
        for index, made_by in enumerate(producers):
            found: dict[int, None] = {}
            for one in sorted(made_by):
                found |= dict.fromkeys(sources[one] if operators[one].is_view else (one,))
            sources.append(tuple(found))
            if not operators[index].is_view:
                for one in found:
                    readers[one].add(index)
        return cls(
            operators=operators,
            producers=producers,
            consumers=consumers,
            sources=sources,
            readers=readers,
            loops={index: loop for loop in loops for index in loop.operator_indices},
        )

    def place(self, index: int) -> None:
        """Add an operator to the group of an operator that it reads, or to a new group."""
        if index in self.loops:
            self._place_in_loop(index)
            return
        operator = self.operators[index]
        if operator.is_view:
            homes = self._find(self.producers[index])
        elif index in self.gates:
            homes = [self.order.find(self.home[self.gates[index]])]
        else:
            gate = _gate(index, self.operators, self.consumers) if operator.kind == "reduction" else []
            self.gates |= dict.fromkeys(gate, index)
            homes = [] if gate else self._candidates(index)
        needed = [self.home[one] for one in self.producers[index]]
        for home in homes:
            if self._fits(home, operator) and self.order.may_need(home, needed):
                self.order.need(home, needed)
                break
        else:
            home = self.order.add(needed)
            self.groups[home] = Group() if operator.is_view else begin(operator)
        group = self.groups[home]
        group.indices.append(index)
        self.home.append(home)
        if not operator.is_view:
            group.take(operator)
            group.is_closed |= index in self.gates or self.gates.get(index + 1) == index
            home = self._adopt(index, home)
            if len(homes) > 1 and not group.anchors:
                self._unite(home, homes)

    def _place_in_loop(self, index: int) -> None:
        """Add a member of a loop to the group of the loop's first member. Other operators cannot join this group."""
        first = self.loops[index].operator_indices[0]
        needed = [self.home[one] for one in self.producers[index]]
        if index == first:
            home = self.order.add(needed)
            self.groups[home] = Group(is_closed=True)
        else:
            home = self.order.find(self.home[first])
            self.order.need(home, needed)
        self.home.append(home)
        self.groups[home].indices.append(index)
        if not self.operators[index].is_view:
            self.groups[home].take(self.operators[index])

    def _find(self, indices: Iterable[int]) -> list[int]:
        """Return the groups that contain these operators, last group first."""
        found = {self.order.find(self.home[one]) for one in indices}
        return sorted(found, key=self.order.rank.__getitem__, reverse=True) if len(found) > 1 else list(found)

    def _fits(self, home: int, operator: Operator) -> bool:
        """Return whether an operator may join a group: a compiler must fold both or neither."""
        group = self.groups[home]
        return group.last is None or group.is_foldable == operator.is_foldable

    def _candidates(self, index: int) -> list[int]:
        """Return the groups whose kernel can also compute an operator. Groups with a GEMM come first."""
        operator = self.operators[index]
        sources = self.sources[index]
        if operator.operation in GATHERING:
            sources = [one for one in sources if self.operators[one].dtype.startswith("int")]
        ended: dict[int, int] = {}
        for source in sources:
            home = self.order.find(self.home[source])
            group = self.groups[home]
            leads_here = group.last is self.operators[source] and len(self.readers[source]) == 1
            if group.anchors and leads_here and may_end(group, operator):
                ended[home] = group.indices[0]
        taken = [home for home in self._find(sources) if may_take(self.groups[home], operator)]
        return sorted(ended, key=ended.__getitem__) + taken

    def _adopt(self, index: int, home: int) -> int:
        """Merge views that only this operator reads into its group `home`, and return the merged group."""
        for producer in self.producers[index]:
            view = self.groups[self.order.find(self.home[producer])]
            if view.last is None and all(self.consumers[one] <= {*view.indices, index} for one in view.indices):
                home = self._join(home, self.order.find(self.home[producer]))
        return home

    def _unite(self, home: int, others: Iterable[int]) -> None:
        """Merge `others`, groups that could have taken an operator, into its group `home`, as far as one kernel can run
        both.
        """
        for other in others:
            home, there = self.order.find(home), self.order.find(other)
            first, second = self.groups[home], self.groups[there]
            if home != there and first.is_foldable == second.is_foldable and may_unite(first, second):
                home = self._join(home, there)

    def _join(self, first: int, second: int) -> int:
        """Merge two groups and return the merged group. Return `first` unchanged if a third group lies between them."""
        if first == second or not self.order.may_join(first, second):
            return first
        large, small = self.groups.pop(first), self.groups.pop(second)
        if len(small.indices) > len(large.indices) and small.last is not None:
            large, small = small, large
        large.absorb(small)
        joined = self.order.join(first, second)
        self.groups[joined] = large
        return joined

    def subgraphs(self, edges: Sequence[Edge]) -> tuple[Subgraph, ...]:
        """Return the subgraphs of all groups."""
        number = {home: position for position, home in enumerate(self.groups)}
        owner = [number[self.order.find(home)] for home in self.home]
        groups = [sorted(group.indices) for group in self.groups.values()]
        pairs = ((owner[edge.producer_index], owner[edge.consumer_index]) for edge in edges)
        found = sort_groups([indices[0] for indices in groups], pairs)
        return tuple(self._describe(groups[one]) for one in found)

    def _describe(self, indices: Sequence[int]) -> Subgraph:
        loop = self.loops.get(indices[0])
        if loop is None:
            return describe([self.operators[index] for index in indices], indices)
        return attrs.evolve(describe_loop(loop, self.operators), operator_indices=tuple(indices))


def _gate(start: int, operators: Sequence[Operator], consumers: Sequence[set[int]]) -> list[int]:
    """Return the operators after a reduction that form a squeeze-and-excitation gate with it; empty if there is no
    gate.

    Only the last operator may have several readers, so the gate is convex.
    """
    found: list[int] = []
    products = 0
    current = start
    while len(consumers[current]) == 1:
        (current,) = consumers[current]
        operator = operators[current]
        products += operator.kind in ("conv", "linear")
        fits = operator.is_view or operator.kind in ("conv", "linear", "batch_norm", "elementwise")
        if not fits or products > PRODUCTS_IN_GATE:
            return []
        found.append(current)
        if operator.operation in GATES:
            return found if products in (1, PRODUCTS_IN_GATE) else []
    return []
