"""Rows per second of one model on 1,000 synthetic configurations, stored, and the ratio to ingest alone.

python benchmarks/evaluate.py
"""

from __future__ import annotations

import itertools
import os
import statistics
import tempfile
import time
from pathlib import Path

import duckdb

from joulemap.catalog.load import load_catalogue
from joulemap.physics.pipeline import Evaluator
from joulemap.physics.record.configuration import Configuration
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.record.runtime import RUNTIME_NAMES
from joulemap.store.connection import transaction
from joulemap.store.workload import read_columns
from joulemap.store.writer import RunIdentity, RunWriter
from joulemap.workspace import Workspace

CONFIGURATIONS = 1000
REPEATS = 5


def list_configurations(evaluator: Evaluator) -> list[tuple[Hardware, Configuration]]:
    """Return every supported hardware x precision x runtime, repeated up to 1,000."""
    asked = [
        (hardware, Configuration(hardware=hardware.id, precision=precision, runtime=runtime))
        for hardware in load_catalogue().hardware.values()
        for precision in hardware.peaks
        for runtime in RUNTIME_NAMES
    ]
    runs = evaluator.evaluate_all(asked)
    supported = [pair for pair, run in zip(asked, runs, strict=True) if not isinstance(run, Exception)]
    return list(itertools.islice(itertools.cycle(supported), CONFIGURATIONS))


def evaluate_all(path: Path) -> tuple[float, float]:
    """Return (seconds of evaluation and storage, seconds of DuckDB alone for the same Arrow data)."""
    connection = duckdb.connect(str(path))
    columns = read_columns(connection, 1)
    asked = list_configurations(Evaluator(columns))
    start = time.perf_counter()
    with transaction(connection):
        writer = RunWriter(connection)
        runs = Evaluator(columns).evaluate_all(asked)
        for index, ((hardware, configuration), run) in enumerate(zip(asked, runs, strict=True)):
            if isinstance(run, Exception):
                raise run
            identity = RunIdentity(
                run_key=f"synthetic{index}",
                workload_id=1,
                hardware_digest=hardware.digest,
                power_mode=f"synthetic{index}",
                batch=1,
                point={
                    "precision": configuration.precision,
                    "weight_precision": configuration.precision,
                    "runtime": configuration.runtime,
                },
                calibration="none",
                calibration_digest="",
                formula_version="benchmark",
                package_version="benchmark",
            )
            writer.add(identity, run)
        writer.flush()
    everything = time.perf_counter() - start
    ledger = connection.sql("SELECT * FROM internal.ledger_line").to_arrow_table()
    connection.close()
    with tempfile.TemporaryDirectory() as folder:
        alone = duckdb.connect(os.path.join(folder, "alone.duckdb"))
        alone.execute(
            "CREATE TABLE ledger_line (run_id INTEGER NOT NULL, subgraph_index INTEGER NOT NULL, "
            "operator_index INTEGER NOT NULL, action_id USMALLINT NOT NULL, action_count DOUBLE NOT NULL, "
            "energy_fj BIGINT NOT NULL)"
        )
        start = time.perf_counter()
        alone.register("incoming", ledger)
        alone.execute("INSERT INTO ledger_line SELECT * FROM incoming")
        ingest = time.perf_counter() - start
        alone.close()
    return everything, ingest


def main() -> None:
    """Print medians of five repetitions."""
    with tempfile.TemporaryDirectory() as folder:
        seconds, ratios = [], []
        for repeat in range(REPEATS):
            path = Path(folder) / f"evaluate{repeat}.duckdb"
            Workspace(path).compare("resnet18", hardware=["tpu_v4"])
            empty = path.stat().st_size
            everything, ingest = evaluate_all(path)
            seconds.append(everything)
            ratios.append(ingest / everything)
        connection = duckdb.connect(str(path), read_only=True)
        counts = {
            table: connection.execute(f"SELECT count(*) FROM internal.{table}").fetchall()[0][0]
            for table in ("run", "run_subgraph", "run_operator", "ledger_line")
        }
        connection.close()
        elapsed = statistics.median(seconds)
        print(f"{CONFIGURATIONS} configurations of resnet18 in {elapsed:.2f} s (median of {REPEATS})")
        for table, rows in counts.items():
            print(f"{table:<14} {rows:>9,} rows {rows / elapsed:>12,.0f} rows/s")
        print(f"bytes per ledger line, all tables: {(path.stat().st_size - empty) / counts['ledger_line']:.1f}")
        print(f"ingest of the ledger alone / everything: {statistics.median(ratios):.2f}")


if __name__ == "__main__":
    main()
