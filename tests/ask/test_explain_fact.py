"""Facts of a difference: terms sum to it exactly, the smaller run is chosen, and lines follow from terms."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import Any

import attrs
import pytest

from command import run_here
from compare import assert_close
from joulemap.ask.explain import ExplainAnswer
from joulemap.ask.fact import Caveat, Choice, Entry, Facts, Quantity, Subject, Term
from joulemap.domain.metric import PART_METRICS, PartMetricName
from joulemap.physics.record.configuration import Precision
from joulemap.show.term import describe_difference, describe_term, list_reasons
from joulemap.workspace import Workspace
from sample import thin

NUMBER = re.compile(r"(?<![\w.])\d[\d,.]*")

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
    for level, listed in sums.items():
        assert not listed or sum(one.exact or 0 for one in listed) == answer.difference_exact, level
    assert bool(sums["contributor"]) <= (metric == "memory") and bool(sums["quantity"]) == (metric == "edp")
    (choice,) = answer.facts.of(Choice)
    entries = {one.runs[0]: one.values[metric].value for one in answer.facts.of(Entry)}
    assert entries[choice.runs[0]] == min(entries.values()) == choice.value.value
    assert bool(choice.equal) == (answer.difference_exact == 0)
    for one in terms:
        if one.level == "category" and metric == "energy":
            assert_close(one.amounts[1].value - one.amounts[0].value, one.difference.value, rel=1e-9)
        for place, (count, price) in enumerate(itertools.zip_longest(one.counts, one.prices)):
            if count and price and one.role_amounts and one.is_shared:
                assert_close(count.value * price.value, one.role_amounts[place].value, rel=1e-9)


@pytest.mark.sample(1)
@pytest.mark.parametrize("metric", thin(PART_METRICS, 4))
@pytest.mark.parametrize("pair", PAIRS, ids=lambda one: "-".join(one[:3]))
def test_the_first_line_is_short_and_there_are_three_reasons_at_most(
    pair: tuple[str, str, str, Precision], metric: PartMetricName, workspace: Workspace
) -> None:
    answer = ask(pair, metric, workspace)
    told = describe_difference(answer.facts)
    for name in sorted(answer.names, key=len, reverse=True):
        told = told.replace(name, "chip")
    assert len(told.split()) <= 25
    assert len(NUMBER.findall(told)) <= 5
    assert len(list_reasons(answer.facts)) <= 3


def make_term(**more: object) -> Term:
    amounts = (Quantity(1.0, "J"), Quantity(4.0, "J"))
    given: dict[str, Any] = {"name": "static", "role": "static", "share": 0.9, "exact": 3, **more}
    return Term(
        runs=(1, 2), level="category", quantity="energy", amounts=amounts, difference=Quantity(3.0, "J"), **given
    )


RUNS = {1: Subject(hardware="a"), 2: Subject(hardware="b")}


def make_facts(*terms: Term, tied: tuple[int, ...] = (), runs: dict[int, Subject] = RUNS) -> Facts:
    choice = Choice(runs=(1, 2), metric="energy", value=Quantity(1.0, "J"), ratio=4.0, probability=0.9, tied=tied)
    return Facts(asked=("energy",), runs=runs, facts=(choice, *terms))


STATIC = make_term(counts=(Quantity(0.5, "s"), Quantity(2.0, "s")), prices=(Quantity(2.0, "W"), Quantity(2.0, "W")))


def test_a_cause_is_count_times_price_of_the_larger_run_first() -> None:
    assert describe_term(STATIC, RUNS) == "static power: 2 s x 2 W on b, 500 ms x 2 W on a"
    alone = make_term(role="mac", role_amounts=(Quantity(0.0, "J"), Quantity(4.0, "J")), is_shared=False)
    assert describe_term(alone, RUNS) == "multiply-accumulates: 4 J on b, none on a"
    each = make_term(role="mac", prices=(Quantity(1e-12, "J"), Quantity(4e-12, "J")))
    assert describe_term(each, RUNS) == "multiply-accumulates: 4 pJ each on b, 1 pJ each on a"
    assert describe_term(make_term(role="mac"), RUNS) == ""  # the table states both amounts
    assert describe_term(make_term(role="regulator", counts=STATIC.counts), RUNS) == ""


def test_what_makes_most_of_a_difference_is_in_the_first_line_unless_it_is_a_tie() -> None:
    assert describe_difference(make_facts(STATIC)).endswith(", mostly static power.")
    assert describe_difference(make_facts(make_term(share=0.3))).endswith("; the largest part is static power.")
    tied = describe_difference(make_facts(STATIC, tied=(2,)))
    assert "static" not in tied
    assert describe_difference(attrs.evolve(make_facts(STATIC), part="conv1")).startswith("In conv1, a uses ")


def test_what_works_against_a_difference_has_a_line() -> None:
    against = make_term(name="compute", role="mac", share=-0.2, prices=STATIC.prices)
    lines = list_reasons(make_facts(STATIC, against))
    assert [line.startswith("against it, ") for line in lines] == [False, True]
    small = make_term(name="compute", role="mac", share=-0.02, prices=STATIC.prices)
    assert len(list_reasons(make_facts(STATIC, small))) == 1


@pytest.mark.slow
def test_the_run_without_a_calibration_is_a_caveat(workspace: Workspace) -> None:
    for pair in (("kpu_t256", "h100_sxm5"), ("h100_sxm5", "kpu_t256")):
        facts = workspace.explain("resnet18", *pair).facts
        (caveat,) = (one for one in facts.of(Caveat) if one.kind == "uncalibrated")
        assert [facts.runs[one].hardware for one in caveat.runs] == ["kpu_t256"]


@pytest.mark.slow
def test_a_subgraph_has_no_caveat_on_shares_of_the_run(workspace: Workspace) -> None:
    whole = workspace.explain("resnet18", "l4", "tpu_v4", precision="int8").facts
    part = workspace.explain("resnet18", "l4", "tpu_v4", precision="int8", subgraph="conv1").facts
    weights = [{one.kind: one.weight for one in facts.of(Caveat)} for facts in (whole, part)]
    assert weights[0].keys() == weights[1].keys()
    assert weights[0]["assumed"] > 0.0 == weights[1]["assumed"]
    assert not any(one.values["energy"].half_width for one in part.of(Entry))


@pytest.mark.sample(1)
@pytest.mark.parametrize("more", [(), ("--metric", "latency"), ("--level", "subgraph"), ("--level", "action")])
def test_an_explanation_fits_a_screen_with_its_picture(more: tuple[str, ...], tmp_path: Path) -> None:
    asked = ["explain", "resnet18", "l4", "t4", "--precision", "fp16", *more]
    done = run_here(asked, tmp_path, {"COLUMNS": "80"})
    lines = done.stdout.splitlines()
    assert len(lines) <= 20 and set("█│") <= set(done.stdout)
    assert not [line for line in lines if len(line) > 80 and not line.startswith("Next")]
    data = json.loads(run_here([*asked[:6], "--format", "json"], tmp_path, {}).stdout)
    assert (
        sum(one["exact"] for one in data["facts"] if one["fact"] == "term" and one["level"] == "category")
        == (data["total"]["difference_fj"])
    )
