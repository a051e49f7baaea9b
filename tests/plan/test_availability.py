"""What cannot be bought: left out or marked, never first without the best that can be; a host for what is bought."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import attrs
import pytest

from choice_case import BOUGHT, RENTED, ask
from choice_database import open_made_up
from compare import assert_close
from conftest import Run
from joulemap.ask.answer import RunAnswer
from joulemap.ask.candidate import find_busy_hours
from joulemap.ask.decision import decide
from joulemap.ask.fact import Choice
from joulemap.catalog.load import load_catalogue
from joulemap.domain.metric import PartMetricName
from joulemap.domain.settings import Price, Settings, Site
from joulemap.physics.record.operating_point import read_point
from joulemap.store.connection import Connection
from joulemap.system.errors import UsageError
from joulemap.workspace import Workspace

SOLD = ("hailo_8", "tpu_v4", "l4", "jetson_orin_nano_8gb")
UNSOLD = (
    "kpu_t64", "kpu_t256", "kpu_t768", "plasticine", "andes_d25f", "andes_d45", "andes_nx27v", "intel_ncs2",
    "ax615_npu", "ax637_npu",
)  # fmt: skip
ONE: dict[str, Any] = {"precision": ("int8", "bf16"), "batch": 1}
OWN = {"run_id", "workload_id", "dominated_by_run_id", "run_ids", "next_steps"}

DREAM = attrs.evolve(BOUGHT, hardware="dream", purchase_usd=1.0, unavailable="never made")
GUESS = attrs.evolve(BOUGHT, hardware="guess", purchase_usd=10.0, price_basis="assumed")


@pytest.fixture(scope="module")
def made_up() -> Iterator[Connection]:
    connection = open_made_up()
    yield connection
    connection.close()


# The host


def test_a_host_adds_its_share_to_price_and_electricity(made_up: Connection) -> None:
    chip = attrs.evolve(BOUGHT, host_share=None)
    (row,) = ask(made_up, "cost.million", [chip])
    # 0.1 USD of hardware and 0.05 of electricity, a quarter of both on top
    assert_close(row["host_usd_per_million"], 0.0375)
    assert_close(row["usd_per_million"], 0.1875)
    (given,) = ask(made_up, "cost.million", host_share=1.0, run_ids=[1])
    assert_close(given["usd_per_million"], 0.3)
    (ranked,) = ask(made_up, "recommend.configuration", objective="cost", pay="bought", host_share=1.0, run_ids=[1])
    assert_close(ranked["objective_value"], 0.3)


def test_a_whole_computer_and_a_rented_chip_need_no_host(made_up: Connection) -> None:
    computer, rented = ask(made_up, "cost.million", [RENTED, BOUGHT], host_share=9.0, pay="both")
    assert computer["hardware"] == "bought"
    assert computer["host_usd_per_million"] == computer["host_share_ratio"] == 0.0
    assert_close(computer["usd_per_million"], 0.15)
    assert rented["host_usd_per_million"] == 0.0
    assert_close(rented["usd_per_million"], 2.0)


def test_a_break_even_counts_with_the_host(made_up: Connection) -> None:
    (row,) = ask(made_up, "cost.break_even", [RENTED, attrs.evolve(BOUGHT, host_share=0.5)])
    assert_close(row["fixed_a_usd"], 1.5 * 5760.0)
    assert_close(row["variable_a_usd_per_million"], 1.5 * 0.05)
    assert_close(row["break_even_inferences"], 1.5 * 5760.0 / (2.0 - 1.5 * 0.05) * 1e6)


def test_a_host_can_tip_the_balance_to_renting(made_up: Connection) -> None:
    rows = ask(made_up, "cost.million", [RENTED, attrs.evolve(BOUGHT, host_share=None)], host_share=20.0, pay="both")
    assert [row["hardware"] for row in rows] == ["rented", "bought"]


def test_what_a_price_buys_decides_about_the_host() -> None:
    shares = {
        name: one.host_share.value for name, one in load_catalogue().hardware.items() if one.host_share is not None
    }
    assert {name for name, share in shares.items() if share == 0.0} == {
        "apple_m2", "apple_m3_max", "apple_m3_ultra", "apple_m4", "apple_m4_max", "apple_m4_pro", "gb10",
        "ryzen_ai_max_395", "raspberry_pi_5", "jetson_orin_nano_8gb", "jetson_agx_orin_64gb_gpu", "jetson_thor_t5000",
        "mi300a", "dpu_b4096_kv260", "dpu_b4096x2_zcu104", "dpu_b4096x3_zcu102", "pynq_z2", "qrb5165_hexagon698",
        "tda4vm_c7x_mma",
    }  # fmt: skip
    assert_close(shares["hailo_8"], 80.0 / 110.0, rel=1e-3)


@pytest.mark.slow
@pytest.mark.wings
def test_cost_recommend_and_fleet_count_the_same_host(workspace: Workspace) -> None:
    shares = {"xeon_8490h": 0.0, "rk3588_cpu": 0.0, "l4": 0.4, "h100_sxm5": 0.4, "mi300a": 0.0}
    asked = Settings(hardware=tuple(shares), batch=1, precision="int8")
    paid = {row.hardware: row.host_share_ratio for row in workspace.cost("mobilenet_v2", asked).rows}
    drawn = {
        row.hardware: (row.total_power_w or 0.0) / (row.average_power_w or math.nan) - 1.0
        for row in workspace.recommend("mobilenet_v2", asked).rows
    }
    from joulemap.wing.fleet.demand import Demand

    demand = Demand(rate_per_s=10.0, p99_s=1.0)
    served = {
        row.hardware: (row.host_power_w or 0.0) / (row.power_w or math.nan)
        for row in workspace.fleet("mobilenet_v2", asked, demand=demand).rows
    }
    assert paid == shares
    for name, share in shares.items():
        assert_close(1.0 + drawn[name], 1.0 + share)
        assert_close(1.0 + served[name], 1.0 + share)


# What can be bought


def test_a_guess_is_no_price_and_a_given_price_is_one(made_up: Connection) -> None:
    rows = {row["hardware"]: row for row in ask(made_up, "cost.million", [BOUGHT, DREAM, GUESS])}
    assert {name: row["is_available"] for name, row in rows.items()} == {"bought": True, "dream": False, "guess": False}
    own: dict[str, Any] = {"price_of": ["dream:bought", "guess:bought"], "price_usd": [1.0, 2.0]}
    given = ask(made_up, "cost.million", **own, price_source=["shop", "shop"], run_ids=[2, 3])
    assert [(row["price_basis"], row["is_available"]) for row in given] == [("given", True)] * 2


def test_a_break_even_takes_what_can_be_bought_unless_another_is_named(made_up: Connection) -> None:
    (row,) = ask(made_up, "cost.break_even", [RENTED, BOUGHT, DREAM])
    assert row["hardware_a"] == "bought"
    (named,) = ask(made_up, "cost.break_even", hardware_a="dream", run_ids=[1, 2, 3])
    assert named["hardware_a"] == "dream"


def test_who_cannot_be_bought_says_who_says_so() -> None:
    catalogue = load_catalogue().hardware
    found = {name: one.unavailable for name, one in catalogue.items() if not one.is_available}
    assert {name for name in found if not catalogue[name].sold_in} == set(UNSOLD)
    assert all("embodied-schemas" in found[name] for name in UNSOLD[:3])
    assert "ISCA 2017" in found["plasticine"]


def test_a_hardware_whose_only_price_is_a_guess_is_none_to_be_had() -> None:
    l4 = load_catalogue().find("l4")
    assert l4.price_cloud is not None
    guessed = attrs.evolve(l4, price_purchase=None, price_cloud=attrs.evolve(l4.price_cloud, basis="assumed"))
    assert guessed.with_own_digest().unavailable == "nobody asks its price, which is a guess: price_cloud"
    dollars = attrs.evolve(l4.price_cloud, value=2500.0, unit="USD", basis="assumed")
    assert attrs.evolve(l4, price_purchase=dollars).with_own_digest().is_available
    assert attrs.evolve(l4, price_cloud=None, price_purchase=None).with_own_digest().is_available


def told(answer: RunAnswer) -> dict[str, Any]:
    """Return what programs get of an answer, without the numbers of its runs."""

    def strip(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: strip(one) for name, one in value.items() if name not in OWN}
        return [strip(one) for one in value] if isinstance(value, list | tuple) else value

    found = strip(answer.data())
    assert isinstance(found, dict)
    return found


@pytest.mark.slow
@pytest.mark.sample(1)
@pytest.mark.parametrize("question", ["pareto", "recommend", "cost"])
def test_what_cannot_be_had_changes_nothing_of_what_can(question: str, workspace: Workspace) -> None:
    method = getattr(workspace, question)
    without = told(method("resnet18", Settings(hardware=SOLD, **ONE)))
    beside = told(method("resnet18", Settings(hardware=(*SOLD, *UNSOLD[:2]), **ONE)))
    names = {"hardware", "precision", "batch", "runtime", "status", "rank", "reason"}
    kept = [row for row in beside["rows"] if row["is_available"]]
    assert [{name: row.get(name) for name in names} for row in kept] == [
        {name: row.get(name) for name in names} for row in without["rows"]
    ]
    assert all(row.get("rank") is None and row["status"] != "front" for row in beside["rows"] if row not in kept)


def test_a_mark_is_of_what_cannot_be_had_and_of_nothing_else(joulemap: Run) -> None:
    listed = joulemap("hardware", "list", "--limit", "999").stdout
    catalogue = load_catalogue().hardware
    assert {name for name in catalogue if f"~{name} " in listed} == {
        *UNSOLD,
        *(name for name, one in catalogue.items() if one.sold_in in ("cars", "phones")),
    }
    assert "~" not in joulemap("hardware", "show", "apple_m4", "--show=notes").stdout


@pytest.mark.slow
def test_what_is_priced_by_who_asks_can_be_had(workspace: Workspace) -> None:
    only = {"architecture": ("kpu", "npu"), **ONE}
    priced = workspace.cost("resnet18", site=Site(prices=(Price(hardware="kpu_t64", purchase_usd=99.0),)), **only)
    assert priced.pay == "bought" and priced.best is not None
    assert {row.hardware.partition("@")[0] for row in priced.rows if row.price_basis == "given"} == {"kpu_t64"}
    assert all(row.is_available and row.rank for row in priced.rows if row.price_basis == "given")
    between = workspace.cost("resnet18", between=("kpu_t256", "cloud_ai_100_pro"), **only)
    assert between.break_even is not None and between.break_even.hardware_a.startswith("kpu_t256")


def test_a_host_share_below_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match="host_share is -1, expected at least 0"):
        Site(host_share=-1.0)


# The power that a mode is named for


def test_a_mode_is_capped_at_the_watts_of_its_name() -> None:
    for hardware in load_catalogue().hardware.values():
        for mode in hardware.power_modes:
            point = read_point(mode.name)
            if point is not None and point.unit == "W":
                assert mode.tdp.value <= point.value, f"{hardware.id}@{mode.name}"


def test_the_card_takes_more_than_the_chip_that_its_modes_are_named_for() -> None:
    card = load_catalogue().find("cloud_ai_100_pro")
    rest = 75.0 - 69.26 * 375.0 / 363.0
    for mode, chip_w in zip(card.power_modes, (12.05, 19.74, 69.26), strict=True):
        assert mode.name == f"SoC-{round(chip_w)}W"
        assert_close(mode.tdp.value, chip_w + rest, rel=1e-2)
        assert "SoC takes" in mode.tdp.note


def test_the_metric_that_is_asked_for_leads_a_comparison(workspace: Workspace) -> None:
    metrics: tuple[PartMetricName, ...] = ("energy", "edp", "latency")
    for metric in metrics:
        answer = workspace.compare("resnet18", hardware=("l4", "tpu_v4", "h100_sxm5"), metric=metric)
        (goal,) = (row for row in answer.available if row.goal == metric)
        first = answer.facts.of(Choice)[0]
        assert (first.metric, first.runs[0]) == (metric, goal.ranked_ids[0])
        assert first.probability == goal.probability_best
        assert first.against(goal.ranked_ids[1])[0] == pytest.approx(goal.advantage_ratio, rel=1e-12)
        # a confidence too low to call it the best names the chips that may be better
        assert {answer.facts.runs[one].hardware for one in first.tied} == set(goal.rivals)
        assert decide(answer.facts.of(Choice)).runs[0] in first.close


@pytest.mark.slow
def test_a_break_even_takes_calendar_years_at_the_busy_hours(workspace: Workspace) -> None:
    names, usage = ("jetson_orin_nano_8gb", "a10"), Site(utilization=5.0 / 24.0)
    answer = workspace.cost("resnet18", Settings(hardware=names, precision="int8", batch=8), between=names, site=usage)
    row = answer.break_even
    assert row is not None and row.break_even_inferences is not None
    bought = next(one for one in answer.rows if one.hardware.startswith("jetson") and one.way == "bought")
    assert bought.throughput_per_s is not None
    work_s = row.break_even_inferences / bought.throughput_per_s
    hours = {one.assumption: one.value for one in answer.assumptions}["hours"]
    assert_close(row.break_even_years, work_s / (5.0 / 24.0 * hours * 3600.0))
    assert find_busy_hours(answer.assumptions) == pytest.approx(5.0)
