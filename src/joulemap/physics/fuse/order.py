"""Order of operator groups by their dependencies, kept free of cycles while groups grow and merge.

Each group comes after all groups that it needs. If a group is to need a later one, only the groups between both move
(dynamic topological order of Pearce and Kelly). Groups more than `DISTANCE` places apart are never merged. Nor are
groups for which a search visits more than `SEARCHED` others. The cost of a merge is thus bounded for any model.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from typing import Final

import attrs

SEARCHED: Final = 256
"""Maximum number of groups that one search for a path visits."""

DISTANCE: Final = 2048
"""Maximum distance, in places of the order, between two groups that merge."""


@attrs.define
class Order:
    """Groups of operators, identified by numbers, in an executable order."""

    rank: list[int] = attrs.field(factory=list)
    """Group -> place in the order; merged groups keep the place that they had."""
    before: list[set[int]] = attrs.field(factory=list)
    behind: list[set[int]] = attrs.field(factory=list)
    joined: list[int] = attrs.field(factory=list)
    """Group -> group that it was merged into; a group that was not merged maps to itself."""

    def add(self, needed: Iterable[int]) -> int:
        """Add a group that depends on the groups `needed`, and return its number."""
        group = len(self.rank)
        self.rank.append(group)
        self.before.append(set())
        self.behind.append(set())
        self.joined.append(group)
        for one in {self.find(each) for each in needed}:
            self._link(one, group)
        return group

    def find(self, group: int) -> int:
        """Return the group that now contains `group`, after all merges."""
        while self.joined[group] != group:
            self.joined[group] = self.joined[self.joined[group]]
            group = self.joined[group]
        return group

    def may_need(self, group: int, needed: Iterable[int]) -> bool:
        """Return whether a group may also depend on the groups `needed`, without a cycle. False also if the search is
        too long.
        """
        others = {self.find(one) for one in needed} - {group}
        last = max((self.rank[one] for one in others), default=-1)
        if last < self.rank[group]:
            return True
        if last - self.rank[group] > DISTANCE:
            return False
        return not self._leads([group], others, last)

    def need(self, group: int, needed: Iterable[int]) -> None:
        """Make a group depend on the groups `needed`. Call `may_need` first."""
        for one in {self.find(each) for each in needed} - {group}:
            self._place(one, group)
            self._link(one, group)

    def may_join(self, first: int, second: int) -> bool:
        """Return whether two groups may be merged, without a path from one through a third group to the other.

        The result is also False if the groups are too far apart or the search is too long.
        """
        if self.rank[first] > self.rank[second]:
            first, second = second, first
        limit = self.rank[second]
        if limit - self.rank[first] > DISTANCE:
            return False
        between = [one for one in self.behind[first] if one != second and self.rank[one] < limit]
        return len(between) <= SEARCHED and not self._leads(between, {second}, limit)

    def _leads(self, starts: Iterable[int], goals: set[int], last: int) -> bool:
        """Return whether a path leads from a group of `starts` to one of `goals`, none of which is placed after `last`.

        The result is also True if the search is too long.
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
        """Merge two groups and return the number of the merged group. Call `may_join` first."""
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
        """Move groups so that `first` and all groups that it needs come before `second` and all groups that need it."""
        low, high = self.rank[second], self.rank[first]
        if high < low:
            return
        later = self._walk(second, self.behind, low, high)
        sooner = self._walk(first, self.before, low, high)
        moved = sorted(sooner, key=self.rank.__getitem__) + sorted(later, key=self.rank.__getitem__)
        for one, rank in zip(moved, sorted(self.rank[one] for one in moved), strict=True):
            self.rank[one] = rank

    def _walk(self, start: int, neighbours: Sequence[set[int]], low: int, high: int) -> set[int]:
        """Return the groups that can be reached from `start` through groups with ranks from `low` to `high`."""
        seen, open_ends = {start}, [start]
        while open_ends:
            for one in neighbours[open_ends.pop()]:
                if one not in seen and low <= self.rank[one] <= high:
                    seen.add(one)
                    open_ends.append(one)
        return seen


def sort_groups(firsts: Sequence[int], edges: Iterable[tuple[int, int]]) -> list[int]:
    """Return the numbers of groups in an executable order. Of the groups that are ready, the one that begins first
    comes first.

    `firsts` has the first operator of each group. `edges` has pairs (needed group, group that needs it), without a
    cycle.
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
