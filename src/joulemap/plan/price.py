"""Prices that a question gives: the chip that each names, and the parameters of queries."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from joulemap.domain.hardware_ref import HardwareRef
from joulemap.domain.offer import WAYS
from joulemap.domain.settings import Price, Settings
from joulemap.plan.selection import select_chip
from joulemap.system.errors import UsageError
from joulemap.system.file import FileError, read_text
from joulemap.system.number import read_real

COLUMNS: Final = ("hardware", "usd_per_hour", "purchase_usd", "source")

NUMBERS: Final = ("usd_per_hour", "purchase_usd")


def find_chip(name: str) -> str:
    """Return the catalogue id of a chip that a price or an owned chip names; raises like `price_parameters`."""
    if (ref := HardwareRef.read(name)).mode:
        raise UsageError(f"{name}: a price covers all power modes of a chip: name {ref.label}")
    ((entry, _),) = select_chip(name, Settings()).pairs
    return entry.id


def price_parameters(prices: Iterable[Price]) -> tuple[dict[str, Sequence[Any]], dict[str, Sequence[Any]]]:
    """Return prices as two sets of query parameters: prices in dollars with keys such as `l4:rented`, and their
    sources.

    If a chip has several prices for one way of paying, the last one applies. Raises UnknownNameError for unknown
    hardware, UsageError for a class of hardware or a power mode.
    """
    given: dict[str, tuple[float, str]] = {}
    for price in prices:
        chip = find_chip(price.hardware)
        for way, value in zip(WAYS, (price.usd_per_hour, price.purchase_usd), strict=True):
            if value is not None:
                given[f"{chip}:{way}"] = value, price.source
    values, sources = ([one[index] for one in given.values()] for index in (0, 1))
    return {"price_of": list(given), "price_usd": values}, {"price_source": sources}


def read_price_file(path: Path) -> tuple[Price, ...]:
    """Read the prices of a CSV file, one row per chip; UsageError names the file and the reason."""
    try:
        text = read_text(path)
    except FileError as error:
        raise UsageError(f"{path}: cannot be read: {error}") from error
    try:
        prices = tuple(_read_price(row, str(path)) for row in _read_csv(text))
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


def _read_price(row: Mapping[str, Any], default_source: str) -> Price:
    """Parse one row of a price file; ValueError or UsageError for an invalid row."""
    surplus = sorted(set(row) - set(COLUMNS))
    if surplus:
        raise ValueError(f"unknown column {', '.join(surplus)}; columns are {', '.join(COLUMNS)}")
    hardware = str(row["hardware"]).strip()
    numbers: dict[str, Any] = {}
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
