"""Totals of runs: sums over their parts and how far they may be off, a row a run (`totals_between` says how), and what
they spend by action, a row a run and action (`actions_between`).

The ledger and the rows beside it stay the only source: who writes runs, or what half-widths follow from, writes totals
in the same transaction, and an audit compares.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import duckdb

from joulemap.store.literal import execute

if TYPE_CHECKING:
    from joulemap.model.run import LedgerColumns

MOST: Final = 2**31 - 1
"""No run has a larger number."""

EXACT: Final = 2.0**52
"""Whole numbers up to twice as many are sums of doubles without rounding."""

HALF: Final = 26
"""Bits that energies are split at: what lies below and above is added up apart, each without rounding."""


def sum_actions(ledger: LedgerColumns, action_ids: Any) -> dict[str, Any]:
    """Return what a run spends by action, in the order in which its hardware lists them; no line counts nothing.

    Energies are in two parts, which `write_actions` puts together, for a sum may be more than 64 bits hold.
    """
    import numpy as np

    counts = np.bincount(ledger.action_index, ledger.action_count)
    there = np.flatnonzero(counts)

    def add(energies: Any) -> Any:
        return np.bincount(ledger.action_index, energies)[there].astype(np.int64)

    is_small = ledger.energy_fj.sum(dtype=float) < EXACT
    return {
        "action_id": action_ids[there],
        "action_count": counts[there],
        "energy_high": np.zeros(len(there), np.int64) if is_small else add(ledger.energy_fj >> HALF),
        "energy_low": add(ledger.energy_fj if is_small else ledger.energy_fj & (2**HALF - 1)),
    }


def write_actions(connection: duckdb.DuckDBPyConnection, columns: Mapping[str, Any]) -> None:
    """Store what runs spend by action, which `sum_actions` and the numbers of the runs say."""
    connection.register("_incoming", dict(columns))
    connection.execute(
        "INSERT INTO internal.run_action SELECT run_id, action_id, action_count, "
        f"CAST(energy_high AS HUGEINT) * {2**HALF} + energy_low FROM _incoming"
    )
    connection.unregister("_incoming")


def copy_actions(connection: duckdb.DuckDBPyConnection, first_run: int, last_run: int) -> None:
    """Store what runs without a ledger spend by action, of those from one number to another."""
    execute(
        connection,
        "INSERT INTO internal.run_action FROM internal.point_action WHERE run_id BETWEEN $first AND $last",
        {"first": first_run, "last": last_run},
    )


def drop_sums(connection: duckdb.DuckDBPyConnection, run_ids: Sequence[int]) -> None:
    """Remove the sums of runs whose ledgers are stored, and the actions that followed from them."""
    for table in ("point_total", "point_action", "run_action") if run_ids else ():
        execute(connection, f"DELETE FROM internal.{table} WHERE list_contains($runs, run_id)", {"runs": list(run_ids)})


def write_totals(connection: duckdb.DuckDBPyConnection, first_run: int = 0, last_run: int = MOST) -> None:
    """Store the totals of the runs from one number to another, whose parts and actions are stored."""
    execute(
        connection,
        "INSERT INTO internal.run_total BY NAME FROM totals_between($first, $last)",
        {"first": first_run, "last": last_run},
    )


def write_ledger_actions(connection: duckdb.DuckDBPyConnection, first_run: int = 0, last_run: int = MOST) -> None:
    """Store what runs spend by action, of those from one number to another, of which only the parts are stored."""
    execute(
        connection,
        "INSERT INTO internal.run_action BY NAME FROM actions_between($first, $last) ORDER BY run_id, action_id",
        {"first": first_run, "last": last_run},
    )


def mark_detailed(connection: duckdb.DuckDBPyConnection, detailed: Mapping[int, float]) -> None:
    """Make runs of totals, whose parts are stored now, runs with a ledger; their totals stay as they are.

    `detailed` has the `separate_clock_fraction` of each. The caller holds the transaction.
    """
    from joulemap.store.digest import RUN, Digester

    digester = Digester(connection)
    given = {"runs": list(detailed), "fractions": list(detailed.values())}
    statement = "SELECT content_digest FROM internal.run WHERE list_contains($runs, run_id)"
    old = execute(connection, statement, {"runs": list(detailed)}).fetchall()
    execute(
        connection,
        "UPDATE internal.run SET has_ledger = TRUE, separate_clock_fraction = s.fraction "
        "FROM (SELECT unnest($runs) AS run_id, unnest($fractions) AS fraction) AS s WHERE run.run_id = s.run_id",
        given,
    )
    digester.change_set(RUN, digester.reseal(RUN, list(detailed)), [digest for (digest,) in old])


def add_up(connection: duckdb.DuckDBPyConnection, first_run: int = 0, last_run: int = MOST) -> None:
    """Store actions and totals of the runs from one number to another, of which nothing but the parts is stored."""
    write_ledger_actions(connection, first_run, last_run)
    write_totals(connection, first_run, last_run)


def renew_totals(connection: duckdb.DuckDBPyConnection) -> None:
    """Store the totals of all runs anew, after what half-widths follow from was replaced; actions stay as they are."""
    ((count,),) = connection.execute("SELECT count(*) FROM internal.run_total").fetchall()
    if count:
        connection.execute("DELETE FROM internal.run_total")
        write_totals(connection)
