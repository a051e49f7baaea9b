"""Shares of an energy from which its assumed numbers are a caveat, in a database and without one."""

from __future__ import annotations

from typing import Final

LEAST_ASSUMED: Final = 0.1
"""Share of assumed numbers in an energy from which they are a caveat."""

MOSTLY_STATIC: Final = 0.8
"""Share of static power in an assumed energy from which the caveat names it."""


def fill_shares(sql: str) -> str:
    """Return the SQL of a query with these shares in place of `{least_assumed}` and `{mostly_static}`."""
    return sql.replace("{least_assumed}", f"{LEAST_ASSUMED!r}e0").replace("{mostly_static}", f"{MOSTLY_STATIC!r}e0")
