"""Comparisons that may break a law: where it does not apply, each with the reason and its source, and known faults."""

from __future__ import annotations

from typing import Final

from laws.table import Exempt

EXEMPT: Final[tuple[Exempt, ...]] = ()
