"""Facts of a ranking: winner, lead and chance are those of the rows and of `compare`; the first line is short."""

from __future__ import annotations

import pytest

from joulemap.ask.fact import Choice
from joulemap.show.choice import describe_answer
from joulemap.show.term import describe_gap
from joulemap.store.library import find_query
from joulemap.store.query import run_query
from joulemap.workspace import Workspace
from ledger import Book, Part


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


def test_a_named_chip_that_nobody_sells_is_a_reason(workspace: Workspace) -> None:
    chips = ["l4", "t4", "kpu_t256"]
    answer = workspace.compare("resnet18", metric="power", hardware=chips, precision="int8")
    own, *_, beyond = answer.facts.of(Choice)
    assert answer.facts.runs[own.runs[0]].is_available
    assert beyond.runs[1] == own.runs[0] and not answer.facts.runs[beyond.runs[0]].is_available
    assert "kpu" not in describe_answer(answer.facts)
    assert any("~kpu_t256" in one for one in describe_gap(answer.facts))
