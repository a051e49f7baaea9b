"""Quantities that people write: what is read, and texts with several readings, which are refused."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final

import pytest

from joulemap.ask.site import read_site
from joulemap.cli.option.limit import LimitOptions
from joulemap.cli.value import read_quantity
from joulemap.domain.value import read_value
from joulemap.physics.record.address import Address
from joulemap.physics.record.constant import Constant
from joulemap.system.errors import UsageError
from joulemap.system.number import parse_quantity, parse_si

TDP: Final = Constant(address=Address("quantity", "tdp"), value=72.0, unit="W", basis="published", source="a sheet")


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        ("50ms", "s", 0.05),
        ("50 µs", "s", 5e-5),
        ("100mJ", "J", 0.1),
        ("512MB", "B", 512e6),
        ("512MiB", "B", 512.0 * 2**20),
        ("15W", "W", 15.0),
        ("30/s", "1/s", 30.0),
        ("1.5k/s", "1/s", 1500.0),
        ("2USD/h", "USD/h", 2.0),
        ("$2/h", "USD/h", 2.0),
        ("$500", "USD", 500.0),
        ("50 μs", "s", 5e-5),
        ("31pJ", "J", 31e-12),
        ("512KB", "B", 512e3),
        ("1.28M", "1", 1.28e6),
        ("-1.5e-3kW", "W", -1.5),
        (".5kUSD", "USD", 500.0),
        ("$0.12/kWh", "USD/kWh", 0.12),
    ],
)
def test_a_quantity_is_read_with_its_unit(text: str, unit: str, value: float) -> None:
    assert parse_si(text, unit) == value


@pytest.mark.parametrize(
    ("text", "unit"), [("50J", "s"), ("30s", "1/s"), ("inf", "s"), ("nan", "W"), ("5 parsecs", "s"), ("", "J")]
)
def test_a_quantity_of_another_unit_is_refused(text: str, unit: str) -> None:
    with pytest.raises(ValueError, match=r"is in|is not"):
        parse_si(text, unit)


NO_FILE = {"JOULEMAP_SITE_FILE": os.devnull}
"""Environment without a settings file."""

ODD = [
    "50W=20", "x=20W", "=20W", "20W,30W", "1,000W", "20 W 30", "2 0W", "20 k W", "20W # note", "20W // note", "20%",
    "€20", "$20W", "20°", "infW", "-infW", "nanW", "1e999W", "\uff120W", "1_000W", "½W", "20\U0001d7ceW", "0x20W",
    "1..5W", "20W;", "20W\n30W", "'20W'", "(20W)", "20WW", "20dW", "20yW", "+-20W", "1e5e5W", "..",
]  # fmt: skip


@pytest.mark.wings
@pytest.mark.parametrize("text", ODD)
def test_a_text_with_several_readings_is_no_quantity(text: str) -> None:
    """Each reader of quantities refuses it in one line: options, `--set`, `--for`, prices, areas, cache tiers."""
    from joulemap.wing.explore.design.question import read_target
    from joulemap.wing.explore.option import read_area
    from joulemap.wing.llm.setting import read_tier

    readers: list[Callable[[], object]] = [
        lambda: read_quantity("--max-power", text, "W"),
        lambda: read_quantity("--max-latency", text.replace("W", "s"), "s"),
        lambda: parse_quantity(text.replace("W", "USD/kWh"), "USD/kWh"),
        lambda: read_value(text, TDP),
        lambda: read_target(f"power = {text}"),
        lambda: read_area(text.replace("W", "mm2")),
        lambda: read_tier(f"host:{text.replace('W', 'B')}@50GB/s"),
        lambda: read_site([f"price-per-hour.l4={text.replace('W', 'USD/h')}"], variables=NO_FILE),
        lambda: LimitOptions(max_price=text.replace("W", "USD")).read(),
    ]
    for reader in readers:
        with pytest.raises((UsageError, ValueError)) as caught:
            reader()
        assert "\n" not in str(caught.value)


@pytest.mark.wings
def test_prices_of_several_chips_are_a_list() -> None:
    site = read_site(
        [
            "price-per-hour=h100_sxm5=2.5USD/h,tpu_v4=$4.5/h",
            "price-per-hour.l4=0.4USD/h",
            "purchase-price=t4=900USD,l4=2kUSD",
            "owned=l4=8,t4=4",
        ],
        variables=NO_FILE,
    )
    assert [(one.hardware, one.usd_per_hour, one.purchase_usd) for one in site.prices] == [
        ("h100_sxm5", 2.5, None), ("tpu_v4", 4.5, None), ("l4", 0.4, None), ("t4", None, 900.0), ("l4", None, 2000.0),
    ]  # fmt: skip
    from joulemap.wing.explore.option import DesignOptions
    from joulemap.wing.fleet.option import DemandOptions

    demand = DemandOptions(rate="10/s", beside=["vit_b_16=0.2,resnet18=0.1"]).read()
    assert (site.owned, demand.beside) == ({"l4": 8, "t4": 4}, {"vit_b_16": 0.2, "resnet18": 0.1})
    assert DesignOptions(share=["resnet18=0.2,resnet50=0.8"]).keywords()["share"] == {"resnet18": 0.2, "resnet50": 0.8}
    for written in (["l4=0.4USD/h,l4=0.5USD/h"], ["l4=0.4USD/h,t4"], ["l4=0.4USD/h", "l4=0.4USD/h"]):
        with pytest.raises(UsageError, match=r"given twice|cannot read"):
            read_site([f"price-per-hour={one}" for one in written], variables=NO_FILE)
