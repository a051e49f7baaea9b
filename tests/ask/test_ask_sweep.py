"""Facts of a sweep: choices and turns are those of the runs, and the words of each kind are short."""

from __future__ import annotations

from typing import cast

import pytest

from compare import assert_close
from joulemap.ask.fact import Choice, Limit, Turn
from joulemap.ask.sweep import SweepAnswer
from joulemap.domain.metric import METRIC, MetricName
from joulemap.workspace import Workspace

BATCHES = (1, 4, 16)
LIMIT_S = 3e-4


@pytest.fixture(scope="module")
def answer(workspace: Workspace) -> SweepAnswer:
    return workspace.sweep(
        ("resnet18", "mobilenet_v2"), hardware=["l4", "t4", "h100_sxm5", "kpu_t256"], batch=BATCHES, precision="int8",
        max_latency_s=LIMIT_S,
    )  # fmt: skip


def test_choices_are_the_best_runs_of_available_chips(answer: SweepAnswer) -> None:
    runs = answer.facts.runs
    models = list(dict.fromkeys(row.model for row in answer.points))
    decided = answer.facts.of(Choice)[: 2 * len(models)]
    assert [(one.model, one.metric) for one in decided] == [
        (model, metric) for model in models for metric in ("energy_per_inference", "throughput")
    ]
    for one in decided:
        metric = METRIC[cast("MetricName", one.metric)]
        ran = [row for row in answer.points if row.model == one.model and row.is_available and row.status == "ok"]
        had = [row for row in ran if row.latency_s is not None and row.latency_s <= LIMIT_S]
        ranked = sorted(had, key=lambda row: getattr(row, metric.column), reverse=metric.is_higher_better)
        best, rival = ranked[0], next(row for row in ranked if row.hardware != ranked[0].hardware)
        assert one.runs[:2] == (best.run_id, rival.run_id)
        ends = sorted((getattr(best, metric.column), getattr(rival, metric.column)))
        assert_close(one.ratio or 0.0, ends[1] / ends[0])
        assert all(runs[other].is_available for other in one.runs)


def test_turns_follow_the_best_available_chip(answer: SweepAnswer) -> None:
    runs, points = answer.facts.runs, {row.run_id: row for row in answer.points}
    courses: dict[tuple[tuple[str, ...], str], dict[int, str]] = {}
    for one in answer.facts.of(Turn):
        assert one.metric is not None
        courses.setdefault((one.settings, one.metric), {})[points[one.runs[0]].batch] = runs[one.runs[0]].hardware
        assert one.after == points[one.runs[0]].batch
        assert one.is_forced or [points[run].batch for run in one.runs[1:]] in ([], [one.after])
    assert len(courses) == 6
    for ((model,), metric), course in courses.items():
        best = ""
        for batch in BATCHES:
            rows = [row for row in answer.points if (row.model, row.batch, row.is_available) == (model, batch, True)]
            best = course.get(batch, best)
            assert best == min(rows, key=lambda row: getattr(row, METRIC[cast("MetricName", metric)].column)).hardware


def test_the_chips_beyond_a_limit_are_counted_once(answer: SweepAnswer) -> None:
    (limit,) = answer.facts.of(Limit)
    beyond = {row.hardware for row in answer.series if row.budget_batch is None}
    assert {answer.facts.runs[one].hardware for one in limit.runs} == beyond
    least = min(row.least_latency_s or 1.0 for row in answer.series if row.budget_batch is None)
    assert limit.value is not None
    assert_close(limit.value.value, least)
