"""Facts of utilization: shares of the peak, limits and remedies are those of the rows."""

from __future__ import annotations

import pytest

from compare import assert_close
from joulemap.ask.fact import Choice, Limit, Share, Turn
from joulemap.ask.utilization import UtilizationAnswer, rank_remedies
from joulemap.show.utilization import UTILIZATION
from joulemap.workspace import Workspace

METRICS = {"low_compute": "utilization", "high_bandwidth": "bandwidth", "idle_units": "idle"}


@pytest.fixture(scope="module")
def answer(workspace: Workspace) -> UtilizationAnswer:
    return workspace.utilization("resnet18", hardware=["l4", "h100_sxm5", "coral_edge_tpu"], precision="int8")


def test_chips_are_in_the_order_of_their_use(answer: UtilizationAnswer) -> None:
    used = answer.used
    (choice,) = answer.facts.of(Choice)
    assert choice.runs == tuple(row.run_id for row in used)
    grades = [one for one in answer.facts.of(Share) if one.level == "grade"]
    assert [(one.name, one.share) for one in grades] == [
        (row.compute_grade, row.compute_utilization_fraction) for row in used
    ]


def test_limits_are_the_flags_least_used_chips_first(answer: UtilizationAnswer) -> None:
    limits = answer.facts.of(Limit)
    assert {(one.runs[0], one.metric, one.bound.value) for one in limits} == {
        (row.run_id, METRICS[row.flag], row.limit_fraction) for row in answer.flags
    }
    order = [row.run_id for row in reversed(answer.used)]
    places = [order.index(one.runs[0]) for one in limits]
    assert places == sorted(places)


def test_turns_are_the_remedies_of_the_least_used_chip(answer: UtilizationAnswer) -> None:
    worst = answer.used[-1]
    better = rank_remedies(worst, answer.remedies or ())
    turns = answer.facts.of(Turn)
    assert [one.after for one in turns] == [one.choice for one in better]
    for turn, row in zip(turns, better, strict=True):
        assert turn.of == (worst.run_id,)
        assert_close(turn.ratio or 0.0, row.throughput_ratio, rel=1e-12)
    assert len(UTILIZATION.tell(answer.facts).split()) <= 25
    assert 0 < len(UTILIZATION.explain(answer.facts)) <= 3
