"""Facts of contests: wins are those of the rows, the best in all is that of the runs; first lines are short."""

from __future__ import annotations

import re
from collections.abc import Sequence

import attrs
import pytest

from compare import assert_close
from joulemap.ask.fact import Change, Choice, Facts, Quantity, Subject, Win
from joulemap.domain.metric import PART_METRICS, PartMetricName
from joulemap.domain.settings import ModelDivision
from joulemap.show.win import (
    describe_models,
    describe_parts,
    describe_wins,
    list_model_reasons,
    list_part_reasons,
)
from joulemap.workspace import Workspace

CHIPS = ("l4", "t4", "raspberry_pi_5")
NUMBER = re.compile(r"(?<![\w.])\d[\d,.]*")
LONG = ("a_chip_with_28_characters_aa", "a_chip_with_28_characters_bb")
RUNS = {1: Subject(hardware=LONG[0]), 2: Subject(hardware=LONG[1]), 3: Subject(hardware="c", is_available=False)}


def win(run_id: int, count: int, tied: int = 0, *, level: str = "subgraph", metric: str = "edp", total: int = 9) -> Win:
    kinds = (("conv2d", count, total),) if count else ()
    return Win(runs=(run_id,), metric=metric, level=level, count=count, total=total, tied=tied, kinds=kinds)


def lead(winner: int, other: int, *, tied: bool = False, metric: str = "edp") -> Choice:
    value = Quantity(1.0, "J")
    ids = (other,) if tied else ()
    return Choice(
        runs=(winner, other), metric=metric, value=value, ratio=2.0, probability=0.5 + 0.4 * (not tied), tied=ids
    )


def make(*facts: Win | Choice | Change, metric: str = "edp") -> Facts:
    return Facts(asked=(metric,), runs=RUNS, facts=facts)


@pytest.mark.sample(1)
@pytest.mark.parametrize("level", ["subgraph", "operator"])
@pytest.mark.parametrize("metric", PART_METRICS)
def test_wins_are_those_of_the_rows(level: ModelDivision, metric: PartMetricName, workspace: Workspace) -> None:
    answer = workspace.compare_parts("mlperf_tiny_ic", by=level, metric=metric, hardware=CHIPS, precision="int8")
    rows = {row.hardware: row for row in answer.victories}
    wins = {answer.facts.runs[one.runs[0]].hardware: one for one in answer.facts.of(Win)}
    assert all(row.hardware_won_count + row.hardware_tied_count == 0 or name in wins for name, row in rows.items())
    for name, one in wins.items():
        counts = (rows[name].hardware_won_count, rows[name].hardware_tied_count, rows[name].all_part_count)
        assert (one.count, one.tied, one.total) == counts
        kinds = {row.kind: (row.won_count, row.part_count) for row in answer.victories if row.hardware == name}
        assert {kind: (won, total) for kind, won, total in one.kinds} == {k: v for k, v in kinds.items() if v[0]}
    for choice in answer.facts.of(Choice):
        own = sum(row.value for row in answer.rows if row.run_id == choice.runs[0])
        other = sum(row.value for row in answer.rows if row.run_id == choice.runs[1])
        assert_close(choice.value.value, own, rel=1e-9)
        assert choice.ratio is not None
        assert_close(choice.ratio, other / own, rel=1e-9)
    assert bool(answer.facts.of(Choice)) == (metric != "memory")  # off-chip bytes are no metric of a run


def test_available_hardware_wins_among_itself_and_other_hardware_among_all(workspace: Workspace) -> None:
    chips = ["l4", "t4", "kpu_t256"]
    answer = workspace.compare_parts("conv_block", metric="edp", hardware=chips, precision="int8")
    wins = {answer.facts.runs[one.runs[0]].hardware: one for one in answer.facts.of(Win)}
    had = [one for name, one in wins.items() if name != "kpu_t256"]
    assert sum(one.count for one in had) == had[0].total
    assert "kpu" not in describe_parts(answer.facts)
    assert "~kpu_t256" in list_part_reasons(answer.facts)[-1]
    assert any("would" in line for line in describe_wins(answer.facts))


@pytest.mark.slow
def test_one_available_chip_competes_with_what_cannot_be_bought(workspace: Workspace) -> None:
    models = ["mlperf_tiny_ic", "conv_block"]
    answer = workspace.compare_models(models, metric="edp", hardware=["l4", "kpu_t256"], precision="int8")
    assert {len(one.runs) for one in answer.facts.of(Choice)} == {2}
    assert sum(one.count for one in answer.facts.of(Win)) == 2


