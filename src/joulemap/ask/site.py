"""Values of a site: the meaning of each, and how they are read from options, the environment and `joulemap.toml`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.catalog.sheet import find_region
from joulemap.domain.computed import make_table
from joulemap.domain.settings import Price, Settings, Site
from joulemap.domain.table import Row, Table, described
from joulemap.physics.record.configuration import NO_HOST
from joulemap.plan.price import find_chip, read_price_file
from joulemap.plan.selection import select_chip
from joulemap.system.config import OPTION, SITE, Known, find_config, placing, read_config, read_values
from joulemap.system.errors import UsageError
from joulemap.system.number import parse_quantity, read_real, read_whole

if TYPE_CHECKING:
    from joulemap.domain.column import Cell

HOURS: Final = 24.0
"""Hours per day, the maximum of `busy-hours`."""

CATALOGUE: Final = "the catalogue's"
EVERY: Final = "every prediction"


def _read_busy(text: str) -> float:
    hours = read_real(text)
    if not 0.0 < hours <= HOURS:
        raise UsageError(f"{hours:g} hours, expected above 0 and at most {HOURS:g}")
    return hours / HOURS


def _in(unit: str) -> Callable[[str], float]:
    return lambda text: parse_quantity(text, unit)


KNOWN: Final[Mapping[str, Known]] = {
    "electricity": Known(
        field="usd_per_kwh", read=_in("USD/kWh"), unit="USD/kWh", example="0.12USD/kWh", usual=CATALOGUE,
        meaning="price of electricity",
    ),
    "grid": Known(
        field="region", read=lambda text: find_region(text).region, example="de", usual="world",
        meaning="region of the electricity grid",
    ),
    "grid-gco2-per-kwh": Known(
        field="gco2_per_kwh", read=read_real, unit="g/kWh", example="350", usual="that of grid",
        meaning="carbon intensity of electricity",
    ),
    "pue": Known(
        field="pue", read=read_real, example="1.2", usual=CATALOGUE,
        meaning="power usage effectiveness of a datacenter",
    ),
    "busy-hours": Known(
        field="utilization", read=_read_busy, unit="h/day", example="12", usual="12",
        meaning="hours of work per 24 powered or rented hours",
    ),
    "hours": Known(
        field="hours_per_year", read=read_real, unit="h/year", example="8760", usual=CATALOGUE,
        meaning="hours per year that a purchased chip is powered",
    ),
    "lifetime": Known(
        field="lifetime_years", read=read_real, unit="years", example="4", usual=CATALOGUE,
        meaning="service life of a purchased chip",
    ),
    "pay": Known(
        field="pay", read=str, example="rented", usual="the cheaper; bought at the edge",
        meaning="payment: rented, bought or both",
    ),
    "seller": Known(
        field="seller", read=str, example="cloud", usual="the cheapest per chip, without reserved and spot",
        meaning="kind of price: hyperscaler, cloud, marketplace, reserved or spot; list or retail",
    ),
    "price-per-hour": Known(
        field="usd_per_hour", read=_in("USD/h"), unit="USD/h", example="0.40USD/h", usual=CATALOGUE, is_table=True,
        meaning="rental prices of chips",
    ),
    "purchase-price": Known(
        field="purchase_usd", read=_in("USD"), unit="USD", example="2500USD", usual=CATALOGUE, is_table=True,
        meaning="purchase prices of chips",
    ),
    "price-file": Known(
        field="prices", read=Path, example="prices.csv",
        meaning="CSV file with columns hardware, usd_per_hour, purchase_usd and source",
    ),
    "owned": Known(
        field="owned", read=read_whole, example="8", uses="fleet", is_table=True,
        meaning="devices that you own and pay only electricity for",
    ),
    "host": Known(
        field="host", read=str, example="raspberry_pi_5", usual="none; for a cost the usual one", uses=EVERY,
        meaning="host of chips that need one, with its static power and transfers; none for the chip alone",
    ),
    "link": Known(
        field="link", read=str.lower, example="pcie3x4", usual="the widest that both ends have", uses=EVERY,
        meaning="link to the host or to peers; nvlink for a bridge",
    ),
    "host-share": Known(
        field="host_share", read=read_real, example="0.4", usual="the catalogue's, or the price of host",
        meaning="price and electricity of the host, as a fraction of the purchased chip's",
    ),
}  # fmt: skip
"""Name of a value in `joulemap.toml`, after `--site` and, in capitals, after `JOULEMAP_` -> what it is."""


def read_site(given: Iterable[str] = (), *, variables: Mapping[str, str] = os.environ) -> Site:
    """Return the site of the working folder: an option replaces the environment, the environment `joulemap.toml`.

    `given` are texts `NAME=VALUE`, or names of files that replace the search. Raises UnknownNameError and UsageError
    that begin with the file and line, variable or option of an unknown name or a value out of range.
    """
    given = tuple(given)
    files = [one for one in given if "=" not in one]
    config = read_config(files[-1]) if files else find_config(variables)
    values = read_values(SITE, KNOWN, config, variables, [one for one in given if "=" in one])
    fields: dict[str, Any] = {"owned": {}}
    prices: list[Price] = []
    stated: dict[str, dict[str, str]] = {}
    for (name, chip), one in values.items():
        known, is_asked = KNOWN[name], one.origin == OPTION
        with placing(one.where):
            value = known.read(one.text)
            chip = chip and find_chip(chip)
            if name == "price-file":
                of_file = read_price_file(Path(one.folder, value))
                prices = [*(attrs.evolve(price, is_asked=is_asked) for price in of_file), *prices]
            elif name == "owned":
                fields["owned"][chip] = value
            elif known.is_table:
                source = "the question" if is_asked else one.origin
                numbers = {known.field: value}
                prices.append(Price(hardware=chip, source=source, is_asked=is_asked, **numbers))
            else:
                fields[known.field] = value
                Site(**{known.field: value})
                if name == "host" and value != NO_HOST:
                    select_chip(value, Settings())
        written = {"value": f"{chip} {one.text}".strip(), "unit": known.unit, "from": one.origin}
        before = stated.get(name, written)
        stated[name] = {
            key: before[key] if before[key] == text else f"{before[key]}, {text}" for key, text in written.items()
        }
    with placing(values["seller", ""].where) if "seller" in stated else placing(config.path):
        return Site(**fields, prices=tuple(prices), stated=stated)


class SiteRow(Row):
    """Value of a site or a habit, and where it is stated."""

    name: Cell[str] = described("name of the value")
    stated: Cell[str] = described("value as written; empty for the default", heading="value")
    unit: Cell[str] = described("unit of the value")
    source: Cell[str] = described("file, variable or option that states it; empty for the default", heading="from")
    usual: Cell[str] = described("default", heading="default")
    uses: Cell[str] = described("questions that use it", heading="used by")
    meaning: Cell[str] = described("meaning")


def list_values(known: Mapping[str, Known], stated: Mapping[str, Mapping[str, str]]) -> Table[SiteRow]:
    """Return every known value with its unit, default, meaning and uses, and where it is stated."""
    rows = []
    for name, one in known.items():
        value = stated.get(name, {})
        rows.append(
            SiteRow(
                name=name,
                stated=value.get("value", ""),
                unit=one.unit,
                source=value.get("from", ""),
                usual="" if one.usual is None else str(one.usual).lower(),
                uses=one.uses,
                meaning=one.meaning,
            )
        )
    return make_table("site", SiteRow, rows)
