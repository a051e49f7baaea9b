"""Demand on a fleet: the requests that arrive, their latency targets, and the limits of the fleet.

Rates over a day come from a file of rates or of arrivals.
"""

from __future__ import annotations

import csv
import math
from collections import Counter
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import attrs
from attrs import Attribute

from joulemap.system import FileError, UsageError, frozen, read_real, read_text

if TYPE_CHECKING:
    from joulemap.wing.llm.serve import Targets

Objective = Literal["cost", "energy", "carbon"]

MOST_RATE: Final = 1e9
"""Maximum request rate that a demand may state, in requests per second."""

MOST_NODE: Final = 1024
"""Maximum devices per node."""

MOST_CARRIED: Final = 16.0
"""Maximum multiple of the requested rate at which a fleet's capacity is searched."""

TIMES: Final = {"time_s": 1.0, "hour": 3600.0}
"""Column of start times in a rate file -> seconds per unit of the column."""

RATE: Final = "rate_per_s"
ARRIVAL: Final = "arrival_s"

DAY_S: Final = 86400.0

PARTS: Final = 24
"""Number of equal intervals in which arrivals are counted."""

LEVELS: Final = 8
"""Maximum number of levels per day; rates close to each other are merged into one level at the highest rate."""


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
        if not 0.0 <= self.variation <= 3.0:
            raise UsageError(f"variation is {self.variation:g}, expected from 0 to 3")

    @cached_property
    def levels(self) -> tuple[Level, ...]:
        """Request rates, highest first, each with its share of the time; UsageError if the file of rates is invalid."""
        if self.rate_per_s is not None:
            return (Level(rate_per_s=self.rate_per_s, share=1.0),)
        return _merge_levels(_read_rates(Path(self.rates)))

    @property
    def peak_per_s(self) -> float:
        """Highest request rate, which the fleet must serve within the targets."""
        return self.levels[0].rate_per_s

    @property
    def deciding(self) -> Literal["latency", "energy"]:
        """Quantity of a run that moves the objective: cost follows time, the other objectives energy."""
        return "latency" if self.objective == "cost" else "energy"

    def check(self) -> None:
        """Raise UsageError for a file of rates that is invalid, and for a rate above the maximum."""
        if self.peak_per_s > MOST_RATE:
            named = f"{self.rates}: " if self.rates else ""
            raise UsageError(f"{named}the rate is {self.peak_per_s:g}/s, expected at most {MOST_RATE:g}/s")

    def round_up(self, devices: int) -> int:
        """Return the number of devices in the fewest whole nodes that contain at least `devices`."""
        return -(-devices // self.node) * self.node

    @property
    def tails(self) -> Targets:
        """Targets of a language model's servers."""
        from joulemap.wing.llm.serve import Targets

        return Targets(first_token_s=self.first_token_s, between_s=self.between_s, latency_s=self.p99_s)

    @property
    def is_of_tokens(self) -> bool:
        """True if a target is on tokens, which only language models produce."""
        return self.first_token_s is not None or self.between_s is not None


def _read_rates(path: Path) -> list[tuple[float, float]]:
    """Return (requests per second, seconds) of each interval that a file describes."""
    try:
        lines = list(csv.reader(read_text(path).splitlines()))
    except FileError as error:
        raise UsageError(f"cannot read {path}: {error}") from error
    names = [name.strip() for name in lines[0]] if lines else []
    time = next((name for name in (*TIMES, ARRIVAL) if name in names), "")
    if not time or (time != ARRIVAL and RATE not in names):
        raise UsageError(
            f"{path}, line 1: expected the columns {' or '.join(TIMES)} and {RATE}, or {ARRIVAL}; "
            f"found {', '.join(names) or 'none'}"
        )
    wanted = (time,) if time == ARRIVAL else (time, RATE)
    filled = [number for number, cells in enumerate(lines[1:], 2) if any(map(str.strip, cells))]
    rows = [_read_row(path, number, names, lines[number - 1], wanted) for number in filled]
    if not rows:
        raise UsageError(f"{path} has no rows")
    times = [row[0] * TIMES.get(time, 1.0) for row in rows]
    later = next((index for index in range(1, len(times)) if times[index] < times[index - 1]), None)
    if later is not None:
        raise UsageError(
            f"{path}, line {filled[later]}: out of order: {time} {rows[later][0]:g} after {rows[later - 1][0]:g}"
        )
    return _count_arrivals(times) if time == ARRIVAL else _end_rates(path, times, [row[1] for row in rows])


def _read_row(path: Path, number: int, names: list[str], cells: list[str], wanted: tuple[str, ...]) -> list[float]:
    values = []
    if any(map(str.strip, cells[len(names) :])):
        raise UsageError(
            f"{path}, line {number}: {len(cells)} cells for {len(names)} columns: write numbers without commas"
        )
    for name in wanted:
        cell = cells[names.index(name)].strip() if names.index(name) < len(cells) else ""
        try:
            value = read_real(cell)
        except ValueError as error:
            advice = ": write it without commas" if "," in cell else ""
            raise UsageError(f"{path}, line {number}: {name}: {error}{advice}") from error
        if value < 0.0:
            raise UsageError(f"{path}, line {number}: {name} is {value:g}, expected 0 or more")
        values.append(value)
    return values


def _end_rates(path: Path, times: list[float], rates: list[float]) -> list[tuple[float, float]]:
    """Return (rate, seconds) of each interval, from the start times of the rates.

    The last interval ends with the day. If it starts after the first day, it is as long as the interval before it.
    """
    if not any(rates):
        raise UsageError(f"{path}: all rates are 0")
    if len(times) == 1:
        return [(rates[0], DAY_S)]
    end = DAY_S if times[-1] < DAY_S else 2.0 * times[-1] - times[-2]
    ends = [*times[1:], end]
    return [(rate, after - before) for rate, before, after in zip(rates, times, ends, strict=True)]


def _count_arrivals(times: list[float]) -> list[tuple[float, float]]:
    """Return (requests per second, seconds) of equal intervals, from times of arrival in seconds."""
    span = times[-1] - times[0]
    if span <= 0.0:
        raise UsageError("all arrivals have the same time: a rate needs two different times")
    width = span / PARTS
    counts = Counter(min(int((time - times[0]) / width), PARTS - 1) for time in times)
    return [(counts[index] / width, width) for index in range(PARTS)]


def _merge_levels(parts: list[tuple[float, float]]) -> tuple[Level, ...]:
    """Return at most `LEVELS` levels, highest rate first; close rates become one level at their highest rate."""
    total = sum(seconds for _, seconds in parts)
    highest = max(rate for rate, _ in parts)
    seconds_at: dict[int, list[tuple[float, float]]] = {}
    for rate, seconds in parts:
        seconds_at.setdefault(min(LEVELS - 1, int(LEVELS * rate / highest)), []).append((rate, seconds))
    return tuple(
        Level(rate_per_s=max(rate for rate, _ in some), share=sum(seconds for _, seconds in some) / total)
        for _, some in sorted(seconds_at.items(), reverse=True)
    )
