"""Totals of runs, and their energy by action.

Totals are sums over parts with intervals, one row per run. Energy by action has one row per run and action. Both are
derived from the ledger and its accompanying rows. Writers of runs, or of inputs of half-widths, write totals in the
same transaction, and an audit compares them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan
from typing import TYPE_CHECKING, Any, Final

import attrs
import duckdb

from joulemap.physics.interval.scale import CALIBRATED, CLASS_LEVEL
from joulemap.physics.record.address import SOURCE
from joulemap.physics.record.reference import HOST_ACTION, STATIC_ACTION
from joulemap.physics.record.surrounding import GROWTH_HALF_WIDTH, HOST_HALF_WIDTH
from joulemap.store.insert import insert_columns
from joulemap.store.literal import execute

if TYPE_CHECKING:
    from joulemap.physics.run import LedgerColumns

MOST: Final = 2**31 - 1
"""Maximum run id."""

EXACT: Final = 2.0**52
"""Limit for sums of energies in doubles: half of 2^53, up to which integers are exact."""

HALF: Final = 26
"""Number of low bits of an energy that are summed separately from the high bits, so that both sums are exact."""


ACTIONS: Final = """
SELECT run_id, action_id, sum(action_count ORDER BY operator_index) AS action_count, sum(energy_fj) AS energy_fj
FROM internal.ledger_line
WHERE run_id BETWEEN $first AND $last
GROUP BY run_id, action_id
UNION ALL
SELECT run_id, action_id, action_count, CAST(energy_fj AS HUGEINT)
FROM internal.point_action
WHERE run_id BETWEEN $first AND $last
"""
"""SQL for the energy of runs by action: sums over ledgers, and stored energies of runs with totals only."""

SUMS: Final = """
WITH priced AS (
    SELECT
        l.run_id,
        e.basis,
        sum(l.energy_fj) AS energy_fj,
        sum(
            CASE
                WHEN (e.low_fj IS NULL OR (a.component = $chip AND a.action = $static))
                    AND NOT ends_with(e.source, $set)
                    THEN l.energy_fj
                ELSE 0
            END
        ) AS own_fj,
        sum(
            CASE WHEN e.low_fj > 0e0 AND a.component = $chip AND a.action = $static THEN l.energy_fj ELSE 0 END
        ) AS ranged_fj,
        max(
            CASE
                WHEN e.low_fj > 0e0 AND a.component = $chip AND a.action = $static
                    THEN ln(greatest(e.high_fj / e.energy_per_action_fj, e.energy_per_action_fj / e.low_fj))
                ELSE 0e0
            END
        ) AS range_half_width,
        sum(CASE WHEN a.component = $host AND a.action = $static THEN l.energy_fj ELSE 0 END) AS host_fj
    FROM internal.run_action AS l
    JOIN internal.run AS r ON r.run_id = l.run_id
    LEFT JOIN internal.action AS a ON a.action_id = l.action_id
    LEFT JOIN internal.energy_per_action AS e ON e.action_id = l.action_id AND e.hardware_digest = r.hardware_digest
    WHERE l.run_id BETWEEN $first AND $last
    GROUP BY l.run_id, e.basis
),
spent AS (
    SELECT
        p.run_id,
        sum(p.energy_fj) AS energy_fj,
        list_sum(
            list(
                pow(
                    b.half_width * CAST(p.energy_fj AS DOUBLE)
                    + greatest(p.range_half_width - b.half_width, 0e0) * CAST(p.ranged_fj AS DOUBLE),
                    2
                )
                ORDER BY p.basis
            )
        )
            / nullif(pow(CAST(sum(p.energy_fj) AS DOUBLE), 2), 0e0) AS basis_square,
        list_sum(list(pow(b.own_price_half_width * CAST(p.own_fj AS DOUBLE), 2) ORDER BY p.basis))
            / nullif(pow(CAST(sum(p.energy_fj) AS DOUBLE), 2), 0e0) AS own_square,
        coalesce(fraction(sum(p.host_fj), sum(p.energy_fj)), 0e0) AS host_share
    FROM priced AS p
    LEFT JOIN internal.basis_spread AS b ON b.number_basis = p.basis
    GROUP BY p.run_id
),
placed AS (
    SELECT
        run_id,
        sum(latency_fs) AS latency_fs,
        sum(latency_fs - launch_fs - pass_fs) FILTER (compute_s >= memory_s) AS compute_fs,
        sum(pass_fs + CASE WHEN compute_s < memory_s THEN latency_fs - launch_fs - pass_fs ELSE 0 END) AS memory_fs,
        sum(launch_fs) AS launch_fs,
        CAST(sum(CAST(dram_bytes AS DECIMAL(38, 9))) AS DOUBLE) AS dram_bytes,
        CAST(sum(CAST(moved_bytes AS DECIMAL(38, 9))) AS DOUBLE) AS moved_bytes,
        sum(CAST(units_used_count AS HUGEINT) * latency_fs) AS unit_fs,
        sum(computed_mac_count) AS computed_mac_count
    FROM (
        SELECT
            *,
            least(CAST(launch_s * 1e15 AS BIGINT), latency_fs) AS launch_fs,
            least(CAST(pass_s * 1e15 AS BIGINT), latency_fs - launch_fs) AS pass_fs
        FROM internal.run_subgraph
        WHERE run_id BETWEEN $first AND $last
    )
    GROUP BY run_id
    UNION ALL
    SELECT
        run_id,
        latency_fs,
        compute_fs,
        memory_fs,
        launch_fs,
        dram_bytes,
        moved_bytes,
        CAST(unit_high AS HUGEINT) * 67108864 + unit_low,
        computed_mac_count
    FROM internal.point_total
    WHERE run_id BETWEEN $first AND $last
),
worked AS (
    SELECT o.run_id, CAST(coalesce(sum(q.mac_count), 0) AS BIGINT) AS mac_count, sum(o.interval_fs) AS interval_fs
    FROM internal.run_operator AS o
    JOIN internal.run AS r ON r.run_id = o.run_id
    LEFT JOIN internal.workload_operator AS q ON q.workload_id = r.workload_id AND q.operator_index = o.operator_index
    WHERE o.run_id BETWEEN $first AND $last
    GROUP BY o.run_id
    UNION ALL
    SELECT run_id, mac_count, interval_fs
    FROM internal.point_total
    WHERE run_id BETWEEN $first AND $last
)
SELECT
    r.run_id,
    p.latency_fs,
    o.interval_fs,
    e.energy_fj,
    o.mac_count,
    p.computed_mac_count,
    p.unit_fs,
    p.dram_bytes,
    p.moved_bytes,
    coalesce(p.compute_fs, 0) AS compute_fs,
    coalesce(p.memory_fs, 0) AS memory_fs,
    coalesce(p.launch_fs, 0) AS launch_fs,
    r.suppressed_s,
    e.basis_square,
    e.own_square,
    e.host_share,
    coalesce(y.growth_half_width, 0e0) AS growth_half_width,
    coalesce(y.host_half_width, 0e0) AS host_half_width,
    work_of(w.model, w.work) AS work,
    v.architecture,
    r.runtime,
    r.precision,
    board_of(v.hardware) AS hardware,
    r.calibration_digest,
    r.hardware_digest,
    z.ops_per_s,
    w.batch = 1 AS is_single,
    b.hardware_digest IS NOT NULL AS has_load,
    r.broken_laws <> '' AS breaks_law
