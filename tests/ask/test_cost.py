"""Facts of a cost: the cheapest chip, the other way of paying and the break-even are those of the rows."""

from __future__ import annotations

from typing import Any

import pytest

from compare import assert_close
from joulemap.ask.cost import CostAnswer
from joulemap.ask.decision import find_decision
from joulemap.ask.fact import Caveat, Choice, Turn
from joulemap.domain.settings import Price, Site
from joulemap.show.cost import list_reasons
from joulemap.workspace import Workspace

CHIPS = ("l4", "t4", "a10", "kpu_t256", "groq_tsp_v1")


@pytest.fixture(scope="module")
def answer(workspace: Workspace) -> CostAnswer:
    return workspace.cost("conv_block", hardware=list(CHIPS), batch=(1, 8), precision=("int8",))


def test_the_cheaper_way_of_paying_is_taken(answer: CostAnswer, workspace: Workspace) -> None:
    (volume,) = answer.facts.of(Turn)
    even, best = answer.break_even, answer.best
    assert even is not None and best is not None
    assert volume.after == even.break_even_inferences
    assert set(volume.runs) == {even.run_a, even.run_b}
    ways = [
        workspace.cost("conv_block", hardware=list(CHIPS), batch=(1, 8), precision=("int8",), site=Site(pay=pay)).best
        for pay in ("rented", "bought")
    ]
    assert_close(best.usd_per_million, min(one.usd_per_million or 0.0 for one in ways if one is not None))


def test_of_tied_costs_the_lower_one_is_taken(workspace: Workspace) -> None:
    answer = workspace.cost("llama-3.1-8b", hardware=["l4", "h100_sxm5"])
    first = answer.facts.of(Choice)[0]
    decision = find_decision(answer.facts)
    assert decision is not None and first.tied and decision.run == first.run


def test_a_price_weighs_as_the_interval_of_its_part_of_the_cost(answer: CostAnswer, workspace: Workspace) -> None:
    rival = answer.facts.of(Choice)[0].runs[1]
    rows = {row.run_id: row for row in answer.rows if row.rank is not None}
    asked: dict[str, Any] = {"hardware": list(CHIPS), "batch": (1, 8), "precision": ("int8",)}
    rented = workspace.cost("conv_block", **asked, site=Site(pay="rented"))
    first = rented.facts.of(Choice)[0].runs[0]
    by_run = {one.runs[0]: one for one in rented.facts.of(Caveat) if one.kind == "priced"}
    prices = {row.run_id: row.price_half_width for row in rented.rows if row.rank is not None}
    assert_close(by_run[first].weight, prices[first])  # a rent is the whole cost
    given = (Price(hardware="l4", usd_per_hour=0.1), Price(hardware="t4", usd_per_hour=0.2))
    exact = workspace.cost(
        "conv_block", hardware=["l4", "t4"], batch=(8,), precision=("int8",), site=Site(prices=given)
    )
    assert {one.kind for one in exact.facts.of(Caveat)} & {"priced", "given"} == {"given"}
    assert rival in rows


def test_a_price_has_one_range_in_every_ranking_by_cost(workspace: Workspace) -> None:
    asked: dict[str, Any] = {
        "hardware": ["l4", "t4"],
        "precision": ("int8",),
        "batch": (32,),
        "site": Site(pay="bought"),
    }
    ranked = workspace.cost("resnet18", **asked), workspace.recommend("resnet18", objective="cost", **asked)
    prices = [next(one.values["price"] for one in answer.facts.of(Caveat) if one.kind == "priced") for answer in ranked]
    assert prices[0] == prices[1]


def test_chips_without_a_price_are_named_and_chips_that_nobody_sells_do_not_lead(workspace: Workspace) -> None:
    rented = Site(pay="rented")
    answer = workspace.cost("conv_block", hardware=list(CHIPS), batch=(1, 8), precision=("int8",), site=rented)
    (lost,) = (one for one in answer.facts.of(Caveat) if one.kind == "unoffered")
    assert {answer.facts.runs[one].hardware for one in lost.runs} == {"groq_tsp_v1"}
    reasons = list_reasons(answer.facts)
    assert "groq_tsp_v1" in reasons[0]
    assert "kpu" not in answer.document().answer
