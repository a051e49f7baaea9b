"""Rates over a day, from a file of rates or of arrivals."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path
from typing import Final

from joulemap.system.errors import UsageError
from joulemap.system.file import FileError, read_text
from joulemap.system.number import read_real
from joulemap.wing.fleet.demand import Demand, Level

TIMES: Final = {"time_s": 1.0, "hour": 3600.0}
"""Column of start times in a rate file -> seconds per unit of the column."""

RATE: Final = "rate_per_s"
ARRIVAL: Final = "arrival_s"

DAY_S: Final = 86400.0

PARTS: Final = 24
"""Number of equal intervals in which arrivals are counted."""

LEVELS: Final = 8
"""Maximum number of levels per day; rates close to each other are merged into one level at the highest rate."""


def read_levels(demand: Demand) -> tuple[Level, ...]:
    """Return the levels of a demand, highest rate first; UsageError if the file is invalid."""
    if demand.rate_per_s is not None:
        return (Level(rate_per_s=demand.rate_per_s, share=1.0),)
    return _join(_read(Path(demand.rates)))


def _read(path: Path) -> list[tuple[float, float]]:
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
    later = next((place for place in range(1, len(times)) if times[place] < times[place - 1]), None)
    if later is not None:
        raise UsageError(
            f"{path}, line {filled[later]}: out of order: {time} {rows[later][0]:g} after {rows[later - 1][0]:g}"
        )
    return _count(times) if time == ARRIVAL else _last(path, times, [row[1] for row in rows])


def _read_row(path: Path, number: int, names: list[str], cells: list[str], wanted: tuple[str, ...]) -> list[float]:
    found = []
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
        found.append(value)
    return found


def _last(path: Path, times: list[float], rates: list[float]) -> list[tuple[float, float]]:
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


def _count(times: list[float]) -> list[tuple[float, float]]:
    """Return (requests per second, seconds) of equal intervals, from times of arrival in seconds."""
    span = times[-1] - times[0]
    if span <= 0.0:
        raise UsageError("all arrivals have the same time: a rate needs two different times")
    width = span / PARTS
    counts = Counter(min(int((time - times[0]) / width), PARTS - 1) for time in times)
    return [(counts[place] / width, width) for place in range(PARTS)]


def _join(parts: list[tuple[float, float]]) -> tuple[Level, ...]:
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
