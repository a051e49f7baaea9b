"""Facts on constants: the likeliest reversal leads, shares add up, and the first line is short for any constant."""

from __future__ import annotations

import math
import re

import pytest

from compare import assert_close
from joulemap.ask.fact import Choice, Entry, Facts, Quantity, Share, Subject, Swing, Turn
from joulemap.domain.metric import METRIC, MetricName
from joulemap.show.constant import describe_change, describe_odds, describe_turn, list_reasons
from joulemap.workspace import Workspace

NUMBER = re.compile(r"(?<![\w.])\d[\d,.]*")
RUNS = {1: Subject(hardware="chip_a"), 2: Subject(hardware="chip_b")}
LONG = "unattributed energy per clock of a unit in GEMMs"


def make_turn(name: str = "clock", *, of: tuple[int, ...] = (1,), before: float = 2e9, after: float = 1e9) -> Turn:
    values = Quantity(before, "Hz"), Quantity(after, "Hz")
    return Turn(runs=(2, 1), axis=name, name=name, of=of, before=values[0], after=values[1], probability=0.025)


def make_facts(*facts: Turn | Share | Entry | Swing, metric: MetricName = "energy", has_choice: bool = True) -> Facts:
    choice = Choice(runs=(1, 2), metric=metric, value=Quantity(1.0, METRIC[metric].unit), ratio=2.4, probability=0.97)
    return Facts(asked=(metric,), runs=RUNS, facts=(*([choice] if has_choice else []), *facts))


@pytest.mark.parametrize("name", ["clock", LONG])
@pytest.mark.parametrize("metric", ["energy", "cost", "edp", "throughput"])
def test_the_first_line_of_a_reversal_is_short(name: str, metric: MetricName) -> None:
    for facts in (make_facts(make_turn(name), metric=metric), make_facts(metric=metric)):
        told = describe_turn(facts)
        assert len(told.split()) <= 25
        assert len(NUMBER.findall(told)) <= 5
    assert name in describe_turn(make_facts(make_turn(name), metric=metric))


def test_a_reversal_names_the_other_winner_the_constant_and_its_odds() -> None:
    told = describe_turn(make_facts(make_turn(), make_turn("power limit", of=(2,))))
    assert told == "chip_a leads by 2.4x; chip_b would win with clock of chip_a at 1 GHz, not 2 GHz (1 in 40)."
    (line,) = list_reasons(make_facts(make_turn(), make_turn("power limit", of=(2,))))
    assert "power limit of chip_b" in line


def test_a_constant_of_both_and_one_that_hardly_moves() -> None:
    assert "both chips" in describe_change(make_turn(of=(1, 2)), RUNS)
    assert "just above 2 GHz" in describe_change(make_turn(after=2.0001e9), RUNS)
    assert "just below 2 GHz" in describe_change(make_turn(after=1.9999e9), RUNS)


def test_the_odds_are_those_of_the_other_order() -> None:
    half = Turn(runs=(2, 1), axis="ratio", after=0.5, probability=0.1)
    assert describe_odds(make_facts(half)) == "chance of the other order: 1 in 33; of half the lead or less: 1 in 10"


@pytest.mark.parametrize("metric", ["energy", "cost", "edp"])
def test_the_first_line_of_an_effect_is_short(metric: MetricName) -> None:
    unit = METRIC[metric].unit
    effect = Swing(
        runs=(1,),
        axis="x",
        name=LONG,
        basis="published",
        ends=(Quantity(8.71e-11, "J"), Quantity(6.96e-10, "J")),
        values=(Quantity(1.0, unit), Quantity(2.0, unit), Quantity(3.0, unit)),
        share=0.5,
    )
    entry = Entry(runs=(1,), values={metric: Quantity(2.0, unit, 0.4)})
    told = describe_turn(make_facts(entry, effect, metric=metric, has_choice=False))
    assert LONG in told
    assert len(told.split()) <= 25
    assert len(NUMBER.findall(told)) <= 5


def test_the_facts_of_a_reversal_are_its_rows(workspace: Workspace) -> None:
    answer = workspace.flip("conv_block", "l4", "t4", precision="fp16")
    (choice,) = answer.facts.of(Choice)
    names = [answer.facts.runs[one].hardware for one in choice.runs]
    assert names == [answer.names["AB".index(answer.winner)], answer.names["BA".index(answer.winner)]]
    assert choice.ratio is not None
    assert_close(choice.ratio, max(answer.values) / min(answer.values), rel=1e-15)
    turns = [one for one in answer.facts.of(Turn) if one.name]
    likely = [one.probability or 0.0 for one in turns[:10]]
    assert likely == sorted(likely, reverse=True)
    rows = {(row.constant, row.side): row for row in answer.rows}
    for one in turns:
        side = "both" if len(one.of) > 1 else "AB"[[*answer.facts.runs].index(one.of[0])]
        assert isinstance(one.after, Quantity)
        assert one.after.value == rows[one.axis, side].flip_value
    assert_close(math.fsum(one.share for one in answer.facts.of(Share) if not one.axis), 1.0, rel=1e-12)


def test_the_facts_of_a_sensitivity_are_its_rows(workspace: Workspace) -> None:
    answer = workspace.sensitivity("conv_block", hardware=["l4", "t4"], precision="fp16")
    entries = {answer.facts.runs[one.runs[0]].hardware: one.values["energy"] for one in answer.facts.of(Entry)}
    for name, value in entries.items():
        own = answer.of(name)
        assert value.value == own[0].metric_value
        first = next(one for one in answer.facts.of(Swing) if answer.facts.runs[one.runs[0]].hardware == name)
        assert (first.axis, first.share) == (own[0].constant, own[0].span_fraction)
        ends = [one for one in (own[0].metric_low, own[0].metric_value, own[0].metric_high) if one is not None]
        assert (first.values[0].value, first.values[-1].value) == (min(ends), max(ends))
