"""Days of measurements: which texts state one, and which are refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from joulemap.domain.day import check_day, read_day
from joulemap.system.errors import UsageError


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("2026-05-17", "2026-05-17"),
        ("2024-02-29", "2024-02-29"),
        ("2026-05-17T10:20:30Z", "2026-05-17"),
        ("2026-05", "2026-05-01"),
        ("2026", "2026-01-01"),
        ("2026-02-31", ""),
        ("2026-13-01", ""),
        ("2026-00-01", ""),
        ("1970-01-01", ""),
        ("20260517", ""),
        ("5%", ""),
        ("in May", ""),
        ("", ""),
    ],
)
def test_a_month_counts_from_its_first_day_and_only_real_days_count(text: str, day: str) -> None:
    assert read_day(text) == day


def test_a_day_that_has_not_come_is_refused() -> None:
    now = datetime.now(UTC)
    today, later = now.date().isoformat(), (now + timedelta(days=2)).date().isoformat()
    assert check_day("date", today) == today
    for text in (later, "2099-01-01"):
        with pytest.raises(UsageError, match=f"date is '{text}', which is in the future"):
            check_day("date", text)
    with pytest.raises(UsageError, match="date is '2026-02-31', expected a real day or a month since 2000"):
        check_day("date", "2026-02-31")
    assert check_day("date", "2026-05") == "2026-05-01"
