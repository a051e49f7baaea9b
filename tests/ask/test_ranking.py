"""Facts of a ranking: winner, lead and chance are those of the rows and of `compare`; the first line is short."""

from __future__ import annotations

import math
import re

import pytest

from compare import assert_close
from joulemap.ask.fact import Choice, Entry, Facts, Quantity, Share, Subject
from joulemap.domain.metric import RANK_METRICS, RankMetricName
from joulemap.show.choice import describe_best
from joulemap.show.ranking import list_reasons
from joulemap.store.library import find_query
from joulemap.store.query import run_query
from joulemap.workspace import Workspace
from ledger import Book, Part

CHIPS = ("l4", "t4", "h100_sxm5")
NUMBER = re.compile(r"(?<![\w.])\d[\d,.]*")
COLUMN = {
    "latency": "latency_s", "throughput": "throughput_per_s", "power": "average_power_w",
    "efficiency": "inferences_per_j", "energy_per_inference": "energy_per_inference_j",
}  # fmt: skip


@pytest.mark.parametrize("metric", ["latency", "throughput", "memory"])
def test_standings_worked_out_by_hand(metric: str) -> None:
    book = Book()
    for hardware, time_s in (("a", 2.0), ("b", 1.0), ("c", 2.0)):
        book.add_run([Part(time_s=time_s, compute_j=1.0)], hardware=hardware)
    book.add_run([], hardware="d", refusal="d has no fp32")
    given = {"run_ids": [1, 2, 3, 4], "metric": metric}
    rows = run_query(book.connection, find_query("compare.standing"), given).records()
    assert [row["hardware"] for row in rows] == (["a", "b", "c"] if metric == "memory" else ["b", "a", "c"])
    assert [(row["rank"], row["likely_best"]) for row in rows] == [(1, True), (2, False), (3, False)]
    assert {row["probability_best"] for row in rows} == {None}  # a run without an interval


@pytest.mark.sample(1)
@pytest.mark.parametrize("sort", RANK_METRICS)
def test_the_choice_is_the_first_row(sort: RankMetricName, workspace: Workspace) -> None:
    answer = workspace.rank_hardware("resnet18", sort=sort, hardware=CHIPS, precision="fp16")
    (choice,) = answer.facts.of(Choice)
    rows = {row.run_id: row for row in answer.rows}
    ranked = sorted(rows.values(), key=lambda row: row.rank or math.inf)
    assert choice.runs == tuple(row.run_id for row in ranked)
    assert choice.ratio is not None
    assert_close(choice.ratio, ranked[1].best_ratio or 0.0, rel=1e-12)
    for one in answer.facts.of(Entry):
        assert_close(one.values[choice.metric].value, getattr(rows[one.runs[0]], COLUMN[choice.metric]), rel=1e-12)
        assert one.values[choice.metric].half_width
    told = describe_best(answer.facts)
    for name in CHIPS:
        told = told.replace(name, "chip")
    assert len(told.split()) <= 25
    assert len(NUMBER.findall(told)) <= 5


@pytest.mark.sample(1)
@pytest.mark.parametrize(("sort", "metric"), [("latency", "latency"), ("efficiency", "energy")])
def test_a_ranking_is_as_sure_as_a_comparison(sort: RankMetricName, metric: str, workspace: Workspace) -> None:
    own = workspace.rank_hardware("resnet18", sort=sort, hardware=CHIPS, precision="fp16").facts.of(Choice)[0]
    compared = workspace.compare("resnet18", hardware=CHIPS, precision="fp16").facts.of(Choice)
    (other,) = (one for one in compared if one.metric == metric)
    assert own.runs[:2] == other.runs[:2]
    assert own.probability is not None and other.probability is not None
    assert_close(own.probability, other.probability, rel=1e-9)


def test_limits_are_those_of_the_first_two_and_of_the_strengths(workspace: Workspace) -> None:
    answer = workspace.rank_hardware("resnet18", hardware=CHIPS, precision="fp16")
    values = {(row.run_id, row.aspect): row.value for row in answer.strengths}
    first = answer.facts.of(Choice)[0].runs[:2]
    shares = answer.facts.of(Share)
    assert shares and {one.runs[0] for one in shares} <= set(first)
    for one in shares:
        aspect = {"utilization": "utilization", "units": "idle"}.get(one.metric, one.name)
        assert_close(one.share, values[one.runs[0], aspect], rel=1e-12)


def test_a_named_chip_that_nobody_sells_is_a_reason(workspace: Workspace) -> None:
    chips = ["l4", "t4", "kpu_t256"]
    answer = workspace.rank_hardware("resnet18", sort="power", hardware=chips, precision="int8")
    own, beyond = answer.facts.of(Choice)
    assert answer.best_available is not None and own.runs[0] == answer.best_available.run_id
    assert beyond.runs[1] == own.runs[0] and not answer.facts.runs[beyond.runs[0]].is_available
    assert "kpu" not in describe_best(answer.facts)
    assert "~kpu_t256" in list_reasons(answer.facts)[-1]


def test_words_of_one_chip_and_of_what_limits_it() -> None:
    choice = Choice(runs=(1,), metric="latency", value=Quantity(1e-3, "s"))
    shares = (
        Share(runs=(1,), metric="utilization", name="utilization", share=0.1),
        Share(runs=(1,), metric="units", name="SM", share=0.5),
        Share(runs=(1,), metric="latency", name="launch", share=0.25),
    )
    facts = Facts(asked=("latency",), runs={1: Subject(hardware="a")}, facts=(choice, *shares))
    assert describe_best(facts) == "a is the only chip that was compared; latency: 1 ms."
    assert list_reasons(facts) == [
        "a reaches 10.0 % of its compute peak, leaves its SMs idle 50.0 % of the time and "
        "spends 25.0 % of the time in kernel launches"
    ]
