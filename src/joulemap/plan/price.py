"""Prices that a question gives: the chip that each names, and the parameters of queries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from joulemap.domain.hardware_ref import HardwareRef
from joulemap.domain.offer import WAYS
from joulemap.domain.settings import Price, Settings
from joulemap.plan.selection import select_chip
from joulemap.system.errors import UsageError


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
