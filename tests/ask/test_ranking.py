"""Facts of a ranking: winner, lead and chance are those of the rows and of `compare`; the first line is short."""

from __future__ import annotations

import pytest

from compare import assert_close
from joulemap.ask.fact import Choice
from joulemap.domain.metric import RankMetricName
from joulemap.show.choice import describe_best
from joulemap.show.ranking import list_reasons
from joulemap.store.library import find_query
from joulemap.store.query import run_query
from joulemap.workspace import Workspace
from ledger import Book, Part

CHIPS = ("l4", "t4", "h100_sxm5")


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
@pytest.mark.parametrize(("sort", "metric"), [("latency", "latency"), ("efficiency", "energy")])
def test_a_ranking_is_as_sure_as_a_comparison(sort: RankMetricName, metric: str, workspace: Workspace) -> None:
    own = workspace.rank_hardware("resnet18", sort=sort, hardware=CHIPS, precision="fp16").facts.of(Choice)[0]
    compared = workspace.compare("resnet18", hardware=CHIPS, precision="fp16").facts.of(Choice)
    (other,) = (one for one in compared if one.metric == metric)
    assert own.runs[0] == other.runs[0]
    assert own.against(own.runs[1]) == pytest.approx(other.against(own.runs[1]), rel=1e-9)
    assert_close(own.probability, other.probability)


def test_a_named_chip_that_nobody_sells_is_a_reason(workspace: Workspace) -> None:
    chips = ["l4", "t4", "kpu_t256"]
    answer = workspace.rank_hardware("resnet18", sort="power", hardware=chips, precision="int8")
    own, beyond = answer.facts.of(Choice)
    assert answer.best_available is not None and own.runs[0] == answer.best_available.run_id
    assert beyond.runs[1] == own.runs[0] and not answer.facts.runs[beyond.runs[0]].is_available
    assert "kpu" not in describe_best(answer.facts)
    assert "~kpu_t256" in list_reasons(answer.facts)[-1]
