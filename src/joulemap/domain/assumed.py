"""Shares of an energy from which its assumed numbers are a caveat, in a database and without one."""

from __future__ import annotations

from typing import Final

LEAST_ASSUMED: Final = 0.1
"""Share of assumed numbers in an energy from which they are a caveat."""

MOSTLY_STATIC: Final = 0.8
"""Share of static power in an assumed energy from which the caveat names it."""
