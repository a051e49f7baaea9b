"""Checkpoints for recomputation: values at the cuts are kept, everything between two cuts is recomputed.

A cut lies where a single value is live, as between the layers of a model. The selected cuts minimize the memory of the
kept values plus the largest segment between two of them.

Source: Chen et al., Training Deep Nets with Sublinear Memory Cost, 2016.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from joulemap.wing.train.training.forward import Forward

TRIED: Final = 24
"""Number of segment sizes among which the cuts with the least memory are chosen."""


def find_segments(forward: Forward) -> list[int]:
    """Return the segment number of each call."""
    calls, values = forward.calls, forward.values
    last_read = [-1] * len(values)
    made_at = [-1] * len(values)
    for index, call in enumerate(calls):
        for value in (*(use[0] for use in call.reads), *call.waits):
            last_read[value] = index
        for value, _ in call.writes:
            made_at[value] = index
    crossing = [0] * (len(calls) + 1)
    carried = [0] * (len(calls) + 1)
    made = [0] * len(calls)
    for value, index in enumerate(made_at):
        if index < 0:
            continue
        made[index] += values[value].byte_count
        if last_read[value] > index:
            for between in range(index + 1, min(last_read[value], index + len(calls)) + 1):
                crossing[between] += 1
                carried[between] += values[value].byte_count
    cuts = [index for index in range(1, len(calls)) if crossing[index] == 1]
    return _choose(made, carried, cuts)


def _choose(made: Sequence[int], carried: Sequence[int], cuts: Sequence[int]) -> list[int]:
    """Return the segment number of each call, with the cuts that need the least memory."""
    total = [0]
    for one in made:
        total.append(total[-1] + one)
    best: tuple[int, list[int]] = (total[-1], [])
    for step in range(1, TRIED + 1):
        most = total[-1] * step // (TRIED * 2)
        for limit in (most, most // TRIED):
            taken, start, largest = list[int](), 0, 0
            for cut, following in zip(cuts, [*cuts[1:], len(made)], strict=True):
                if total[following] - total[start] > limit:
                    taken.append(cut)
                    largest = max(largest, total[cut] - total[start])
                    start = cut
            largest = max(largest, total[-1] - total[start])
            need = sum(carried[cut] for cut in taken) + largest
            best = min(best, (need, taken))
    numbers, piece = list[int](), 0
    edges = set(best[1])
    for index in range(len(made)):
        piece += index in edges
        numbers.append(piece)
    return numbers
