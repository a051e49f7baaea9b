"""The current catalogue as rows: which hardware versions it has, metrics, models, assumptions of use, grids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from joulemap.domain.catalogue import Catalogue, CostAssumption, GridRegion, HardwareEntry, ModelEntry, ShippedWorkload
from joulemap.domain.metric import METRICS, Metric
from joulemap.store.connection import Connection
from joulemap.store.hardware import write_hardware
from joulemap.store.row import insert_records


def has_catalogue(connection: Connection, catalogue_digest: str) -> bool:
    """Whether the database holds this catalogue."""
    sql = "SELECT 1 FROM catalogue_entry WHERE catalogue_digest = ? LIMIT 1"
    return bool(connection.execute(sql, [catalogue_digest]).fetchall())


def find_current_hardware(connection: Connection, catalogue_digest: str) -> dict[str, HardwareEntry]:
    """Return id -> entry if the database holds this catalogue, else an empty mapping."""
    rows = connection.execute(
        """
        SELECT
            c.hardware,
            v.name,
            v.vendor,
            v.architecture,
            v.deployment,
            v.aliases,
            coalesce(list(m.power_mode ORDER BY m.mode_index) FILTER (WHERE m.power_mode IS NOT NULL), []),
            (
                SELECT list(p.precision ORDER BY p.precision_index)
                FROM hardware_precision AS p
                WHERE p.hardware_digest = c.hardware_digest
            ),
            c.hardware_digest
        FROM catalogue_entry AS c
        JOIN hardware_version AS v ON v.hardware_digest = c.hardware_digest
        LEFT JOIN hardware_power_mode AS m ON m.hardware_digest = c.hardware_digest
        WHERE c.catalogue_digest = ?
        GROUP BY ALL
        ORDER BY min(c.hardware_index)
        """,
        [catalogue_digest],
    ).fetchall()
    names = [field.name for field in attrs.fields(HardwareEntry)]
    return {row[0]: HardwareEntry(**dict(zip(names, row, strict=True))) for row in rows}


def write_catalogue(
    connection: Connection,
    catalogue: Catalogue,
    models: Mapping[str, ModelEntry],
    shipped: Mapping[str, ShippedWorkload],
    package_version: str,
) -> None:
    """Store every hardware version that is new, and make this catalogue the current one."""
    known = {digest for (digest,) in connection.execute("SELECT hardware_digest FROM hardware_version").fetchall()}
    hardware = list(catalogue.hardware.values())
    write_hardware(connection, [one for one in hardware if one.digest not in known], package_version)
    connection.execute("DELETE FROM catalogue_entry")
    insert_records(
        connection,
        "catalogue_entry",
        hardware,
        catalogue_digest=catalogue.digest,
        hardware_index=range(len(hardware)),
        hardware=[one.id for one in hardware],
        hardware_digest=[one.digest for one in hardware],
    )
    write_metrics(connection)
    entries = list(models.values())
    traced = [shipped.get(entry.name) for entry in entries]
    connection.execute("DELETE FROM model_entry")
    insert_records(
        connection,
        "model_entry",
        entries,
        model=[entry.name for entry in entries],
        input_shape=["x".join(map(str, entry.input_shape)) for entry in entries],
        traced_parameter_count=[one.parameter_count if one else None for one in traced],
        mac_count=[one.mac_count if one else None for one in traced],
    )


def write_metrics(connection: Connection, metrics: Sequence[Metric] = METRICS) -> None:
    """Make the metrics of the program, or others, those of the database, for SQL to read."""
    connection.execute("DELETE FROM metric")
    columns = [one.column for one in metrics]
    insert_records(connection, "metric", metrics, metric_index=range(len(metrics)), column_name=columns)
    rows = " ".join(
        f"WHEN '{one.name}' THEN {{column_name: '{one.column}', unit: '{one.unit}', missing: '{one.missing}', "
        f"is_higher_better: {one.is_higher_better}}}"
        for one in metrics
    )
    known = ", ".join(one.name for one in metrics)
    unknown = f"error('unknown metric ' || metric_name || ', expected one of {known}')"
    connection.execute(
        f"CREATE OR REPLACE MACRO find_metric(metric_name) AS CASE metric_name {rows} ELSE {unknown} END"
    )


def write_cost(connection: Connection, assumptions: Sequence[CostAssumption], regions: Sequence[GridRegion]) -> None:
    """Replace what is stored of assumptions of use and grids by these."""
    connection.execute("DELETE FROM cost_assumption")
    insert_records(
        connection,
        "cost_assumption",
        [one.quantity for one in assumptions],
        assumption_index=range(len(assumptions)),
        assumption=[one.name for one in assumptions],
    )
    connection.execute("DELETE FROM grid_region")
    insert_records(
        connection,
        "grid_region",
        [one.intensity for one in regions],
        region_index=range(len(regions)),
        gco2_per_kwh=[one.intensity.value for one in regions],
        **{name: [getattr(one, name) for one in regions] for name in ("region", "name", "year")},
    )
