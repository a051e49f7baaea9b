"""The time as the database holds it."""

from __future__ import annotations

from datetime import UTC, datetime


def utc_now() -> datetime:
    """Return the time, UTC, as TIMESTAMP columns hold it."""
    return datetime.now(UTC).replace(tzinfo=None)
