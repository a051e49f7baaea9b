"""Decisions: which run to take, where one metric or two decide.

    close_m      runs that may be the best by metric m: the best one and those tied with it
    take         the best by the second metric among close_1 n close_2, else among close_1: the next metric breaks a tie
    trade-off    close_1 n close_2 is empty: beside it, the best by the first metric among close_2
    rival        of a tie, the best by the second metric among the others of close_1; else the next by the first metric

All leads are between the run to take and its rival, so that a further run never makes one surer or larger.
"""

from __future__ import annotations

from collections.abc import Sequence

from joulemap.ask.fact import Choice, Decision, Lead


def decide(choices: Sequence[Choice]) -> Decision:
    """Return the decision by the metrics of one or two choices among several runs."""
    first, *others = choices[:2]
    second = others[0] if others else first
    band, fast = (_list_close(one) for one in (first, second))
    both = [one for one in band if one in second.close]
    taken = _find_first(second, both or band)
    tied = [one for one in _list_close(first) if one != taken]
    if not both:
        rival: int | None = _find_first(first, fast)
    elif tied:
        rival = _find_first(second, tied)
    else:
        rival = next((one for one in first.runs if one != taken), None)
    alike = [one for one in (both or band) if one != taken and (both or one != rival)]
    return Decision(
        runs=(taken,) if rival is None else (taken, rival),
        leads=tuple(_compare(one, taken, rival) for one in (first, *others)),
        is_trade=not both,
        alike=tuple(alike),
    )


def _list_close(choice: Choice) -> list[int]:
    """Return the runs that may be the best by a metric, likeliest first."""
    return list(dict.fromkeys((*choice.runs[:1], *choice.tied, *choice.equal)))


def _find_first(choice: Choice, among: Sequence[int]) -> int:
    """Return the best of some runs by a metric, or the likeliest one if the metric does not tell it from the best."""
    best = min(among, key=lambda one: choice.find_ratio(one))
    return among[0] if {best, among[0]} <= choice.close else best


def _compare(choice: Choice, one: int, other: int | None) -> Lead:
    """Return how a run compares with another by the metric of a choice; only odds against its best run are known."""
    if other is None:
        return Lead(metric=choice.metric, ratio=None, probability=None, is_better=True, is_tied=False)
    own, rival = (choice.find_ratio(run) for run in (one, other))
    chance = choice.against(other if choice.run == one else one)[1] if choice.run in (one, other) else None
    ratio = max(own, rival) / min(own, rival) if max(own, rival) < float("inf") else None
    return Lead(
        metric=choice.metric,
        ratio=ratio,
        probability=chance,
        is_better=own <= rival if own != rival else choice.run != other,
        is_tied={one, other} <= choice.close,
    )
