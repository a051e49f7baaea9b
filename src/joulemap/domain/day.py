"""Days of measurements: which texts state one, and which of them can be true.

A single run states its day in its conditions, as `measured on 2026-05-17`; a served model has a column for it.
"""

from __future__ import annotations

import contextlib
import re
from datetime import UTC, date, datetime, timedelta
from typing import Final

from joulemap.system.errors import UsageError

MEASURED_ON: Final = re.compile(r"\bmeasured on (\d{4}-\d\d-\d\d)\b")
"""Pattern of the day in the conditions of a single run."""

DAY: Final = re.compile(r"(20\d\d)(?:-(\d\d)(?:-(\d\d)(?:[T ]\d\d:\S*)?)?)?", re.ASCII)
"""Pattern of a year, a month or a day, which a time of day may follow."""

EASTERNMOST: Final = timedelta(hours=14)
"""Difference to UTC where a day begins first."""


def find_last_day() -> str:
    """Return the newest day that has begun anywhere: machines state the day of their own place."""
    return (datetime.now(UTC) + EASTERNMOST).date().isoformat()


def read_day(text: str) -> str:
    """Return the first day that a date, a month or a year may mean; empty for any other text."""
    if match := DAY.fullmatch(text.strip()):
        with contextlib.suppress(ValueError):
            return date(*(int(part or 1) for part in match.groups())).isoformat()
    return ""


def check_day(name: str, text: str) -> str:
    """Return the first day of a date, which must have come; a month and a year count too.

    Raises UsageError, which calls the date `name`.
    """
    day = read_day(text)
    if not day:
        raise UsageError(f"{name} is {text[:60]!r}, expected a real day or a month since 2000, such as 2026-05-17")
    if day > find_last_day():
        raise UsageError(f"{name} is {text!r}, which is in the future")
    return day


def find_date(row: object) -> str:
    """Return the date that a measurement states in its column or its conditions, as written; empty without one."""
    match = MEASURED_ON.search(str(getattr(row, "conditions", "")))
    return str(getattr(row, "date", "")) or (match[1] if match else "")
