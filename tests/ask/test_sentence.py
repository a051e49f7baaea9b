"""Numbers in headlines and insights are those of the rows beneath: each is computed again from the answer's tables.

No wording is asserted. Numbers are read from the text in order, and compared at the three digits that are shown.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import pytest

from joulemap.ask.fact import Choice
from joulemap.domain.metric import METRIC, PartMetricName
from joulemap.domain.settings import Limits
from joulemap.physics.record.configuration import Precision
from joulemap.show.present.cell import DASH, is_tied, show_quantity
from joulemap.workspace import Workspace

HALF_DIGIT = 0.0052
"""Largest relative rounding error of three significant digits."""

PREFIXES = {"f": 1e-15, "p": 1e-12, "n": 1e-9, "µ": 1e-6, "m": 1e-3, "": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
NUMBER = r"([-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?)"

CHIPS = ("l4", "t4", "h100_sxm5")


def number(text: str) -> float:
    return float(text.replace(",", ""))


def ratios(text: str) -> list[float]:
    """Return the numbers with an x, such as 2.23x, in order."""
    return [number(one) for one in re.findall(rf"{NUMBER}x(?![\w{DASH}])", text)]


def amounts(text: str, unit: str) -> list[float]:
    """Return the quantities in a unit, in order, in SI units; ends of intervals are left out."""
    text = re.sub(rf"\([^()]*{DASH}[^()]*\)", "", text)
    space = "" if unit.startswith("/") else " "
    pairs = re.findall(rf"{NUMBER}{space}([fpnµmkMGT]?){re.escape(unit)}(?![\w/])", text)
    return [number(value) * PREFIXES[prefix] for value, prefix in pairs]


def agree(shown: Sequence[float], exact: Sequence[float], rel: float = HALF_DIGIT) -> None:
    """Fail unless shown numbers are the exact ones, rounded."""
    assert len(shown) == len(exact), (shown, exact)
    for one, other in zip(shown, exact, strict=True):
        assert math.isclose(one, other, rel_tol=rel, abs_tol=0.0), (shown, exact)


def first_sentence(text: str) -> str:
    """Return a headline without the clauses on assumptions and hosts that follow it."""
    return re.split(r" (?:Assumed numbers|The energy of|It is unknown|~\S+ is not available)", text)[0]


@pytest.mark.sample(1)
@pytest.mark.parametrize("metric", ["energy", "latency", "edp", "memory"])
@pytest.mark.parametrize("pair", [("l4", "t4"), ("raspberry_pi_5", "hailo_8"), ("l4", "l4@60W")])
def test_an_explanation_states_the_ratio_and_both_values(
    pair: tuple[str, str], metric: PartMetricName, workspace: Workspace
) -> None:
    precision: Precision = "int8" if "hailo_8" in pair else "fp16"
    answer = workspace.explain("resnet18", pair[0], pair[1], metric=metric, precision=precision)
    document, values = answer.document(), answer.ends(metric)
    least, most = sorted(values)
    named = ratios(document.answer)
    assert not named if least == most or is_tied(answer.probability) else named
    agree(named, [most / least] if named else [])
    if least < most:
        assert document.answer.startswith(answer.names[values[1] < values[0]])
    cells = " ".join(text for section in document.sections for text in section.texts)
    assert all(show_quantity(one, METRIC[metric].unit) in cells for one in values) or metric == "memory"
    for line in document.insights:
        # each energy of static power is the power for the time that stands beside it
        (row,) = [row for row in answer.roles if row.role == "static"]
        for name, energy in zip(answer.names, (row.energy_a_j, row.energy_b_j), strict=True):
            for time, power in re.findall(rf"([\d.]+ [nµm]?s) x ([\d.]+ [mk]?W) on {re.escape(name)}", line):
                (watts,), (seconds,) = amounts(power, "W"), amounts(time, "s")
                agree([watts * seconds], [energy], rel=0.015)


def test_a_recommendation_states_the_margin_over_the_next_chip(workspace: Workspace) -> None:
    limits = Limits(max_latency_s=0.05)
    answer = workspace.recommend("conv_block", hardware=CHIPS, batch=(1, 8), precision=("fp16",), limits=limits)
    each: dict[str, float] = {}
    for row in answer.rows:
        if row.rank is not None and row.objective_value is not None:
            each.setdefault(row.hardware, row.objective_value)
    (best, least), (_, second) = sorted(each.items(), key=lambda one: one[1])[:2]
    assert answer.best is not None and answer.best.hardware == best
    (choice, *_) = answer.facts.of(Choice)
    assert choice.ratio is not None
    agree([choice.ratio, choice.value.value], [second / least, least])
    assert first_sentence(answer.document().answer).startswith(f"Take {best} ")
    chances = {row.hardware: row.probability_best or 0.0 for row in answer.rows}
    assert 0.0 <= max(chances.values()) <= 1.0


@pytest.mark.slow
def test_the_only_configuration_is_called_so_only_if_there_is_no_other(workspace: Workspace) -> None:
    one = workspace.recommend("conv_block", hardware=["l4"], batch=(1,), precision=("fp16",))
    two = workspace.recommend("conv_block", hardware=["l4", "kpu_t256"], batch=(1,), precision=("fp16",))
    assert len(one.rows) == 1 < len(two.rows)
    assert one.document().answer.split(";")[0] != two.document().answer.split(";")[0]
    projected = two.projection
    assert projected is not None and two.best is not None
    ratio = (two.best.objective_value or 0.0) / (projected.objective_value or 1.0)
    agree(ratios(" ".join(two.document().insights)), [ratio])


@pytest.mark.slow
def test_a_missed_limit_is_stated_as_a_multiple_of_it(workspace: Workspace) -> None:
    slow = workspace.recommend("conv_block", hardware=CHIPS, batch=(1,), limits=Limits(max_latency_s=1e-9))
    few = workspace.recommend("conv_block", hardware=CHIPS, batch=(1,), limits=Limits(min_throughput_per_s=1e9))
    for answer in (slow, few):
        nearest = answer.nearest_miss
        assert nearest is not None and nearest.worst_value is not None and nearest.worst_bound is not None
        ratio = nearest.worst_value / nearest.worst_bound
        agree(ratios(first_sentence(answer.document().answer)), [max(ratio, 1.0 / ratio)])
