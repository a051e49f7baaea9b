"""Numbers in the sentences of the wings: each is recomputed from the rows of the answer that it stands above."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

import pytest

from joulemap.answer.answer import Answer
from joulemap.domain.settings import Price, Serving, Settings, Training, Usage
from joulemap.present.cell import show_chance, show_share
from joulemap.wing.explore.design.best import name_parameter
from joulemap.wing.fleet.demand import Demand
from joulemap.wing.llm.answer.document import LlmAnswer
from joulemap.wing.llm.answer.offload import OffloadAnswer
from joulemap.wing.llm.answer.users import UsersAnswer
from joulemap.wing.llm.capacity.users import LatencyTarget
from joulemap.workspace import Workspace

TESTS: Final = Path(__file__).parents[1]

PREFIXES: Final = {"p": 1e-12, "n": 1e-9, "µ": 1e-6, "m": 1e-3, "": 1.0, "k": 1e3, "M": 1e6, "G": 1e9}

RANGE: Final = re.compile(r" ?\([^()]*\d[^()]*\N{EN DASH}[^()]*\)")
"""Ends of an interval, which stand in brackets."""

ROUNDED: Final = 0.006
"""Largest relative error of a number of three digits."""


def read(text: str, unit: str) -> list[float]:
    """Return the numbers of a text that have a unit, in SI units; ends of intervals are left out."""
    found = re.findall(rf"(?<![\w.,])([\d,]*\.?\d+) ?([pnµmkMG]?){unit}(?!\w)", RANGE.sub("", text))
    return [float(number.replace(",", "")) * PREFIXES[prefix] for number, prefix in found]


def check(text: str, unit: str, *values: float | None) -> None:
    """Fail unless the numbers of a text that have a unit are these values, each of them at least once."""
    said, expected = read(text, unit), [one for one in values if one is not None]
    near = {place: [one for one in expected if math.isclose(number, one, rel_tol=ROUNDED)] for place, number in
            enumerate(said)}  # fmt: skip
    wrong = [said[place] for place, found in near.items() if not found]
    missing = [one for one in expected if not any(math.isclose(number, one, rel_tol=ROUNDED) for number in said)]
    assert not wrong and not missing, f"{text!r} in {unit!r}: wrong {wrong}, missing {missing}"


def lead(text: str) -> str:
    """Return the last probability in brackets that a text states, such as `over 99 %`; empty for none."""
    found = re.findall(r"\(((?:over |under )?\d+ %) confidence", text)
    return found[-1] if found else ""


def first_two(values: Iterable[float]) -> tuple[float, float]:
    best, second, *_ = sorted(values)
    return best, second


def parts(answer: Answer) -> tuple[str, Sequence[str]]:
    document = answer.document()
    return str(document.answer), document.insights


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return Workspace(tmp_path_factory.mktemp("prose") / "prose.duckdb")


LABELS: Final = ("l4", "h100_sxm5", "t4")


def check_batches(workspace: Workspace) -> None:
    answer: LlmAnswer = workspace.llm(
        "llama-3.2-1b",
        hardware=LABELS,
        batch=(1, 8),
        precision=("fp16",),
        prices=(Price(hardware="l4", usd_per_hour=0.8), Price(hardware="h100_sxm5", usd_per_hour=10.0)),
        usage=Usage(pay="rented"),
    )
    headline, insights = parts(answer)
    energy, between = headline.split("; ", 1)
    joules, times = (
        {label: min(getattr(row, field) for row in answer.served if row.label == label) for label in LABELS}
        for field in ("output_token_j", "between_s")
    )
    for said, unit, least, goal in ((energy, "J", joules, "energy"), (between, "s", times, "between_tokens")):
        best, second = first_two(least.values())
        winner = next(row for row in answer.winners if row.goal == goal)
        assert least[winner.label] == best and (winner.label in said or "it also" in said)
        check(said.partition(". ")[0], unit, best)
        is_tied = (winner.probability_best or 0.0) < 0.8
        check(said.partition(". ")[0], "x", None if is_tied else second / best)
        assert lead(said) == ("" if is_tied else show_chance(winner.probability_best))
    costs = {row.label: row for row in sorted(answer.served, key=lambda row: -(row.output_usd_per_million or 0.0))}
    least_cost = min((row for row in costs.values() if row.output_usd_per_million), key=lambda row: (
        row.output_usd_per_million or math.inf))  # fmt: skip
    cost = next(line for line in insights if " USD per million output tokens" in line)
    assert least_cost.label in cost
    assert "busy 12 of 24 hours" in cost  # twice the cost of a chip that never waits
    check(cost.partition("tokens,")[0], "USD", least_cost.output_usd_per_million, least_cost.prompt_usd_per_million)


def check_load(workspace: Workspace) -> None:
    answer: LlmAnswer = workspace.llm(
        "llama-3.2-1b", hardware=("l4", "h100_sxm5"), batch=(1,), serving=Serving(prompt=500, output=50, rate_per_s=4.0)
    )
    headline, _ = parts(answer)
    first, second = first_two(row.first_token_p99_s for row in answer.loads)
    best = next(row for row in answer.loads if row.first_token_p99_s == first)
    assert headline.startswith(best.label)
    check(headline, "s", first, best.between_p99_s)
    check(headline, "x", second / first)
    check(headline.partition(". ")[0], "J", min(row.output_token_j for row in answer.loads))
    width = math.hypot(*(row.first_token_half_width or 0.0 for row in answer.served))
    surely = 1.0 / (1.0 + math.exp(-math.log(9.0) * math.log(second / first) / width)) >= 0.8
    assert surely != ("statistically tied" in headline.partition(";")[0])


def check_users(workspace: Workspace) -> None:
    target = LatencyTarget(users=8, first_token_s=2.0, between_s=0.060)
    answer: UsersAnswer = workspace.serve_users(
        "llama-3.1-8b",
        hardware=("l4", "l40s"),
        target=target,
        precision=("fp8",),
        serving=Serving(prompt=500, output=100),
        prices=(Price(hardware="l4", usd_per_hour=3.6), Price(hardware="l40s", usd_per_hour=7.2)),
        usage=Usage(pay="rented"),
    )
    headline, insights = parts(answer)
    best, other = answer.chosen, next(row for row in answer.rows if row.hardware != answer.chosen.hardware)
    cost = headline.partition("; ")[0]
    check(cost, "USD", best.usd_per_million)
    check(cost, "J", best.million_j)
    check(headline, "s", best.first_token_s, best.between_s, target.first_token_s, target.between_s)
    assert f"with {show_chance(best.met_probability)} probability" in headline
    request, runner = insights[0], next(line for line in insights if "x the cost" in line)
    check(request, "s", best.request_s)
    check(request, "J", best.million_j * 600 / 1e6)
    check(request, "USD", (best.usd_per_million or 0.0) * 600 / 1e6)
    check(request, " output tokens/s", 8 * 100 / best.request_s)
    check(runner, "x", (other.usd_per_million or 0.0) / (best.usd_per_million or 1.0))


def check_offload(workspace: Workspace) -> None:
    answer: OffloadAnswer = workspace.offload("llama-3.1-8b", hardware=("workstation_rtx_4090",), batch=(1,))
    headline, _ = parts(answer)
    rows = {row.layers: row for row in answer.rows if not row.refusal}
    best = max(rows.values(), key=lambda row: row.tokens_per_s or 0.0)
    check(headline, " tokens/s", best.tokens_per_s)
    check(headline, "J", best.output_token_j)
    check(headline, "x", (best.tokens_per_s or 0.0) / (rows[0].tokens_per_s or 1.0))


def check_fleet(workspace: Workspace) -> None:
    settings = Settings(hardware=("l4", "t4"), precision=("int8",), batch=(1, 8, 32))
    answer = workspace.fleet("resnet18", settings, demand=Demand(rate_per_s=4000.0, p99_s=0.05))
    headline, insights = parts(answer)
    best, second = sorted(
        (row for row in answer.rows if row.cost_per_month), key=lambda row: row.cost_per_month or 0.0
    )[:2]
    winner = next(row for row in answer.winners if row.objective == "cost")
    other = next(row for row in answer.rows if row.hardware != best.hardware and row.cost_per_month)
    check(headline.partition(" per month")[0], "USD", best.cost_per_month)
    check(headline.partition(". ")[0], "W", best.power_w)
    check(headline, "x", (other.cost_per_month or 0.0) / (best.cost_per_month or 1.0))
    assert f"A fleet of {best.device_count} {best.label}" in headline
    assert lead(headline) in ("", show_chance(winner.probability_best))
    assert show_share(best.utilization_fraction) in headline
    headroom = insights[0]
    check(headroom, "s", best.p99_latency_s, 0.05)
    assert show_share((best.p99_latency_s or 0.0) / 0.05) in headroom
    check(headroom.partition("; at 1.5x")[0], "x", best.carried_ratio)
    energy = [line for line in insights if "kWh" in line]
    least = min((row for row in answer.rows if row.kwh_per_month), key=lambda row: row.kwh_per_month or 0.0)
    assert bool(energy) == ((best.kwh_per_month or 0.0) >= 1.005 * (least.kwh_per_month or 0.0))
    for line in energy:
        check(line, "kWh", least.kwh_per_month)
        check(line, "W", least.power_w)
        assert any(least.label in one.texts for one in answer.document().details)
    assert second.cost_per_month


def check_place(workspace: Workspace) -> None:
    answer = workspace.place(
        "mobilenet_v2", "raspberry_pi_5_hailo", settings=Settings(precision=("int8",), runtime=("engine",))
    )
    headline, insights = parts(answer)
    run = [row for row in answer.rows if not row.refusal]
    alone, mixed = (min((row for row in run if (row.form == "alone") is is_alone), key=lambda row: row.latency_s or 0.0)
                    for is_alone in (True, False))  # fmt: skip
    best, other = sorted((alone, mixed), key=lambda row: row.latency_s or 0.0)
    assert headline.startswith(best.placement)
    check(headline, "s", best.latency_s)
    more = (other.latency_s or 0.0) / (best.latency_s or 1.0) - 1.0
    assert show_share(more if best is alone else 1.0 - 1.0 / (1.0 + more)) in headline
    assert other.worse_probability is not None
    assert (other.worse_probability < 0.8) == ("statistical" in headline)
    check(insights[0], "s", mixed.copy_s, mixed.latency_s)
    check(insights[0], "B", mixed.copied_bytes)


def check_train(workspace: Workspace) -> None:
    settings = Settings(hardware=("l4", "h100_sxm5"), batch=(32,), precision=("bf16",))
    answer = workspace.train("resnet18", settings, training=Training(samples=50_000.0, epochs=2.0))
    headline, insights = parts(answer)
    best, second = sorted(answer.rows, key=lambda row: -(row.samples_per_s or 0.0))
    lead_of_best = (best.samples_per_s or 0.0) / (second.samples_per_s or 1.0)
    assert headline.startswith(best.label)
    check(headline, " samples/s", best.samples_per_s)
    check(headline, "x", lead_of_best)
    check(headline.partition(". ")[0], "s", best.step_s)
    check(headline.partition(". ")[0], "J", best.sample_j)
    assert lead(headline) == show_chance(answer.probability_best)
    total = insights[0]
    pue = (best.total_kwh or 0.0) * 3.6e6 / ((best.sample_j or 0.0) * 100_000.0)
    check(total, "kWh", best.total_kwh)
    hourly = (best.total_usd or 0.0) / (100_000.0 / (best.samples_per_s or 1.0) / 3600.0)
    check(total, "USD", best.total_usd, hourly)  # the price that the cost is made of
    check(total, "s", 100_000.0 / (best.samples_per_s or 1.0))
    assert pue == pytest.approx(1.0, rel=1e-6, abs=0) or f"PUE {pue:.3g}" in total
    shares = [(best.forward_s or 0.0) / (best.step_s or 1.0), (best.backward_s or 0.0) / (best.step_s or 1.0)]
    assert all(show_share(one) in insights[1] for one in shares)


def check_explore(workspace: Workspace) -> None:
    answer = workspace.explore(
        "mobilenet_v2", Settings(precision=("int8",)), like="kpu_t256", vary={"units": "x0.5,x1,x2", "clock": "x0.8,x1"}
    )
    headline, insights = parts(answer)
    own = {one.objective: one for one in answer.best}
    changes = [max(one.own_ratio, 1.0 / one.own_ratio) for one in own.values() if one.own_ratio]
    check(headline, "x", *(one for one in changes if one > 1.005))
    front = [row for row in answer.rows.records() if row["status"] == "front"]
    band = [row for row in answer.rows.records() if row["status"] == "band"]
    assert (answer.front_count, answer.band_count) == (len(front), len(band))
    counts = [int(one) for one in re.findall(r"\b\d+\b(?! %|\.)", re.sub(r"[\d.]+x", "", headline))]
    large = sum(row["area_mm2"] > 858.0 for row in front)
    expected = [
        answer.point_count,
        len(front),
        *([len(band)] if len(band) > 1 else []),
        *([large] if large > 1 else []),
    ]
    assert counts == [one for one in expected if one != 1]
    for objective, column in (("energy", "energy_per_inference_j"), ("latency", "latency_s")):
        assert own[objective].value == pytest.approx(min(row[column] for row in front), rel=1e-9, abs=0)
        line = next(line for line in insights if f"{objective} changes" in line)
        for row in answer.margins:
            if row.objective == objective == row.of and row.elasticity and abs(row.elasticity) > 5e-3:
                name = name_parameter(answer.survey, row.parameter)
                assert f"{row.elasticity:+.2f} % for 1 % more {name}" in line


def check_verify(workspace: Workspace) -> None:
    answer = workspace.verify(TESTS / "data" / "verify" / "aiperf.json")
    headline, insights = parts(answer)
    inside = [row for row in answer.rows if row.is_inside]
    for row in answer.rows:
        assert row.measured and row.predicted and row.low and row.high
        assert row.is_inside == (row.low <= row.measured <= row.high)
        assert row.ratio == pytest.approx(row.measured / row.predicted, rel=1e-9, abs=0)
    assert headline.startswith(f"{len(inside)} of {len(answer.rows)} ")
    cause = answer.causes[0]
    check(insights[0], "s", cause.predicted, cause.measured)


def check_here(workspace: Workspace) -> None:
    answer = workspace.here("resnet18", recorded=TESTS / "here" / "machine" / "gaming_pc.json")
    headline, _ = parts(answer)
    best, second = sorted((row for row in answer.runs if row.latency_s), key=lambda row: row.latency_s or 0.0)
    assert headline.startswith(best.label)
    check(headline, "s", best.latency_s)
    check(headline, "J", best.energy_j)
    check(headline, "x", (second.latency_s or 0.0) / (best.latency_s or 1.0))


QUICK: Final = (check_offload, check_fleet, check_explore, check_here)

CHECKS: Final[Sequence[Callable[[Workspace], None]]] = (
    *QUICK, check_batches, check_load, check_users, check_place, check_train, check_verify
)  # fmt: skip


@pytest.mark.parametrize(
    "checked",
    [one if one in QUICK else pytest.param(one, marks=pytest.mark.slow) for one in CHECKS],
    ids=lambda one: one.__name__,
)
def test_numbers_of_sentences_are_those_of_the_rows(checked: Callable[[Workspace], None], workspace: Workspace) -> None:
    checked(workspace)


def test_a_number_that_no_row_has_is_found() -> None:
    text = "l4 uses the least decode energy: 1.36 J (0.9\N{EN DASH}2) per token at batch 8, 2.4x less than h100_sxm5 x4"
    assert read(text, "J") == [1.36]
    assert read(text, "x") == [2.4]
    check(text, "J", 1.357)
    for unit, value in (("J", 1.37), ("x", 2.2), ("x", None)):
        with pytest.raises(AssertionError):
            check(text, unit, value)
