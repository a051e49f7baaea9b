"""Decisions: the ranking of candidates by one metric, and which one to take, where one metric or two decide.

    close_m      candidates that may be the best by metric m: the best one, equal ones, and those tied with it
    take         the best by the second metric among close_1 n close_2, else among close_1: the next metric breaks a tie
    trade-off    close_1 n close_2 is empty: beside it, the best by the first metric among close_2
    rival        of a tie, the best by the second metric among the others of close_1, those outside of close_2 first;
                 without a tie, the next by the first metric; of another chip, if there are several
    price        of two candidates that are tied by every metric, take the one that is predicted to cost less

Two candidates are tied if the probability that the predicted winner beats the other one is below `TOLD_APART`. All
leads are between the run to take and its rival, so that a further run never makes one surer or larger. What can be
bought or rented goes before what cannot.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias, TypeVar

import attrs

from joulemap.ask.fact import Choice, Decision, Facts, Lead, Quantity, Subject
from joulemap.domain.metric import METRIC
from joulemap.domain.table import first_of_each
from joulemap.physics.interval.error_scale import TOLD_APART

Beats: TypeAlias = Callable[[int, int], float | None]
"""Function that returns the probability that the predicted winner is better than another run; None if unknown."""

Row = TypeVar("Row")

PAID: Final = {"cost", "price", "purchase", "usd_per_million"}
"""Metrics by which the cheaper of two tied runs is known."""


def list_sold(rows: Iterable[Row], is_sold: Callable[[Row], bool]) -> list[Row]:
    """Return the candidates to choose from: those that can be bought or rented if there are any, otherwise all."""
    every = list(rows)
    return [one for one in every if is_sold(one)] or every


def beat_alone(values: Mapping[int, Quantity]) -> Beats:
    """Return the probability that a value beats another one if their errors are independent."""

    def beats(one: int, other: int) -> float | None:
        from joulemap.physics.interval.probability import probability_better

        ends = sorted(values[run].value for run in (one, other))
        width = math.hypot(*(values[run].half_width or 0.0 for run in (one, other)))
        return probability_better(ends[1] / ends[0], width) if width and ends[0] > 0.0 else None

    return beats


def choose(
    metric: str,
    values: Mapping[int, Quantity],
    beats: Beats | None = None,
    *,
    chance: float | None = None,
    is_higher_better: bool | None = None,
    per: str = "inference",
    model: str = "",
) -> Choice:
    """Return the ranking by a metric; `values` has at least one run, and equal values go by its order.

    `beats` is by default that of independent errors. `chance` is the probability that the first run is the best, by
    default the least one with which it beats another run.
    """
    known = METRIC.get(metric)
    is_higher = known is not None and known.is_higher_better if is_higher_better is None else is_higher_better
    best, *others = runs = sorted(values, key=lambda one: values[one].value, reverse=is_higher)
    ends = {one: sorted((values[best].value, values[one].value)) for one in others}
    find = beats or beat_alone(values)
    further = {one: (high / low if low > 0.0 else None, find(best, one)) for one, (low, high) in ends.items()}
    equal = [one for one in runs if values[one].value == values[best].value]
    odds = {one: ahead for one, (_, ahead) in further.items() if ahead is not None}
    ratio, ahead = further[others[0]] if others else (None, None)
    return Choice(
        runs=tuple(runs),
        metric=metric,
        value=values[best],
        ratio=ratio,
        probability=min(odds.values(), default=None) if chance is None and others else chance,
        ahead=ahead,
        further=further,
        tied=tuple(sorted((one for one in odds if odds[one] < TOLD_APART and one not in equal), key=odds.__getitem__)),
        equal=tuple(equal) if len(equal) > 1 else (),
        per=per,
        model=model,
    )


def decide(choices: Sequence[Choice], runs: Mapping[int, Subject] | None = None) -> Decision:
    """Return the decision by the metrics of the first two choices among several runs; a third one breaks their tie, or
    tells what breaking the tie of the first one costs.

    With `runs`, runs of one name are one, such as the best batch of a chip by each metric, and a run without a known
    support of all operators has no probability.
    """
    asked = [one for one in choices if one.model == choices[0].model]
    ranked = [*first_of_each(asked, lambda one: one.metric).values()]
    named = {one: runs[one] for choice in ranked for one in choice.runs if one in runs} if runs else {}
    first, *others = (_merge(one, named) for one in ranked)
    second = others[0] if others else first
    band, fast = (_list_close(one) for one in (first, second))
    both = [one for one in band if one in second.close]
    third = [one for one in others[1:2] if not one.close.isdisjoint(both)]  # no odds of two runs that it puts behind
    last = third[0] if third and 1 < len(both) == len(band) else second
    taken = _find_first(last, both or band)
    abroad = {one for one, run in named.items() if taken in named and run.hardware != named[taken].hardware}
    rest = [one for one in first.runs if one in abroad] or [one for one in first.runs if one != taken]
    tied = [one for one in band if one in rest]
    if not both:
        rival: int | None = _find_first(first, fast)
    elif tied:
        rival = _find_first(last, [one for one in tied if one not in both] or tied)
    else:
        rival = next(iter(rest), None)
    deciding = (first, *others[:1], *(third if both and tied else ()))
    leads = [_compare(one, taken, rival) for one in deciding]
    is_costlier = any(one.metric in PAID and not one.is_better for one in leads)
    if rival is not None and len(both) == len((taken, rival)) and is_costlier and all(one.is_tied for one in leads):
        taken, rival = rival, taken
        leads = [_compare(one, taken, rival) for one in deciding]
    alike = [one for one in (both or band) if one != taken and (both or one != rival)]
    if not all(named[one].is_sure for one in (taken, first.run) if one in named):
        first = attrs.evolve(first, probability=None)
        leads = [attrs.evolve(one, probability=None) for one in leads]
    return Decision(
        runs=(taken,) if rival is None else (taken, rival),
        choice=first,
        leads=tuple(leads),
        is_trade=not both,
        alike=tuple(alike),
    )


def find_decision(facts: Facts) -> Decision | None:
    """Return the decision of an answer, which all its lines are about; None without a choice."""
    choices = facts.of(Choice)
    return decide(choices, facts.runs) if choices else None


def _merge(choice: Choice, runs: Mapping[int, Subject]) -> Choice:
    """Return a choice among names."""
    firsts: dict[tuple[str, ...], int] = {}
    known = {one: firsts.setdefault((run.hardware, *run.settings), one) for one, run in runs.items()}

    def merge(ids: Iterable[int]) -> tuple[int, ...]:
        return tuple(dict.fromkeys(known.get(one, one) for one in ids))

    further = {known.get(run, run): told for run, told in [*choice.further.items()][::-1]}
    tied, equal = merge(choice.tied), merge(choice.equal)
    return attrs.evolve(choice, runs=merge(choice.runs), further=further, tied=tied, equal=equal)


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
