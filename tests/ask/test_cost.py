"""Facts of a cost: the cheapest chip, the other way of paying and the break-even are those of the rows."""

from __future__ import annotations

import math
import re

import pytest

from compare import assert_close
from joulemap.ask.cost import CostAnswer
from joulemap.ask.fact import Caveat, Choice, Entry, Facts, Limit, Quantity, Subject, Turn
from joulemap.domain.settings import Limits, Price
from joulemap.show.cost import EVEN, describe_choice, list_reasons
from joulemap.workspace import Workspace

NUMBER = re.compile(r"(?<![\w.])\d[\d,.]*")
CHIPS = ("l4", "t4", "a10", "kpu_t256", "groq_tsp_v1")


@pytest.fixture(scope="module")
def answer(workspace: Workspace) -> CostAnswer:
    return workspace.cost("conv_block", hardware=list(CHIPS), batch=(1, 8), precision=("int8",))


def test_the_choice_is_the_order_of_the_rows(answer: CostAnswer) -> None:
    choice = answer.facts.of(Choice)[0]
    ranked = [row for row in answer.rows if row.rank is not None]
    rival = next(row for row in ranked if row.hardware != ranked[0].hardware)
    assert choice.runs[:2] == (ranked[0].run_id, rival.run_id)
    assert_close(choice.ratio or 0.0, (rival.usd_per_million or 0.0) / (ranked[0].usd_per_million or 1.0), rel=1e-12)
    chances = [row.probability_cheapest or 0.0 for row in ranked if row.hardware == ranked[0].hardware]
    assert_close(choice.probability or 0.0, math.fsum(chances), rel=1e-12)
    assert all(answer.facts.runs[one].is_available for one in choice.runs)
    for one in answer.facts.of(Entry):
        (row,) = (row for row in ranked if row.run_id == one.runs[0])
        assert_close(one.values["cost"].value, row.usd_per_million or 0.0, rel=1e-15)


def test_turns_are_the_other_way_of_paying_and_the_break_even(answer: CostAnswer) -> None:
    pay, volume = answer.facts.of(Turn)
    other, best, even = answer.other_way, answer.best, answer.break_even
    assert other is not None and best is not None and even is not None
    assert (pay.runs, pay.before, pay.after) == ((other.run_id, best.run_id), "rented", "bought")
    assert_close(pay.ratio or 0.0, (best.usd_per_million or 0.0) / (other.usd_per_million or 1.0), rel=1e-12)
    assert volume.after == even.break_even_inferences
    assert set(volume.runs) == {even.run_a, even.run_b}


def test_a_price_weighs_as_the_interval_of_its_part_of_the_cost(answer: CostAnswer, workspace: Workspace) -> None:
    best, rival = (answer.facts.of(Choice)[0].runs)[:2]
    rows = {row.run_id: row for row in answer.rows if row.rank is not None}
    by_run = {one.runs[0]: one for one in answer.facts.of(Caveat) if one.kind == "priced"}
    assert_close(by_run[best].weight, rows[best].price_half_width or 0.0, rel=1e-12)  # a rent is the whole cost
    given = (Price(hardware="l4", usd_per_hour=0.1), Price(hardware="t4", usd_per_hour=0.2))
    exact = workspace.cost("conv_block", hardware=["l4", "t4"], batch=(8,), precision=("int8",), prices=given)
    assert {one.kind for one in exact.facts.of(Caveat)} & {"priced", "given"} == {"given"}
    assert rival in rows


def test_chips_without_a_price_are_named_and_chips_that_nobody_sells_do_not_lead(answer: CostAnswer) -> None:
    (lost,) = (one for one in answer.facts.of(Caveat) if one.kind == "unoffered")
    assert {answer.facts.runs[one].hardware for one in lost.runs} == {"groq_tsp_v1"}
    reasons = list_reasons(answer.facts)
    assert "groq_tsp_v1" in reasons[0]
    assert "kpu" not in answer.headline()


@pytest.mark.slow
def test_limits_count_the_chips_beyond_them(workspace: Workspace) -> None:
    limits = Limits(max_latency_s=2e-5)
    answer = workspace.cost("conv_block", hardware=["l4", "t4"], batch=(1, 8), precision=("int8",), limits=limits)
    (limit,) = answer.facts.of(Limit)
    assert (limit.metric, limit.bound) == ("latency", Quantity(2e-5, "s"))
    left = {row.run_id for row in answer.rows}
    missed = {answer.scope.outlines[one].configured_hardware for one in answer.scope.run_ids if one not in left}
    assert limit.missed_count == len(missed) > 0


def make_choice(*tied: int, probability: float = 0.9, ratio: float = 1.5) -> Facts:
    choice = Choice(
        runs=(1, 2, 3, 4, 5, 6), metric="cost", value=Quantity(0.01, "USD"), ratio=ratio, probability=probability,
        tied=tied, per="output token",
    )  # fmt: skip
    runs = {one: Subject(hardware=f"chip_of_{one:_>20}") for one in range(1, 7)}
    return Facts(asked=("cost",), runs=runs, facts=(choice,))


@pytest.mark.parametrize("way", ["rented", "bought"])
@pytest.mark.parametrize("tied", [(), (2,), (2, 3, 4), (2, 3, 4, 5, 6)])
@pytest.mark.parametrize("is_only_way", [True, False])
def test_the_first_line_is_short(way: str, tied: tuple[int, ...], is_only_way: bool) -> None:
    facts = make_choice(*tied, probability=0.005 if tied else 0.995)
    told = describe_choice(facts.of(Choice)[0], facts, way, is_only_way=is_only_way)
    assert len(told.split()) <= 25
    assert len(NUMBER.findall(told)) <= 5
    assert ("statistically tied" in told) == bool(tied)


def test_a_break_even_beyond_a_lifetime_is_told_as_such() -> None:
    runs = {1: Subject(hardware="a"), 2: Subject(hardware="b")}
    values = {"case": "worn", "way": "bought", "other_way": "bought", "time": None, "life": 2e9, "worn": 2}
    turn = Turn(runs=(1, 2), axis="inferences", after=3e9, values=values)
    choice = Choice(runs=(1,), metric="cost", value=Quantity(1.0, "USD"), per="frame")
    (line,) = EVEN.tell(Facts(asked=("cost",), runs=runs, facts=(turn, choice)))
    assert line == (
        "bought b is cheaper than bought a up to 2G frames, the lifetime of one b; the break-even at 3G is beyond it"
    )
