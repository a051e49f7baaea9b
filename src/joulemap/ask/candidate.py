"""Choices among configurations that queries rank: the best of each chip, and the chips that are tied with it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol, TypeVar, cast

import attrs

from joulemap.ask.fact import Caveat, Choice
from joulemap.catalog.sheet import find_region
from joulemap.domain.hardware_ref import HardwareRef
from joulemap.domain.settings import WAY_OF, Pay, Price, Settings, Usage
from joulemap.physics.interval.error_scale import TOLD_APART
from joulemap.plan.budget import apply_scenario

MOST_ENTRIES: Final = 10
"""Maximum chips that entries and rules cover."""


class Candidate(Protocol):
    """Row of a query that ranks configurations."""

    @property
    def hardware(self) -> str:
        """Hardware at its power mode."""

    @property
    def run_id(self) -> int:
        """Id of the run."""


Row = TypeVar("Row", bound=Candidate)


def find_payment(usage: Usage, settings: Settings, prices: Sequence[Price] = ()) -> Pay:
    """Return the way of paying that a question compares: rented, unless the question itself is about buying.

    It is about buying if its prices are all purchase prices, or if its deployments or scenario exclude data centres.
    The way never depends on the hardware, so that another candidate cannot change the costs of the others.
    """
    if usage.pay:
        return usage.pay
    if usage.seller:
        return cast("Pay", WAY_OF[usage.seller])
    if prices:
        return "bought" if all(price.usd_per_hour is None for price in prices) else "rented"
    deployments = apply_scenario(settings).deployment
    return "bought" if deployments and "datacenter" not in deployments else "rented"


def read_usage(usage: Usage, settings: Settings, prices: Sequence[Price] = ()) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return two sets of query parameters: the numbers and region of a usage, and its payment.

    A number of -1 selects the catalogue's assumption. Payment is the way to pay and the kind of seller. Raises
    UnknownNameError for an unknown region.
    """
    numbers = attrs.asdict(usage)
    region, seller = numbers.pop("region"), numbers.pop("seller")
    del numbers["pay"]
    given: dict[str, Any] = {name: -1.0 if value is None else float(value) for name, value in numbers.items()}
    payment = {"pay": find_payment(usage, settings, prices), "seller": seller or ""}
    return {**given, "region": find_region(region).region if region else ""}, payment


def read_chip(hardware: str) -> str:
    """Return the name of hardware without its power mode."""
    return HardwareRef.read(hardware).label


def find_chip(row: Candidate) -> str:
    """Return the hardware of a configuration without its power mode."""
    return read_chip(row.hardware)


def list_first(rows: Iterable[Row]) -> list[Row]:
    """Return the first row of each chip."""
    by_chip: dict[str, Row] = {}
    for row in rows:
        by_chip.setdefault(find_chip(row), row)
    return list(by_chip.values())


def add_chances(rows: Iterable[Candidate], column: str) -> dict[str, float]:
    """Return chip -> probability that one of its configurations is the best, from a column of the rows."""
    by_chip: dict[str, float] = {}
    for row in rows:
        chance = getattr(row, column)
        if chance is not None:
            by_chip[find_chip(row)] = by_chip.get(find_chip(row), 0.0) + chance
    return by_chip


def choose_first(
    ranked: Sequence[Row],
    chances: Mapping[str, float],
    likely: Iterable[Candidate],
    measure: Callable[[Row], float],
    behind: float | None,
    **given: Any,
) -> Choice:
    """Return the first row as the best, the others by rank, and the chips that are statistically tied with it.

    `chances` maps chips to their probability to be the best, `likely` are the rows that may be the best, `measure`
    returns the value of a row, and `behind` is the probability that the second row is better. `given` holds the other
    fields of the choice.
    """
    best, *others = ranked
    chance = chances.get(find_chip(best)) if others else None
    close = {find_chip(row) for row in likely} - {find_chip(best)}
    tied = sorted(
        (row for row in others if chance is not None and chance < TOLD_APART and find_chip(row) in close),
        key=lambda row: -chances.get(find_chip(row), 0.0),
    )
    equal = [row for row in others if measure(row) == measure(best)]
    return Choice(
        runs=tuple(row.run_id for row in ranked[:MOST_ENTRIES]),
        probability=chance,
        ahead=None if behind is None else 1.0 - behind,
        tied=tuple(row.run_id for row in tied),
        equal=(best.run_id, *(row.run_id for row in equal)) if equal else (),
        **given,
    )


def find_likelier(
    choice: Choice, ranked: Sequence[Row], chances: Mapping[str, float], ratio: Callable[[Row], float]
) -> Iterator[Caveat]:
    """Yield the chip that is likelier to be the best than the chip that ranks first by the middle of its interval.

    `ratio` returns the factor by which the value of a row differs from the best.
    """
    likeliest = max(ranked, key=lambda row: chances.get(find_chip(row), 0.0))
    chance = chances.get(find_chip(likeliest), 0.0)
    if choice.probability is not None and chance > choice.probability and likeliest.run_id != choice.runs[0]:
        weight = abs(math.log(ratio(likeliest)))
        yield Caveat(kind="likelier", runs=(likeliest.run_id,), values={"probability": chance}, weight=weight)
