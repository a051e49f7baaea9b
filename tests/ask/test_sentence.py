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
SMALL = ("conv_block", "mlperf_tiny_ic")


def number(text: str) -> float:
    return float(text.replace(",", ""))


def ratios(text: str) -> list[float]:
    """Return the numbers with an x, such as 2.23x, in order."""
    return [number(one) for one in re.findall(rf"{NUMBER}x(?![\w{DASH}])", text)]


def shares(text: str) -> list[float]:
    """Return the percentages, in order, as fractions."""
    return [number(one) / 100.0 for one in re.findall(rf"{NUMBER} %", text)]


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


def agree_shares(shown: Sequence[float], exact: Sequence[float]) -> None:
    """Fail unless shown percentages are exact fractions, rounded to 0.1 %."""
    assert len(shown) == len(exact), (shown, exact)
    for one, other in zip(shown, exact, strict=True):
        assert abs(one - other) <= 0.00051, (shown, exact)


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
    assert first_sentence(answer.document().answer).startswith(best)
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


@pytest.mark.slow
def test_a_difference_of_versions_states_the_range_of_its_rows(workspace: Workspace) -> None:
    answer = workspace.diff("mlperf_tiny_ic", "mlperf_tiny_kws", hardware=CHIPS)
    energy, latency = answer.document().answer.split(" and ")
    for metric, told in (("latency", latency), ("energy", energy)):
        changes = [row.change_fraction or 0.0 for row in answer.rows if row.metric == metric]
        assert max(changes) < 0.0 or min(changes) > 0.0  # in one direction, without signs
        ends = re.findall(rf"{NUMBER}{DASH}{NUMBER} %", told)[0]
        agree([number(one) / 100.0 for one in ends], sorted(map(abs, (min(changes), max(changes)))), rel=0.006)


@pytest.mark.slow
def test_utilization_states_the_rows_and_the_product_of_the_gains(workspace: Workspace) -> None:
    answer = workspace.utilization("conv_block", hardware=["l4", "raspberry_pi_5"])
    told = first_sentence(answer.document().answer)
    used = [row.compute_utilization_fraction or 0.0 for row in answer.used]
    assert used == sorted(used, reverse=True)
    agree_shares(shares(told)[:2], used)
    gains = ratios(told)
    remedy = next(one for one in answer.remedies or () if one.run_id == answer.used[-1].run_id and one.remedy_rank == 1)
    exact = [remedy.throughput_ratio, remedy.energy_ratio]
    if gains and all(math.isclose(one, other, rel_tol=HALF_DIGIT) for one, other in zip(gains, exact, strict=False)):
        agree([remedy.gain_ratio], [remedy.throughput_ratio / remedy.energy_ratio])


@pytest.mark.sample(1)
@pytest.mark.parametrize("hardware", ["l4", "raspberry_pi_5"])
def test_fusion_states_the_shares_of_its_totals(hardware: str, workspace: Workspace) -> None:
    answer = workspace.fusion("mlperf_tiny_ic", hardware)
    total, told = answer.total, first_sentence(answer.document().answer)
    pairs = ((total.energy_j, total.separate_energy_j), (total.latency_s, total.separate_latency_s))
    saved = [1.0 - fused / separate for fused, separate in pairs]
    agree_shares(sorted(shares(told)), sorted(abs(one) for one in saved if abs(one) >= 5e-4))
    kernels = sum(row.kernel_count for row in answer.patterns)
    assert [int(one) for one in re.findall(r"(\d+) kernels replace (\d+)", told)[0]] == [
        kernels, sum(row.separate_kernel_count for row in answer.patterns),
    ]  # fmt: skip


@pytest.mark.slow
def test_sensitivity_and_flip_state_the_values_of_their_rows(workspace: Workspace) -> None:
    answer = workspace.sensitivity("conv_block", hardware=["l4"])
    row = max(answer.rows, key=lambda one: one.span_fraction or 0.0)
    ends = [one for one in (row.metric_low, row.metric_value, row.metric_high) if one is not None]
    told = first_sentence(answer.document().answer).rpartition("most: ")[2].replace(DASH, " J ")
    agree(amounts(told, "J")[-2:], [max(ends), row.metric_value or 0.0])
    flipped = workspace.flip("conv_block", "l4", "t4")
    told = first_sentence(flipped.document().answer)
    agree(ratios(told)[-1:], [max(flipped.values) / min(flipped.values)])
    agree_shares([sum(row.variance_fraction for row in flipped.rows)], [1.0])


@pytest.mark.slow
def test_a_front_states_its_ends(workspace: Workspace) -> None:
    answer = workspace.pareto("conv_block", hardware=["l4", "t4"], batch=(1, 8), precision=("fp16", "int8"))
    front = answer.select("front")
    told = first_sentence(answer.document().answer)
    ends = (front[0], front[-1]) if len(front) > 1 else (front[0],)
    agree(amounts(told, "s"), [row.x_value for row in ends])
    agree(amounts(told, "J"), [row.y_value for row in ends])
    assert not any(
        one.x_value < row.x_value and one.y_value < row.y_value for row in front for one in answer.rows if one.x_value
    )
