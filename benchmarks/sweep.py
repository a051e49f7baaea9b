"""Time to evaluate every classification model on every chip at three batches into one database, on two cores.

python benchmarks/sweep.py [--small] [--keep FILE]

Storing the workloads is not timed. Each chip runs at the first of fp32, fp16, bf16 and int8 that it has. The engine
alone is timed on the same rows of all tables, as Arrow, in transactions of the same size.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from collections.abc import Sequence
from multiprocessing import get_context
from pathlib import Path
from typing import Final

import duckdb

from joulemap.catalog.load import load_catalogue
from joulemap.catalog.sheet import load_models, load_shipped
from joulemap.physics.record.configuration import Precision
from joulemap.store.writer import CHUNK_LINES
from joulemap.workspace import Workspace

CORES: Final = 2
BATCHES: Final = (1, 8, 32)
PRECISIONS: Final[tuple[Precision, ...]] = ("fp32", "fp16", "bf16", "int8")
SMALL_STEP: Final = 10
"""The quick variant takes every tenth model."""

TABLES: Final = ("run", "run_subgraph", "run_operator", "ledger_line")


def classifiers() -> list[str]:
    """Return the built-in classification models."""
    return [name for name, entry in load_models().items() if entry.task == "classification" and name in load_shipped()]


def by_precision() -> dict[Precision, list[str]]:
    """Return precision -> the hardware that runs at it in this benchmark."""
    groups: dict[Precision, list[str]] = {}
    for hardware in load_catalogue().hardware.values():
        first = next(precision for precision in PRECISIONS if precision in hardware.peaks)
        groups.setdefault(first, []).append(hardware.id)
    return groups


def store_workloads(path: Path, models: Sequence[str]) -> None:
    """Store the workload of every model at every batch."""
    workspace = Workspace(path)
    for model in models:
        for batch in BATCHES:
            workspace.operators(model, batch=batch)


def sweep(path: Path, models: Sequence[str]) -> tuple[int, int]:
    """Evaluate every model on every chip; return (number of evaluated runs, number of refused runs)."""
    evaluated = refused = 0
    for precision, hardware in by_precision().items():
        tally = Workspace(path).evaluate(models, hardware=hardware, batch=BATCHES, precision=precision)
        evaluated, refused = evaluated + tally.evaluated_count, refused + tally.refused_count
    return evaluated, refused


def ingest(path: Path, folder: Path) -> float:
    """Return the seconds of DuckDB to insert the same rows, as Arrow in memory, into a new file."""
    source = duckdb.connect(str(path), read_only=True)
    source.execute("SET memory_limit = '1GB'")
    alone = duckdb.connect(str(folder / "alone.duckdb"))
    elapsed = 0.0
    for table in TABLES:
        columns = ", ".join(
            f"{name} {kind}" for name, kind, *_ in source.execute(f"DESCRIBE internal.{table}").fetchall()
        )
        alone.execute(f"CREATE TABLE {table} ({columns})")
        for chunk in source.sql(f"FROM internal.{table}").to_arrow_reader(CHUNK_LINES):
            start = time.perf_counter()
            alone.register("incoming", chunk)
            alone.execute(f"INSERT INTO {table} SELECT * FROM incoming")
            alone.unregister("incoming")
            elapsed += time.perf_counter() - start
    start = time.perf_counter()
    alone.close()
    source.close()
    return elapsed + time.perf_counter() - start


def main() -> None:
    """Print the rates, the size, the peak memory and the ratio to the engine alone."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help=f"every {SMALL_STEP}th model")
    parser.add_argument("--keep", type=Path, help="where to leave the database; it must not exist")
    arguments = parser.parse_args()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    models = classifiers()[:: SMALL_STEP if arguments.small else 1]
    with tempfile.TemporaryDirectory() as folder:
        path = arguments.keep or Path(folder) / "sweep.duckdb"
        process = get_context("spawn").Process(target=store_workloads, args=(path, models))
        process.start()
        process.join()
        before = path.stat().st_size
        start, start_cpu = time.perf_counter(), time.process_time()
        evaluated, refused = sweep(path, models)
        elapsed, cpu = time.perf_counter() - start, time.process_time() - start_cpu
        peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        connection = duckdb.connect(str(path), read_only=True)
        rows = {
            table: connection.execute(f"SELECT count(*) FROM internal.{table}").fetchall()[0][0] for table in TABLES
        }
        connection.close()
        alone = ingest(path, Path(folder))
        size = path.stat().st_size - before
    hardware = sum(map(len, by_precision().values()))
    print(f"{len(models)} models x {hardware} hardware x {len(BATCHES)} batches: {evaluated + refused:,} runs,")
    print(f"{refused:,} of them refused, in {elapsed:.1f} s ({cpu:.1f} s of processor time) on {CORES} cores")
    print(f"{(evaluated + refused) / elapsed:,.0f} runs/s")
    for table, count in rows.items():
        print(f"{table:<14} {count:>12,} rows {count / elapsed:>12,.0f} rows/s")
    print(f"bytes per ledger line, all tables: {size / rows['ledger_line']:.1f}")
    print(f"peak memory: {peak_bytes / 1e9:.2f} GB")
    print(f"the engine alone for the same rows: {alone:.1f} s, a share of {alone / elapsed:.2f}")


if __name__ == "__main__":
    main()
