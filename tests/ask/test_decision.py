"""Decisions between runs by one or two metrics, from all rankings of three runs with ties."""

from __future__ import annotations

import itertools

import pytest

from joulemap.ask.decision import decide
from joulemap.ask.fact import Choice, Quantity

RUNS = (1, 2, 3)
WORSE = 4


def make_choice(metric: str, order: tuple[int, ...], tied: tuple[int, ...]) -> Choice:
    further = {one: (1.1 + place, 0.7 + place / 10) for place, one in enumerate(order[1:])}
    ratio, ahead = further[order[1]]
    return Choice(runs=order, metric=metric, value=Quantity(1.0), ratio=ratio, ahead=ahead, tied=tied, further=further)


def list_choices(metric: str) -> list[Choice]:
    return [
        make_choice(metric, order, order[1 : 1 + count]) for order in itertools.permutations(RUNS) for count in range(3)
    ]


PAIRS = list(itertools.product(list_choices("energy"), list_choices("latency")))


@pytest.mark.parametrize("choices", PAIRS)
def test_a_decision_keeps_its_laws(choices: tuple[Choice, Choice]) -> None:
    decision = decide(choices)
    first, second = choices
    taken, both = decision.run, first.close & second.close
    assert taken in first.close
    assert decision.is_trade == (not both)
    if both:
        assert taken in both and set(decision.alike) == both - {taken}
    rival = decision.runs[1]
    assert rival != taken
    for lead, choice in zip(decision.leads, choices, strict=True):
        assert lead.is_tied == ({taken, rival} <= choice.close)
        assert lead.is_better == (choice.find_ratio(taken) < choice.find_ratio(rival))
    if both:
        assert decision.leads[0].is_tied == (len(first.close) > 1)  # a metric with ties is called a tie
    if both and len(first.close) == 1:
        assert decision.leads[0].ratio == min(first.find_ratio(one) for one in first.runs[1:])  # no far rival
    for more in (tuple(add_worse(one) for one in choices),):
        wider = decide(more)
        assert (wider.run, wider.leads, wider.is_trade, wider.alike) == (
            taken, decision.leads, decision.is_trade, decision.alike,
        )  # a worse run changes nothing  # fmt: skip


def add_worse(choice: Choice) -> Choice:
    order = (*choice.runs, WORSE)
    return make_choice(choice.metric, order, choice.tied)


@pytest.mark.parametrize("choice", list_choices("energy"))
def test_one_metric_decides_as_it_does_twice(choice: Choice) -> None:
    alone, twice = decide([choice]), decide([choice, choice])
    assert (alone.run, alone.alike) == (twice.run, twice.alike)


def test_a_run_alone_has_no_rival() -> None:
    decision = decide([Choice(runs=(1,), metric="energy", value=Quantity(1.0))])
    assert decision.runs == (1,)


def test_facing_another_run_keeps_what_is_known_of_the_first() -> None:
    choice = make_choice("energy", (1, 2, 3), ())
    faced = choice.facing(3)
    assert faced.runs == (1, 3, 2)
    assert faced.against(3) == choice.against(3) and faced.against(2) == choice.against(2)
