"""Words for choices: a declared metric is named and has a clause on its winner without further words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import attrs
import pytest

from joulemap.ask.fact import Choice, Quantity, Subject
from joulemap.domain.metric import METRIC, Metric, MetricName
from joulemap.show.choice import describe_choice, name_metric

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
