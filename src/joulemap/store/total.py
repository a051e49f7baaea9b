"""Totals of runs: sums over their parts and how far they may be off, a row a run (`totals_between` says how).

The ledger and the rows beside it stay the only source: who writes runs, or what half-widths follow from, writes totals
in the same transaction, and an audit compares.
"""

from __future__ import annotations

from typing import Final

from joulemap.store.connection import Connection
from joulemap.store.literal import execute

MOST: Final = 2**31 - 1
"""No run has a larger number."""


def write_totals(connection: Connection, first_run: int = 0, last_run: int = MOST) -> None:
    """Store the totals of the evaluated runs from one number to another, whose parts are stored and totals are not."""
    execute(
        connection,
        "INSERT INTO run_total BY NAME FROM totals_between($first, $last)",
        {"first": first_run, "last": last_run},
    )


def renew_totals(connection: Connection) -> None:
    """Store the totals of all runs anew, after what half-widths follow from was replaced."""
    ((count,),) = connection.execute("SELECT count(*) FROM run_total").fetchall()
    if count:
        connection.execute("DELETE FROM run_total")
        write_totals(connection)
