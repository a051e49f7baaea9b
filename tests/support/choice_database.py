"""Database of synthetic runs with known figures, each with its own chip, one subgraph and one ledger line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from blank import open_blank
from joulemap.domain.settings import WAY_OF
from joulemap.store.catalogue import write_metrics
from joulemap.store.connection import Connection
from joulemap.store.total import add_up

UNITS = {"price_cloud": "USD/h", "price_purchase": "USD", "host_share": "1", "idle_power": "W", "static_power": "W"}

TABLES = (
    "run_total", "run_action", "run", "run_subgraph", "run_operator", "ledger_line", "hardware_version",
    "hardware_fact", "seller_price",
)  # fmt: skip


@attrs.frozen(kw_only=True)
class MadeUp:
    """Run and its chip; an unknown price is None."""

    hardware: str = "chip"
    latency_s: float = 1e-3
    energy_j: float = 1.0
    """Energy of the batch."""
    batch: int = 1
    precision: str = "fp32"
    memory_bytes: int = 1000
    cloud_usd_per_hour: float | None = None
    purchase_usd: float | None = None
    offers: Mapping[str, float] = attrs.field(factory=dict)
    """Kind of seller -> price; a chip with offers also has the price of its first one as its own."""
    price_basis: str = "published"
    host_share: float | None = 0.0
    """Share of the host; None for the default assumption of costs."""
    idle_w: float | None = None
    static_w: float = 0.0
    deployment: str = "datacenter"
    projection: str = ""
    unavailable: str = ""
    refusal: str | None = None
    power_mode: str = "default"


def open_made_up(runs: Iterable[MadeUp] = ()) -> Connection:
    """Return a database with these runs, numbered from 1, and round assumptions of use."""
    connection = open_blank()
    connection.execute(
        "INSERT INTO internal.action VALUES (1, 'gpu', 'compute', 'compute', 'alu', 'mac', 'compute', 'MAC')"
    )
    connection.execute(
        "INSERT INTO internal.workload "
        "VALUES (1, 'k', 'net', 's', 'i', '3', 1, 1, 0, 0, 'model', 't', 'v', 1, [], '2020-01-01', '', MAP {})"
    )
    connection.execute(
        "INSERT INTO internal.cost_assumption VALUES (0, 'utilization', 0.5, '1', 'assumed', 's', ''), "
        "(1, 'lifetime', 4, 'year', 'assumed', 's', ''), (2, 'hours', 8000, 'h/year', 'assumed', 's', ''), "
        "(3, 'pue', 1.5, '1', 'assumed', 's', ''), (4, 'electricity', 0.2, 'USD/kWh', 'assumed', 's', ''), "
        "(5, 'host', 0.25, '1', 'assumed', 's', '')"
    )
    connection.execute(
        "INSERT INTO internal.grid_region VALUES (0, 'world', 'World', 2024, 400, 'assumed', 's', ''), "
        "(1, 'clean', 'Clean', 2024, 10, 'assumed', 's', '')"
    )
    write_metrics(connection)
    fill(connection, runs)
    return connection


def fill(connection: Connection, runs: Iterable[MadeUp]) -> list[int]:
    """Replace the runs of a synthetic database by these; return their ids."""
    for table in TABLES:
        connection.execute(f"DELETE FROM internal.{table}")
    numbered = list(enumerate(runs, 1))
    for number, run in numbered:
        facts = [("price_cloud", run.cloud_usd_per_hour), ("price_purchase", run.purchase_usd)]
        facts += [("host_share", run.host_share), ("idle_power", run.idle_w), ("static_power", run.static_w)]
        values = ", ".join(
            f"('d{number}', {index}, '{quantity}', {value}, '{UNITS[quantity]}', '{run.price_basis}', 'a list', '', "
            "NULL, NULL, NULL)"
            for index, (quantity, value) in enumerate(facts)
            if value is not None
        )
        connection.execute(f"INSERT INTO internal.hardware_fact VALUES {values}")
        for kind, usd in run.offers.items():
            own = run.cloud_usd_per_hour if WAY_OF[kind] == "rented" else run.purchase_usd
            index = list(WAY_OF).index(kind)
            connection.execute(
                "INSERT INTO internal.seller_price "
                "VALUES (?, ?, ?, ?, ?, ?, 0.2, ?, ?, 1, 'published', ?, 'a list', '')",
                [100 * number + index, run.hardware, WAY_OF[kind], kind, index, usd, kind, kind, own],
            )
    evaluated = [(number, run) for number, run in numbered if run.refusal is None]
    if numbered:
        connection.execute(
            "INSERT INTO internal.hardware_version (hardware_digest, hardware, name, vendor, architecture, deployment, "
            "microarchitecture, unit_name, memory_type, projection, unavailable, package_version, power_mode, aliases, "
            "doubts, priced_at, boundary, described_digest) VALUES "
            + ", ".join(
                ["(?, ?, 'n', 'v', 'gpu', [?], 'm', 'u', 't', ?, ?, '0', 'default', [], [], 'chip', 'board', '')"]
                * len(numbered)
            ),
            [
                text
                for number, run in numbered
                for text in (f"d{number}", run.hardware, run.deployment, run.projection, run.unavailable)
            ],
        )
        connection.execute(
            "INSERT INTO internal.run (run_id, run_key, workload_id, hardware_digest, power_mode, precision, "
            "weight_precision, "
            "batch, runtime, calibration, refusal, units_total_count, peak_ops_per_s, "
            "memory_bandwidth_bytes_per_s, weight_bytes, "
            "activation_bytes, clock_fraction, formula_version, package_version, created_at, calibration_digest, "
            "has_ledger) "
            "VALUES "
            + ", ".join(
                [
                    "(?, ?, 1, ?, ?, ?, ?, ?, 'fused', 'none', ?, 1, 1.0, 1.0, ?, 0, 1.0, 'f', '0', "
                    "TIMESTAMP '2020-01-01', '', TRUE)"
                ]
                * len(numbered)
            ),
            [
                value
                for number, run in numbered
                for value in (
                    number, f"r{number}", f"d{number}", run.power_mode, run.precision, run.precision, run.batch,
                    run.refusal, run.memory_bytes,
                )
            ],
        )  # fmt: skip
    if evaluated:
        connection.execute(
            "INSERT INTO internal.run_subgraph (run_id, subgraph_index, latency_fs, compute_s, memory_s, "
            "launch_s, dram_bytes, "
            "moved_bytes, tile_count, wave_count, units_used_count, kernel_count, bottleneck, "
            "executed_mac_count, pass_bytes, computed_mac_count) VALUES "
            + ", ".join(
                f"({number}, 0, {round(run.latency_s * 1e15)}, 0, 0, 0, 0, 0, 0, 0, 1, 1, 'compute', 0, 0, 0)"
                for number, run in evaluated
            )
        )
        connection.execute(
            "INSERT INTO internal.run_operator VALUES "
            + ", ".join(
                f"({number}, 0, 0, {round(run.latency_s * 1e15)}, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, "
                f"{round(run.latency_s * 1e15)})"
                for number, run in evaluated
            )
        )
        connection.execute(
            "INSERT INTO internal.ledger_line VALUES "
            + ", ".join(f"({number}, 0, 0, 1, 1.0, {round(run.energy_j * 1e15)})" for number, run in evaluated)
        )
        add_up(connection, evaluated[0][0], evaluated[-1][0])
    return [number for number, _ in numbered]
