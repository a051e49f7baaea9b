"""Decisions: which run to take, where one metric or two decide.

    S = close_1 n close_2      close_m: runs that may be the best by metric m (the best one and those tied with it)

A run of S may be the best by both metrics, so it is taken: the best by the first metric if it is in S, or else the best
by the second, or else the likeliest. If S is empty, there is a trade-off between the best runs by each metric. Either
way, the answer is about one pair of runs.
"""

from __future__ import annotations

from collections.abc import Sequence

from joulemap.ask.fact import Choice, Decision, Lead


def decide(choices: Sequence[Choice]) -> Decision:
    """Return the decision by the metrics of one or two choices among several runs."""
    first, *others = choices[:2]
    best, last = first.run, (others or [first])[0].run
    both = [one for one in _order(first) if all(one in other.close for other in others)]
    if both:
        taken = next((one for one in (best, last) if one in both), both[0])
        rival = _find_rival(taken, first, others)
    else:
        taken, rival = best, last
    alike = [one for one in (both or _order(first)) if one not in (taken, rival)]
    leads = tuple(_compare(one, taken, rival) for one in (first, *others))
    is_among = rival in both
    return Decision(
        runs=(taken, rival), leads=leads, is_trade=not both, alike=(*((rival,) if is_among else ()), *alike)
    )


def _order(choice: Choice) -> list[int]:
    """Return the runs that may be the best by a metric, likeliest first."""
    return list(dict.fromkeys((*choice.runs[:1], *choice.tied, *choice.equal)))


def _find_rival(taken: int, first: Choice, others: Sequence[Choice]) -> int:
    """Return the run that the taken one is compared with: the best by a metric that another run leads, or else the next
    run by the first metric that tells runs apart.
    """
    leaders = [one.run for one in (first, *others) if one.run != taken]
    told = next((one for one in (first, *others) if len(one.close) < 2), first)
    return leaders[0] if leaders else told.runs[1]


def _compare(choice: Choice, one: int, other: int) -> Lead:
    """Return how a run compares with another by the metric of a choice, of which either is the best or tied with it."""
    best = choice.run
    is_tied = {one, other} <= choice.close
    if best not in (one, other):
        return Lead(metric=choice.metric, ratio=None, probability=None, is_better=True, is_tied=is_tied)
    ratio, probability = choice.against(other if best == one else one)
    return Lead(metric=choice.metric, ratio=ratio, probability=probability, is_better=best == one, is_tied=is_tied)