@pytest.mark.slow
def test_models_have_a_choice_each_and_chips_their_spread(workspace: Workspace) -> None:
    models = ["mlperf_tiny_ic", "conv_block"]
    answer = workspace.compare_models(models, hardware=["l4", "t4"], precision="fp16")
    rows = {row.run_id: row for row in answer.rows}
    for one in answer.facts.of(Choice):
        assert rows[one.runs[0]].hardware_rank == 1 and rows[one.runs[0]].model == one.model
        assert_close(one.ratio or 0.0, rows[one.runs[1]].hardware_ratio or 0.0, rel=1e-9)
    for change in answer.facts.of(Change):
        low, high = (rows[run_id] for run_id in change.runs)
        assert low.model_rank == 1 and low.hardware == high.hardware
        assert_close(change.after.value / change.before.value, high.model_ratio or 0.0, rel=1e-9)
    (first, *_) = answer.facts.of(Win)
    assert first.count == max(row.hardware_won_count for row in answer.rows) and first.total == 2


@pytest.mark.sample(1)
@pytest.mark.parametrize("metric", PART_METRICS)
def test_models_are_compared_by_every_metric(metric: PartMetricName, workspace: Workspace) -> None:
    answer = workspace.compare_models(["mlperf_tiny_ic", "conv_block"], metric=metric, hardware=["l4", "t4"])
    assert len(answer.facts.of(Choice)) == 2
    alone = workspace.compare_models(["mlperf_tiny_ic", "conv_block"], metric=metric, hardware="l4")
    assert not alone.facts.of(Win)
    assert describe_models(alone.facts).startswith("On l4, ")


@pytest.mark.parametrize(
    "facts",
    [
        [win(1, 8), win(2, 1), lead(1, 2)],
        [win(1, 5), win(2, 4), lead(2, 1)],
        [win(1, 5), win(2, 4), lead(2, 1, tied=True)],
        [win(1, 4, 1), win(2, 4, 1), lead(2, 1)],
        [win(1, 0, 9), win(2, 0, 9)],
        [win(3, 9), lead(3, 1)],
        [lead(1, 2)],
    ],
)
def test_the_first_line_is_short(facts: Sequence[Win | Choice]) -> None:
    told = describe_parts(make(*facts))
    assert len(told.split()) <= 25
    for name in LONG:
        told = told.replace(name, "chip")
    assert len(NUMBER.findall(told)) <= 5


def test_words_of_a_winner_by_count_that_is_not_the_best_in_all() -> None:
    told = describe_parts(make(win(1, 5), win(2, 4), lead(2, 1, metric="latency"), metric="latency"))
    assert told == (
        f"{LONG[0]} has the lowest energy x delay for 5 of 9 subgraphs, but in all {LONG[1]} is 2x faster than "
        f"{LONG[0]} (90 % sure)."
    )
    assert not any(line.startswith("in all") for line in list_part_reasons(make(win(1, 5), win(2, 4), lead(2, 1))))
    assert list_part_reasons(make(win(1, 9), lead(1, 2)))[0].startswith("in all")
    only = make(
        Win(runs=(1,), metric="energy", level="subgraph", count=2, total=2, kinds=(("conv2d", 1, 1), ("add", 1, 1)))
    )
    assert describe_parts(only) == f"{LONG[0]} has the lowest energy for both subgraphs."
    assert list_part_reasons(only) == [f"{LONG[0]} leads on the only conv2d and the only add"]


def test_words_of_ties_and_of_models() -> None:
    tie = describe_parts(make(win(1, 0, 9, metric="memory"), win(2, 0, 9, metric="memory")))
    assert tie == f"{LONG[0]} and {LONG[1]} tie for the lowest off-chip traffic of all 9 subgraphs."
    wins = (win(1, 2, level="model", total=3), win(2, 1, level="model", total=3))
    facts = make(attrs.evolve(lead(1, 2, tied=True), model="m"), *wins)
    assert describe_models(facts) == (
        f"{LONG[0]} has the lowest energy x delay for 2 of 3 models, statistically tied for 1 of them."
    )
    assert list_model_reasons(facts) == [
        f"m: {LONG[0]} is statistically tied with {LONG[1]} on energy x delay (50 % likely best)"
    ]
