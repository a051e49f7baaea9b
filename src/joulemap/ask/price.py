"""Prices: a user's own, which replace those of the catalogue, and those that a cost compares."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, NoReturn

from joulemap.ask.candidate import read_usage
from joulemap.domain.metric import METRIC, VariedMetricName
from joulemap.domain.offer import WAYS, describe_pay
from joulemap.domain.settings import Price, Settings, Usage
from joulemap.generated.cost import CostOption
from joulemap.physics.record.quantity import Quantity
from joulemap.plan.price import price_parameters
from joulemap.store.connection import Connection
from joulemap.store.query import fetch
from joulemap.system.errors import UnsupportedError, UsageError
from joulemap.system.file import FileError, parse_toml, read_text
from joulemap.system.number import read_real
from joulemap.system.record import frozen

COLUMNS: Final = ("hardware", "usd_per_hour", "purchase_usd", "source")

NUMBERS: Final = ("usd_per_hour", "purchase_usd")


@frozen(kw_only=True)
class ComparedPrices:
    """Prices of the hardware of runs, in the requested way of paying and from comparable sellers."""

    of_run: Mapping[int, Mapping[str, Quantity | None]]
    """Run id -> rent and purchase price of its hardware; None for a price that is not compared."""
    paid: str
    """Way of paying, and kind of seller; empty if no cost is requested."""


def refuse_unpriced(name: str, metric: VariedMetricName, paid: str) -> NoReturn:
    """Raise UnsupportedError about a chip whose cost is unknown, because no price of the compared kind is known."""
    raise UnsupportedError(
        f"the {METRIC[metric].label} of {name} is not known, because it has no price of this kind: {paid} (--pay and "
        "--seller choose another)"
    )


def read_price_file(path: Path) -> tuple[Price, ...]:
    """Read the prices of a CSV file, one row per chip, or of a TOML file, one table per chip.

    Raises UsageError naming file, line or table and reason.
    """
    try:
        text = read_text(path)
    except FileError as error:
        raise UsageError(f"{path}: cannot be read: {error}") from error
    try:
        rows = _read_toml(text) if path.suffix == ".toml" else _read_csv(text)
        prices = tuple(_read_price(row, str(path)) for row in rows)
    except (ValueError, csv.Error, UsageError) as error:
        raise UsageError(f"{path}: {error}") from error
    if not prices:
        raise UsageError(f"{path}: there is no price; columns are {', '.join(COLUMNS)}")
    return prices


def _read_csv(text: str) -> list[dict[str, Any]]:
    reader = csv.DictReader(io.StringIO(text, newline=""))
    names = reader.fieldnames or ()
    if len(set(names)) < len(names):
        raise ValueError(f"the first line has the column {max(names, key=names.count)} twice")
    if "hardware" not in names:
        raise ValueError(f"the first line has no column hardware; columns are {', '.join(COLUMNS)}")
    rows = list(reader)
    if any(None in row or None in row.values() for row in rows):
        raise ValueError("a line has more or fewer cells than the first one")
    return rows


def _read_toml(text: str) -> list[dict[str, Any]]:
    tables = parse_toml(text)
    for name, table in tables.items():
        if not isinstance(table, Mapping):
            raise ValueError(f"{name} is not a table: write [l4] and below it usd_per_hour = 0.4")
    return [{"hardware": name, **table} for name, table in tables.items()]


def _read_price(row: Mapping[str, Any], default_source: str) -> Price:
    """Parse one row of a price file; ValueError or UsageError for an invalid row."""
    surplus = sorted(set(row) - set(COLUMNS))
    if surplus:
        raise ValueError(f"unknown column {', '.join(surplus)}; columns are {', '.join(COLUMNS)}")
    hardware = str(row["hardware"]).strip()
    numbers: dict[str, float] = {}
    for name in NUMBERS:
        value = row.get(name, "")
        if value == "":
            continue
        try:
            numbers[name] = read_real(value) if isinstance(value, str) else float(value)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(f"{hardware}: {name} is {value!r}, expected a number in US dollars") from None
    try:
        return Price(hardware=hardware, **numbers, source=str(row.get("source") or default_source))
    except UsageError as error:
        raise ValueError(f"{hardware}: {error}") from error


def find_prices(
    connection: Connection,
    run_ids: Iterable[int],
    settings: Settings,
    usage: Usage | None,
) -> ComparedPrices:
    """Return the prices that `cost` would compare for these runs; empty if `usage` is None."""
    if usage is None:
        return ComparedPrices(of_run={}, paid="")
    (used, way), (_, named) = read_usage(usage, settings, "both"), price_parameters(usage.prices)
    by_run: dict[int, dict[str, Quantity | None]] = {}
    pay, kinds = "", set()
    for row in fetch(connection, CostOption, run_ids=list(run_ids), **used, **named, **way):
        pay = row.pay
        known = by_run.setdefault(row.run_id, {"price_cloud": None, "price_purchase": None})
        if row.status == "ok" and row.is_alike and row.way in (pay, *(WAYS if pay == "both" else ())):
            known["price_cloud" if row.way == "rented" else "price_purchase"] = Quantity(
                value=row.price or 0.0,
                unit=row.price_unit or "",
                basis="published" if row.price_basis == "given" else row.price_basis or "",
                source=row.price_source or "",
                note=row.price_text or row.price_note or "",
            )
            kinds.add(row.compared_kind)
    kind = next(iter(kinds)) if len(kinds) == 1 and pay != "both" else ""
    return ComparedPrices(of_run=by_run, paid=describe_pay(pay, kind or ""))