FROM internal.run AS r
JOIN internal.workload AS w ON w.workload_id = r.workload_id
JOIN internal.hardware_version AS v ON v.hardware_digest = r.hardware_digest
JOIN placed AS p ON p.run_id = r.run_id
JOIN worked AS o ON o.run_id = r.run_id
JOIN spent AS e ON e.run_id = r.run_id
LEFT JOIN (
    SELECT hardware_digest, max(peak_ops_per_s) AS ops_per_s
    FROM internal.hardware_precision
    GROUP BY hardware_digest
) AS z ON z.hardware_digest = r.hardware_digest
LEFT JOIN (
    SELECT DISTINCT l.hardware_digest
    FROM internal.hardware_load AS l
    JOIN internal.hardware_fact AS f
        ON f.hardware_digest = l.hardware_digest AND f.quantity = concat('load.', l.load, '.power')
    WHERE l.covers = 'board' AND f.basis <> 'assumed'
) AS b ON b.hardware_digest = r.hardware_digest
LEFT JOIN (
    SELECT
        hardware_digest,
        max(value) FILTER (quantity = $growth_width) AS growth_half_width,
        max(value) FILTER (quantity = $host_width) AS host_half_width
    FROM internal.hardware_fact
    WHERE quantity IN ($growth_width, $host_width)
    GROUP BY hardware_digest
) AS y ON y.hardware_digest = r.hardware_digest
WHERE r.refusal IS NULL AND r.run_id BETWEEN $first AND $last
ORDER BY r.run_id
"""
"""SQL for sums over the parts of runs, and for the inputs of their prediction intervals."""

GIVEN: Final = {
    "set": SOURCE,
    "host": HOST_ACTION[0],
    "chip": STATIC_ACTION[0],
    "static": HOST_ACTION[1],
    "growth_width": f"coefficient.{GROWTH_HALF_WIDTH}",
    "host_width": f"coefficient.{HOST_HALF_WIDTH}",
}
"""Values of the constant parameters of `SUMS`."""

SUMMED: Final = (
    "run_id", "latency_fs", "interval_fs", "energy_fj", "mac_count", "computed_mac_count", "unit_fs", "dram_bytes",
    "moved_bytes",
)  # fmt: skip
"""Columns of a run's totals that are sums over its parts."""


