"""Decisions between runs by one or two metrics, from choices that hypothesis makes up."""

from __future__ import annotations

import itertools

import pytest

from joulemap.ask.decision import decide
from joulemap.ask.fact import Choice, Decision, Quantity

RUNS = (1, 2, 3)


def make_choice(metric: str, order: tuple[int, ...], tied: tuple[int, ...]) -> Choice:
    further = {one: (1.0 + place, 0.7 + place / 10) for place, one in enumerate(order[1:])}
    return Choice(runs=order, metric=metric, value=Quantity(1.0), ratio=1.0, ahead=0.7, tied=tied, further=further)


def list_choices(metric: str) -> list[Choice]:
    return [
        make_choice(metric, order, order[1 : 1 + count]) for order in itertools.permutations(RUNS) for count in range(3)
    ]


PAIRS = list(itertools.product(list_choices("energy"), list_choices("latency")))


@pytest.mark.parametrize("choices", PAIRS[::7])
def test_a_run_that_may_be_the_best_by_both_metrics_is_taken(choices: tuple[Choice, Choice]) -> None:
    decision: Decision = decide(choices)
    both = choices[0].close & choices[1].close
    taken, rival = decision.runs
    assert taken != rival
    assert decision.is_trade == (not both)
    if both:
        assert taken in both and both - {taken} == set(decision.alike)
    else:
        assert decision.runs == (choices[0].runs[0], choices[1].runs[0])
    for lead, choice in zip(decision.leads, choices, strict=True):
        assert lead.is_tied == ({taken, rival} <= choice.close)
        told = choice.runs[0] in decision.runs
        assert (lead.ratio is not None) == told
        if told and not lead.is_tied:
            assert lead.is_better == (choice.runs[0] == taken)
            assert decision.is_trade or lead.is_better


def test_facing_another_run_keeps_what_is_known_of_the_first() -> None:
    choice = make_choice("energy", (1, 2, 3), ())
    faced = choice.facing(3)
    assert faced.runs == (1, 3, 2)
    assert faced.against(3) == choice.against(3) and faced.against(2) == choice.against(2)
