"""Words for choices: a declared metric is named and has a clause on its winner without further words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import attrs
import pytest

from joulemap.ask.decision import decide
from joulemap.ask.fact import Choice, Quantity, Subject
from joulemap.domain.metric import METRIC, Metric, MetricName
from joulemap.show.choice import DEGREES, describe_choice, describe_choices, name_metric
from joulemap.show.word import read_words

RUNS: Mapping[int, Subject] = {1: Subject(hardware="l4"), 2: Subject(hardware="t4")}


def choose(metric: str) -> Choice:
    return Choice(runs=(1, 2), metric=metric, value=Quantity(3.0), ratio=1.5, ahead=0.99)


@pytest.mark.parametrize(("is_higher_better", "clause"), [(False, "uses 1.5x less"), (True, "has 1.5x more")])
def test_a_declared_metric_needs_no_words_of_its_own(
    *, is_higher_better: bool, clause: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = cast("MetricName", "noise_level")
    declared: Metric = attrs.evolve(METRIC["power"], name=name, label="noise", is_higher_better=is_higher_better)
    monkeypatch.setitem(METRIC, name, declared)
    assert name_metric(name) == "noise"
    told = describe_choice(choose(name), RUNS)
    assert told.startswith(f"{clause} noise")
    assert name not in told


@pytest.mark.parametrize("metric", read_words().better)
def test_words_of_a_wing_say_which_of_both_is_better(metric: str) -> None:
    better, worse = (
        read_words().better[metric](ratio=2.0, rival="t4", noun=name_metric(metric), per="token", **DEGREES[is_better])
        for is_better in (True, False)
    )
    assert better != worse


def make_tie(metric: str, order: tuple[int, int], tied: tuple[int, ...]) -> Choice:
    return Choice(runs=order, metric=metric, value=Quantity(3.0), ratio=1.5, ahead=0.7, tied=tied)


def test_of_two_runs_that_are_tied_by_every_metric_the_cheaper_one_is_taken() -> None:
    on_energy = [make_tie("energy", (1, 2), (2,)), make_tie("latency", (2, 1), (1,))]
    on_cost = [make_tie("time_per_token", (1, 2), (2,)), make_tie("usd_per_million", (2, 1), (1,))]
    told = describe_choices(on_energy, RUNS)
    assert told.startswith("l4 for energy, t4 for speed, both ties") and told.endswith("take the cheaper.")
    told = describe_choices(on_cost, RUNS)
    assert told.startswith("Take t4: ") and told.endswith("both ties.") and "cheaper" not in told
    assert decide(on_cost, RUNS).runs == (2, 1)


def test_hardware_that_cannot_be_bought_is_the_subject_of_its_own_clause() -> None:
    runs = {key: attrs.evolve(run, is_available=False) for key, run in RUNS.items()}
    told = describe_choices([make_tie("energy", (1, 2), ()), make_tie("latency", (1, 2), (2,))], runs)
    assert "latency is a tie; " in told and told.endswith("l4 cannot be bought.")