def sum_actions(ledger: LedgerColumns, action_ids: Any) -> dict[str, Any]:
    """Return the columns of a run's energy by action, for the actions that occur, in the order of the reference table.

    Energies are split into high and low bits, which `write_actions` combines, because a sum may exceed 64 bits.
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
    """Store the energy of runs by action, from the columns of `sum_actions` and a column `run_id`."""
    connection.register("_incoming", dict(columns))
    connection.execute(
        "INSERT INTO internal.run_action SELECT run_id, action_id, action_count, "
        f"CAST(energy_high AS HUGEINT) * {2**HALF} + energy_low FROM _incoming"
    )
    connection.unregister("_incoming")


def copy_actions(connection: duckdb.DuckDBPyConnection, first_run: int, last_run: int) -> None:
    """Store the energy by action of runs with totals only, for a range of run ids."""
    execute(
        connection,
        "INSERT INTO internal.run_action FROM internal.point_action WHERE run_id BETWEEN $first AND $last",
        {"first": first_run, "last": last_run},
    )


def drop_sums(connection: duckdb.DuckDBPyConnection, run_ids: Sequence[int]) -> None:
    """Remove stored sums and energy by action of runs whose ledgers replace them."""
    for table in ("point_total", "point_action", "run_action") if run_ids else ():
        execute(connection, f"DELETE FROM internal.{table} WHERE list_contains($runs, run_id)", {"runs": list(run_ids)})


def write_totals(connection: duckdb.DuckDBPyConnection, first_run: int = 0, last_run: int = MOST) -> None:
    """Compute and store the totals of runs in a range of ids, from their stored parts and energy by action."""
    if columns := compute_totals(connection, first_run, last_run):
        insert_columns(connection, "run_total", columns)


def compute_totals(
    connection: duckdb.DuckDBPyConnection, first_run: int = 0, last_run: int = MOST
) -> dict[str, list[Any]]:
    """Return column -> values of the totals of evaluated runs in a range of ids; empty without such runs.

    The columns are sums over parts, and half-widths of 80 % intervals of natural logarithms with their basis. Bytes are
    summed as decimals, so that the sum does not depend on the order.
    """
    cursor = execute(connection, SUMS, {"first": first_run, "last": last_run, **GIVEN})
    rows = cursor.fetchall()
    if not rows:
        return {}
    columns = dict(zip((entry[0] for entry in cursor.description), map(list, zip(*rows, strict=True)), strict=True))
    from joulemap.store.interval import compute_half_widths, describe_bases

    widths, latency, power = compute_half_widths(connection, columns)
    totals: dict[str, list[Any]] = {name: columns[name] for name in SUMMED}
    for name, values in attrs.asdict(widths).items():
        totals[f"{name}_half_width"] = [None if isnan(one) else one for one in values.tolist()]
    totals["latency_basis"], totals["latency_group_count"] = describe_bases(latency)
    bases, totals["energy_group_count"] = describe_bases(power)
    totals["energy_basis"] = [
        _describe_energy_basis(basis, level < CLASS_LEVEL and has_load)
        for basis, level, has_load in zip(bases, power.level.tolist(), columns["has_load"], strict=True)
    ]
    return totals


def _describe_energy_basis(errors: str | None, is_by_load: bool) -> str | None:
    """Return the basis of an energy interval, given the basis of the power errors behind it."""
    if errors is None or errors == CALIBRATED:
        return errors
    return f"{'its measured load' if is_by_load else errors} and the bases of its prices"


def write_ledger_actions(connection: duckdb.DuckDBPyConnection, first_run: int = 0, last_run: int = MOST) -> None:
    """Store the energy by action of runs in a range of ids, from their stored ledgers."""
    execute(
        connection,
        f"INSERT INTO internal.run_action BY NAME {ACTIONS} ORDER BY run_id, action_id",
        {"first": first_run, "last": last_run},
    )


def mark_detailed(connection: duckdb.DuckDBPyConnection, detailed: Mapping[int, float]) -> None:
    """Mark runs stored as totals as runs with a ledger, after their ledger rows were stored; totals do not change.

    `detailed` maps each run_id to its `separate_clock_fraction`. The caller holds the transaction.
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
    """Store energy by action and totals of runs in a range of ids, from their stored parts."""
    write_ledger_actions(connection, first_run, last_run)
    write_totals(connection, first_run, last_run)


def renew_totals(connection: duckdb.DuckDBPyConnection) -> None:
    """Recompute the totals of all runs after the inputs of half-widths changed; energy by action stays unchanged."""
    ((count,),) = connection.execute("SELECT count(*) FROM internal.run_total").fetchall()
    if count:
        connection.execute("DELETE FROM internal.run_total")
        write_totals(connection)
