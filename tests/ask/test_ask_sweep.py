"""Facts of a sweep: choices and turns are those of the runs, and the words of each kind are short."""

from __future__ import annotations

import re
from typing import cast

import pytest

from compare import assert_close
from joulemap.ask.fact import Change, Choice, Entry, Facts, Limit, Quantity, Subject, Turn
from joulemap.ask.sweep import SweepAnswer
from joulemap.domain.metric import METRIC, MetricName
from joulemap.show.sweep import describe_answer, list_reasons, list_turns
from joulemap.workspace import Workspace

NUMBER = re.compile(r"(?<![\w.])\d[\d,.]*")
BATCHES = (1, 4, 16)


@pytest.fixture(scope="module")
def answer(workspace: Workspace) -> SweepAnswer:
    return workspace.sweep(
        ("resnet18", "mobilenet_v2"), hardware=["l4", "t4", "h100_sxm5", "kpu_t256"], batch=BATCHES, precision="int8",
        max_latency_s=1e-4,
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
        had = [row for row in answer.points if row.model == one.model and row.is_available and row.status == "ok"]
        ranked = sorted(had, key=lambda row: getattr(row, metric.column), reverse=metric.is_higher_better)
        best, rival = ranked[0], next(row for row in ranked if row.hardware != ranked[0].hardware)
        assert one.runs[:2] == (best.run_id, rival.run_id)
        ends = sorted((getattr(best, metric.column), getattr(rival, metric.column)))
        assert_close(one.ratio or 0.0, ends[1] / ends[0], rel=1e-12)
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
    assert_close(limit.value.value, least, rel=1e-12)


def test_every_series_is_an_entry_with_its_best_batches(answer: SweepAnswer) -> None:
    entries = answer.facts.of(Entry)
    assert len(entries) == len(answer.series)
    for one, row in zip(entries, answer.series, strict=True):
        assert_close(one.values["energy_per_inference"].value, row.energy_per_inference_j or 0.0, rel=1e-15)
        assert one.values["throughput_batch"].value == row.throughput_batch


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("models", "hardware"),
    [(("resnet18",), ("l4", "t4")), (("resnet18",), ("l4",)), (("resnet18", "mobilenet_v2"), ("l4", "h100_sxm5"))],
)
def test_the_first_line_is_short(
    models: str | tuple[str, ...], hardware: tuple[str, ...], workspace: Workspace
) -> None:
    told = describe_answer(workspace.sweep(models, hardware=hardware, batch=(1, 8), precision="fp16").facts)
    for name in ("h100_sxm5", "l4", "t4"):
        told = told.replace(name, "chip")
    assert len(told.split()) <= 25
    assert len(NUMBER.findall(told)) <= 5


def test_words_of_turns_and_falls() -> None:
    runs = {1: Subject(hardware="a"), 2: Subject(hardware="b"), 3: Subject(hardware="a"), 4: Subject(hardware="c")}
    facts = Facts(
        asked=("energy_per_inference",),
        runs=runs,
        facts=(
            Turn(runs=(1,), axis="batch", after=1, metric="energy_per_inference"),
            Turn(runs=(2, 3), axis="batch", after=8, metric="energy_per_inference", is_tied=True),
            Turn(runs=(4,), axis="batch", after=64, metric="energy_per_inference", is_forced=True),
            Turn(runs=(1,), axis="batch", after=1, metric="latency"),
            Turn(runs=(1,), axis="batch", after=1, metric="edp"),
            Change(
                runs=(1, 3), metric="throughput", before=Quantity(2e3, "1/s"), after=Quantity(1e3, "1/s"),
                cause="clock", values={"batch": 4, "last_batch": 8, "clock_fraction": 0.5},
            ),
        ),
    )  # fmt: skip
    assert list_turns(facts) == [
        "energy per inference: a is best from batch 1, b from batch 8 (statistically tied), c from batch 64 (which b "
        "cannot run)",
        "latency and energy x delay: a is best at every batch",
    ]
    assert list_reasons(facts)[-1] == (
        "a: throughput falls from 2k/s at batch 4 to 1k/s at batch 8, because the power cap lowers the clock to 50.0 %"
    )
