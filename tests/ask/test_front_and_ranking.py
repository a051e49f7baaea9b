"""Choices: numbers by hand on made-up chips, then the front and the ranking against brute force."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs
import pytest
from hypothesis import given, settings, strategies as st

from choice_case import BOUGHT, RENTED, ask
from choice_database import MadeUp, fill, open_made_up
from compare import assert_close
from conftest import Run
from joulemap.ask.candidate import find_payment, plan_candidates
from joulemap.ask.fact import Choice
from joulemap.catalog.sheet import find_region, load_assumptions, load_regions
from joulemap.cli.option.run import CandidateRunOptions
from joulemap.domain.default import CANDIDATES, find_batches
from joulemap.domain.hardware_ref import name_configured
from joulemap.domain.host import HOST_COLUMNS
from joulemap.domain.metric import METRIC, MetricName
from joulemap.domain.settings import LIMITED, Limits, Pay, Price, Settings, Site
from joulemap.show.pareto import spread_evenly
from joulemap.store.connection import Connection
from joulemap.system.errors import ExitCode, SqlError, UnknownNameError, UsageError
from joulemap.workspace import Workspace

FEW = Settings(hardware=("tpu_v4", "h100_sxm5", "kpu_t256@30W"), precision=("fp32", "bf16"), batch=1, runtime="engine")


@pytest.fixture(scope="module")
def made_up() -> Iterator[Connection]:
    connection = open_made_up()
    yield connection
    connection.close()


def test_a_rented_million_is_rent_over_what_the_rented_hour_does(made_up: Connection) -> None:
    (row,) = ask(made_up, "cost.million", [RENTED])
    assert row["way"] == "rented"
    assert_close(row["usd_per_million"], 3.6 / (1000 * 0.5 * 3600) * 1e6)
    assert_close(row["usd_per_million"], 2.0)
    assert row["energy_usd_per_million"] == 0.0
    # 1 J of work, and as long again idling at 2 W for 1 ms, times PUE 1.5
    assert_close(row["kwh_per_million"], 1.002 * 1.5 * 1e6 / 3.6e6)
    assert_close(row["gco2_per_million"], 167.0)
    assert (row["price"], row["price_unit"], row["price_source"]) == (3.6, "USD/h", "a list")
    assert row["idle_quantity"] == "idle_power"


def test_a_bought_million_is_the_price_over_a_life_and_electricity(made_up: Connection) -> None:
    (row,) = ask(made_up, "cost.million", [BOUGHT])
    assert row["way"] == "bought"
    assert_close(row["throughput_per_s"], 1000.0)
    assert_close(row["inferences_per_life"], 1000 * 0.5 * 3600 * 8000 * 4)
    assert_close(row["hardware_usd_per_million"], 0.1)
    # 0.5 J of work, 100 W x 1 ms of idling: 0.6 J x 1.5 x 1e6 = 0.25 kWh at 0.2 USD
    assert_close(row["kwh_per_million"], 0.25)
    assert_close(row["energy_usd_per_million"], 0.05)
    assert_close(row["usd_per_million"], 0.15)
    assert row["idle_quantity"] == "static_power"


def test_pue_is_for_data_centres(made_up: Connection) -> None:
    (row,) = ask(made_up, "cost.million", [attrs.evolve(BOUGHT, deployment="edge")])
    assert row["pue_ratio"] == 1.0
    assert_close(row["kwh_per_million"], 0.25 / 1.5)


def test_break_even_is_where_both_have_cost_the_same(made_up: Connection) -> None:
    (row,) = ask(made_up, "cost.break_even", [RENTED, BOUGHT])
    assert (row["hardware_a"], row["way_a"], row["hardware_b"], row["way_b"]) == (
        "bought", "bought", "rented", "rented",
    )  # fmt: skip
    volume = row["break_even_inferences"]
    assert_close(volume, 5760.0 / (2.0 - 0.05) * 1e6)
    assert_close(5760.0 + 0.05 * volume / 1e6, 2.0 * volume / 1e6)
    assert (row["cheaper_below"], row["cheaper_above"], row["is_within_life"]) == ("B", "A", True)
    assert_close(row["break_even_years"], volume / (1000 * 0.5 * 3600 * 8000))


def test_a_chip_that_dies_before_the_break_even_says_so(made_up: Connection) -> None:
    dear = attrs.evolve(BOUGHT, purchase_usd=1e9)
    (row,) = ask(made_up, "cost.break_even", [RENTED, dear])
    assert row["is_within_life"] is False
    assert row["break_even_inferences"] > row["inferences_per_life_a"]


def test_what_costs_more_to_begin_with_and_to_go_on_with_never_breaks_even(made_up: Connection) -> None:
    cheap = attrs.evolve(BOUGHT, hardware="cheap", purchase_usd=10.0, energy_j=0.1, static_w=0.0)
    (row,) = ask(made_up, "cost.break_even", [cheap, BOUGHT], hardware_a="bought", hardware_b="cheap")
    assert (row["break_even_inferences"], row["cheaper_below"], row["cheaper_above"]) == (None, "B", None)
    (alike,) = ask(made_up, "cost.break_even", hardware_a="cheap", hardware_b="cheap", run_ids=[1, 2])
    assert (alike["break_even_inferences"], alike["cheaper_below"]) == (None, None)


def test_a_break_even_leaves_out_what_cannot_be_had_unless_it_is_named(made_up: Connection) -> None:
    dream = attrs.evolve(BOUGHT, hardware="dream", purchase_usd=1.0, unavailable="not made yet")
    (row,) = ask(made_up, "cost.break_even", [RENTED, BOUGHT, dream])
    assert row["hardware_a"] == "bought"
    (named,) = ask(made_up, "cost.break_even", hardware_a="dream", run_ids=[1, 2, 3])
    assert named["hardware_a"] == "dream"
    (only,) = ask(made_up, "cost.break_even", [RENTED, dream])
    assert only["hardware_a"] == "dream"


def test_a_hardware_without_a_price_is_a_row_that_says_so(made_up: Connection) -> None:
    gift = MadeUp(hardware="gift")
    refused = MadeUp(hardware="refused", refusal="has no fp32", cloud_usd_per_hour=1.0)
    rows = ask(made_up, "cost.million", [gift, RENTED, refused])
    assert [(row["status"], row["way"], row["rank"]) for row in rows] == [
        ("ok", "rented", 1), ("no price", "none", None), ("unsupported", "none", None),
    ]  # fmt: skip
    assert rows[1]["usd_per_million"] is None
    assert rows[1]["kwh_per_million"] > 0.0
    assert [row["reason"] for row in rows] == ["", "the catalogue has no cloud or purchase price", "has no fp32"]
    assert [row["is_best_of_hardware"] for row in rows] == [True, True, False]


def test_both_prices_are_two_ways_to_pay_that_are_ranked_apart_unless_both_are_asked_for(made_up: Connection) -> None:
    cheap = attrs.evolve(RENTED, purchase_usd=57.6)
    rows = ask(made_up, "cost.million", [cheap])
    assert [(row["way"], row["rank"], row["is_best_of_hardware"]) for row in rows] == [
        ("rented", 1, True), ("bought", None, False),
    ]  # fmt: skip
    assert rows[0]["usd_per_million"] > rows[1]["usd_per_million"]
    bought = ask(made_up, "cost.million", run_ids=[1], pay="bought")
    assert [(row["way"], row["rank"]) for row in bought] == [("bought", 1), ("rented", None)]
    both = ask(made_up, "cost.million", run_ids=[1], pay="both")
    assert [(row["way"], row["rank"]) for row in both] == [("bought", 1), ("rented", 2)]
    assert [row["pay"] for row in (rows[0], bought[0], both[0])] == ["rented", "bought", "both"]


# What a price leaves open


@pytest.fixture(scope="module")
def doubted() -> Iterator[Connection]:
    """Half of the variance of every error is common to all."""
    connection = open_made_up()
    for quantity, share in (("latency", 0.5), ("power", 0.5)):
        for factor in ("class", "own"):
            connection.execute(
                "INSERT INTO internal.error_share VALUES (?, ?, ?, 'assumed', 's')", [quantity, factor, share]
            )
    yield connection
    connection.close()


def ask_doubted(connection: Connection, name: str, runs: list[MadeUp], **parameters: Any) -> list[dict[str, Any]]:
    """Return the rows of a query about these runs, whose latencies and energies have 80 % intervals of 0.3."""
    ids = fill(connection, runs)
    connection.execute("UPDATE internal.run_total SET latency_half_width = 0.3, energy_half_width = 0.3")
    return ask(connection, name, run_ids=ids, **parameters)


def surely(ratio: float, square: float) -> float:
    """Return the probability that a logistic error with this square of its half-width does not make up for a ratio."""
    return 1.0 / (1.0 + math.exp(-math.log(9.0) * math.log(ratio) / math.sqrt(square)))


FREE: dict[str, Any] = {
    "price_of": ["rented:rented", "dear:rented"], "price_usd": [3.6, 3.6 * 1.3], "price_source": ["a", "b"],
}  # fmt: skip
DEAR = attrs.evolve(RENTED, hardware="dear", cloud_usd_per_hour=3.6 * 1.3)


@pytest.mark.slow
def test_a_rent_leaves_open_what_its_basis_does(doubted: Connection) -> None:
    for basis, factor in (("published", 1.2), ("recalled", 1.3), ("assumed", 2.0)):
        (row,) = ask_doubted(doubted, "cost.million", [attrs.evolve(RENTED, price_basis=basis)])
        assert_close(row["price_half_width"], math.log(factor))
        assert_close(row["usd_half_width"], math.hypot(0.3, math.log(factor)))
    (row,) = ask(doubted, "cost.million", run_ids=[1], **FREE)
    assert (row["price_half_width"], row["price_basis"], row["price_text"]) == (0.0, "given", "given")
    assert_close(row["usd_half_width"], 0.3)


def test_a_purchase_price_leaves_open_its_part_of_the_cost(doubted: Connection) -> None:
    (row,) = ask_doubted(doubted, "recommend.configuration", [BOUGHT], objective="cost", pay="bought")
    # 0.10 of 0.15 USD is the chip's price, which its basis leaves open by 1.2x; a host adds to both parts alike
    assert_close(row["price_half_width"], math.log(1.2) * 0.1 / 0.15)
    assert_close(row["objective_half_width"], math.hypot(0.3, math.log(1.2) * 0.1 / 0.15))
    (hosted,) = ask_doubted(
        doubted, "recommend.configuration", [attrs.evolve(BOUGHT, host_share=None)], objective="cost", pay="bought"
    )
    assert_close(hosted["price_half_width"], row["price_half_width"])


def test_which_of_two_rents_is_cheaper_is_as_sure_as_speed_and_prices_are(doubted: Connection) -> None:
    rows = ask_doubted(doubted, "cost.million", [RENTED, DEAR])
    # of the variance of 0.3 half is common to the two, of one class; of that of ln 1.2 37 %, of one seller
    sure = surely(1.3, 0.3**2 + 2.0 * (1.0 - 0.37) * math.log(1.2) ** 2)
    assert [row["hardware"] for row in rows] == ["rented", "dear"]
    assert_close(rows[0]["probability_cheapest"], sure)
    assert_close(rows[1]["probability_cheapest"], 1.0 - sure)
    given = ask(doubted, "cost.million", run_ids=[1, 2], **FREE)
    assert_close(given[0]["probability_cheapest"], surely(1.3, 0.3**2))
    ranked = ask(doubted, "recommend.configuration", run_ids=[1, 2], objective="cost")
    assert_close(ranked[0]["probability_best"], sure)


def test_a_rent_and_a_purchase_have_no_seller_in_common(doubted: Connection) -> None:
    rows = ask_doubted(doubted, "cost.million", [RENTED, BOUGHT], pay="both")
    square = 0.3**2 + math.log(1.2) ** 2 + (math.log(1.2) * 0.1 / 0.15) ** 2
    assert [row["way"] for row in rows] == ["bought", "rented"]
    assert_close(rows[0]["probability_cheapest"], surely(2.0 / 0.15, square))


def test_one_price_at_two_speeds_parts_them_by_nothing(doubted: Connection) -> None:
    slow = attrs.evolve(RENTED, latency_s=1.1e-3, precision="bf16")
    rows = ask_doubted(doubted, "cost.million", [RENTED, slow])
    assert_close(rows[0]["probability_cheapest"], surely(1.1, 0.3**2))


def test_what_is_drawn_is_as_sure_as_the_closed_form(doubted: Connection) -> None:
    """A third that has no chance makes the other two drawn, in 500 draws."""
    far = attrs.evolve(RENTED, hardware="far", cloud_usd_per_hour=3.6e6)
    first, _, last = ask_doubted(doubted, "cost.million", [RENTED, DEAR, far])
    sure = surely(1.3, 0.3**2 + 2.0 * (1.0 - 0.37) * math.log(1.2) ** 2)
    assert last["probability_cheapest"] == 0.0
    assert abs(first["probability_cheapest"] - sure) < 4.0 * math.sqrt(sure * (1.0 - sure) / 500)
    front = ask_doubted(doubted, "pareto.front", [RENTED, attrs.evolve(DEAR, energy_j=1.0)], x="cost", y="price")
    assert abs(front[0]["probability_front"] - 1.0) < 1e-9
    assert_close(front[0]["x_half_width"], math.hypot(0.3, math.log(1.2)))


# Use


@pytest.mark.sample(1)
@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_rent_is_inversely_proportional_to_utilization(factor: float, made_up: Connection) -> None:
    (base,) = ask(made_up, "cost.million", [RENTED], utilization=0.4)
    (other,) = ask(made_up, "cost.million", utilization=0.4 * factor, run_ids=[1])
    assert_close(other["usd_per_million"], base["usd_per_million"] / factor)


def test_carbon_follows_the_grid_and_its_override(made_up: Connection) -> None:
    (world,) = ask(made_up, "cost.million", [RENTED])
    (clean,) = ask(made_up, "cost.million", region="clean", run_ids=[1])
    (given,) = ask(made_up, "cost.million", region="clean", gco2_per_kwh=0.0, run_ids=[1])
    assert_close(clean["gco2_per_million"], world["gco2_per_million"] / 40)
    assert given["gco2_per_million"] == 0.0
    grids = {row["region"]: row["gco2_per_million"] for row in ask(made_up, "cost.grid", run_ids=[1])}
    assert grids == {"world": world["gco2_per_million"], "clean": clean["gco2_per_million"]}


# The front

LEVELS = st.integers(1, 6)
PRICES = st.one_of(st.none(), st.integers(1, 4).map(float))
RUNS = st.lists(
    st.builds(
        MadeUp,
        hardware=st.sampled_from(["a", "b", "c'; --"]),
        latency_s=LEVELS.map(lambda level: level * 1e-3),
        energy_j=LEVELS.map(float),
        batch=st.sampled_from([1, 2, 4]),
        memory_bytes=LEVELS.map(lambda level: level * 1000),
        cloud_usd_per_hour=PRICES,
        purchase_usd=PRICES,
        projection=st.sampled_from(["", "a guess"]),
        unavailable=st.sampled_from(["", "never made"]),
        refusal=st.sampled_from([None, None, None, "no"]),
    ),
    max_size=12,
)

MEASURED: tuple[MetricName, ...] = (
    "latency",
    "energy",
    "energy_per_inference",
    "throughput",
    "power",
    "memory",
    "edp_per_inference",
)


PLACED = ("front", "projection", "dominated")


def value_of(metric: MetricName, row: dict[str, Any]) -> float | None:
    """Return what a row has in a metric; batches are powers of two, so that energies of a batch are exact."""
    value = row["energy_per_inference_j"] * row["batch"] if metric == "energy" else row[METRIC[metric].column]
    return None if value is None else float(value)


def cost_of(metric: MetricName, row: dict[str, Any]) -> float:
    """Return what a row has in a metric, lower for better."""
    value = value_of(metric, row)
    assert value is not None
    return -value if METRIC[metric].is_higher_better else value


@pytest.mark.slow
@settings(max_examples=40)
@given(runs=RUNS, x=st.sampled_from(MEASURED), y=st.sampled_from(MEASURED))
def test_the_front_is_what_brute_force_finds(
    made_up: Connection, runs: list[MadeUp], x: MetricName, y: MetricName
) -> None:
    rows = ask(made_up, "pareto.front", runs, x=x, y=y)
    assert sorted(row["run_id"] for row in rows) == list(range(1, len(runs) + 1))
    placed = {row["run_id"]: (cost_of(x, row), cost_of(y, row)) for row in rows if row["status"] in PLACED}
    had = {row["run_id"] for row in rows if row["is_available"] and row["run_id"] in placed} or set(placed)
    beaten = {
        run: {
            other
            for other, costs in placed.items()
            if other in had and costs[0] <= own[0] and costs[1] <= own[1] and costs != own
        }
        for run, own in placed.items()
    }
    front = {run for run, others in beaten.items() if run in had and not others}
    assert {row["run_id"] for row in rows if row["status"] == "front"} == front
    assert {row["run_id"] for row in rows if row["status"] == "projection"} == {
        run for run, others in beaten.items() if run not in had and not others
    }
    for row in rows:
        if row["status"] == "dominated":
            assert row["dominated_by_run_id"] in beaten[row["run_id"]] & front
            assert row["dominator_count"] == len(beaten[row["run_id"]] & front)
            assert row["x_ratio"] >= 1.0 and row["y_ratio"] >= 1.0 and row["x_ratio"] * row["y_ratio"] > 1.0
        else:
            assert (row["dominated_by"], row["dominator_count"]) == (None, 0)
    assert {row["run_id"] for row in rows if row["status"] == "unsupported"} == {
        number for number, run in enumerate(runs, 1) if run.refusal
    }


@pytest.mark.slow
@settings(max_examples=40)
@given(runs=RUNS, metric=st.sampled_from(["price", "purchase", "cost"]))
def test_what_has_no_price_has_no_place(made_up: Connection, runs: list[MadeUp], metric: str) -> None:
    rows = ask(made_up, "pareto.front", runs, x="latency", y=metric)
    for row in rows:
        run = runs[row["run_id"] - 1]
        known = {"price": run.cloud_usd_per_hour, "purchase": run.purchase_usd}.get(
            metric, run.cloud_usd_per_hour if row["pay"] == "rented" else run.purchase_usd
        )
        if run.refusal is None:
            assert (row["status"] == "unplaced") == (known is None)
            assert (row["reason"] != "") == (known is None)


@pytest.mark.slow
@settings(max_examples=6, deadline=None)
@given(runs=RUNS, random=st.randoms())
def test_ties_are_in_the_same_order_however_the_runs_were_stored(
    made_up: Connection, runs: list[MadeUp], random: Any
) -> None:
    def seen(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
        return [
            tuple(value for name, value in row.items() if name not in ("run_id", "dominated_by_run_id")) for row in rows
        ]

    runs = [
        attrs.evolve(run, hardware=f"{run.hardware}{number % 7}", precision=f"p{number}")
        for number, run in enumerate(runs)
    ]
    first = [seen(ask(made_up, name, runs)) for name in ("pareto.front", "recommend.configuration", "cost.million")]
    shuffled = list(runs)
    random.shuffle(shuffled)
    second = [
        seen(ask(made_up, name, shuffled)) for name in ("pareto.front", "recommend.configuration", "cost.million")
    ]
    assert first == second


def test_alike_configurations_are_both_on_the_front(made_up: Connection) -> None:
    rows = ask(made_up, "pareto.front", [RENTED, attrs.evolve(RENTED, hardware="twin"), BOUGHT])
    assert [row["hardware"] for row in rows if row["status"] == "front"] == ["rented", "twin", "bought"]


def test_what_cannot_run_is_nowhere_on_the_front_though_its_price_is_known(made_up: Connection) -> None:
    cheap = MadeUp(hardware="cheap", refusal="has no fp32", cloud_usd_per_hour=0.1, purchase_usd=1.0)
    dear = MadeUp(hardware="dear", cloud_usd_per_hour=9.0, purchase_usd=900.0)
    rows = ask(made_up, "pareto.front", [cheap, dear], x="price", y="purchase")
    assert [(row["hardware"], row["status"]) for row in rows] == [("dear", "front"), ("cheap", "unsupported")]


def test_an_unknown_metric_is_refused(made_up: Connection) -> None:
    for name, parameter in (("pareto.front", "x"), ("recommend.configuration", "objective")):
        with pytest.raises(SqlError, match="unknown metric beauty, expected one of energy, energy_per_"):
            ask(made_up, name, [RENTED], **{parameter: "beauty"})


# The ranking

LIMITS = st.fixed_dictionaries(
    {},
    optional={
        "max_latency_s": LEVELS.map(lambda level: level * 1e-3),
        "max_energy_j": LEVELS.map(float),
        "max_energy_per_inference_j": LEVELS.map(float),
        "max_memory_bytes": LEVELS.map(lambda level: level * 1000.0),
        "max_power_w": LEVELS.map(lambda level: level * 500.0),
        "min_throughput_per_s": LEVELS.map(lambda level: level * 300.0),
        "max_price_usd_per_hour": st.integers(1, 4).map(float),
        "max_purchase_usd": st.integers(1, 4).map(float),
    },
)


def violation(limit: str, bound: float, value: float | None) -> float | None:
    """Return how far a value misses a bound, 0 or less where it keeps it; None where it is not known."""
    if value is None:
        return None
    return bound / value - 1.0 if limit == "min_throughput_per_s" else value / bound - 1.0


@pytest.mark.slow
@settings(max_examples=40)
@given(runs=RUNS, limits=LIMITS, objective=st.sampled_from(MEASURED))
def test_the_ranking_is_what_brute_force_finds(
    made_up: Connection, runs: list[MadeUp], limits: dict[str, Any], objective: MetricName
) -> None:
    rows = ask(made_up, "recommend.configuration", runs, objective=objective, **limits)
    ids = list(range(1, len(runs) + 1))
    told = ask(made_up, "recommend.violation", run_ids=ids, **limits)
    missed: dict[int, dict[str, float | None]] = {}
    for row in rows:
        if row["status"] != "unsupported":
            values = {limit: value_of(LIMITED[limit], row) for limit in limits} | {"max_power_w": row["total_power_w"]}
            checked = {LIMITED[limit]: violation(limit, bound, values[limit]) for limit, bound in limits.items()}
            missed[row["run_id"]] = {name: miss for name, miss in checked.items() if miss is None or miss > 0.0}
    feasible = [row for row in rows if row["status"] == "feasible"]
    assert {row["run_id"] for row in feasible} == {run for run, misses in missed.items() if not misses}
    available = [row for row in feasible if row["is_available"]] or feasible
    assert [row["rank"] for row in available] == list(range(1, len(available) + 1))
    assert all(row["rank"] is None for row in feasible if row not in available)
    assert feasible[: len(available)] == available  # what cannot be had comes after what can
    for part in (available, feasible[len(available) :]):
        costs = [cost_of(objective, row) for row in part]
        assert costs == sorted(costs)
    every = ask(made_up, "recommend.configuration", objective=objective, **limits, takes_all=True, run_ids=ids)
    ranks = [row["rank"] for row in every if row["status"] == "feasible"]
    assert ranks == list(range(1, len(feasible) + 1))
    infeasible = [row for row in rows if row["status"] == "infeasible"]
    worst = []
    for row in infeasible:
        misses = missed[row["run_id"]]
        assert row["failed_count"] == len(misses) and set(row["failed"].split(", ")) == set(misses)
        expected = None if None in misses.values() else max(miss for miss in misses.values() if miss is not None)
        if expected is None:
            assert row["violation_fraction"] is None and row["reason"].startswith("the catalogue has no ")
        else:
            assert_close(row["violation_fraction"], expected)
            assert_close(misses[row["worst_limit"]], expected)
        worst.append(math.inf if expected is None else expected)
    assert all(one <= other * (1 + 1e-12) for one, other in itertools.pairwise(worst))
    missing = [row for row in infeasible if row["is_available"]] or infeasible
    assert [row["miss_rank"] for row in missing] == list(range(1, len(missing) + 1))
    violated: dict[int, set[str]] = {}
    for row in told:
        violated.setdefault(row["run_id"], set()).add(row["limit_name"])
        if row["value"] is not None:
            sign = -1.0 if row["limit_name"] == "throughput" else 1.0
            assert_close(row["excess"], sign * (row["value"] - row["bound"]))
            assert row["excess"] > 0.0 and row["violation_fraction"] > 0.0
    assert violated == {run: set(misses) for run, misses in missed.items() if misses}


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("host_share", "needs_host", "host", "total"),
    [
        (None, "", "", 50.0),  # of a data centre: 40 W x (1 + 0.25), which is what costs assume
        (0.5, "", "", 60.0),
        (0.0, "", "", 40.0),  # a complete computer
        (0.5, "a_host", "", 60.0),
        (0.5, "a_host", "given", 40.0),  # the energy already contains the host
    ],
)
def test_a_limit_on_the_power_counts_the_host(
    made_up: Connection, host_share: float | None, needs_host: str, host: str, total: float
) -> None:
    ids = fill(made_up, [MadeUp(latency_s=1e-3, energy_j=40e-3, host_share=host_share)])
    put_in(made_up, "chip", needs_host)
    made_up.execute("UPDATE internal.hardware_version SET host = ?", [host])
    (kept,) = ask(made_up, "recommend.configuration", run_ids=ids, max_power_w=total * 1.01)
    (missed,) = ask(made_up, "recommend.configuration", run_ids=ids, max_power_w=total * 0.8)
    (told,) = ask(made_up, "recommend.violation", run_ids=ids, max_power_w=total * 0.8)
    assert (kept["status"], missed["status"], missed["worst_limit"]) == ("feasible", "infeasible", "power")
    assert_close(kept["average_power_w"], 40.0)
    for value in (kept["total_power_w"], missed["worst_value"], told["value"]):
        assert_close(value, total)
    assert_close(told["violation_fraction"], 0.25)
    assert not ask(made_up, "recommend.violation", run_ids=ids, max_power_w=total * 1.01)


def test_a_limit_on_the_power_takes_the_host_share_that_is_asked_for(made_up: Connection) -> None:
    ids = fill(made_up, [MadeUp(latency_s=1e-3, energy_j=40e-3, host_share=None)])
    asked: dict[str, Any] = {"run_ids": ids, "max_power_w": 50.0, "host_share": 1.0}
    (row,), (told,) = (ask(made_up, f"recommend.{name}", **asked) for name in ("configuration", "violation"))
    for value in (row["total_power_w"], row["worst_value"], told["value"]):
        assert_close(value, 80.0)


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("objective", "alone", "whole"),
    [
        ("energy_per_inference", 1e-3, 1e-3 + 3.0 / 2000.0),  # 3 W over the 0.5 ms from one inference to the next
        ("energy", 8e-3, 8e-3 + 3.0 * 4e-3),
        ("power", 2.0, 5.0),
        ("efficiency", 1e3, 1.0 / 2.5e-3),
        ("edp", 8e-3 * 4e-3, 20e-3 * 4e-3),
        ("latency", 4e-3, 4e-3),
    ],
)
def test_the_host_of_a_stick_counts_in_what_is_ranked(
    made_up: Connection, objective: str, alone: float, whole: float
) -> None:
    """Eight inferences in 4 ms with 8 mJ, in a computer of 3 W, beside a board of 2 mJ per inference."""
    stick = MadeUp(hardware="stick", latency_s=4e-3, energy_j=8e-3, batch=8, host_share=0.5)
    board = MadeUp(hardware="board", latency_s=1e-3, energy_j=2e-3)
    ids = fill(made_up, [stick, board, MadeUp(hardware="raspberry_pi_5", static_w=3.0)])[:2]
    put_in(made_up, "stick", "USB port")
    list_in_catalogue(made_up)
    rows = {row["hardware"]: row for row in ask(made_up, "recommend.configuration", run_ids=ids, objective=objective)}
    row = rows["stick"]
    assert (row["assumed_host"], rows["board"]["assumed_host"]) == ("raspberry_pi_5", "")
    assert_close(row["hostless_value"], alone)
    assert_close(row["objective_value"], whole)
    assert_close(row["energy_j"], 8e-3)
    assert_close(row["total_energy_j"], 20e-3)
    assert_close(row["total_power_w"], 5.0)
    if objective == "energy_per_inference":
        assert (row["rank"], rows["board"]["rank"]) == (2, 1)
        asked: dict[str, Any] = {"run_ids": ids, "max_energy_per_inference_j": 2.2e-3}
        (told,) = ask(made_up, "recommend.violation", **asked)
        assert (told["hardware"], told["limit_name"]) == ("stick", "energy_per_inference")
        assert_close(told["value"], 2.5e-3)
    made_up.execute("UPDATE internal.hardware_version SET boundary = 'chip'")
    (chip, _) = ask(made_up, "recommend.configuration", run_ids=ids)
    assert (chip["hardware"], chip["host_energy_per_inference_j"]) == ("stick", 0.0)


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("needs_host", "host", "mean_w", "hostless_w"),
    [
        # 2 mJ in 4 ms at 50/s: 0.1 W, and 0.3 W of idle power for 80 % of the time
        ("", "", 0.1 + 0.24, 0.34),
        # a Raspberry Pi of 3 W while the stick works and 2 W while it idles
        ("USB port", "", 0.34 + 0.6 + 1.6, 0.34),
        # the same if it was named: its 3 W are in the energy of the run
        ("USB port", "raspberry_pi_5", 0.34 + 1.6, 0.34),
        # a part of a module idles within the idle power of the module
        ("module raspberry_pi_5", "", 0.1 + 0.6 + 1.6, 0.1),
        # a host that is half of the chip's own power
        ("PCIe slot", "", 0.34 * 1.5, 0.34),
    ],
)
def test_a_fixed_rate_counts_idle_power_between_inferences(
    made_up: Connection, needs_host: str, host: str, mean_w: float, hostless_w: float
) -> None:
    chip = MadeUp(hardware="chip", latency_s=4e-3, energy_j=2e-3, idle_w=0.3, static_w=0.4, host_share=0.5)
    if not needs_host.startswith("PCIe"):
        chip = attrs.evolve(chip, host_share=0.0)
    ids = fill(made_up, [chip, MadeUp(hardware="raspberry_pi_5", static_w=3.0, idle_w=2.0)])[:1]
    put_in(made_up, "chip", needs_host)
    made_up.execute("UPDATE internal.hardware_version SET host = ? WHERE hardware = 'chip'", [host])
    list_in_catalogue(made_up)
    asked: dict[str, Any] = {"run_ids": ids, "rate_per_s": 50.0, "min_throughput_per_s": 50.0}
    (row,) = ask(made_up, "recommend.configuration", objective="power", max_power_w=mean_w * 0.8, **asked)
    (told,) = ask(made_up, "recommend.violation", max_power_w=mean_w * 0.8, **asked)
    assert (row["status"], row["worst_limit"], told["limit_name"]) == ("infeasible", "power", "power")
    assert_close(row["busy_fraction"], 0.2)
    assert_close(row["average_power_w"], 0.5)
    for value in (row["total_power_w"], row["objective_value"], row["worst_value"], told["value"]):
        assert_close(value, mean_w)
    assert_close(row["hostless_value"], hostless_w)
    parts = ("energy_per_inference_j", "idle_energy_per_inference_j", "host_energy_per_inference_j")
    assert_close(sum(row[name] for name in parts), mean_w / 50.0)
    assert_close(row["total_energy_per_inference_j"], mean_w / 50.0)
    (kept,) = ask(made_up, "recommend.configuration", max_power_w=mean_w * 1.01, **asked)
    assert (kept["status"], kept["rank"]) == ("feasible", 1)
    assert_close(kept["objective_value"], mean_w / 50.0)


def test_a_chip_below_the_rate_is_never_idle(made_up: Connection) -> None:
    (row,) = ask(
        made_up, "recommend.configuration", [MadeUp(latency_s=0.1, energy_j=0.05, idle_w=0.3)], rate_per_s=50.0
    )
    assert (row["busy_fraction"], row["idle_energy_per_inference_j"]) == (1.0, 0.0)
    assert_close(row["total_power_w"], 0.5 * (1.0 + (row["host_energy_per_inference_j"] / 0.05)))


@pytest.mark.slow
def test_a_camera_compares_average_power_with_its_budget(workspace: Workspace) -> None:
    """One of two boards draws over 3 W at full speed; at 30 images per second both keep within it."""
    asked = Settings(hardware=("ax630c_npu", "rdk_x5"), precision="int8", scenario="camera", power_budget_w=3.0)
    answer = workspace.recommend("mobilenet_v2", asked, limits=Limits(min_throughput_per_s=30.0))
    assert (answer.rate_per_s, answer.limits.max_power_w) == (30.0, 3.0)
    rows = {row.hardware: row for row in answer.rows}
    assert {row.status for row in rows.values()} == {"feasible"}
    assert (rows["rdk_x5"].average_power_w or 0.0) > 3.0 > (rows["rdk_x5"].total_power_w or 0.0)
    for row in rows.values():
        assert_close(row.busy_fraction, 30.0 / (row.throughput_per_s or 0.0))
    full = workspace.recommend("mobilenet_v2", attrs.evolve(asked, power_budget_w=20.0))
    assert full.rate_per_s == 0.0 and {row.busy_fraction for row in full.rows} == {1.0}


def put_in(connection: Connection, hardware: str, needs_host: str) -> None:
    """Let a chip need a host, with the columns that follow."""
    values = {"needs_host": needs_host, **{name: read(needs_host) for name, read in HOST_COLUMNS.items()}}
    places = ", ".join(f"{name} = ?" for name in values)
    statement = f"UPDATE internal.hardware_version SET {places} WHERE hardware = ?"
    connection.execute(statement, [*values.values(), hardware])


def list_in_catalogue(connection: Connection) -> None:
    """List every made-up hardware in the catalogue of its database."""
    connection.execute("DELETE FROM internal.catalogue_entry")
    connection.execute(
        "INSERT INTO internal.catalogue_entry BY NAME SELECT 'c' AS catalogue_digest, hardware, hardware_digest, "
        "row_number() OVER (ORDER BY hardware) AS hardware_index, '' AS usual_digest FROM internal.hardware_version"
    )


@pytest.mark.parametrize("unavailable", ["", pytest.param("not sold alone", marks=pytest.mark.slow)])
def test_a_part_has_the_price_the_power_and_the_availability_of_its_module(
    made_up: Connection, unavailable: str
) -> None:
    """A DLA of 2 mJ in 4 ms, in a module of 5 W and 57.6 USD."""
    part = MadeUp(hardware="dla", latency_s=4e-3, energy_j=2e-3, host_share=None, deployment="edge")
    whole = MadeUp(hardware="board", static_w=5.0, purchase_usd=57.6, unavailable=unavailable)
    ids = fill(made_up, [part, whole])[:1]
    put_in(made_up, "dla", "module board")
    list_in_catalogue(made_up)
    (row,) = ask(made_up, "recommend.configuration", run_ids=ids)
    assert (row["assumed_host"], row["is_available"]) == ("board", not unavailable)
    assert_close(row["total_energy_per_inference_j"], 2e-3 + 5.0 * 4e-3)
    assert_close(row["total_power_w"], 0.5 + 5.0)
    assert_close(row["price_purchase_usd"], 57.6)
    if not unavailable:
        (paid,) = ask(made_up, "cost.million", run_ids=ids, utilization=1.0, usd_per_kwh=3.6, pay="bought")
        assert paid["host_share_ratio"] == 0.0
        # 22 mJ of the part and its module, a million times, at 1 USD per MJ
        assert_close(paid["energy_usd_per_million"], 22e-3)


def test_a_chip_has_the_price_of_its_cheapest_seller_on_demand(made_up: Connection) -> None:
    offers = {"hyperscaler": 4.0, "cloud": 2.0, "marketplace": 3.0, "reserved": 1.0, "spot": 0.5}
    chip = MadeUp(cloud_usd_per_hour=4.0, offers=offers)
    for seller, usd in (("", 2.0), ("reserved", 1.0), ("hyperscaler", 4.0)):
        (row,) = ask(made_up, "cost.million", [chip], seller=seller)
        assert (row["price"], row["is_alike"], row["rank"]) == (usd, True, 1)
    (row,) = ask(made_up, "cost.million", [attrs.evolve(chip, offers={"spot": 4.0})])
    assert (row["price"], row["is_alike"], row["rank"]) == (4.0, False, None)


def test_the_way_of_paying_follows_from_the_question_alone() -> None:
    rent, buy = Price(hardware="l4", usd_per_hour=1.0), Price(hardware="l4", purchase_usd=1.0)
    cases: list[tuple[Site, Settings, str]] = [
        (Site(), Settings(hardware=("raspberry_pi_5",)), "rented"),
        (Site(pay="both"), Settings(deployment=("edge",)), "both"),
        (Site(seller="retail", prices=(rent,)), Settings(), "bought"),
        (Site(prices=(buy,)), Settings(), "bought"),
        (Site(prices=(buy, rent)), Settings(deployment=("edge",)), "rented"),
        (Site(prices=(attrs.evolve(buy, is_asked=False),)), Settings(), "rented"),
        (Site(), Settings(deployment=("edge", "embedded")), "bought"),
        (Site(), Settings(deployment=("datacenter", "edge")), "rented"),
        (Site(), Settings(scenario="camera"), "bought"),
        (Site(), Settings(scenario="datacenter"), "rented"),
    ]
    for place, asked, way in cases:
        asked = attrs.evolve(asked, site=place)
        assert find_payment(asked) == way
        assert find_payment(attrs.evolve(asked, hardware=("l4", "tpu_v4"))) == way


@pytest.mark.slow
def test_price_energy_and_power_include_a_host_together(made_up: Connection) -> None:
    """A stick of 100 USD whose record states a host of 80 USD, at each boundary, and alone."""
    stick = MadeUp(
        hardware="stick", latency_s=1e-2, energy_j=0.02, host_share=0.8, purchase_usd=100.0, deployment="edge"
    )
    pi = MadeUp(hardware="raspberry_pi_5", static_w=3.0)
    for boundary, host, usd, power_w in (
        ("board", "", 180.0, 5.0), ("chip", "", 100.0, 2.0), ("board", "none", 100.0, 2.0), ("system", "", 180.0, 2.0),
    ):  # fmt: skip
        ids = fill(made_up, [stick, pi])[:1]
        put_in(made_up, "stick", "USB port")
        made_up.execute(
            "UPDATE internal.hardware_version SET boundary = ?, host = ? WHERE hardware = 'stick'", [boundary, host]
        )
        list_in_catalogue(made_up)
        (row,) = ask(made_up, "recommend.configuration", run_ids=ids, objective="purchase", max_purchase_usd=150.0)
        assert_close(row["total_purchase_usd"], usd)
        assert_close(row["total_power_w"], power_w)
        assert_close(row["total_energy_j"], power_w * 1e-2)
        assert row["status"] == ("feasible" if usd <= 150.0 else "infeasible")
        assert (row["objective_value"], row["hostless_value"]) == (usd, 100.0)
        (paid,) = ask(made_up, "cost.million", run_ids=ids, pay="bought")
        assert_close(paid["host_share_ratio"], usd / 100.0 - 1.0)
    (given,) = ask(made_up, "cost.million", run_ids=ids, pay="bought", price_of=["stick:bought"], price_usd=[400.0])
    assert_close(given["host_share_ratio"] * 400.0, 80.0)


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("needs_host", "host_usd", "given", "total_usd"),
    [
        ("PCIe slot", 300.0, {}, 400.0),
        ("PCIe slot", None, {}, None),  # nobody knows its price
        ("PCIe slot", 300.0, {"price_of": ["pc:bought"], "price_usd": [50.0]}, 150.0),
        ("PCIe slot", 300.0, {"host_share": 0.5}, 150.0),
        ("module pc", 300.0, {}, 125.0),  # a part costs what its module does
        ("", 300.0, {}, 125.0),
    ],
)
def test_a_host_that_is_named_costs_its_own_price(
    needs_host: str, host_usd: float | None, given: dict[str, Any], total_usd: float | None, made_up: Connection
) -> None:
    card = MadeUp(hardware="card", host_share=None, purchase_usd=100.0)
    ids = fill(made_up, [card, MadeUp(hardware="pc", purchase_usd=host_usd)])[:1]
    put_in(made_up, "card", needs_host)
    made_up.execute("UPDATE internal.hardware_version SET host = 'pc' WHERE hardware = 'card'")
    list_in_catalogue(made_up)
    (row,) = ask(made_up, "cost.million", run_ids=ids, pay="bought", **given)
    if total_usd is None:  # nobody knows what the named host costs
        assert row["host_share_ratio"] is None
        return
    assert_close(row["price"] * (1.0 + row["host_share_ratio"]), total_usd)
    if "price_of" not in given:  # recommend takes no prices
        (chosen,) = ask(made_up, "recommend.configuration", run_ids=ids, **given)
        assert_close(chosen["total_purchase_usd"], total_usd)


def test_an_objective_that_is_not_known_ranks_last_but_is_not_dropped(made_up: Connection) -> None:
    rows = ask(made_up, "recommend.configuration", [MadeUp(hardware="gift"), RENTED], objective="cost")
    assert [(row["hardware"], row["status"], row["rank"]) for row in rows] == [
        ("rented", "feasible", 1), ("gift", "unranked", None),
    ]  # fmt: skip
    assert rows[1]["reason"] == "the catalogue has no rent"


def test_a_limit_on_the_rent_means_renting(made_up: Connection) -> None:
    both = attrs.evolve(RENTED, purchase_usd=57.6)
    (free,) = ask(made_up, "recommend.configuration", [both], objective="cost", pay="both")
    (rent,) = ask(made_up, "recommend.configuration", objective="cost", pay="rented", run_ids=[1])
    (purchase,) = ask(made_up, "recommend.configuration", objective="cost", pay="bought", run_ids=[1])
    assert [row["way"] for row in (free, rent, purchase)] == ["bought", "rented", "bought"]
    assert_close(rent["objective_value"], 2.0)
    assert free["objective_value"] == purchase["objective_value"] < 2.0
    assert [rent[f"{way}_usd_per_million"] for way in ("rented", "bought")] == [2.0, purchase["objective_value"]]
    assert Limits(max_price_usd_per_hour=4.0).pay == "rented" and Limits(max_purchase_usd=60.0).pay == "bought"
    assert Limits().pay is None and Limits(max_price_usd_per_hour=4.0, max_purchase_usd=60.0).pay is None


def test_latency_is_of_the_batch_and_energy_of_an_inference(made_up: Connection) -> None:
    (row,) = ask(made_up, "pareto.front", [BOUGHT])
    assert (row["x_value"], row["y_value"]) == (8e-3, 0.5)
    assert_close(row["edp_per_inference_js"], 4e-3)
    assert_close(row["average_power_w"], 500.0)


# Data


def test_every_grid_and_assumption_has_a_source() -> None:
    regions, assumptions = load_regions(), load_assumptions()
    assert len({region.region for region in regions}) == len(regions) > 20
    assert all(0.0 < region.intensity.value < 1000.0 and region.year >= 2020 for region in regions)
    assert {one.name for one in assumptions} == {"utilization", "lifetime", "hours", "pue", "electricity", "host"}
    for quantity in (*(region.intensity for region in regions), *(one.quantity for one in assumptions)):
        assert quantity.source and quantity.basis
    electricity = next(one.quantity for one in assumptions if one.name == "electricity")
    assert electricity.basis == "recalled"


@pytest.mark.parametrize("name", ["de", "Germany", " germany ", "DE"])
def test_a_grid_is_found_by_id_or_name(name: str) -> None:
    assert find_region(name).region == "de"


def test_the_command_line_asks_what_the_library_asks() -> None:
    assert CandidateRunOptions().settings() == CANDIDATES


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Site(utilization=0.0), "utilization is 0, expected above 0 and at most 1"),
        (lambda: Site(utilization=1.1), "utilization is 1.1"),
        (lambda: Site(pue=0.9), "pue is 0.9, expected at least 1"),
        (lambda: Site(lifetime_years=math.inf), "lifetime_years is inf, expected above 0 and at most 1000"),
        (lambda: Site(hours_per_year=9000.0), "hours_per_year is 9000"),
        (lambda: Site(gco2_per_kwh=-1.0), "gco2_per_kwh is -1"),
        (lambda: Limits(max_power_w=math.nan), "max_power_w is nan"),
        (lambda: Limits(max_power_w=-1.0), "max_power_w is -1, expected above 0"),
    ],
)
def test_what_cannot_be_is_refused(make: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make()


# Real models


@pytest.mark.slow
def test_candidates_are_every_mode_unless_one_is_named() -> None:
    plan = plan_candidates("resnet18", Settings(hardware=("KPU-T64", "tpu_v4", "kpu_t256@30W")))
    assert [name_configured(entry.id, mode) for entry, mode in plan.selection.pairs] == [
        "kpu_t64", "kpu_t64@3W", "kpu_t64@10W", "tpu_v4", "kpu_t256@30W",
    ]  # fmt: skip
    assert [model.request.batch for model in plan.models] == [1, 8, 32]
    for model in plan.models:  # named chips are compared at the same batches
        assert {run.hardware for run in plan.runs("", model)} == {"kpu_t64", "tpu_v4", "kpu_t256"}
    assert plan.run_count == sum(len(plan.runs("", model)) for model in plan.models)
    one = plan_candidates("resnet18", Settings(hardware="kpu_t64", power_mode="6W", batch=2))
    assert [(entry.id, mode) for entry, mode in one.selection.pairs] == [("kpu_t64", "6W")]
    assert [model.request.batch for model in one.models] == [2]


@pytest.mark.parametrize(
    ("deployment", "asked", "sizes"),
    [
        (("edge", "embedded"), (), (1,)),
        (("embedded",), (), (1,)),
        (("datacenter",), (), (1, 8, 32)),
        (("datacenter", "edge"), (), (1, 8, 32)),
        (("datacenter", "edge"), ("edge",), (1,)),
        (("datacenter", "edge"), ("edge", "datacenter"), (1, 8, 32)),
        ((), (), (1, 8, 32)),
    ],
)
def test_the_default_batch_follows_from_the_deployment(
    deployment: Sequence[str], asked: Sequence[str], sizes: Sequence[int]
) -> None:
    assert find_batches(deployment, asked) == sizes


@pytest.mark.parametrize("given", [{"batch": (1, 8, 32)}, {"inputs": "4,3,224,224"}, {"scenario": "camera"}])
def test_a_batch_that_the_question_fixes_is_that_of_all_chips(given: dict[str, Any]) -> None:
    plan = plan_candidates("resnet18", Settings(hardware=("coral_edge_tpu", "hailo_8"), precision="int8", **given))
    assert plan.run_count == 2 * len(plan.models) and not plan.batches


def test_named_chips_of_unlike_deployments_are_compared_at_the_same_batches() -> None:
    plan = plan_candidates("resnet18", Settings(hardware=("rtx_4090", "l4"), precision="int8"))
    assert plan.settings.batch == (1, 8, 32) and not plan.batches


@pytest.mark.slow
@pytest.mark.sample(1)
@pytest.mark.parametrize("pay", ["rented", "bought", "both"])
def test_every_question_on_money_names_the_same_cheapest(workspace: Workspace, pay: Pay) -> None:
    """Without a stated runtime, batch or boundary, the questions agree on configuration and cost."""
    chips, site = ["l4", "xeon_8490h", "raspberry_pi_5"], Site(pay=pay)
    given: dict[str, Any] = {"hardware": chips, "precision": "int8", "site": site}
    cheapest = workspace.cost("mobilenet_v2", **given).best
    recommended = workspace.recommend("mobilenet_v2", objective="cost", **given)
    front = workspace.pareto("mobilenet_v2", x="latency", y="cost", **given).select("front")
    assert "system" in recommended.scope.boundaries
    for one, usd in (
        (recommended.best, recommended.best.objective_value),
        min(((row, row.y_value) for row in front), key=lambda pair: pair[1] or math.inf),
    ):
        names = ("hardware", "precision", "batch", "runtime")
        assert [getattr(one, name) for name in names] == [getattr(cheapest, name) for name in names]
        assert_close(usd, cheapest.usd_per_million)
    stated = workspace.recommend("mobilenet_v2", objective="cost", boundary="board", **given)
    assert stated.scope.boundaries == ("board",)


@pytest.fixture(scope="module")
def chosen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """resnet18 on a few candidates; never written by a test."""
    path = tmp_path_factory.mktemp("choice") / "chosen.duckdb"
    Workspace(path).pareto("resnet18", FEW)
    path.chmod(0o444)
    return path


def test_what_cannot_be_had_wins_nothing_and_says_what_it_would(chosen: Path, joulemap: Run) -> None:
    answer = Workspace(chosen).recommend("resnet18", FEW)
    assert answer.best is not None and answer.best.is_available and answer.best.hardware == "tpu_v4"
    assert (
        answer.projection is not None
        and answer.projection.hardware == "kpu_t256@30W"
        and answer.projection.rank is None
    )
    every = Workspace(chosen).recommend("resnet18", attrs.evolve(FEW, takes_all=True))
    assert every.ranked[0].hardware == "kpu_t256@30W" and every.projection is None
    assert every.best is not None and every.best.hardware == "tpu_v4"  # a tie that speed breaks
    words = ["--hardware", "tpu_v4,h100_sxm5,kpu_t256@30W", "--precision", "fp32,bf16", "--batch", "1"]
    text = joulemap("recommend", "resnet18", *words, "--db", chosen).stdout
    assert text.startswith("Take tpu_v4 ")
    beyond = answer.facts.of(Choice)[1]
    assert beyond.runs == (answer.projection.run_id, answer.best.run_id)
    assert_close(beyond.ratio, 1.0 / (answer.projection.objective_ratio or 0.0))
    assert "~kpu_t256@30W uses" in text


def test_a_long_front_is_shown_evenly_from_end_to_end() -> None:
    assert spread_evenly(range(13), 4) == (0, 4, 8, 12)
    assert spread_evenly(range(13), 1) == (0,)
    assert spread_evenly(range(3), 20) == (0, 1, 2)


def test_limits_that_nothing_keeps_name_the_nearest_miss(chosen: Path, joulemap: Run) -> None:
    words = ["--hardware", "tpu_v4,h100_sxm5,kpu_t256@30W", "--precision", "fp32,bf16", "--batch", "1"]
    limits = ["--max-latency", "1us", "--max-power", "1W", "--min-throughput", "1G/s"]
    done = joulemap("recommend", "resnet18", *words, *limits, "--db", chosen, "--format", "json")
    assert done.returncode == ExitCode.UNSUPPORTED
    assert done.stderr.count("\n") == 1
    document = json.loads(done.stdout)
    assert document["answer"] not in done.stderr
    assert (document["best"], document["projection"], document["feasible_count"]) == (None, None, 0)
    nearest = document["nearest_miss"]
    available = [row for row in document["rows"] if row["is_available"]]
    assert nearest["violation_fraction"] == min(row["violation_fraction"] for row in available)
    assert [limit["meaning"] for limit in document["limits"]] == [
        "latency of a batch: at most 1 µs",
        "power at full speed of at most 1 W",
        "throughput: at least 1G/s",
    ]
    text = " ".join(joulemap("recommend", "resnet18", *words, *limits, "--db", chosen).stdout.split())
    assert document["answer"] in text and "; tpu_v4 " in document["answer"]


LIMIT_OPTIONS: Final = {
    "--max-latency": ("1s", "1ns"),
    "--max-energy": ("1kJ", "1nJ"),
    "--max-energy-per-inference": ("1kJ", "1nJ"),
    "--max-memory": ("1TB", "1B"),
    "--max-power": ("1MW", "1nW"),
    "--min-throughput": ("1/s", "1G/s"),
    "--max-price": ("1000USD/h", "0.0001USD/h"),
    "--max-price ": ("10000000USD", "0.01USD"),
}
"""Option -> a limit that some configuration of `FEW` keeps and one that none does."""

LIMIT_METRICS: Final = (
    "latency",
    "energy",
    "energy_per_inference",
    "memory",
    "power",
    "throughput",
    "price",
    "purchase",
)

MANY: Final = ("--hardware", "tpu_v4,h100_sxm5,kpu_t256@30W", "--precision", "fp32,bf16", "--batch", "1")


def check_limits(joulemap: Run, path: Path, limits: Mapping[str, int], form: str) -> None:
    """Ask under limits, each kept (0) or not (1), in a format; the exit code says which."""
    words = [word for name, place in limits.items() for word in (name.strip(), LIMIT_OPTIONS[name][place])]
    done = joulemap("recommend", "resnet18", *MANY, *words, "--db", path, "--format", form)
    expected = ExitCode.UNSUPPORTED if any(limits.values()) else ExitCode.OK
    assert done.returncode == expected, (words, form, done.stderr)
    assert done.stdout
    if form == "json":
        document = json.loads(done.stdout)
        assert document["best"] is None or not document["best"]["is_available"] or not any(limits.values())
        asked = {name for name, option in zip(LIMIT_METRICS, LIMIT_OPTIONS, strict=True) if option in limits}
        assert {one["limit_name"] for one in document["limits"]} == asked
        assert all(set(row["failed"].split(", ")) <= asked for row in document["rows"] if row["failed"])


@pytest.mark.sample(2)
@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("option", LIMIT_OPTIONS)
def test_every_limit_alone(option: str, place: int, chosen: Path, joulemap: Run) -> None:
    check_limits(joulemap, chosen, {option: place}, "json")


@pytest.mark.slow
def test_a_file_of_your_own_with_a_quote_and_a_semicolon(tmp_path: Path, joulemap: Run) -> None:
    (tmp_path / "it's;mine.py").write_text(
        "import torch\ndef net():\n    return torch.nn.Linear(4, 4), torch.zeros(1, 4)\n"
    )
    few = ("--hardware", "tpu_v4,l4", "--precision", "fp32", "--batch", "1", "--format", "json")
    for command in ("pareto", "recommend", "cost"):
        done = joulemap(command, "it's;mine.py:net", *few)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["models"] == ["it's;mine.py:net"]
    assert joulemap("pareto", "re'snet;18").returncode == ExitCode.UNKNOWN_NAME


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("between", "error", "message"),
    [
        (("l4",), UsageError, "between two options, found 1"),
        (("tpu_v4", "l4"), UsageError, "l4 is not among the configurations"),
        (("tpu_v4:bought", "h100_sxm5"), UsageError, "purchase price of tpu_v4"),
        (("tpu_v4", "nonsense"), UnknownNameError, "unknown hardware 'nonsense'"),
    ],
)
def test_a_break_even_between_what_has_no_price_says_why(
    between: tuple[str, ...], error: type[Exception], message: str, chosen: Path
) -> None:
    with pytest.raises(error, match=message):
        Workspace(chosen).cost("resnet18", FEW, between=between)


def test_a_grid_that_does_not_exist_offers_the_nearest(chosen: Path) -> None:
    with pytest.raises(UnknownNameError, match="unknown grid region 'Germny'; did you mean Germany"):
        Workspace(chosen).cost("resnet18", FEW, site=Site(region="Germny"))
