"""Groups of operators with their dependencies, kept free of cycles while groups grow and join.

Each group comes after all groups that it needs. If a join needs a group that comes later, the groups in between move
(dynamic topological order of Pearce and Kelly), so that the cost of a join is proportional to their number. Joins
across more than `DISTANCE` places, and searches that meet more than `SEARCHED` groups, are refused as if they closed a
cycle. The cost of a join is thus bounded for any model.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from typing import Final

import attrs

SEARCHED: Final = 256
"""Maximum groups that one search visits."""

DISTANCE: Final = 2048
"""Maximum distance in the order between groups that join."""


@attrs.define
class Order:
    """Groups by number, in an order that can be executed."""

    rank: list[int] = attrs.field(factory=list)
    """Place of each group in the order; groups that joined another keep their place."""
    before: list[set[int]] = attrs.field(factory=list)
    behind: list[set[int]] = attrs.field(factory=list)
    joined: list[int] = attrs.field(factory=list)
    """Index of the group that contains each group: itself, or the one that it joined."""

    def add(self, needed: Iterable[int]) -> int:
        """Add a group that needs the groups `needed`, and return its number."""
        group = len(self.rank)
        self.rank.append(group)
        self.before.append(set())
        self.behind.append(set())
        self.joined.append(group)
        for one in {self.find(each) for each in needed}:
            self._link(one, group)
        return group

    def find(self, group: int) -> int:
        """Return the group that this one is part of."""
        while self.joined[group] != group:
            self.joined[group] = self.joined[self.joined[group]]
            group = self.joined[group]
        return group

    def may_need(self, group: int, needed: Iterable[int]) -> bool:
        """Return whether a group can also follow these groups, because none of them needs it."""
        others = {self.find(one) for one in needed} - {group}
        last = max((self.rank[one] for one in others), default=-1)
        if last < self.rank[group]:
            return True
        if last - self.rank[group] > DISTANCE:
            return False
        return not self._leads([group], others, last)

    def need(self, group: int, needed: Iterable[int]) -> None:
        """Make a group need the groups `needed`; `may_need` has allowed it."""
        for one in {self.find(each) for each in needed} - {group}:
            self._place(one, group)
            self._link(one, group)

    def may_join(self, first: int, second: int) -> bool:
        """Return whether two groups can be one: no path between them leads through a third."""
        if self.rank[first] > self.rank[second]:
            first, second = second, first
        limit = self.rank[second]
        if limit - self.rank[first] > DISTANCE:
            return False
        between = [one for one in self.behind[first] if one != second and self.rank[one] < limit]
        return len(between) <= SEARCHED and not self._leads(between, {second}, limit)

    def _leads(self, starts: Iterable[int], goals: set[int], last: int) -> bool:
        """Return whether a path leads from any of these to a goal; True also if the search gives up.

        No goal comes after `last`.
        """
        open_ends = list(starts)
        seen = set(open_ends)
        while open_ends:
            for one in self.behind[open_ends.pop()]:
                if one in goals:
                    return True
                if one not in seen and self.rank[one] < last:
                    seen.add(one)
                    open_ends.append(one)
                    if len(seen) > SEARCHED:
                        return True
        return False

    def join(self, first: int, second: int) -> int:
        """Merge two groups, which `may_join` has allowed, and return the result."""
        if self.rank[first] > self.rank[second]:
            first, second = second, first
        before, behind = self.before[second], self.behind[second]
        for one in before | behind:
            self.behind[one].discard(second)
            self.before[one].discard(second)
        self.before[second], self.behind[second] = set(), set()
        self.joined[second] = first
        self.need(first, before)
        for one in behind - {first}:
            self._link(first, one)
        return first

    def _link(self, first: int, second: int) -> None:
        self.behind[first].add(second)
        self.before[second].add(first)

    def _place(self, first: int, second: int) -> None:
        """Move the groups after `second` past the groups that `first` needs, so that `first` precedes `second`."""
        low, high = self.rank[second], self.rank[first]
        if high < low:
            return
        later = self._walk(second, self.behind, low, high)
        sooner = self._walk(first, self.before, low, high)
        moved = sorted(sooner, key=self.rank.__getitem__) + sorted(later, key=self.rank.__getitem__)
        for one, rank in zip(moved, sorted(self.rank[one] for one in moved), strict=True):
            self.rank[one] = rank

    def _walk(self, start: int, neighbours: Sequence[set[int]], low: int, high: int) -> set[int]:
        """Return the groups that can be reached from one without leaving these ranks."""
        seen, open_ends = {start}, [start]
        while open_ends:
            for one in neighbours[open_ends.pop()]:
                if one not in seen and low <= self.rank[one] <= high:
                    seen.add(one)
                    open_ends.append(one)
        return seen


def sort_groups(firsts: Sequence[int], edges: Iterable[tuple[int, int]]) -> list[int]:
    """Return groups 0, 1, 2 ... in an executable order; among ready groups, the one that begins first comes first.

    `firsts` is the first operator of each group, and `edges` are pairs (needed, needing) of groups. There is no cycle.
    """
    behind: list[set[int]] = [set() for _ in firsts]
    waiting = [0] * len(firsts)
    for needed, needing in edges:
        if needed != needing and needing not in behind[needed]:
            behind[needed].add(needing)
            waiting[needing] += 1
    ready = [(first, group) for group, first in enumerate(firsts) if not waiting[group]]
    heapq.heapify(ready)
    found = []
    while ready:
        _, group = heapq.heappop(ready)
        found.append(group)
        for one in behind[group]:
            waiting[one] -= 1
            if not waiting[one]:
                heapq.heappush(ready, (firsts[one], one))
    return found
