"""Facts of a difference: terms sum to it exactly, the smaller run is chosen, and lines follow from terms."""

from __future__ import annotations

import itertools
import math
from typing import Any

import attrs
import pytest

from compare import assert_close
from joulemap.ask.explain import ExplainAnswer
from joulemap.ask.fact import Choice, Entry, Facts, Quantity, Subject, Term
from joulemap.domain.metric import PART_METRICS, PartMetricName
from joulemap.physics.record.configuration import Precision
from joulemap.show.term import describe_difference, list_reasons, show_count
from joulemap.workspace import Workspace
from sample import thin

PAIRS: tuple[tuple[str, str, str, Precision], ...] = (
    ("resnet18", "l4", "h100_sxm5", "bf16"),
    ("resnet18", "tpu_v4", "kpu_t256", "int8"),
    ("mobilenet_v2", "raspberry_pi_5", "hailo_8", "int8"),
    ("resnet18", "l4", "l4@60W", "fp16"),
    ("resnet18", "xeon_8490h", "tpu_v4", "bf16"),
)


def ask(pair: tuple[str, str, str, Precision], metric: PartMetricName, workspace: Workspace) -> ExplainAnswer:
    model, a, b, precision = pair
    return workspace.explain(model, a, b, metric=metric, precision=precision)


@pytest.mark.sample(1)
@pytest.mark.parametrize("metric", thin(PART_METRICS, 4))
@pytest.mark.parametrize("pair", PAIRS, ids=lambda one: "-".join(one[:3]))
def test_terms_sum_to_the_difference(
    pair: tuple[str, str, str, Precision], metric: PartMetricName, workspace: Workspace
) -> None:
    answer = ask(pair, metric, workspace)
    terms = answer.facts.of(Term)
    sums = {level: [one for one in terms if one.level == level] for level in ("category", "contributor", "quantity")}
    for level in ("category", "role"):
        shares = [one.share for one in terms if one.level == level and one.quantity == "energy" and one.share]
        if shares and metric == "energy":
            assert_close(math.fsum(shares), 1.0)
    for level, listed in sums.items():
        assert not listed or sum(one.exact or 0 for one in listed) == answer.difference_exact, level
    assert bool(sums["contributor"]) <= (metric == "memory") and bool(sums["quantity"]) == (metric == "edp")
    (choice,) = answer.facts.of(Choice)
    entries = {one.runs[0]: one.values[metric].value for one in answer.facts.of(Entry)}
    assert entries[choice.runs[0]] == min(entries.values()) == choice.value.value
    assert bool(choice.equal) == (answer.difference_exact == 0)
    for one in terms:
        if one.level == "category" and metric == "energy":
            assert_close(one.amounts[1].value - one.amounts[0].value, one.difference.value)
        for place, (count, price) in enumerate(itertools.zip_longest(one.counts, one.prices)):
            if count and price and one.level == "role":
                assert_close(count.value * price.value, one.amounts[place].value)


def make_term(**more: object) -> Term:
    amounts = (Quantity(1.0, "J"), Quantity(4.0, "J"))
    given: dict[str, Any] = {"level": "category", "name": "static", "share": 0.9, "exact": 3, **more}
    return Term(runs=(1, 2), quantity="energy", amounts=amounts, difference=Quantity(3.0, "J"), **given)


RUNS = {1: Subject(hardware="a"), 2: Subject(hardware="b")}


def make_facts(*terms: Term, tied: tuple[int, ...] = (), runs: dict[int, Subject] = RUNS) -> Facts:
    choice = Choice(runs=(1, 2), metric="energy", value=Quantity(1.0, "J"), ratio=4.0, probability=0.9, tied=tied)
    return Facts(asked=("energy",), runs=runs, facts=(choice, *terms))


STATIC = make_term(counts=(Quantity(0.5, "s"), Quantity(2.0, "s")), prices=(Quantity(2.0, "W"), Quantity(2.0, "W")))


def test_what_makes_most_of_a_difference_is_in_the_first_line_unless_it_is_a_tie() -> None:
    assert describe_difference(make_facts(STATIC)).endswith(", mostly static power.")
    assert describe_difference(make_facts(make_term(share=0.3))).endswith("; the largest part is static power.")
    tied = describe_difference(make_facts(STATIC, tied=(2,)))
    assert "static" not in tied
    assert describe_difference(attrs.evolve(make_facts(STATIC), part="conv1")).startswith("In conv1, a uses ")


def test_what_works_against_a_difference_has_a_line() -> None:
    against = make_term(name="compute", share=-0.2, prices=STATIC.prices)
    lines = list_reasons(make_facts(STATIC, against))
    assert ["takes 20.0 % of the gap back" in line for line in lines] == [False, True]
    small = make_term(name="compute", share=-0.02, prices=STATIC.prices)
    assert len(list_reasons(make_facts(STATIC, small))) == 1


@pytest.mark.parametrize(("count", "text"), [(1.0, "1 launch"), (3.0, "3 launches"), (1e-5, "0.00001 launches")])
def test_a_count_agrees_with_its_noun(count: float, text: str) -> None:
    assert show_count(Quantity(count, "launch")) == text
