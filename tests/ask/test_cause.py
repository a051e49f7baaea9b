"""Causes of a difference: the architecture leads, what explains nothing is told apart, no share exceeds the whole."""

from __future__ import annotations

import random
import re

import pytest

from compare import assert_close
from joulemap.ask.cause import CONSEQUENT, MOST, RESIDUAL, SURROUNDING, find_lack, list_causes, pick_causes
from joulemap.ask.explain import ExplainAnswer
from joulemap.ask.fact import LEADING, Facts, Quantity, Term
from joulemap.physics.record.configuration import Precision
from joulemap.physics.record.reference import COMMON_CATEGORIES
from joulemap.show.caveat import MOST_CAVEATS, rank_caveats
from joulemap.show.choice import MOST_WHY
from joulemap.show.term import describe_causes, describe_difference, list_reasons
from joulemap.workspace import Workspace
from sample import thin

Named = tuple[str, str, str, Precision, int]

PAIRS: tuple[Named, ...] = (
    ("resnet18", "rtx_4090", "kpu_t768", "fp16", 1),
    ("resnet18", "h100_sxm5", "xeon_8490h", "fp32", 1),
    ("resnet18", "h100_sxm5", "rtx_4090", "fp16", 32),
    ("resnet18", "groq_tsp_v1", "kpu_t768", "int8", 1),
    ("resnet18", "plasticine", "cloud_ai_100_pro", "int8", 1),
    ("resnet18", "raspberry_pi_5", "hailo_8", "int8", 1),
    ("mobilenet_v2", "tda4vm_c7x_mma", "dpu_b4096_kv260", "int8", 1),
    ("mobilenet_v2", "tpu_v4", "l4", "bf16", 8),
    ("mobilenet_v2", "apple_m4_max", "rtx_5090", "fp16", 1),
)

PERCENT = re.compile(r"([\d.]+) %")


def check(terms: list[Term], most: int) -> None:
    """Check the laws of the terms that are picked."""
    picked = pick_causes(terms, most)
    built = [one for one in terms if one.part and one.category not in SURROUNDING]
    if picked and any(one.part > 0.0 for one in built):
        assert picked[0].category not in SURROUNDING or picked[0].part > MOST
    if built and abs(built[0].part) >= LEADING and picked:
        assert built[0] in picked
    assert all(one.category not in CONSEQUENT or abs(one.part) > MOST for one in picked)
    assert all(one.category != RESIDUAL for one in picked)  # nobody can explain it
    assert len(picked) <= max(most, 2)
    assert not picked or picked[0].part > 0.0 or all(one.part <= 0.0 or one.category in CONSEQUENT for one in terms)


def make(shares: dict[str, float]) -> list[Term]:
    zero = Quantity(0.0, "J")
    terms = [
        Term(runs=(1, 2), level="role", quantity="energy", name=f"{place}", category=name.split(".")[0], share=share,
             amounts=(zero, Quantity(abs(share), "J")), difference=Quantity(share, "J"))
        for place, (name, share) in enumerate(shares.items())
    ]  # fmt: skip
    return sorted(terms, key=lambda one: -abs(one.part))


def test_any_division_is_told_by_its_architecture() -> None:
    rolled = random.Random(0)
    for _ in range(300):
        raw = {f"{name}.{place}": rolled.gauss(0.2, 0.6) ** 3 for place in range(2) for name in COMMON_CATEGORIES}
        whole = sum(raw.values())
        terms = make({name: one / whole for name, one in raw.items()})
        for most in (1, 2, MOST_WHY):
            check(terms, most)


@pytest.mark.parametrize(
    ("shares", "picked"),
    [
        ({"static": 0.45, "unattributed": 0.4, "control": 0.12, "compute": 0.03}, ["control", "static"]),
        ({"static": 0.6, "compute": 0.3, "control": 0.1}, ["static", "compute"]),
        ({"unattributed": 0.6, "compute": 0.3, "static": 0.1}, ["compute", "static"]),
        ({"compute": 0.5, "static": 0.3, "control": 0.2}, ["compute", "static"]),
        ({"static": 0.95, "control": 0.05}, ["static", "control"]),
        ({"static": 0.98, "control": 0.02}, ["static"]),
        ({"static": 1.6, "register": -0.6}, ["static", "register"]),
        ({"control": 0.7, "board": 0.3}, ["control"]),
    ],
)
def test_what_leads_and_what_follows(shares: dict[str, float], picked: list[str]) -> None:
    for most in (2, MOST_WHY):
        assert [one.category for one in pick_causes(make(shares), most)] == picked


def test_what_no_counter_explains_is_a_caveat_if_it_is_the_largest_part() -> None:
    def find(shares: dict[str, float]) -> list[tuple[object, object]]:
        found = find_lack(Facts(asked=("energy",), runs={}, facts=tuple(make(shares))))
        return [(one.values["share"], one.values["excess"]) for one in found]

    assert find({"unattributed": 0.4, "static": 0.35, "compute": 0.25}) == [(0.4, None)]
    assert find({"unattributed": 0.3, "static": 0.7}) == []
    assert find({"unattributed": 1.5, "static": -0.5}) == [(None, Quantity(1.5, "J"))]


def ask(pair: Named, workspace: Workspace) -> ExplainAnswer:
    model, a, b, precision, batch = pair
    return workspace.explain(model, a, b, precision=precision, batch=batch)


@pytest.mark.sample(2)
@pytest.mark.parametrize("pair", thin(PAIRS, 4), ids=lambda one: "-".join(map(str, one[:3])))
def test_the_architecture_leads_and_no_share_exceeds_the_whole(pair: Named, workspace: Workspace) -> None:
    model, a, b, precision, batch = pair
    answers = [ask(pair, workspace), ask((model, b, a, precision, batch), workspace)]
    for answer in answers:
        terms = list_causes(answer.facts)
        for most in (1, 2, MOST_WHY):
            check(terms, most)
        reasons = list_reasons(answer.facts)
        lines = [*reasons, describe_difference(answer.facts), *describe_causes(answer.facts, MOST_WHY)]
        assert len(reasons) <= MOST_WHY
        assert all(float(one) <= 100.0 for line in lines for one in PERCENT.findall(line))
        told = [one for one, _ in rank_caveats(answer.facts)[:MOST_CAVEATS] if one.kind == "unnamed"]
        assert bool(told) == (terms[0].category == "unattributed")
    assert list_reasons(answers[0].facts) == list_reasons(answers[1].facts)


@pytest.mark.sample(2)
@pytest.mark.parametrize("pair", thin(PAIRS, 4), ids=lambda one: "-".join(map(str, one[:3])))
def test_instructions_are_a_count_and_a_price_of_the_ledger(pair: Named, workspace: Workspace) -> None:
    answer = ask(pair, workspace)
    (term,) = [one for one in list_causes(answer.facts) if one.name == "instruction"]
    for run, count, price, amount in zip(term.runs, term.counts, term.prices, term.amounts, strict=True):
        rows = workspace.sql(
            "SELECT action_count, common_category FROM energy_ledger JOIN internal.action_role "
            f"USING (architecture, component, action) WHERE step <> '' AND run_id = {run}"
        ).rows
        if not rows or count is None or price is None:
            assert amount.value == 0.0
            continue
        assert {category for _, category in rows} == {"control"}
        assert count.unit not in ("", "step")
        assert_close(sum(one for one, _ in rows), count.value)
        assert_close(count.value * price.value, amount.value)
