"""Totals of runs: sums over their parts and how far they may be off, a row a run (`totals_between` says how), and what
they spend by action, a row a run and action (`actions_between`).

The ledger and the rows beside it stay the only source: who writes runs, or what half-widths follow from, writes totals
in the same transaction, and an audit compares.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from joulemap.store.connection import Connection
from joulemap.store.literal import execute

MOST: Final = 2**31 - 1
"""No run has a larger number."""


def write_totals(connection: Connection, first_run: int = 0, last_run: int = MOST) -> None:
    """Store the totals of the evaluated runs from one number to another, whose parts are stored and totals are not."""
    between = {"first": first_run, "last": last_run}
    execute(
        connection,
        "INSERT INTO run_action BY NAME FROM actions_between($first, $last) ORDER BY run_id, action_id",
        between,
    )
    _write_sums(connection, between)


def renew_totals(connection: Connection) -> None:
    """Store the totals of all runs anew, after what half-widths follow from was replaced; actions stay as they are."""
    ((count,),) = connection.execute("SELECT count(*) FROM run_total").fetchall()
    if count:
        connection.execute("DELETE FROM run_total")
        _write_sums(connection, {"first": 0, "last": MOST})


def _write_sums(connection: Connection, between: Mapping[str, int]) -> None:
    execute(connection, "INSERT INTO run_total BY NAME FROM totals_between($first, $last)", between)
