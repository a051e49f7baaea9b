"""Numbers in the sentences of the wings: each is recomputed from the rows of the answer that it stands above."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import pytest

from compare import assert_close
from joulemap.ask.answer import Answer
from joulemap.ask.fact import Change, Choice, Term
from joulemap.domain.settings import Settings
from joulemap.show.present.cell import show_chance, show_plain, show_share
from joulemap.wing.fleet.demand import Demand
from joulemap.wing.llm.ask.offload import OffloadAnswer
from joulemap.wing.verify.show.word import describe_condition
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


def parts(answer: Answer) -> tuple[str, Sequence[str]]:
    document = answer.document()
    return str(document.answer), document.insights


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return Workspace(tmp_path_factory.mktemp("prose") / "prose.duckdb")


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
    check(headline, "x", (other.cost_per_month or 0.0) / (best.cost_per_month or 1.0))
    assert f" {best.device_count} {best.label}: " in headline
    assert show_chance(winner.probability_best) in headline
    headroom = insights[0]
    check(headroom, "s", best.p99_latency_s, 0.05)
    check(headroom, "x", best.carried_ratio)
    energy = [line for line in insights if "kWh" in line]
    least = min((row for row in answer.rows if row.kwh_per_month), key=lambda row: row.kwh_per_month or 0.0)
    assert bool(energy) == ((best.kwh_per_month or 0.0) >= 1.005 * (least.kwh_per_month or 0.0))
    for line in energy:
        check(line, "kWh", least.kwh_per_month)
        assert any(least.label in one.texts for one in answer.document().details)
    assert second.cost_per_month


def check_explore(workspace: Workspace) -> None:
    answer = workspace.explore(
        "mobilenet_v2", Settings(precision=("int8",)), like="kpu_t256", vary={"units": "x0.5,x1,x2", "clock": "x0.8,x1"}
    )
    headline, insights = parts(answer)
    own = {one.objective: one for one in answer.best}
    knee = answer.facts.of(Choice)[0]
    design = answer.facts.runs[knee.run].hardware
    taken, unchanged = (
        next(row["energy_per_inference_j"] for row in answer.rows.records() if row["set_unit_count"] == units
             and row["set_clock_hz"] == clock_hz)
        for units, clock_hz in ((256, 480e6), (256, 600e6))
    )  # fmt: skip
    assert design == "kpu_t256 with units 256, clock 480 MHz"
    assert headline.startswith(f"Build {design}: {show_plain(unchanged / taken)}x less energy at ")
    moved = [one for one in answer.facts.of(Change) if answer.facts.runs[one.runs[1]].hardware == design]
    check(headline.partition(" at ")[2], "x", *(one.after.value / one.before.value for one in moved[1:2]))
    front = [row for row in answer.rows.records() if row["status"] == "front"]
    band = [row for row in answer.rows.records() if row["status"] == "band"]
    assert (answer.front_count, answer.band_count) == (len(front), len(band))
    counts = [int(one) for one in re.findall(r"; (\d+) others?", headline)]
    tied = [one.like_count for one in (own["energy"],) if 2 * one.like_count >= answer.point_count - 1]
    assert counts == tied
    for objective, column in (("energy", "energy_per_inference_j"), ("latency", "latency_s")):
        assert_close(own[objective].value, min(row[column] for row in front))
    terms = [one for one in answer.facts.of(Term) if answer.facts.runs[one.runs[0]].hardware == design]
    assert_close(sum(one.share or 0.0 for one in terms), 1.0)
    static = next(one for one in terms if one.prices)
    for amount, power, seconds in zip(static.amounts, static.prices, static.counts, strict=True):
        assert power is not None and seconds is not None
        assert_close(amount.value, power.value * seconds.value, rel=1e-9)
    term = terms[0]
    assert term.share is not None and f"{show_share(term.share)} of the gap" in insights[0]


def check_here(workspace: Workspace) -> None:
    answer = workspace.here("resnet18", recorded=TESTS / "here" / "machine" / "gaming_pc.json")
    headline, _ = parts(answer)
    best, second = sorted((row for row in answer.runs if row.latency_s), key=lambda row: row.latency_s or 0.0)
    assert headline.startswith(f"Use {best.label}: ")
    check(headline, "s", best.latency_s)
    check(headline, "J", best.energy_j)
    check(headline, "x", (second.latency_s or 0.0) / (best.latency_s or 1.0))


CHECKS: Final[Sequence[Callable[[Workspace], None]]] = (check_offload, check_fleet, check_explore, check_here)


@pytest.mark.sample(1)
@pytest.mark.parametrize("checked", CHECKS, ids=lambda one: one.__name__)
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


def test_a_count_of_zero_is_shown_where_its_text_always_stands() -> None:
    assert describe_condition("imported", {"fresh": 0, "known": 1}) == "stored 0 measurements, 1 known before"
