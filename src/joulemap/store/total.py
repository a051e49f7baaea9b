"""Store totals of runs and their energy by action.

Totals are sums over parts with intervals, one row per run (see `totals_between`). Energy by action has one row per run
and action (see `actions_between`). The ledger and the rows beside it stay the only source: writers of runs, or of the
data behind half widths, write totals in the same transaction, and an audit compares them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import duckdb

from joulemap.store.literal import execute

if TYPE_CHECKING:
    from joulemap.model.run import LedgerColumns

MOST: Final = 2**31 - 1
"""Largest possible run id."""

EXACT: Final = 2.0**52
"""Half of the largest integer up to which sums of doubles are exact."""

HALF: Final = 26
"""Bits at which energies are split; the high and low parts are summed separately, each without rounding."""


def sum_actions(ledger: LedgerColumns, action_ids: Any) -> dict[str, Any]:
    """Return the energy of a run by action, in the order of its hardware's table, without actions that have no count.

    Energies are in two parts, which `write_actions` combines, because a sum may exceed 64 bits.
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
    """Store energies of runs by action, from `sum_actions` with run ids added."""
    connection.register("_incoming", dict(columns))
    connection.execute(
        "INSERT INTO internal.run_action SELECT run_id, action_id, action_count, "
        f"CAST(energy_high AS HUGEINT) * {2**HALF} + energy_low FROM _incoming"
    )
    connection.unregister("_incoming")


def copy_actions(connection: duckdb.DuckDBPyConnection, first_run: int, last_run: int) -> None:
    """Store energies by action of the runs without a ledger in a range of ids."""
    execute(
        connection,
        "INSERT INTO internal.run_action FROM internal.point_action WHERE run_id BETWEEN $first AND $last",
        {"first": first_run, "last": last_run},
    )


def drop_sums(connection: duckdb.DuckDBPyConnection, run_ids: Sequence[int]) -> None:
    """Remove the sums of runs whose ledgers are stored, and the actions derived from them."""
    for table in ("point_total", "point_action", "run_action") if run_ids else ():
        execute(connection, f"DELETE FROM internal.{table} WHERE list_contains($runs, run_id)", {"runs": list(run_ids)})


def write_totals(connection: duckdb.DuckDBPyConnection, first_run: int = 0, last_run: int = MOST) -> None:
    """Store the totals of the runs in a range of ids, whose parts and actions are stored."""
    execute(
        connection,
        "INSERT INTO internal.run_total BY NAME FROM totals_between($first, $last)",
        {"first": first_run, "last": last_run},
    )


def write_ledger_actions(connection: duckdb.DuckDBPyConnection, first_run: int = 0, last_run: int = MOST) -> None:
    """Store actions of the runs in a range of ids, of which only the parts are stored."""
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
    """Store the totals of all runs again after the data behind half widths was replaced; actions stay unchanged."""
    ((count,),) = connection.execute("SELECT count(*) FROM internal.run_total").fetchall()
    if count:
        connection.execute("DELETE FROM internal.run_total")
        write_totals(connection)
