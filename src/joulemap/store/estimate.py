"""Storage of estimates of single operators; the newest replaces older ones of the same configuration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from joulemap.store.connection import Connection
from joulemap.store.digest import ESTIMATE, Digester
from joulemap.store.insert import insert_records, next_id, utc_now
from joulemap.store.literal import execute
from joulemap.system.record import frozen

SAME: Final = "model, hardware, power_mode, precision, batch, runtime, calibration"
"""Columns that identify an estimate; a new estimate replaces a stored one with equal values."""


@frozen(kw_only=True)
class Estimate:
    """Stored estimate of an operator on one configuration."""

    estimate_key: str
    model: str
    hardware: str
    hardware_digest: str
    power_mode: str
    precision: str
    batch: int
    runtime: str
    calibration: str
    calibration_digest: str
    refusal: str | None
    latency_fs: int | None
    interval_fs: int | None
    energy_fj: int | None
    clock_fraction: float | None
    weight_bytes: int | None
    activation_bytes: int | None
    mac_count: int | None
    formula_version: str
    package_version: str


def find_estimates(connection: Connection) -> set[str]:
    """Return the keys of all stored estimates."""
    return {str(key) for (key,) in connection.execute("SELECT estimate_key FROM internal.estimate").fetchall()}


def write_estimates(connection: Connection, estimates: Sequence[Estimate]) -> None:
    """Store estimates in place of older ones of the same configurations. The caller holds the transaction."""
    first = next_id(connection, "estimate", "estimate_id")
    numbers = range(first, first + len(estimates))
    insert_records(connection, "estimate", estimates, estimate_id=numbers, created_at=utc_now(), content_digest="")
    replaced = execute(
        connection,
        f"DELETE FROM internal.estimate WHERE estimate_id < $first AND ({SAME}) IN "
        f"(SELECT ({SAME}) FROM internal.estimate WHERE estimate_id >= $first) RETURNING content_digest",
        {"first": first},
    ).fetchall()
    digester = Digester(connection)
    digester.change_set(ESTIMATE, (), [digest for (digest,) in replaced])
    digester.seal(ESTIMATE, numbers)
