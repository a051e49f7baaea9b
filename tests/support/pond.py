"""Small lakes of synthetic blocks and points, or of the runs of a database."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from joulemap.physics.record.reference import COMMON_CATEGORIES
from joulemap.plan.version import formula_version
from joulemap.wing.explore.block import QUESTION, Block
from joulemap.wing.explore.lake.shard import KEY
from joulemap.workspace import Workspace


def make_columns(**given: Any) -> dict[str, Any]:
    """Return the columns of a block of a systolic array; `given` replaces defaults."""
    plain: dict[str, Any] = dict.fromkeys(QUESTION, "")
    return {
        **plain, "model": "small", "source": "test:small", "input_spec": "2x4:fp32", "input_shape": "4",
        "workload_key": "00ff", "work": "model", "parameter_count": 40, "hardware": "tpu_v4", "architecture": "tpu",
        "hardware_digest": "ab", "unit_name": "MXU", "deployment": "datacenter", "boundary": "board",
        "power_mode": "default", "matmul_precision": "default", "precision": "bf16", "weight_precision": "bf16",
        "batch": 2, "runtime": "fused", "calibration": "none", "formula_version": formula_version("tpu"),
        "full_clock_hz": 1e9, **given,
    }  # fmt: skip


@attrs.frozen(kw_only=True, eq=False)
class Totals:
    """Points as `evaluate_totals` returns them."""

    latency_fs: Any
    interval_fs: Any
    energy_fj: Any
    category_fj: Mapping[str, Any]
    refusal: Any
    clock_fraction: Any = None
    voltage_factor: Any = None
    uncapped_power_w: Any = None
    dram_bytes: Any = None
    moved_bytes: Any = None
    unit_fs: Any = None
    mac_count: Any = None
    computed_mac_count: Any = None
    peak_ops_per_s: Any = None
    memory_bandwidth_bytes_per_s: Any = None
    units_total_count: Any = None
    weight_bytes: Any = None
    activation_bytes: Any = None
    latency_half_width: Any = None
    energy_half_width: Any = None
    bottleneck: Any = None
    throughput_limit: Any = None


@attrs.frozen(eq=False)
class Cell:
    """Task whose points depend on its number; every tenth point is refused."""

    number: int
    count: int = 100
    wait_s: float = 0.0

    @property
    def block(self) -> Block:
        clock = 1e9 + 1e6 * (self.number * self.count + np.arange(self.count))
        return Block(
            columns=make_columns(full_clock_hz=clock),
            varied={"clock": ("Hz", clock), "memory.vmem.capacity": ("B", np.full(self.count, 2.0**20))},
        )


def evaluate_cell(cell: Cell) -> Totals:
    """Return totals whose energy rises and latency falls with the clock, so that every point is on the front."""
    time.sleep(cell.wait_s)
    place = cell.number * cell.count + np.arange(cell.count)
    latency = 10**15 // (1_000 + place)
    category = {"compute": 10**9 + place * 10**6, "static": np.full(cell.count, 10**8)}
    ones = np.ones(cell.count)
    return Totals(
        latency_fs=latency, interval_fs=latency, energy_fj=category["compute"] + category["static"],
        category_fj=category, refusal=np.where(place % 10 == 0, "too much", ""), clock_fraction=ones,
        voltage_factor=ones, uncapped_power_w=ones, dram_bytes=1e6 * ones, mac_count=1e6 * ones,
        computed_mac_count=1e6 * ones, peak_ops_per_s=1e14 * ones, memory_bandwidth_bytes_per_s=1e12 * ones,
        weight_bytes=np.full(cell.count, 10), activation_bytes=np.full(cell.count, 20),
        latency_half_width=0.3 * ones, energy_half_width=0.4 * ones, bottleneck=place % 3,
        throughput_limit=np.full(cell.count, "latency"),
    )  # fmt: skip


def evaluate_and_die(cell: Cell) -> Totals:
    """Kill the first process that evaluates the cell with number 3, marked by a file; else return its totals."""
    mark = Path(os.environ["POND_MARK"])
    if cell.number == 3 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), 9)
    return evaluate_cell(cell)


def list_blocks_of(path: Path) -> Iterator[tuple[Block, Totals]]:
    """Yield a block of the evaluated and refused runs of a database for each class."""
    asked = """
        SELECT
            w.model, w.source, w.input_spec, w.input_shape, w.workload_key, w.work, w.parameter_count, w.torch_version,
            w.torchvision_version, w.tracer_version, v.hardware, r.hardware_digest, v.architecture, v.unit_name,
            array_to_string(v.deployment, ',') AS deployment, v.projection, v.unavailable, v.host, v.needs_host,
            v.boundary, v.matmul_precision, r.power_mode, r.precision, r.weight_precision, r.batch, r.runtime,
            r.calibration, r.calibration_digest, r.formula_version,
            coalesce(r.clock_hz / r.clock_fraction, 1) AS full_clock_hz, '' AS rules,
            r.* EXCLUDE (refusal), t.* EXCLUDE (run_id), coalesce(r.refusal, '') AS refusal,
            (SELECT map_from_entries(list((c.common_category, c.energy_fj))) FROM (
                SELECT a.common_category, sum(l.energy_fj) AS energy_fj
                FROM internal.run_action AS l JOIN internal.action AS a USING (action_id)
                WHERE l.run_id = r.run_id GROUP BY ALL) AS c) AS category
        FROM internal.run AS r
        JOIN internal.workload AS w USING (workload_id)
        JOIN internal.hardware_version AS v USING (hardware_digest)
        LEFT JOIN internal.run_total AS t USING (run_id)
        ORDER BY r.run_id"""
    rows = Workspace(path).sql(asked).records()
    for architecture in sorted({row["architecture"] for row in rows}):
        some = [row for row in rows if row["architecture"] == architecture]
        fixed = ("architecture", "formula_version", "rules")
        columns = {name: some[0][name] if name in fixed else [row[name] for row in some] for name in QUESTION}
        totals = {
            field.name: np.array([row[field.name] or 0 for row in some])
            for field in attrs.fields(Totals)
            if field.name not in ("category_fj", "refusal", "bottleneck", "throughput_limit")
        }
        yield (
            Block(columns=columns),
            Totals(
                **totals,
                category_fj={
                    name: np.array([int((row["category"] or {}).get(name, 0)) for row in some])
                    for name in COMMON_CATEGORIES
                },
                refusal=np.array([row["refusal"] for row in some]),
                throughput_limit=np.array([row["throughput_limit"] or "" for row in some]),
            ),
        )


def forge(
    shard: Path,
    change: Callable[[dict[str, Any]], object] = lambda _: None,
    alter: Callable[[Any], Any] = lambda table: table,
) -> Path:
    """Replace a shard by a changed file whose name has the correct digest; return its path.

    `change` edits the footer in place, `alter` returns other rows.
    """
    import pyarrow.parquet as pq

    table = pq.read_table(shard)
    about = json.loads(pq.read_metadata(shard).metadata[KEY.encode()])
    change(about)
    return put_in_place(shard, alter(table), json.dumps(about))


def put_in_place(shard: Path, table: Any, footer: str) -> Path:
    """Replace a shard by rows and a footer in a file whose name has the correct digest; return its path."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, table.schema, store_schema=False) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({KEY: footer})
    content = sink.getvalue().to_pybytes()
    shard.unlink()
    return name_content(shard, content)


def name_content(shard: Path, content: bytes) -> Path:
    """Write bytes next to a shard, under the shard's name with the digest of the bytes; return the path."""
    digest = hashlib.sha256(content).hexdigest()[:16]
    path = shard.with_name(f"{shard.name.partition('-')[0]}-{digest}.parquet")
    path.write_bytes(content)
    return path
