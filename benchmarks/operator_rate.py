"""Single operators per second: in bulk, one by one, and from a table of measurements to its scores.

python benchmarks/operator_rate.py
"""

from __future__ import annotations

import csv
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from joulemap.catalog.load import load_catalogue
from joulemap.domain.operator.name import ARGUMENTS, find_operator, spell
from joulemap.physics.bulk import evaluate_all
from joulemap.physics.pipeline import Evaluator
from joulemap.physics.record.configuration import Configuration
from joulemap.physics.record.workload import NO_KEY, Workload
from joulemap.physics.workload import columns_of
from joulemap.trace.single import describe
from joulemap.workspace import Workspace

OPERATORS = 10_000
ALONE = 500
HARDWARE = ("h200_sxm", "l4", "xeon_8490h", "tpu_v4")


def name_operators(count: int) -> list[str]:
    """Return names of ten kinds in turn, with sizes drawn by a fixed seed."""
    draw = random.Random(0)

    def power(least: int, most: int) -> int:
        return int(2 ** draw.uniform(least, most))

    makers: dict[str, Callable[[], str]] = {
        "gemm": lambda: f"gemm(m={power(0, 14)},n={power(5, 15)},k={power(5, 15)})",
        "bmm": lambda: f"bmm(b={power(0, 7)},m={power(3, 11)},n={power(3, 11)},k={power(4, 8)})",
        "conv2d": lambda: (
            f"conv2d(channels_in={power(2, 9)},channels_out={power(2, 9)},size={power(3, 8)},kernel=3,padding=1)"
        ),
        "attention": lambda: (
            f"attention(queries={power(0, 11)},cached={power(0, 12)},heads=32,kv_heads=8,head_dim=128)"
        ),
        "softmax": lambda: f"softmax(rows={power(0, 15)},columns={power(4, 13)})",
        "layer_norm": lambda: f"layer_norm(rows={power(0, 15)},columns={power(4, 13)})",
        "elementwise": lambda: f"elementwise(kind=add,elements={power(8, 26)})",
        "batch_norm": lambda: f"batch_norm(channels={power(3, 11)},size={power(2, 8)})",
        "max_pool2d": lambda: f"max_pool2d(channels={power(3, 11)},size={power(3, 8)},kernel=3,stride=2,padding=1)",
        "global_avg_pool": lambda: f"global_avg_pool(channels={power(3, 11)},size={power(2, 8)})",
    }
    kinds = [kind for kind in ARGUMENTS if kind in makers]
    return [makers[kinds[index % len(kinds)]]() for index in range(count)]


def build(names: list[str]) -> list[Workload]:
    """Return the workloads of named operators."""
    return [describe(operator, 1, NO_KEY) for name in names if (operator := find_operator(name)) is not None]


def main() -> None:
    """Print the time of each way."""
    names = name_operators(OPERATORS)
    start = time.perf_counter()
    workloads = build(names)
    read = time.perf_counter() - start
    print(f"{len(workloads):,} operators read and built: {len(workloads) / read:,.0f}/s")
    print("| hardware | in bulk | one by one | times |")
    print("|---|---|---|---|")
    for name in HARDWARE:
        hardware = load_catalogue().find(name)
        precision = "bf16" if "bf16" in hardware.peaks else "fp32"
        start = time.perf_counter()
        evaluate_all(workloads, hardware, precision, "graph")
        bulk = len(workloads) / (time.perf_counter() - start)
        start = time.perf_counter()
        for workload in workloads[:ALONE]:
            configuration = Configuration(hardware=hardware.id, precision=precision, batch=1, runtime="graph")
            Evaluator(columns_of(workload)).evaluate(hardware, configuration)
        alone = ALONE / (time.perf_counter() - start)
        print(f"| {name} | {bulk:,.0f}/s | {alone:,.0f}/s | {bulk / alone:.0f} |")
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "table.csv"
        distinct = list(dict.fromkeys(map(spell, names)))
        with table.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(("hardware", "model", "precision", "batch", "runtime", "latency_s", "source"))
            writer.writerows(("h200_sxm", name, "bf16", 1, "graph", 1e-5, "made up") for name in distinct)
        workspace = Workspace(Path(folder) / "own.duckdb")
        start = time.perf_counter()
        workspace.import_measurements(table)
        imported = time.perf_counter()
        workspace.validate("h200_sxm", by="kind", source="made up", calibration="none")
        scored = time.perf_counter()
    print(f"{len(distinct):,} rows: imported in {imported - start:.1f} s, scored in {scored - imported:.1f} s")


if __name__ == "__main__":
    main()
