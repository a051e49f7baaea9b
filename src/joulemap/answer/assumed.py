"""Text on the shares of an energy that rest on assumed numbers.

The ledger gives the share: lines whose energy per action has the basis `assumed`. Every table shows a share above a
third next to the energy.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

from joulemap.present.cell import show_share
from joulemap.present.document import SHARE_HEADING
from joulemap.store.run import AssumedEnergy

LEAST_STATED: Final = 1.0 / 3.0
"""Assumed share of an energy above which answers show it."""

SHARE_FIELD: Final = "assumed_energy_fraction"
"""Field with the assumed share in rows that hold their own share rather than that of a run."""


def show_assumed(one: AssumedEnergy | None) -> str:
    """Return an assumed share for a table cell; empty for a share up to a third."""
    return "" if one is None or one.fraction <= LEAST_STATED else show_share(one.fraction)


def head_assumed(shares: Iterable[AssumedEnergy | None]) -> str:
    """Return the column of assumed shares in the syntax of `lay`; empty if no share is above a third."""
    return f"*{SHARE_HEADING} {SHARE_FIELD} | " if any(map(show_assumed, shares)) else ""


def is_whole(one: AssumedEnergy, energy_j: float | None) -> bool:
    """Return whether `energy_j` is the energy of the whole run rather than of a part."""
    return energy_j is not None and math.isclose(energy_j * 1e15, one.energy_fj, rel_tol=1e-9)
