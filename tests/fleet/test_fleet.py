"""Fleets: what they cost, mixtures of two kinds, rates of a day, what is refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import attrs
import pytest

from command import run_here
from compare import assert_close
from joulemap.ask.fact import Choice, Limit, Refusal
from joulemap.domain.computed import find_unknown
from joulemap.domain.settings import Price, Settings, Site
from joulemap.show.present.cell import show_plain
from joulemap.show.present.format import write
from joulemap.show.view import draw_figures
from joulemap.system.errors import UnsupportedError, UsageError
from joulemap.wing.fleet.ask.fleet import FleetAnswer
from joulemap.wing.fleet.capacity.cost import cost_fleet, list_failures
from joulemap.wing.fleet.capacity.mixture import BY_PHASE, BY_THE_HOUR, SAVED, SIDE_BY_SIDE, find_chance_together, mix
from joulemap.wing.fleet.capacity.rank import Terms
from joulemap.wing.fleet.capacity.row import DeviceLoad, FleetRow, Sizing, count_likely, find_enough
from joulemap.wing.fleet.demand import Demand, Level
from joulemap.wing.fleet.generated.row import LevelRow, MixedRow, Station
from joulemap.wing.fleet.option import read_models
from joulemap.wing.fleet.show.fleet import list_reasons
from joulemap.wing.llm.setting import Serving
from joulemap.workspace import Workspace

HOURS: Final = 730.0
"""Of a month."""


def of_rate(rate: float, p99_s: float = 0.05, **more: Any) -> Demand:
    return Demand(rate_per_s=rate, p99_s=p99_s, **more)


def terms_of(demand: Demand, pay: str = "rented") -> Terms:
    return Terms(demand=demand, pay=pay)


def of_day(tmp_path: Path, *rates: float, **more: Any) -> Terms:
    """Rates that each last for as many hours of a day, the first of them the highest."""
    path = tmp_path / "day.csv"
    hours = (f"{24.0 * place / len(rates)},{rate}\n" for place, rate in enumerate(rates))
    path.write_text("hour,rate_per_s\n" + "".join(hours))
    return terms_of(Demand(rates=str(path), p99_s=0.05, **more))


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., FleetAnswer]:
    workspace = Workspace(tmp_path_factory.mktemp("fleet") / "fleet.duckdb")

    def answer(demand: Demand, *hardware: str, **more: Any) -> FleetAnswer:
        settings = Settings(hardware=hardware or ("l4", "t4"), precision=("int8",), batch=(1, 8, 32))
        return workspace.fleet("resnet18", settings, demand=demand, **more)

    return answer


@pytest.mark.slow
def test_a_model_is_served_under_its_other_names(tmp_path: Path) -> None:
    settings = Settings(hardware=("l4",), precision=("int8",), batch=(1, 8))
    answer = Workspace(tmp_path / "x.duckdb").fleet(
        "ResNet-18", settings, demand=of_rate(500.0, beside={"google-bert/bert-base-uncased": 0.2})
    )
    assert answer.shares == {"resnet18": pytest.approx(0.8, rel=1e-12, abs=0), "bert-base-uncased": 0.2}
    assert answer.ok[0].device_count == 1


def row_of(answer: FleetAnswer, label: str) -> FleetRow:
    return next(row for row in answer.rows if row.label == label)


def test_a_month_is_what_its_devices_take(ask: Callable[..., FleetAnswer]) -> None:
    """Rent: devices x 730 h; energy: mean watts x 730 h x PUE; and joules a request x rate are the mean watts."""
    answer = ask(of_rate(30_000.0), site=Site(pay="rented", pue=1.5, gco2_per_kwh=400.0))
    for row in answer.ok:
        assert row.device_count is not None
        assert row.mean_power_w is not None
        assert row.kwh_per_month is not None
        assert row.rented_device_per_month is not None
        assert row.rented_per_month is not None
        assert row.energy_per_request_j is not None
        assert row.gco2_per_month is not None
        assert_close(row.rented_per_month, row.device_count * row.rented_device_per_month)
        assert_close(row.kwh_per_month, row.mean_power_w * HOURS * 1.5 / 1e3)
        assert_close(row.gco2_per_month, 400.0 * row.kwh_per_month)
        assert_close(row.mean_power_w, 30_000.0 * row.energy_per_request_j)
        assert_close(row.power_w, row.mean_power_w, rel=0.01)
        assert (row.way, row.cost_per_month) == ("rented", row.rented_per_month)
        assert (row.p99_latency_s or 1.0) <= 0.05
    best = answer.ok[0]
    queue = [row for row in answer.queue if row.label == best.label]
    asked = next(row for row in queue if row.load_ratio == 1.0)
    assert (asked.p50_s, asked.p99_s, asked.promise_s) == (best.p50_latency_s, best.p99_latency_s, 0.05)
    assert_close(asked.power_w, best.power_w)
    powers = [row.power_w for row in queue if row.power_w is not None]
    assert powers == sorted(powers)
    assert [figure.name for figure in draw_figures(answer)] == ["fleet", "queue"]


def test_the_choice_is_the_winner_of_the_objective_and_its_targets_are_facts(ask: Callable[..., FleetAnswer]) -> None:
    answer = ask(of_rate(10_000.0))
    choice, winner = answer.facts.of(Choice)[0], next(row for row in answer.winners if row.objective == "cost")
    best = answer.rows[choice.runs[0] - 1]
    assert (best.label, choice.value.value, choice.ratio) == (winner.label, winner.value, winner.regret_ratio)
    (limit,) = answer.facts.of(Limit)
    assert (limit.runs, limit.bound.value, limit.miss) == (choice.runs[:1], answer.demand.p99_s, 0.0)
    assert limit.value is not None and limit.value.value == best.p99_latency_s
    told = answer.document().answer
    assert len(told.split()) <= 25


def test_utilization_is_of_the_rate_that_is_carried_and_not_of_time(ask: Callable[..., FleetAnswer]) -> None:
    """Alone and with a late target, a request takes its latency of the 95 % of time that queues fill; batches less."""
    single = ask(of_rate(500.0, p99_s=5.0), "l4", batch=1)
    row = single.ok[0]
    assert row.device_count == 1 and row.busy_fraction and row.utilization_fraction and row.carried_ratio
    assert_close(row.utilization_fraction, row.busy_fraction / 0.95, rel=0.02)
    answer = ask(of_rate(10_000.0))
    batched = answer.ok[0]
    assert batched.carried_ratio and batched.utilization_fraction
    assert_close(batched.utilization_fraction * batched.carried_ratio, 1.0)
    assert batched.utilization_fraction < (batched.busy_fraction or 0.0)
    assert f"{show_plain(batched.carried_ratio)}x" in list_reasons(answer.facts)[0]


@pytest.mark.parametrize("width", [0.1, 0.5, 1.0])
@pytest.mark.parametrize(("count", "high"), [(1, 1), (1, 4), (5, 14), (8, 24), (5, None)])
def test_devices_that_are_likely_enough(width: float, count: int, high: int | None) -> None:
    """Law: a full fleet suffices in half of all cases; headroom makes it surer, and a number below 80 % gets more."""
    row = priced("a", count, 10.0, 10.0).row.replace(device_high_count=high, device_low_count=1, time_half_width=width)
    rows = [row.replace(carried_ratio=carried) for carried in (1.0, 1.05, 1.3, 2.0, 8.0)]
    chances = [find_enough(one) or 0.0 for one in rows]
    assert_close(chances[0], 0.5)
    assert chances == sorted(chances)
    for one, chance in zip(rows, chances, strict=True):
        likely = count_likely(one)
        if chance >= 0.8:
            assert likely == count
        elif high is None:
            assert likely is None
        else:
            assert likely is not None and count <= likely <= high
            assert likely > count or high == count


@pytest.mark.slow
def test_what_is_owned_costs_its_electricity(ask: Callable[..., FleetAnswer]) -> None:
    more: dict[str, Any] = {"site": Site(pay="bought", prices=(Price(hardware="l4", purchase_usd=2500.0),))}
    bought, owned = (row_of(ask(of_rate(30_000.0, owned=there), **more), "l4 int8") for there in ({}, {"l4": 100}))
    months = (bought.device_count or 0) * (bought.bought_device_per_month or 0.0)
    assert_close((bought.cost_per_month or 0.0) - (owned.cost_per_month or 0.0), months)
    assert owned.kwh_per_month == bought.kwh_per_month


def spend(owned: int, devices: tuple[int, ...] = (7,), **more: float | None) -> dict[str, Any]:
    """Return what seven devices take a month, or as many as each rate needs: each works half of its time at 70 W."""
    figures = {"price_purchase_usd": 3600.0, "host_share_ratio": 0.4, "host_energy_share_ratio": 0.4}
    station = station_of(300.0, idle_w=10.0, **figures | more)
    share = 1.0 / len(devices)
    loads = [
        DeviceLoad(
            level=Level(rate_per_s=100.0 * count, share=share),
            devices=count,
            busy_devices=count / 2,
            batch_w=70.0 * count,
        )
        for count in devices
    ]
    return cost_fleet(station, loads, devices[0], owned, 10.0)


@pytest.mark.parametrize("owned", [0, 4, 7, 100])
def test_only_what_is_not_owned_is_rented_or_bought(owned: int) -> None:
    """A device draws 75 W, 54.75 kWh a month: at 0.1 USD, and 0.4 of it for a host, 7.665 USD. It rents for 300 USD.
    It is bought for 3,600 USD over three years, with a host for 0.4 of that: 140 USD a month.
    """
    found, there = spend(owned), min(owned, 7)
    assert found["owned_device_count"] == there
    assert_close(found["rented_per_month"], (7 - there) * 300.0 + there * 7.665)
    assert_close(found["bought_per_month"], (7 - there) * 140.0 + 7 * 7.665)
    assert_close(found["kwh_per_month"], 7 * 54.75)


def test_rented_devices_are_released_before_owned_ones() -> None:
    """Four owned; seven are needed half of the time and two the other half: three are rented half of the time."""
    found = spend(4, (7, 2))
    assert_close(found["rented_per_month"], 3 * 300.0 / 2 + (4 + 2) / 2 * 7.665)
    assert_close(found["bought_per_month"], 3 * 140.0 + (7 + 2) / 2 * 7.665)


def test_a_price_is_needed_of_what_is_not_owned_alone() -> None:
    unknown: dict[str, Any] = {"price_cloud_usd_per_hour": None, "price_purchase_usd": None}
    assert (spend(4, **unknown)["rented_per_month"], spend(4, **unknown)["bought_per_month"]) == (None, None)
    for way in ("rented_per_month", "bought_per_month"):
        assert_close(spend(7, **unknown)[way], 7 * 7.665)


@pytest.mark.parametrize(
    ("owned", "pay", "way", "cost"),
    [
        ({}, "rented", "rented", 2100.0),
        ({"chip": 4}, "rented", "rented", 930.66),
        ({"chip": 4}, "bought", "bought", 473.655),
        ({"chip": 4}, "both", "bought", 473.655),
        ({"chip": 7}, "rented", "owned", 53.655),
        ({"chip": 9}, "bought", "owned", 53.655),
        ({"other": 9}, "rented", "rented", 2100.0),
    ],
)
def test_owned_devices_are_paid_for_in_no_way(owned: dict[str, int], pay: str, way: str, cost: float) -> None:
    row = priced("chip", 7, 100.0, 300.0).row
    found = {name: value for name, value in spend(owned.get("chip", 0)).items() if name in FleetRow.columns}
    row = terms_of(of_rate(700.0, owned=owned), pay).choose_payment(row.replace(**found))
    assert (row.way, row.status) == (way, "ok")
    assert_close(row.cost_per_month, cost)


def test_a_limit_on_power_counts_the_hosts() -> None:
    """100 W of devices and 40 W of hosts are over 130 W, and within 141 W."""
    row = priced("chip", 1, 100.0, 300.0).row.replace(host_power_w=40.0)
    over, within = (terms_of(of_rate(700.0, max_power_w=limit)).choose_payment(row) for limit in (130.0, 141.0))
    assert (over.status, within.status) == ("over a limit", "ok")
    assert "140 W" in over.reason


@pytest.mark.slow
def test_a_fleet_over_a_limit_is_shown_and_ends_with_the_code_of_what_cannot_be(tmp_path: Path) -> None:
    words = ["fleet", "resnet18", "l4", "--rate", "2000/s", "--p99", "15ms", "--precision", "int8", "--batch", "1,8"]
    for limit in (["--max-power", "1W"], ["--max-cost", "1USD"]):
        run = run_here([*words, *limit], tmp_path, {})
        assert run.returncode == 4, run.stderr
        assert "No fleet meets all limits" in run.stdout
    assert run_here([*words, "--max-power", "1kW"], tmp_path, {}).returncode == 0


def test_the_nearest_is_told_where_none_keeps_the_promise(ask: Callable[..., FleetAnswer]) -> None:
    with pytest.raises(UnsupportedError, match=r"target: l4.*; t4"):
        ask(of_rate(100.0, p99_s=1e-6), "t4", "l4")


def test_a_refused_precision_is_no_limit_that_a_fleet_without_a_price_misses(tmp_path: Path) -> None:
    """The Pi has no bf16 and nobody rents it out; its fp16 fleet is within the target all the same."""
    settings = Settings(hardware=("raspberry_pi_5",), precision=("fp16", "bf16"), batch=(1,))
    answer = Workspace(tmp_path / "fleet.duckdb").fleet("resnet18", settings, demand=of_rate(1.0, p99_s=2.0))
    refusals = answer.facts.of(Refusal)
    assert answer.ok and refusals
    assert answer.ok[0].cost_per_month is None
    assert not any(str(one.reason) in str(answer.document().answer) for one in refusals)


def test_a_chip_that_cannot_be_bought_is_chosen_if_no_other_is_asked_for(ask: Callable[..., FleetAnswer]) -> None:
    demand = of_rate(500.0, objective="energy")
    for hardware, taken in ((("kpu_t256",), "kpu_t256 int8"), (("kpu_t256", "l4"), "l4 int8")):
        answer = ask(demand, *hardware)
        first = answer.facts.of(Choice)[0]
        assert answer.facts.runs[first.run].hardware.startswith(taken)


def test_a_limit_on_power_is_told_with_how_far_it_is_missed(ask: Callable[..., FleetAnswer]) -> None:
    answer = ask(of_rate(30_000.0, max_power_w=10.0))
    assert not answer.ok
    assert "the limit of 10 W" in answer.rows[0].reason
    watts = [(row.power_w or 0.0) + (row.host_power_w or 0.0) for row in answer.rows]
    assert watts == sorted(watts)
    assert not answer.is_met
    assert str(answer.rows[0].reason) in str(answer.document().answer)


def station_of(device: float, idle_w: float = 0.0, **more: float | None) -> Station:
    """What rents for so much a month, and draws so many watts while it idles."""
    figures: dict[str, Any] = dict.fromkeys(Station.__annotations__)
    figures |= {"price_cloud_usd_per_hour": device / HOURS, "idle_power_w": idle_w, "lifetime_years": 3.0}
    figures |= {"pue_ratio": 1.0, "gco2_per_kwh": 400.0, "usd_per_kwh": 0.1}
    return Station(**figures | {"host_share_ratio": 0.0, "host_energy_share_ratio": 0.0, "module_power_w": 0.0} | more)


def priced(
    label: str, count: int, alone: float, device: float, *, kwh: float = 100.0, each_j: float = 1.0, idle_w: float = 0.0
) -> Sizing:
    """A fleet whose servers do so many requests a second for so many joules each, and idle for the rest of it."""
    figures: dict[str, Any] = dict.fromkeys(FleetRow.columns)
    figures |= {"label": label, "hardware": label, "status": "ok", "server_device_count": 1, "device_count": count}
    figures |= {"rented_half_width": 0.1, "bought_half_width": 0.1}
    figures |= {"server_rate_per_s": alone, "rented_device_per_month": device, "rented_per_month": count * device}
    figures |= {"kwh_per_month": kwh, "power_w": 100.0, "mean_power_w": 100.0, "is_available": True, "reason": ""}
    row = terms_of(of_rate(1000.0)).choose_payment(FleetRow(**figures | {"gco2_per_month": 400.0 * kwh}))
    return Sizing(
        row=row,
        station=station_of(device, idle_w),
        serve=lambda rates: [(rate / alone, each_j * rate) for rate in rates],
    )


def at(label: str, rate: float, share: float, rent: float) -> LevelRow:
    return LevelRow(
        label=label,
        rate_per_s=rate,
        time_fraction=share,
        device_count=1,
        busy_fraction=0.5,
        power_w=100.0,
        rented_usd_per_hour=rent,
    )


def test_what_two_large_do_not_fill_a_small_one_takes() -> None:
    """1,000 requests: large ones do 900 for 100 USD, so two cost 200; small ones 150 for 30: one of each, 130.

    Of the 1,000 the large one has 900 at 2 J and no time to idle, the small one 100 at 1 J and idles a third of its
    time at 30 W: 1,800 + 100 + 10 W.
    """
    large = priced("large", 2, 900.0, 100.0, each_j=2.0, idle_w=50.0)
    small = priced("small", 7, 150.0, 30.0, idle_w=30.0)
    (best, *_) = mix([large, small], terms_of(of_rate(1000.0)), large.row)
    assert (best.label, best.form, best.device_count) == ("1 large + 1 small", SIDE_BY_SIDE, 2)
    assert_close(best.cost_per_month, 130.0)
    assert_close(best.saved_fraction, 0.35)
    assert_close(best.power_w, 1910.0)
    assert_close(best.kwh_per_month, 1.91 * HOURS)
    assert_close(best.gco2_per_month, 400.0 * 1.91 * HOURS)
    assert mix([large], terms_of(of_rate(1000.0)), large.row) == []


def test_limits_of_a_demand_hold_for_fleets_of_several_kinds() -> None:
    """Whatever is minimized: of fleets for 90 and 110 USD with 1 and 2 kW, hosts at half as much, one keeps both."""
    mixed = MixedRow(
        **find_unknown(MixedRow) | {"cost_per_month": 90.0}, label="a", form=SIDE_BY_SIDE, device_count=2,
        power_w=1000.0, host_power_w=500.0, kwh_per_month=730.0, gco2_per_month=1.0,
    )  # fmt: skip
    dear = mixed.replace(label="b", cost_per_month=110.0, kwh_per_month=700.0)
    hot = mixed.replace(label="c", power_w=2000.0, cost_per_month=80.0)
    for objective in ("cost", "energy"):
        demand = attrs.evolve(of_rate(1000.0), objective=objective, max_cost_per_month=100.0, max_power_w=2000.0)
        assert [row.label for row in terms_of(demand).rank_together([dear, hot, mixed], None)] == ["a"]


def test_at_lower_rates_those_side_by_side_get_less_or_are_given_back(tmp_path: Path) -> None:
    """At half the rate the two idle: 450 x 2 + 50 / 2 W of the large one, 50 + 30 x 2 / 3 W of the small one. Where
    what is not needed is given back, 500 requests fill no large one and are too many for one small one: the large one
    takes them all, for 1,000 + 50 x 4 / 9 W.
    """
    large = priced("large", 2, 900.0, 100.0, each_j=2.0, idle_w=50.0)
    small = priced("small", 7, 150.0, 30.0, idle_w=30.0)
    (best, *_) = mix([large, small], of_day(tmp_path, 1000.0, 500.0), large.row)
    assert_close(best.kwh_per_month, HOURS * 0.5 * (1.910 + 0.925 + 0.070))
    (one, *_) = mix([large, small], of_day(tmp_path, 1000.0, 500.0, releases=True), large.row)
    assert (one.label, one.form) == ("1 large + 1 small", SIDE_BY_SIDE)
    assert_close(one.kwh_per_month, HOURS * 0.5 * (1.910 + 1.0 + 0.2 / 9.0))
    assert_close(one.cost_per_month, 0.5 * 130.0 + 0.5 * 100.0)


def test_at_night_a_small_one_serves(tmp_path: Path) -> None:
    """By day the large one is the cheaper, at 1 USD an hour against 2; at night the small one, at 0.2 against 1."""
    by_day = [at("large", 1000.0, 0.5, 1.0), at("large", 100.0, 0.5, 1.0)]
    by_night = [at("small", 1000.0, 0.5, 2.0), at("small", 100.0, 0.5, 0.2)]
    rows = [
        attrs.evolve(priced("large", 1, 1200.0, 730.0), levels=tuple(by_day)),
        attrs.evolve(priced("small", 10, 120.0, 146.0), levels=tuple(by_night)),
    ]
    (best,) = mix(rows, of_day(tmp_path, 1000.0, 100.0, releases=True), rows[0].row)
    assert best.form == BY_THE_HOUR
    assert_close(best.cost_per_month, HOURS * (0.5 * 1.0 + 0.5 * 0.2))
    assert mix(rows, of_day(tmp_path, 1000.0, 100.0), rows[0].row) == []


def test_rates_of_a_day_last_until_the_next(tmp_path: Path) -> None:
    path = tmp_path / "day.csv"
    path.write_text("hour,rate_per_s\n0,100\n6,1000\n18,100\n")
    assert Demand(rates=str(path), p99_s=1.0).levels == (
        Level(rate_per_s=1000.0, share=0.5),
        Level(rate_per_s=100.0, share=0.5),
    )


def test_arrivals_are_counted(tmp_path: Path) -> None:
    """241 arrivals a second apart: ten in each of 24 parts, and the last."""
    path = tmp_path / "trace.csv"
    path.write_text("arrival_s\n" + "".join(f"{second}\n" for second in range(241)))
    levels = Demand(rates=str(path), p99_s=1.0).levels
    assert_close(sum(level.share for level in levels), 1.0)
    assert levels[0].rate_per_s == 1.1


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "line 1"),
        ("hour,rate\n0,1\n", "rate_per_s"),
        ("hour,rate_per_s\n6,1\n\n0,1\n", "line 4: out of order"),
        ("hour,rate_per_s\n0,1,200\n", "line 2: 3 cells for 2 columns: write numbers without commas"),
        ("hour,rate_per_s\n0,x\n", "line 2"),
        ("hour,rate_per_s\n0,-1\n", "0 or more"),
        ("hour,rate_per_s\n0,0\n", "all rates are 0"),
        ("arrival_s\n3\n2\n", "out of order"),
        ("arrival_s\n3\n3\n", "same time"),
    ],
)
def test_a_file_of_rates_that_is_wrong_is_refused(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "day.csv"
    path.write_text(text)
    with pytest.raises(UsageError, match=told):
        Demand(rates=str(path), p99_s=1.0).check()


def test_options_of_a_served_model_need_its_targets(tmp_path: Path) -> None:
    demand = Demand(rate_per_s=1.0, p99_s=1.0)
    with pytest.raises(UsageError, match="--prompt"):
        Workspace(tmp_path / "a.duckdb").fleet("resnet18", demand=demand, serving=Serving(prompt=77))


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("options", "code", "told"),
    [
        (["--p99", "15ms"], 2, "--rate"),
        (["--rate", "0/s", "--p99", "15ms"], 2, "above 0"),
        (["--rate", "1/s", "--rates", "day.csv", "--p99", "15ms"], 2, "one of the two"),
        (["--rate", "100/s", "--p99", "15ms", "--beside", "llama-3.1-8b=0.2"], 2, "--first-token"),
        (["--rate", "100/s", "--p99", "15ms", "--beside", "resnet18=0.2"], 2, "other models"),
        (["--rate", "100/s"], 2, "--p99"),
        (["--rate", "100/s", "--p99", "15ms", "--beside", "resnet50=1.2"], 2, "below 1"),
        (["--rate", "100/s", "--p99", "15ms", "--beside", "resnet50"], 2, "--beside"),
        (["--rate", "100/s", "--p99", "1ns"], 4, "latency target"),
        (["--rate", "100/s", "--p99", "15ms", "--site", "owned.l4=x"], 2, "owned"),
        (["--rate", "100/s", "--p99", "15ms", "--site", "owned.l44=2"], 3, "l44"),
        (["--rates", "missing.csv", "--p99", "15ms"], 2, "cannot read"),
        (["--rate", "100/s", "--first-token", "1s"], 3, "language model"),
    ],
)
def test_a_demand_that_cannot_be_met_or_read_is_one_line(
    tmp_path: Path, options: list[str], code: int, told: str
) -> None:
    words = ["fleet", "resnet18", "l4", "--precision", "int8", "--batch", "1", *options]
    run = run_here(words, tmp_path, {})
    assert run.returncode == code, run.stderr
    assert told in run.stderr
    assert run.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[models]\nresnet18 = 0.7\nvit_b_16 = 0.2\n", "sum to 0.9, expected 1"),
        ("[models]\nresnet18 = 'most'\n", "expected a number"),
        ("resnet18 = 1\n", "[models]"),
        ("[models\n", "cannot read"),
    ],
)
def test_a_file_of_models_that_is_wrong_is_refused(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "fleet.toml"
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        read_models(str(path), of_rate(10.0))
    assert told in str(caught.value)


def test_a_file_names_models_with_their_shares(tmp_path: Path) -> None:
    path = tmp_path / "fleet.toml"
    path.write_text("[models]\nresnet50 = 0.7\nbert_encoder_128 = 0.3\n")
    model, demand = read_models(str(path), of_rate(10.0))
    assert (model, dict(demand.beside)) == ("resnet50", {"bert_encoder_128": 0.3})
    assert read_models("resnet50", of_rate(10.0)) == ("resnet50", of_rate(10.0))


@pytest.mark.parametrize(
    ("carried", "limit_w", "told"),
    [
        (2.0, None, ""),
        (1.2, None, "latency"),
        (2.0, 130.0, "power"),
        (1.2, 130.0, "latency, then power"),
        (1.4, 130.0, "power, then latency"),
    ],
)
def test_what_fails_first_is_what_fails_at_the_lower_rate(carried: float, limit_w: float | None, told: str) -> None:
    """Of 100 W at the highest rate and 150 W at half more of it, 130 W are drawn at 1.3 times that rate."""
    assert list_failures(carried, limit_w, 100.0, 150.0) == told


def test_the_next_best_is_the_next_hardware_and_what_it_takes_more() -> None:
    """Fleets of 2 x 100, of 7 x 30 and, of the first hardware again, of 3 x 80 USD: 210 is 1.05 times 200."""
    rows = [priced(*one).row for one in (("large", 2, 900.0, 100.0), ("small", 7, 150.0, 30.0))]
    rows.append(priced("large", 3, 900.0, 80.0).row.replace(label="large, delayed batching"))
    choice = terms_of(of_rate(1.0)).find_choices(dict(enumerate(rows)))["cost"]
    assert (choice.runs, choice.value.value) == ((0, 1), 200.0)
    assert_close(choice.ratio, 1.05)


def test_a_fleet_at_its_capacity_needs_another_device_as_soon_as_it_is_slower() -> None:
    """One device of 100 USD at its capacity needs a second one in half of all cases, and then 130 USD are less."""
    full, spare = (priced(*one).row for one in (("full", 1, 900.0, 100.0), ("spare", 1, 900.0, 130.0)))
    full = full.replace(carried_ratio=1.0, time_half_width=0.2, rented_half_width=0.0)
    spare = spare.replace(carried_ratio=16.0, time_half_width=0.2, rented_half_width=0.0)
    choice = terms_of(of_rate(1.0)).find_choices({1: full, 2: spare})["cost"]
    assert choice.runs == (1, 2)
    assert_close(choice.probability, 0.5)
    roomy = full.replace(carried_ratio=16.0)
    choice = terms_of(of_rate(1.0)).find_choices({1: roomy, 2: spare})["cost"]
    assert_close(choice.probability, 1.0)


def test_parts_of_the_same_hardware_share_its_error() -> None:
    """100 USD at a half-width of 0.1 against 45 of the same and 45 of another: half of each error is left.

    The half-width of the ratio is 0.1 / sqrt(2), and an 80 % interval ends at ln 9 scales from the middle.
    """
    best, other = priced("a", 1, 900.0, 100.0).row, priced("b", 1, 900.0, 45.0).row
    part = priced("a", 1, 900.0, 45.0).row
    terms = terms_of(of_rate(1.0))
    chance = find_chance_together([(part, 45.0), (other, 45.0)], best, terms)
    assert_close(chance, 1.0 / (1.0 + 9.0 ** -(math.log(100.0 / 90.0) * math.sqrt(2.0) / 0.1)))
    assert find_chance_together([(part, 90.0)], best, terms) is None
    assert find_chance_together([(part, 90.0)], None, terms) is None


@pytest.mark.slow
def test_nodes_are_whole(ask: Callable[..., FleetAnswer]) -> None:
    """Devices beyond those that are needed are paid for, and idle."""
    few, whole = (row_of(ask(of_rate(30_000.0, node=node)), "l4 int8") for node in (1, 8))
    assert (few.device_count, whole.device_count) == (2, 8)
    assert_close(whole.rented_per_month, (few.rented_per_month or 0.0) * 8.0 / 2.0)
    assert (whole.power_w or 0.0) > (few.power_w or 0.0)
    assert (whole.carried_ratio or 0.0) > (few.carried_ratio or 0.0)


@pytest.mark.slow
def test_servers_of_a_language_model_keep_their_promises(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "a.duckdb")
    demand = Demand(rate_per_s=20.0, first_token_s=0.5, between_s=0.03)
    settings = Settings(hardware=("h100_sxm5", "mi300x"), precision=("bf16",))
    answer = workspace.fleet("llama-3.1-8b", settings, demand=demand)
    for row in answer.ok:
        assert (row.first_token_p99_s or 1.0) <= 0.5
        assert (row.between_p99_s or 1.0) <= 0.03
        assert (row.device_low_count or 0) <= (row.device_count or 0) <= (row.device_high_count or 0)
        assert_close((row.utilization_fraction or 0.0) * (row.carried_ratio or 0.0), 1.0)
        assert_close((row.mean_power_w or 0.0) / 20.0, row.energy_per_request_j)
        # 2,304 tokens of 131,072 B each beside 16 GB of weights
        memory = {"h100_sxm5": 80e9, "mi300x": 192e9}[row.hardware] * row.server_device_count
        assert 1 <= (row.batch or 0) <= (memory - 16e9) / (2304 * 131072)
    guessing = Serving(speculate=3, acceptance=0.7)
    more = workspace.fleet("llama-3.1-8b", settings, demand=demand, serving=guessing)
    guessed = {(row.hardware, row.server_device_count): row.server_rate_per_s or 0.0 for row in more.ok}
    for row in answer.ok:
        assert guessed.get((row.hardware, row.server_device_count), math.inf) > (row.server_rate_per_s or 0.0)


@pytest.mark.slow
def test_a_named_chip_that_serves_no_language_model_is_listed_with_its_reason(tmp_path: Path) -> None:
    """A card of 8 GB holds no 70 billion weights, and TensorRT-LLM has no kernels for other vendors."""
    settings = Settings(hardware=("h200_sxm", "mi300x", "rtx_4060"), precision=("fp8",))
    demand, serving = Demand(rate_per_s=1.0, first_token_s=2.0), Serving(engine="tensorrt_llm")
    answer = Workspace(tmp_path / "a.duckdb").fleet("llama-3.1-70b", settings, demand=demand, serving=serving)
    assert {row.hardware for row in answer.rows} == {"h200_sxm"}
    reasons = sorted(answer.scope.refusals)
    assert [reason.split()[0].rstrip(":") for reason in reasons] == ["mi300x", "rtx_4060"]
    document = write(answer.document(), "table", 200)
    assert all(reason in document for reason in reasons)


@pytest.mark.slow
def test_answers_of_one_token_have_no_time_between_tokens_and_no_second_pool(tmp_path: Path) -> None:
    demand, settings = Demand(rate_per_s=1.0, first_token_s=3.0), Settings(hardware=("l4",), precision=("bf16",))
    workspace = Workspace(tmp_path / "a.duckdb")
    answer = workspace.fleet("llama-3.1-8b", settings, demand=demand, serving=Serving(output=1))
    assert [row.between_p99_s for row in answer.ok] == [None] * len(answer.ok) != []
    assert not answer.mixtures.rows


@pytest.mark.slow
def test_pools_of_prompts_and_answers_keep_the_promises_and_beat_what_they_say(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "a.duckdb")
    demand = Demand(rate_per_s=20.0, first_token_s=0.5, between_s=0.03)
    settings = Settings(hardware=("mi300x", "l40s"), precision=("bf16",))
    answer = workspace.fleet("llama-3.1-8b", settings, demand=demand, serving=Serving(prompt=2000, output=300))
    best = answer.ok[0]
    pairs = [row for row in answer.mixtures if row.form == BY_PHASE]
    assert pairs
    for pair in pairs:
        assert (pair.first_token_p99_s or math.inf) <= 0.5
        assert (pair.between_p99_s or math.inf) <= 0.03
        assert_close(pair.kwh_per_month, pair.power_w * HOURS / 1e3 * answer_pue(best))
        assert_close(pair.saved_fraction, 1.0 - (pair.cost_per_month or 0.0) / (best.cost_per_month or 1.0))
    document, pair = answer.document(), pairs[0]
    told = " ".join((document.answer, *document.insights))  # a statistical tie is a reason
    is_less = (pair.saved_fraction or 0.0) > 1.0 - SAVED
    assert all((pool in told) == is_less for pool in pair.label.split(" > "))
    assert pair.probability_best is not None
    assert (pair.probability_best > 0.5) == ((pair.saved_fraction or 0.0) > 0.0)


def answer_pue(row: FleetRow) -> float:
    return (row.kwh_per_month or 0.0) * 1e3 / HOURS / (row.mean_power_w or 1.0)
