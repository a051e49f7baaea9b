"""Runs with round numbers of energy and time, so that every answer can be computed by hand."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from blank import open_blank
from joulemap.store.catalogue import write_metrics
from joulemap.store.connection import Connection
from joulemap.store.total import add_up

FJ = 10**15
FS = 10**15


@attrs.frozen(kw_only=True)
class Part:
    """Subgraph of one operator."""

    time_s: float
    """Time of launch and extra passes, plus the larger of compute and memory time."""
    compute_j: float = 0.0
    memory_j: float = 0.0
    control_j: float = 0.0
    static_j: float = 0.0
    launch_s: float = 0.0
    pass_s: float = 0.0
    pass_bytes: float = 0.0
    compute_s: float | None = None
    """None for `time_s` less launch and passes."""
    memory_s: float = 0.0
    mac_count: int = 0
    executed_mac_count: float | None = None
    dram_bytes: float = 0.0
    units: int = 1
    tiles: float = 1.0
    waves: float = 1.0
    pattern: str = "linear"
    separate_j: float = 0.0
    separate_s: float = 0.0

    @property
    def computing_s(self) -> float:
        """Compute time."""
        return self.time_s - self.launch_s - self.pass_s if self.compute_s is None else self.compute_s

    @property
    def bottleneck(self) -> str:
        """Name of the largest of the three times."""
        times = {"compute": self.computing_s, "memory": self.memory_s + self.pass_s, "launch": self.launch_s}
        return max(times, key=lambda name: times[name])


def _write_actions(connection: Connection) -> None:
    """Store the metrics, and one action for each category of energy."""
    write_metrics(connection)
    for number, part in enumerate(("compute", "memory", "control", "static"), 1):
        common = "unit_memory" if part == "memory" else part
        connection.execute(
            "INSERT INTO internal.action VALUES (?, 'any', ?, ?, ?, 'act', ?, 'one')",
            [number, part, common, part, part],
        )


class Book:
    """Joulemap database in memory for runs with chosen numbers."""

    def __init__(self) -> None:
        """Open an empty database in memory."""
        self._connection: Connection = open_blank(_write_actions)
        self._hardware: set[str] = set()
        self._workloads: dict[tuple[str, int, int], int] = {}
        self._run_id = self._added_up = 0

    @property
    def connection(self) -> Connection:
        """Connection to the database, after totals of new runs are added."""
        if self._added_up < self._run_id:
            add_up(self._connection, self._added_up + 1, self._run_id)
            self._added_up = self._run_id
        return self._connection

    def add_hardware(self, name: str, *, is_projection: bool = False, tdp_w: float = 100.0) -> None:
        """Store a chip whose digest is its name."""
        self._hardware.add(name)
        self._connection.execute(
            "INSERT INTO internal.hardware_version (hardware_digest, hardware, name, vendor, architecture, deployment, "
            "microarchitecture, unit_name, memory_type, projection, unavailable, package_version, power_mode, aliases, "
            "doubts, priced_at, boundary, described_digest) "
            "VALUES (?, ?, ?, 'v', 'any', ['edge'], 'm', 'unit', 'd', ?, '', '0', 'default', [], [], 'chip', "
            "'board', '')",
            [name, name, name, "guessed" if is_projection else ""],
        )
        self._connection.execute(
            "INSERT INTO internal.hardware_fact VALUES (?, 0, 'tdp', ?, 'W', 'assumed', 's', '', NULL, NULL, NULL)",
            [name, tdp_w],
        )

        for action in range(1, 5):
            self._connection.execute(
                "INSERT INTO internal.energy_per_action "
                "VALUES (?, ?, 1e15, NULL, NULL, 'assumed', 's', 'f', ?, NULL, NULL, NULL)",
                [name, action, action],
            )

    def _workload(self, model: str, batch: int, parts: Sequence[Part], parameter_count: int) -> int:
        key = (model, batch, len(parts))
        if key in self._workloads:
            return self._workloads[key]
        number = self._workloads[key] = len(self._workloads) + 1
        self._connection.execute(
            "INSERT INTO internal.workload "
            "VALUES (?, ?, ?, 's', 'i', '3', ?, 1, ?, 0, 'model', 't', 'tv', 1, [], '2020-01-01', '', MAP {})",
            [number, str(number), model, batch, parameter_count],
        )
        for index, part in enumerate(parts):
            self._connection.execute(
                "INSERT INTO internal.workload_subgraph VALUES (?, ?, ?, ?, 1)",
                [number, index, f"part{index}", part.pattern],
            )
            self._connection.execute(
                "INSERT INTO internal.workload_operator VALUES "
                "(?, ?, ?, ?, '', 'linear', 'linear', 'a', '1', 'fp32', ?, 0, 0, 1, 1, 1, ?, 1, 1, FALSE, '', '', "
                "1, 1)",
                [number, index, index, f"part{index}", part.mac_count, part.mac_count],
            )
        return number

    def add_run(
        self,
        parts: Sequence[Part],
        *,
        model: str = "net",
        hardware: str = "h",
        batch: int = 1,
        precision: str = "fp32",
        weight_precision: str = "",
        runtime: str = "fused",
        refusal: str | None = None,
        parameter_count: int = 10,
        peak_ops_per_s: float = 100.0,
        bandwidth: float = 10.0,
        units: int = 4,
    ) -> int:
        """Store a run and return its id; a refused run has no parts."""
        if hardware not in self._hardware:
            self.add_hardware(hardware)
        self._run_id += 1
        run_id = self._run_id
        self._connection.execute(
            "INSERT INTO internal.run (run_id, run_key, workload_id, hardware_digest, power_mode, precision, "
            "weight_precision, batch, runtime, calibration, refusal, units_total_count, peak_ops_per_s, "
            "memory_bandwidth_bytes_per_s, weight_bytes, activation_bytes, clock_fraction, formula_version, "
            "package_version, created_at, calibration_digest, has_ledger) "
            "VALUES (?, ?, ?, ?, 'default', ?, ?, ?, ?, 'none', ?, ?, ?, ?, 8, 8, 1.0, 'f', '0', "
            "TIMESTAMP '2020-01-01', '', TRUE)",
            [
                run_id, str(run_id), self._workload(model, batch, parts, parameter_count), hardware, precision,
                weight_precision or precision, batch, runtime, refusal, units, peak_ops_per_s, bandwidth,
            ],
        )  # fmt: skip
        for index, part in enumerate(parts if refusal is None else ()):
            self._connection.execute(
                "INSERT INTO internal.run_subgraph VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1, ?, ?, ?, ?)",
                [
                    run_id, index, round(part.time_s * FS), part.computing_s, part.memory_s, part.launch_s, part.pass_s,
                    part.dram_bytes, part.dram_bytes, part.tiles, part.waves, part.units, part.bottleneck,
                    part.executed_mac_count or 0.0, part.pass_bytes, part.mac_count,
                ],
            )  # fmt: skip
            self._connection.execute(
                "INSERT INTO internal.run_operator VALUES (?, ?, ?, ?, ?, ?, ?, 1, ?, 0, 1, ?, ?, 0, ?)",
                [
                    run_id, index, index, round(part.time_s * FS), part.dram_bytes, round(part.separate_s * FS),
                    round(part.separate_j * FJ), part.dram_bytes, part.dram_bytes, part.dram_bytes,
                    round(part.time_s * FS),
                ],
            )  # fmt: skip
            for action, energy_j in enumerate((part.compute_j, part.memory_j, part.control_j, part.static_j), 1):
                self._connection.execute(
                    "INSERT INTO internal.ledger_line VALUES (?, ?, ?, ?, ?, ?)",
                    [run_id, index, index, action, energy_j, round(energy_j * FJ)],
                )
        return run_id
