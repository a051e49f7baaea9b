"""Rows to `Hardware` records: what `write_hardware` stored, equal to what the data files say."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from joulemap.domain.catalogue import HardwareEntry
from joulemap.domain.hardware import Hardware, MemoryLevel, Peak, PowerMode
from joulemap.domain.quantity import Quantity
from joulemap.domain.reference import EnergyAction, EnergyReference
from joulemap.errors import DatabaseError
from joulemap.store.connection import Connection
from joulemap.store.metric import has_metrics

PREFIXES: Final = ("geometry", "memory", "peak", "power_mode", "coefficient")
"""What a fact belongs to that is not a field of `Hardware` itself."""


def find_current_hardware(connection: Connection, catalogue_digest: str) -> dict[str, HardwareEntry]:
    """Return id -> entry if the database holds this catalogue, else an empty mapping."""
    rows = connection.execute(
        """
        SELECT
            c.hardware,
            v.architecture,
            v.deployment,
            v.aliases,
            list(m.power_mode ORDER BY m.mode_index),
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
    return {
        name: HardwareEntry(
            id=name,
            architecture=architecture,
            deployment=tuple(deployment),
            aliases=tuple(aliases),
            power_modes=tuple(mode for mode in modes if mode is not None),
            precisions=tuple(precisions),
            digest=digest,
        )
        for name, architecture, deployment, aliases, modes, precisions, digest in rows
    }


def has_catalogue(connection: Connection, catalogue_digest: str) -> bool:
    """Whether the database holds this catalogue, and the metrics of this program."""
    sql = "SELECT 1 FROM catalogue_entry WHERE catalogue_digest = ? LIMIT 1"
    return bool(connection.execute(sql, [catalogue_digest]).fetchall()) and has_metrics(connection)


def has_hardware(connection: Connection, digest: str) -> bool:
    """Whether this hardware version is stored."""
    return bool(connection.execute("SELECT 1 FROM hardware_version WHERE hardware_digest = ?", [digest]).fetchall())


def find_described(connection: Connection, hardware: str) -> str | None:
    """Return the digest of the newest description under this id that runs used without a calibration, or None.

    Such a hardware need not be in the catalogue: a file, or a machine that described itself.
    """
    rows = connection.execute(
        """
        SELECT coalesce(c.hardware_digest, r.hardware_digest)
        FROM run AS r
        JOIN hardware_version AS v ON v.hardware_digest = r.hardware_digest
        LEFT JOIN calibration AS c ON c.calibration_digest = r.calibration_digest
        WHERE v.hardware = ? AND r.power_mode = 'default'
        ORDER BY r.run_id DESC
        LIMIT 1
        """,
        [hardware],
    ).fetchall()
    return str(rows[0][0]) if rows else None


def read_hardware(connection: Connection, digests: Iterable[str]) -> dict[str, Hardware]:
    """Return digest -> hardware for stored versions; DatabaseError for one that is not."""
    wanted = list(dict.fromkeys(digests))

    def rows(table: str, columns: str, order: str) -> dict[str, list[tuple[Any, ...]]]:
        found: dict[str, list[tuple[Any, ...]]] = {digest: [] for digest in wanted}
        for digest, *row in connection.execute(
            f"SELECT hardware_digest, {columns} FROM {table} WHERE list_contains(?, hardware_digest) "
            f"ORDER BY hardware_digest, {order}",
            [wanted],
        ).fetchall():
            found[digest].append(tuple(row))
        return found

    versions = rows(
        "hardware_version",
        "hardware, name, vendor, architecture, deployment, microarchitecture, unit_name, memory_type, projection, "
        "power_mode, aliases, doubts",
        "hardware",
    )
    facts = rows("hardware_fact", "quantity, value, unit, basis, source, note", "fact_index")
    peaks = rows(
        "hardware_precision",
        "precision, operations_per_clock, units_count, clock_hz, engine, explanation",
        "precision_index",
    )
    levels = rows("hardware_level", "level, kind, per", "level_index")
    modes = rows("hardware_power_mode", "power_mode", "mode_index")
    actions = rows(
        "energy_per_action JOIN action USING (action_id)",
        "category, common_category, component, action, part, per, energy_per_action_fj, low_fj, high_fj, basis, "
        "source, count_formula",
        "action_index",
    )
    for digest in wanted:
        if not versions[digest] or not actions[digest]:
            raise DatabaseError(f"the hardware version {digest} is not in the database")
    return {
        digest: _assemble(
            digest, versions[digest][0], facts[digest], peaks[digest], levels[digest], modes[digest], actions[digest]
        )
        for digest in wanted
    }


def _assemble(
    digest: str,
    version: tuple[Any, ...],
    facts: list[tuple[Any, ...]],
    peaks: list[tuple[Any, ...]],
    levels: list[tuple[Any, ...]],
    modes: list[tuple[Any, ...]],
    actions: list[tuple[Any, ...]],
) -> Hardware:
    own: dict[str, Any] = {}
    of: dict[str, dict[str, Quantity]] = {prefix: {} for prefix in PREFIXES}
    for name, value, unit, basis, source, note in facts:
        quantity = Quantity(value=value, unit=unit, basis=basis, source=source, note=note)
        prefix, _, rest = name.partition(".")
        if rest:
            of[prefix][rest] = quantity
        else:
            own[name] = quantity
    names = (
        "id", "name", "vendor", "architecture", "deployment", "microarchitecture", "unit_name", "memory_type",
        "projection", "power_mode", "aliases", "doubts",
    )  # fmt: skip
    texts: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in zip(names, version, strict=True)
    }
    return Hardware(
        **texts,
        **own,
        geometry=of["geometry"],
        memory_levels=tuple(
            MemoryLevel(
                name=level,
                kind=kind,
                per=per,
                capacity=of["memory"][f"{level}.capacity"],
                bandwidth=of["memory"].get(f"{level}.bandwidth"),
            )
            for level, kind, per in levels
        ),
        peaks={
            precision: Peak(
                rate=of["peak"][precision],
                operations_per_clock=operations,
                unit_count=units,
                clock_hz=clock,
                engine=engine,
                explanation=explanation,
            )
            for precision, operations, units, clock, engine, explanation in peaks
        },
        power_modes=tuple(
            PowerMode(
                name=mode,
                **{
                    name.removeprefix(f"{mode}."): quantity
                    for name, quantity in of["power_mode"].items()
                    if name.startswith(f"{mode}.")
                },
            )
            for (mode,) in modes
        ),
        coefficients=of["coefficient"],
        reference=EnergyReference(tuple(_action(row) for row in actions)),
        digest=digest,
    )


def _action(row: tuple[Any, ...]) -> EnergyAction:
    names = (
        "category", "common_category", "component", "action", "part", "per", "energy_per_action_fj", "low_fj",
        "high_fj", "basis", "source", "count_formula",
    )  # fmt: skip
    return EnergyAction(**dict(zip(names, row, strict=True)))
