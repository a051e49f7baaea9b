"""What a fleet is asked for: requests that come, what they are promised, and what it may take."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal

import attrs

from joulemap.system.errors import UsageError
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from attrs import Attribute

Objective = Literal["cost", "energy", "carbon"]

PROMISED: Final = 0.99
"""Share of the requests that a promise is kept to."""

MOST_RATE: Final = 1e9
"""Requests a second that can be asked for."""

MOST_NODE: Final = 1024
"""Devices of a node."""

MOST_CARRIED: Final = 16.0
"""Times a rate that a fleet is asked for at most, to see how much it carries."""


def _above_0(_record: object, field: Attribute[Any], value: float | None) -> None:
    if value is not None and not 0.0 < value < math.inf:
        raise UsageError(f"{field.name} is {value:g}, expected above 0")


def _are_shares(_record: object, field: Attribute[Any], value: Mapping[str, float]) -> None:
    for name, share in value.items():
        if not 0.0 < share < 1.0:
            raise UsageError(f"{field.name}: the share of {name} is {share:g}, expected above 0 and below 1")
    if sum(value.values()) >= 1.0:
        raise UsageError(f"{field.name}: shares sum to {sum(value.values()):g}; what is left of 1 is the first model's")


def _are_counts(_record: object, field: Attribute[Any], value: Mapping[str, int]) -> None:
    for name, count in value.items():
        if count < 1:
            raise UsageError(f"{field.name}: {count} of {name}, expected 1 or more")


@frozen(kw_only=True)
class Level:
    """A rate of requests, and the share of the time that it lasts."""

    rate_per_s: float
    share: float


@frozen(kw_only=True)
class Demand:
    """Requests that arrive at random, their p99 latency targets, and limits of the whole fleet."""

    rate_per_s: float | None = attrs.field(default=None, validator=_above_0)
    rates: str = ""
    """CSV of rates over a day, or of arrivals, in place of one rate."""
    p99_s: float | None = attrs.field(default=None, validator=_above_0)
    """From a request's arrival to its answer."""
    first_token_s: float | None = attrs.field(default=None, validator=_above_0)
    """Of a language model: from a request's arrival to its first token."""
    between_s: float | None = attrs.field(default=None, validator=_above_0)
    """Of a language model: between two tokens."""
    beside: Mapping[str, float] = attrs.field(factory=dict, validator=_are_shares)
    """Other models -> their shares of the requests."""
    objective: Objective = "cost"
    max_power_w: float | None = attrs.field(default=None, validator=_above_0)
    """Of all devices, at the highest rate."""
    max_cost_per_month: float | None = attrs.field(default=None, validator=_above_0)
    """USD, in the way of paying that is asked for."""
    owned: Mapping[str, int] = attrs.field(factory=dict, validator=_are_counts)
    """Hardware -> how many of it are there already: they cost their electricity."""
    releases: bool = False
    """Devices that a lower rate does not need are given back, or switched off."""
    variation: float = 0.0
    """Coefficient of variation of the time that a device takes for a batch."""
    node: int = 1
    """Devices that come together: of each hardware there are whole nodes, whether all of it is needed or not."""

    def __attrs_post_init__(self) -> None:
        """Check what no field knows alone."""
        if self.rate_per_s is not None and self.rates:
            raise UsageError(f"the rate is {self.rate_per_s:g}/s, and rates are in {self.rates}: give one of the two")
        if self.rate_per_s is None and not self.rates:
            raise UsageError("a fleet is for a rate of requests, or for a file of rates: give one of them")
        if not 1 <= self.node <= MOST_NODE:
            raise UsageError(f"node is {self.node}, expected from 1 to {MOST_NODE:,} devices")
        if self.rate_per_s is not None and self.rate_per_s > MOST_RATE:
            raise UsageError(f"the rate is {self.rate_per_s:g}/s, expected at most {MOST_RATE:g}/s")
        if not 0.0 <= self.variation <= 3.0:
            raise UsageError(f"variation is {self.variation:g}, expected from 0 to 3")

    def round_up(self, devices: int) -> int:
        """Return the devices of as many nodes as have these."""
        return -(-devices // self.node) * self.node

    @property
    def is_of_tokens(self) -> bool:
        """Whether it promises what only a language model has."""
        return self.first_token_s is not None or self.between_s is not None
