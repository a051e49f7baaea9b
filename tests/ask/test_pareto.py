"""Facts of a Pareto front: members and ends are those of the rows; chips without a price are named once."""

from __future__ import annotations

import math

import pytest

from compare import assert_close
from joulemap.ask.fact import Caveat, Choice, Entry, Front, Term
from joulemap.ask.pareto import ParetoAnswer
from joulemap.domain.settings import Site
from joulemap.show.pareto import describe_answer, list_reasons
from joulemap.workspace import Workspace


@pytest.fixture(scope="module")
def answer(workspace: Workspace) -> ParetoAnswer:
    return workspace.pareto("conv_block", hardware=["l4", "t4", "kpu_t256"], batch=(1, 8), precision=("fp16", "int8"))


def test_the_front_and_its_ends_are_those_of_the_rows(answer: ParetoAnswer) -> None:
    own, beyond = answer.facts.of(Front)
    rows = {row.run_id: row for row in answer.rows}
    assert own.runs == tuple(row.run_id for row in answer.select("front"))
    assert beyond.runs == tuple(row.run_id for row in answer.select("projection")) and not beyond.is_available
    assert own.count == sum(row.x_value is not None for row in answer.rows)
    by_y, by_x = answer.facts.of(Choice)
    assert (by_x.metric, by_y.metric) == ("latency", "energy_per_inference")
    pick = own.knee or own.runs[-1]
    assert (by_x.runs, by_y.runs) == ((own.runs[0], pick), (pick, own.runs[0]))
    assert_close(by_x.ratio, (rows[pick].latency_s or 0.0) / (rows[own.runs[0]].latency_s or 1.0))
    assert_close(by_x.value.value, min(rows[one].latency_s or 1.0 for one in own.runs))
    assert_close(by_y.value.value, min(rows[one].energy_per_inference_j or 1.0 for one in own.runs))
    entries = {one.runs[0]: one.values for one in answer.facts.of(Entry)}
    assert entries.keys() == {*own.runs, *beyond.runs}
    for run_id, values in entries.items():
        assert_close(values["latency"].value, rows[run_id].latency_s)


def test_a_named_chip_that_nobody_sells_is_a_reason_and_not_an_end(answer: ParetoAnswer) -> None:
    assert "kpu" not in describe_answer(answer.facts)
    assert "~kpu_t256" in list_reasons(answer.facts)[-1]


def test_causes_are_two_products_that_make_the_gap(answer: ParetoAnswer) -> None:
    rows = {row.run_id: row for row in answer.rows}
    energies = [one for one in answer.facts.of(Term) if one.level == "role"]
    (time,) = (one for one in answer.facts.of(Term) if one.level == "work")
    energy = next(one for one in energies if one.name == "static")
    own, rival = (rows[one] for one in energy.runs)
    assert (energy.quantity, time.quantity, time.runs) == ("energy", "time", energy.runs)
    assert energy.share is not None and energy.share > 0.0
    gap = (rival.energy_per_inference_j or 0.0) - (own.energy_per_inference_j or 0.0)
    assert_close(energy.difference.value / energy.share, gap, rel=1e-9)
    assert_close(math.fsum(one.share or 0.0 for one in energies), 1.0)
    for amount, power, seconds in zip(energy.amounts, energy.prices, energy.counts, strict=True):
        assert power is not None and seconds is not None
        assert_close(power.value * seconds.value, amount.value, rel=1e-9)
    assert [one.value for one in time.amounts] == [own.latency_s, rival.latency_s]


@pytest.mark.slow
def test_chips_without_a_price_are_left_out_by_name(workspace: Workspace) -> None:
    rented, chips = Site(pay="rented"), ["l4", "groq_tsp_v1"]
    answer = workspace.pareto("conv_block", hardware=chips, batch=1, precision="int8", x="cost", site=rented)
    (lost,) = (one for one in answer.facts.of(Caveat) if one.kind == "unpriced")
    assert {answer.facts.runs[one].hardware for one in lost.runs} == {"groq_tsp_v1"}
    assert any("groq_tsp_v1" in one for one in list_reasons(answer.facts))
