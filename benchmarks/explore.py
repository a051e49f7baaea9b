"""Points of a design space a second, totals alone, on one core, beside a loop that adds 20 million numbers.

python benchmarks/explore.py [MODEL]
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import attrs
import duckdb
import numpy as np

from joulemap.catalog.load import load_catalogue
from joulemap.domain.configuration import RUNTIMES, Configuration
from joulemap.domain.hardware import Hardware
from joulemap.domain.point import Path as NumberPath, point_hardware
from joulemap.model.pipeline import Evaluator
from joulemap.model.total import evaluate_points
from joulemap.model.workload import Floats
from joulemap.store.workload import read_columns
from joulemap.workspace import Workspace

EDGES = 9
"""Values of each of four parameters."""

ADDED = 20_000_000

CHIPS = (
    "tpu_v4",
    "kpu_t256",
    "xeon_8490h",
    "h100_sxm5",
    "plasticine",
    "dpu_b4096_kv260",
    "tda4vm_c7x_mma",
    "inferentia2",
)


def add() -> float:
    """Return the seconds in which a loop adds up so many numbers."""
    start, total = time.process_time(), 0
    for number in range(ADDED):
        total += number
    return time.process_time() - start


def vary(hardware: Hardware) -> dict[NumberPath, Floats]:
    """Return a grid over units, clock, bandwidth and capacity, with what follows from units and clock."""
    edges = np.linspace(0.5, 2.0, EDGES)
    units, clock, bandwidth, capacity = (one.ravel() for one in np.meshgrid(*[edges] * 4, indexing="ij"))
    count = np.maximum(np.rint(hardware.unit_count.value * units), 1.0)
    share = count / hardware.unit_count.value
    last = len(hardware.memory_levels) - 1
    varied: dict[NumberPath, Floats] = {
        ("unit_count",): count,
        ("memory_bandwidth",): hardware.memory_bandwidth.value * bandwidth,
        ("memory_levels", last, "capacity"): hardware.memory_levels[last].capacity.value * capacity,
        ("tdp",): np.full(len(count), 4.0 * hardware.tdp.value),
    }
    for name in ("clock", "clock_base", "clock_boost", "clock_die"):
        if (quantity := getattr(hardware, name)) is not None:
            varied[name,] = quantity.value * clock
    for name, peak in hardware.peaks.items():
        varied["peaks", name, "rate"] = peak.rate.value * clock * share
        varied["peaks", name, "unit_count"] = np.maximum(np.rint(peak.unit_count * share), 1.0)
        varied["peaks", name, "clock_hz"] = peak.clock_hz * clock
    return varied


def main() -> None:
    """Print points a second of a chip of each class, without a power cap and under one that holds most points."""
    model = sys.argv[1] if len(sys.argv) > 1 else "resnet50"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "explore.duckdb"
        Workspace(path).compare(model, hardware=["tpu_v4"])
        connection = duckdb.connect(str(path), read_only=True)
        evaluator = Evaluator(read_columns(connection, 1))
        connection.close()
    catalogue = load_catalogue()
    print(f"{model}; a loop adds {ADDED:,} numbers in {add():.2f} s of processor time")
    heads = ("points", "per s", "capped", "x loop", "ledger")
    print(f"{'chip':<18} {'precision':<9} {'runtime':<8} " + " ".join(f"{one:>9}" for one in heads))
    for name in CHIPS:
        chip = attrs.evolve(catalogue.find(name), compiler=None)
        precision = next((one for one in ("bf16", "fp16", "int8") if one in chip.peaks), next(iter(chip.peaks)))
        for runtime in RUNTIMES[1:]:
            configuration = Configuration(hardware=chip.id, precision=precision, runtime=runtime)
            varied = vary(chip)
            held = np.full(EDGES**4, max(chip.static_power.value * 1.2, chip.tdp.value * 0.3))
            evaluate_points(evaluator, chip, configuration, {one: column[:500] for one, column in varied.items()})
            loop, rates = add(), []
            for cap in (varied["tdp",], held):
                start = time.process_time()
                evaluate_points(evaluator, chip, configuration, {**varied, ("tdp",): cap})
                rates.append(EDGES**4 / (time.process_time() - start))
            start = time.process_time()
            evaluator.evaluate(point_hardware(chip, varied, 0), configuration)
            ledger = time.process_time() - start
            told = (
                f"{EDGES**4:>9,} {rates[0]:>9,.0f} {rates[1]:>9,.0f} {rates[0] * loop:>9,.0f} {1e3 * ledger:>6.1f} ms"
            )
            print(f"{chip.id:<18} {precision:<9} {runtime:<8} {told}")


if __name__ == "__main__":
    main()
