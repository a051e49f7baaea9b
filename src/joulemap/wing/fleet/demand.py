"""Demand on a fleet: the requests that arrive, their latency targets, and the limits of the fleet."""

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

MOST_RATE: Final = 1e9
"""Maximum request rate that a demand may state, in requests per second."""

MOST_NODE: Final = 1024
"""Maximum devices per node."""

MOST_CARRIED: Final = 16.0
"""Maximum multiple of the requested rate at which a fleet's capacity is searched."""


def _above_0(_record: object, field: Attribute[Any], value: float | None) -> None:
    if value is not None and not 0.0 < value < math.inf:
        raise UsageError(f"{field.name} is {value:g}, expected above 0")


def _are_shares(_record: object, field: Attribute[Any], value: Mapping[str, float]) -> None:
    for name, share in value.items():
        if not 0.0 < share < 1.0:
            raise UsageError(f"{field.name}: the share of {name} is {share:g}, expected above 0 and below 1")
    if sum(value.values()) >= 1.0:
        raise UsageError(
            f"{field.name}: shares sum to {sum(value.values()):g}, expected below 1; the first model has the rest"
        )


def _are_counts(_record: object, field: Attribute[Any], value: Mapping[str, int]) -> None:
    for name, count in value.items():
        if count < 1:
            raise UsageError(f"{field.name}: {count} of {name}, expected 1 or more")


@frozen(kw_only=True)
class Level:
    """Request rate, and the share of time during which requests arrive at this rate."""

    rate_per_s: float
    share: float


@frozen(kw_only=True)
class Demand:
    """Requests that arrive at random, their p99 latency targets, and limits of the whole fleet."""

    rate_per_s: float | None = attrs.field(default=None, validator=_above_0)
    rates: str = ""
    """CSV file with rates over a day or with times of arrival, as an alternative to one rate."""
    p99_s: float | None = attrs.field(default=None, validator=_above_0)
    """Target p99 latency, from a request's arrival to its answer, in seconds."""
    first_token_s: float | None = attrs.field(default=None, validator=_above_0)
    """Target p99 time to first token of a language model, from a request's arrival, in seconds."""
    between_s: float | None = attrs.field(default=None, validator=_above_0)
    """Target p99, over requests, of a language model's time per output token, in seconds."""
    beside: Mapping[str, float] = attrs.field(factory=dict, validator=_are_shares)
    """Other models on the same devices -> their shares of the requests."""
    objective: Objective = "cost"
    max_power_w: float | None = attrs.field(default=None, validator=_above_0)
    """Maximum power in watts of all devices at the highest rate."""
    max_cost_per_month: float | None = attrs.field(default=None, validator=_above_0)
    """Maximum USD per month, for the requested way of paying."""
    owned: Mapping[str, int] = attrs.field(factory=dict, validator=_are_counts)
    """Hardware -> number of devices already owned, which cost only their electricity."""
    releases: bool = False
    """True if devices that a lower rate does not need are returned or switched off."""
    variation: float = 0.0
    """Coefficient of variation of a device's time per batch."""
    node: int = 1
    """Devices per node; each chip is bought in whole nodes, even if some devices are not needed."""

    def __attrs_post_init__(self) -> None:
        """Raise UsageError for fields that are out of range or contradict each other."""
        if self.rate_per_s is not None and self.rates:
            raise UsageError(
                f"both a rate ({self.rate_per_s:g}/s) and a file of rates ({self.rates}) are given: give one of them"
            )
        if self.rate_per_s is None and not self.rates:
            raise UsageError("a fleet needs a request rate or a file of rates: give one of them")
        if not 1 <= self.node <= MOST_NODE:
            raise UsageError(f"node is {self.node}, expected from 1 to {MOST_NODE:,} devices")
        if self.rate_per_s is not None and self.rate_per_s > MOST_RATE:
            raise UsageError(f"the rate is {self.rate_per_s:g}/s, expected at most {MOST_RATE:g}/s")
        if not 0.0 <= self.variation <= 3.0:
            raise UsageError(f"variation is {self.variation:g}, expected from 0 to 3")

    def round_up(self, devices: int) -> int:
        """Return the number of devices in the fewest whole nodes that contain at least `devices`."""
        return -(-devices // self.node) * self.node

    @property
    def is_of_tokens(self) -> bool:
        """True if a target is on tokens, which only language models produce."""
        return self.first_token_s is not None or self.between_s is not None
