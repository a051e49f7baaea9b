"""Offers of sellers, the price that they give, and which kind of seller a comparison takes."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterable

import attrs
import pytest

from compare import assert_close
from joulemap.ask.fact import Caveat
from joulemap.catalog.load import load_catalogue
from joulemap.catalog.sheet import load_offers
from joulemap.domain.offer import (
    ASSUMED_SPREAD,
    Offer,
    newest_offers,
    pool_spreads,
    summarize_offers,
)
from joulemap.domain.settings import WAY_OF, Settings, Site
from joulemap.physics.interval.error_scale import NORMAL
from joulemap.physics.interval.standing import SELLER_SHARE
from joulemap.workspace import Workspace


def offer(hardware: str, usd: float, seller: str = "A", kind: str = "cloud", date: str = "2026-09") -> Offer:
    unit = "USD/h" if WAY_OF[kind] == "rented" else "USD"
    return Offer(
        hardware=hardware,
        kind=kind,
        seller=seller,
        date=date,
        usd=usd,
        unit=unit,
        basis="published",
        source="s",
        note="",
    )


def test_a_price_is_the_median_of_the_newest_offer_of_each_seller() -> None:
    offers = (
        offer("x", 9.0, "A", date="2024"), offer("x", 1.0, "A", date="2026-09-20"), offer("x", 4.0, "B", date=""),
        offer("x", 100.0, "A", kind="hyperscaler"),
    )  # fmt: skip
    prices = {one.kind: one for one in summarize_offers(offers)}
    assert_close(prices["cloud"].usd, 2.0)  # of an even number the geometric mean of the middle two
    assert prices["cloud"].offer_count == 2
    assert prices["cloud"].price_text == "median of 2 GPU clouds on demand, 2026-09"
    assert_close(prices["hyperscaler"].usd, 100.0)
    assert prices["hyperscaler"].price_text == "A, hyperscaler on demand, 2026-09"
    assert {one.reference_usd for one in prices.values()} == {9.0}


def test_one_offer_has_the_spread_of_its_kind_and_the_doubt_of_its_basis() -> None:
    lone = summarize_offers((offer("x", 1.0),))[0]
    assert_close(lone.half_width, math.hypot(ASSUMED_SPREAD, math.log(1.2)))
    # six hardware at 1 and e: each has a sample variance of 1/2, so the kind has a half-width of 1.28 sqrt(1/2)
    pairs = [one for name in "abcdef" for one in (offer(name, 1.0, "A"), offer(name, math.e, "B"))]
    groups = {(name, "cloud"): [one for one in pairs if one.hardware == name] for name in "abcdef"}
    pooled = NORMAL * math.sqrt(0.5)
    assert_close(pool_spreads(groups)["cloud"], pooled)
    assert_close(pool_spreads(groups)["spot"], pooled)
    assert_close(pool_spreads(groups)["list"], ASSUMED_SPREAD)
    prices = {one.hardware: one for one in summarize_offers((*pairs, offer("x", 1.0)))}
    assert_close(prices["x"].half_width, math.hypot(pooled, math.log(1.2)))
    # of two offers the basis errs apart: its variance halves
    assert_close(prices["a"].half_width, math.hypot(pooled, math.log(1.2) / math.sqrt(2.0)))


def test_offers_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match="date is '2026-13'"):
        offer("x", 1.0, date="2026-13")
    with pytest.raises(ValueError, match="usd"):
        offer("x", 0.0)
    with pytest.raises(ValueError, match="unit is 'USD', expected USD/h for cloud"):
        Offer(
            hardware="x", kind="cloud", seller="A", date="", usd=1.0, unit="USD", basis="published", source="s", note=""
        )


def test_every_offer_that_ships_is_of_a_hardware_with_who_and_whence() -> None:
    catalogue = load_catalogue().hardware
    offers = load_offers()
    assert {one.hardware for one in offers} <= set(catalogue)
    assert len({(one.hardware, one.kind, one.seller, one.date) for one in offers}) == len(offers)
    for hardware in catalogue.values():
        own = [one for one in offers if one.hardware == hardware.id]
        for price, way in ((hardware.price_cloud, "rented"), (hardware.price_purchase, "bought")):
            first = next((one for one in own if one.way == way), None)
            if first is not None:
                assert price == first.quantity, hardware.id


def correlate_sellers(offers: Iterable[Offer]) -> tuple[float, int]:
    """Return the share of the variance of ln(price) that is common to one seller's prices, and the number of pairs.

    The share is the mean product of a seller's deviations for two chips, divided by the mean square. Both use one
    kind of seller, and hardware that at least three sell.
    """
    groups: dict[tuple[str, str], list[Offer]] = defaultdict(list)
    for one in newest_offers(offers):
        groups[one.hardware, one.kind].append(one)
    errors: dict[tuple[str, str], list[float]] = defaultdict(list)
    for (_, kind), group in groups.items():
        logs = [math.log(one.usd) for one in group]
        scale = math.sqrt(len(logs) / max(len(logs) - 1, 1))
        for one, log in zip(group, logs, strict=True):
            if len(logs) > 2:
                errors[kind, one.seller].append((log - sum(logs) / len(logs)) * scale)
    squares = [error * error for own in errors.values() for error in own]
    products = [left * right for own in errors.values() for left, right in itertools.combinations(own, 2)]
    return sum(products) / len(products) / (sum(squares) / len(squares)), len(products)


def test_sellers_share_as_much_as_the_offers_say() -> None:
    share, count = correlate_sellers(load_offers())
    assert count > 100
    assert abs(SELLER_SHARE - share) < 0.01


PAIR = ("h100_sxm5", "mi300x")


@pytest.mark.slow
def test_each_chip_has_its_cheapest_seller_and_the_answer_names_it(workspace: Workspace) -> None:
    to_rent = Site(pay="rented")
    answer = workspace.cost("resnet18", hardware=(*PAIR, "t4"), precision="fp16", batch=8, site=to_rent)
    rented = {row.hardware: row for row in answer.rows if row.way == "rented"}
    kinds = {name: row.seller_kind for name, row in rented.items()}
    assert kinds == {"h100_sxm5": "marketplace", "mi300x": "cloud", "t4": "marketplace"}
    assert all(
        row.rank is not None and row.price_text and (row.price_half_width or 0.0) > 0.1 for row in rented.values()
    )
    sold = {one.runs[0]: one.values["seller"] for one in answer.facts.of(Caveat) if one.kind == "sold"}
    run_ids = {row.hardware: row.run_id for row in answer.rows}
    assert "marketplace" in str(sold[run_ids["t4"]])
    asked = Site(seller="hyperscaler")
    one = workspace.cost("resnet18", hardware=(*PAIR, "rtx_4090"), precision="fp16", batch=8, site=asked)
    (row,) = (row for row in one.rows if row.hardware == "rtx_4090" and row.way == "rented")
    assert (row.is_alike, row.rank, row.compared_kind) == (False, None, "hyperscaler")
    assert any("rtx_4090" in line for line in one.document().insights)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("usage", "hardware"),
    [
        (Site(), ("l4", "t4")),
        (Site(seller="cloud"), PAIR),
        (Site(pay="bought"), ("rtx_4090", "raspberry_pi_5")),
        (Site(pay="both"), ("h100_sxm5", "rtx_4090")),
    ],
)
def test_flip_and_sensitivity_take_the_prices_that_cost_compares(
    workspace: Workspace, usage: Site, hardware: tuple[str, str]
) -> None:
    one = Settings(hardware=hardware, precision="fp32", batch=8, runtime="fused")
    priced = workspace.cost("resnet18", one, power_mode="default", site=usage)
    costs = {
        row.hardware: row.usd_per_million for row in priced.rows if row.rank is not None and row.is_best_of_hardware
    }
    assert set(costs) == set(hardware)
    asked = attrs.evolve(one, hardware=())
    flipped = workspace.flip("resnet18", *hardware, asked, metric="cost", site=usage)
    moved = workspace.sensitivity("resnet18", one, metric="cost", site=usage)
    for name, value in zip(hardware, flipped.values, strict=True):
        assert_close(value, costs[name])
        assert_close(moved.of(name)[0].metric_value, costs[name])
