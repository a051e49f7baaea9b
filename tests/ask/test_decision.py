"""Decisions between runs by one or two metrics, from all rankings of three runs with ties."""

from __future__ import annotations

import itertools
import math

import pytest

from compare import assert_close
from joulemap.ask.decision import choose, decide, list_sold
from joulemap.ask.fact import Choice, Lead, Quantity, Subject
from joulemap.physics.interval.probability import probability_better

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


@pytest.mark.parametrize("values", itertools.permutations((1.0, 1.3, 4.0)))
def test_a_ranking_is_by_value_and_ties_are_those_that_the_winner_hardly_beats(values: tuple[float, ...]) -> None:
    known = {run: Quantity(value, "J", 0.5) for run, value in zip(RUNS, values, strict=True)}
    choice = choose("energy", known)
    assert list(choice.runs) == sorted(RUNS, key=lambda run: known[run].value)
    first, second, third = choice.runs
    assert choice.tied == (second,) and choice.close == {first, second}
    assert_close(choice.find_ratio(third), 4.0)
    assert choice.probability == choice.ahead  # it is the best at most as surely as it beats the closest one
    most = choose("throughput", known)
    assert most.runs == choice.runs[::-1]
    assert choose("memory", {run: Quantity(1.0, "B") for run in RUNS}).equal == RUNS


def test_a_third_metric_breaks_a_tie_of_two() -> None:
    tied = [make_choice(metric, RUNS, RUNS[1:]) for metric in ("energy", "latency")]
    cost = make_choice("cost", RUNS[::-1], ())
    assert decide([*tied, cost]).run == RUNS[-1] and not decide([*tied, cost]).leads[-1].is_tied
    apart = [make_choice("energy", RUNS, ()), tied[1]]
    assert decide([*apart, cost]).run == RUNS[0] and len(decide([*apart, cost]).leads) == 2


def test_a_tie_on_both_metrics_faces_a_run_that_the_second_one_tells_apart() -> None:
    energy, latency = make_choice("energy", RUNS, RUNS[1:]), make_choice("latency", RUNS, RUNS[1:2])
    decision = decide([energy, latency])
    assert (decision.runs, decision.alike) == ((1, 3), (2,))
    assert [one.is_tied for one in decision.leads] == [True, False]


def test_runs_of_one_name_are_one() -> None:
    names = {1: Subject(hardware="l4"), 2: Subject(hardware="t4"), 3: Subject(hardware="l4")}
    choices = [make_choice("energy", (1, 2), ()), make_choice("throughput", (3, 2), ())]
    assert decide(choices).is_trade and not decide(choices, names).is_trade


def test_what_is_on_sale_goes_first_if_anything_is() -> None:
    assert list_sold(RUNS, lambda run: run > 1) == [2, 3]
    assert list_sold(RUNS, lambda _: False) == [1, 2, 3]


@pytest.mark.parametrize(("ratio", "half_width"), [(1.5, 0.2), (2.5, 0.6), (8.0, 1.2)])
def test_the_range_of_a_ratio_is_that_of_its_probability(ratio: float, half_width: float) -> None:
    chance = probability_better(ratio, half_width)
    lead = Lead(metric="energy", ratio=ratio, probability=chance, is_better=True, is_tied=False)
    assert lead.ends is not None
    assert_close(lead.ends[0], ratio * math.exp(-half_width), rel=1e-6)
    assert_close(lead.ends[1], ratio * math.exp(half_width), rel=1e-6)


def test_a_run_that_leads_by_a_third_metric_changes_nothing_about_two_tied_ones() -> None:
    pair = [
        make_choice("latency", (1, 2), (2,)),
        make_choice("usd_per_million", (2, 1), (1,)),
        make_choice("decode_energy_per_token", (1, 2), (2,)),
    ]
    wider = [*(add_worse(one) for one in pair[:2]), make_choice("decode_energy_per_token", (WORSE, 1, 2), ())]
    alone, beside = decide(pair), decide(wider)
    assert alone.runs == beside.runs == (2, 1)
    assert beside.leads == alone.leads[:2]
