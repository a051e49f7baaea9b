"""Facts on constants: the likeliest reversal leads, shares add up, and the first line is short for any constant."""

from __future__ import annotations

import math

import attrs
import pytest

from compare import assert_close
from joulemap.ask.fact import Choice, Entry, Facts, Quantity, Share, Subject, Swing, Turn
from joulemap.domain.metric import METRIC, MetricName
from joulemap.show.constant import describe_turn, list_reasons
from joulemap.workspace import Workspace

RUNS = {1: Subject(hardware="chip_a"), 2: Subject(hardware="chip_b")}


def make_turn(name: str = "clock", *, of: tuple[int, ...] = (1,), before: float = 2e9, after: float = 1e9) -> Turn:
    values = Quantity(before, "Hz"), Quantity(after, "Hz")
    return Turn(runs=(2, 1), axis=name, name=name, of=of, before=values[0], after=values[1], probability=0.025)


def make_facts(*facts: Turn | Share | Entry | Swing, metric: MetricName = "energy", has_choice: bool = True) -> Facts:
    choice = Choice(runs=(1, 2), metric=metric, value=Quantity(1.0, METRIC[metric].unit), ratio=2.4, probability=0.97)
    return Facts(asked=(metric,), runs=RUNS, facts=(*([choice] if has_choice else []), *facts))


def test_a_reversal_names_the_other_winner_the_constant_and_its_odds() -> None:
    """An unlikely reversal is a reason, and only a likely one is part of the decision."""
    facts = make_facts(make_turn(), make_turn("power limit", of=(2,)))
    assert "clock" not in describe_turn(facts)
    first, second = list_reasons(facts)
    assert "clock of chip_a at 1 GHz, not 2 GHz (1 in 40)" in first and "power limit of chip_b" in second
    likely = attrs.evolve(make_turn(), probability=0.25)
    assert "clock of chip_a at 1 GHz, not 2 GHz (1 in 4)" in describe_turn(make_facts(likely))


@pytest.mark.slow
def test_the_facts_of_a_reversal_are_its_rows(workspace: Workspace) -> None:
    answer = workspace.flip("conv_block", "l4", "t4", precision="fp16")
    (choice,) = answer.facts.of(Choice)
    names = [answer.facts.runs[one].hardware for one in choice.runs]
    assert names == [answer.names["AB".index(answer.winner)], answer.names["BA".index(answer.winner)]]
    assert_close(choice.ratio, max(answer.values) / min(answer.values))
    turns = [one for one in answer.facts.of(Turn) if one.name]
    likely = [one.probability or 0.0 for one in turns[:10]]
    assert likely == sorted(likely, reverse=True)
    rows = {(row.constant, row.side): row for row in answer.rows}
    for one in turns:
        side = "both" if len(one.of) > 1 else "AB"[[*answer.facts.runs].index(one.of[0])]
        assert isinstance(one.after, Quantity)
        assert one.after.value == rows[one.axis, side].flip_value
    assert_close(math.fsum(one.share for one in answer.facts.of(Share) if not one.axis), 1.0)
