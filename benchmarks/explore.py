"""Design points evaluated per second (totals only), compared with a loop that adds numbers; then a complete
exploration.

python benchmarks/explore.py [MODEL] [--jobs 2] [--chips tpu_v4,h100_sxm5] [--points 10000000]

One process, then `--jobs` processes at once, evaluate the same grid. Columns: points per second of processor time, the
rate of all processes together, their ratio, and the ratio in wall time, which depends on other load. `normal` is the
joint rate on a machine where 20 million additions take 0.6 s. `capped` is `normal` under a power cap that limits most
points. The last lines are for `joulemap explore` with `--points` designs based on a TPU.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import attrs
import duckdb
import numpy as np

from joulemap.catalog.load import load_catalogue
from joulemap.physics.change import point_hardware
from joulemap.physics.pipeline import Evaluator
from joulemap.physics.record.address import MEMORY_BANDWIDTH, UNIT_COUNT, Address
from joulemap.physics.record.configuration import Configuration
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.record.runtime import RUNTIME_NAMES
from joulemap.physics.total import evaluate_points
from joulemap.physics.workload import Floats
from joulemap.store.workload import read_columns
from joulemap.workspace import Workspace

EDGES = 11
"""Number of values of each of four parameters."""

ADDED = 5_000_000

LOOP_S = 0.15
"""Seconds to add `ADDED` numbers on the reference machine."""

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
    """Return the seconds in which a loop adds `ADDED` numbers."""
    start, total = time.process_time(), 0
    for number in range(ADDED):
        total += number
    return time.process_time() - start


def vary(hardware: Hardware) -> dict[Address, Floats]:
    """Return a grid over units, clock, bandwidth and capacity, with dependent numbers."""
    units, clock, bandwidth, capacity = np.ix_(*[np.linspace(0.5, 2.0, EDGES)] * 4)
    count = np.maximum(np.rint(hardware.unit_count.value * units), 1.0)
    share = count / hardware.unit_count.value
    last = hardware.memory_levels[-1]
    varied: dict[Address, Floats] = {
        UNIT_COUNT: count,
        MEMORY_BANDWIDTH: hardware.memory_bandwidth.value * bandwidth,
        Address("memory", last.name, "capacity"): last.capacity.value * capacity,
        Address("quantity", "tdp"): np.array([4.0 * hardware.tdp.value]),
    }
    for name in ("clock", "clock_base", "clock_boost", "clock_die"):
        if (quantity := getattr(hardware, name)) is not None:
            varied[Address("quantity", name)] = quantity.value * clock
    for name, peak in hardware.peaks.items():
        varied[Address("peak", name, "rate")] = peak.rate.value * clock * share
        varied[Address("peak", name, "unit_count")] = np.maximum(np.rint(peak.unit_count * share), 1.0)
        varied[Address("peak", name, "clock_hz")] = peak.clock_hz * clock
    return varied


def list_cases(chips: list[str]) -> Iterator[tuple[Hardware, Configuration]]:
    """Yield each chip with every runtime that has no launch overhead of a host."""
    catalogue = load_catalogue()
    for name in chips:
        chip = attrs.evolve(catalogue.find(name), compiler=None)
        precision = next((one for one in ("bf16", "fp16", "int8") if one in chip.peaks), next(iter(chip.peaks)))
        for runtime in RUNTIME_NAMES[1:]:
            yield chip, Configuration(hardware=chip.id, precision=precision, runtime=runtime)


def evaluate(evaluator: Evaluator, chip: Hardware, configuration: Configuration, cap_w: float) -> Floats:
    """Return (points per second of processor time, the same on the reference machine, seconds of wall time) of a grid.

    The preparation of the workload, which is done once, is excluded.
    """
    varied = {**vary(chip), Address("quantity", "tdp"): np.array([cap_w])}
    evaluate_points(evaluator, chip, configuration, {address: column[:1] for address, column in varied.items()})
    loop, start, wall = add(), time.process_time(), time.perf_counter()
    evaluate_points(evaluator, chip, configuration, varied)
    rate = EDGES**4 / (time.process_time() - start)
    return np.array([rate, rate * loop / LOOP_S, time.perf_counter() - wall])


def measure(evaluator: Evaluator, chips: list[str], jobs: int) -> None:
    """Print the points per second of chips with one and with several processes, and under a power cap."""
    heads = ("one core", f"{jobs} cores", "ratio", "wall", "normal", "capped", "ledger")
    print(f"{'chip':<18} {'precision':<9} {'runtime':<8} " + " ".join(f"{one:>9}" for one in heads))
    with ProcessPoolExecutor(jobs) as pool:
        for chip, configuration in list_cases(chips):
            free_w, cap_w = 4.0 * chip.tdp.value, max(chip.static_power.value * 1.2, chip.tdp.value * 0.3)

            def run(count: int, watts: float, case: tuple[Hardware, Configuration] = (chip, configuration)) -> Floats:
                return np.array(list(pool.map(evaluate, *zip(*[(evaluator, *case, watts)] * count, strict=True))))

            one, several, capped = run(1, free_w), run(jobs, free_w), run(jobs, cap_w)
            rate, normal = several[:, 0].sum(), several[:, 1].sum()
            start = time.process_time()
            evaluator.evaluate(point_hardware(chip, {Address("quantity", "tdp"): np.array([free_w])}, 0), configuration)
            ledger = time.process_time() - start
            ratios = f"{rate / one[0, 0]:>9.2f} {jobs * one[0, 2] / several[:, 2].max():>9.2f}"
            told = f"{normal:>9,.0f} {capped[:, 1].sum():>9,.0f} {1e3 * ledger:>6.1f} ms"
            rates = f"{one[0, 0]:>9,.0f} {rate:>9,.0f}"
            print(
                f"{chip.id:<18} {configuration.precision:<9} {configuration.runtime:<8} {rates} {ratios} {told}",
                flush=True,
            )


def explore(model: str, count: int) -> tuple[int, float, float, float, float]:
    """Return (designs, seconds, seconds on the reference machine, bytes before, peak bytes) of an exploration."""
    edge = max(2, round(count**0.25))
    axis = f"x0.5:x1:{edge}"
    names = ("clock", "dram.bandwidth", "memory.cmem.capacity")
    with tempfile.TemporaryDirectory() as folder:
        workspace = Workspace(Path(folder) / "explore.duckdb")
        workspace.compare(model, hardware=["tpu_v4"], calibration="none")
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        loop, start = add(), time.process_time()
        answer = workspace.explore(
            model, like="tpu_v4", vary={"units": f"1:{edge}:{edge}", **dict.fromkeys(names, axis)}, calibration="none"
        )
        took = time.process_time() - start
    return (
        answer.point_count,
        took,
        took * LOOP_S / ((loop + add()) / 2.0),
        before,
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    )


def main() -> None:
    """Print rates of chips of each class, then the time of a complete exploration."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", default="resnet50")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--chips", default=",".join(CHIPS))
    parser.add_argument("--points", type=int, default=0)
    asked = parser.parse_args()
    print(f"{asked.model}; a loop adds {ADDED:,} numbers in {add():.2f} s of processor time", flush=True)
    if chips := [one for one in asked.chips.split(",") if one]:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "explore.duckdb"
            Workspace(path).compare(asked.model, hardware=["tpu_v4"], calibration="none")
            connection = duckdb.connect(str(path), read_only=True)
            evaluator = Evaluator(read_columns(connection, 1))
            connection.close()
        measure(evaluator, chips, asked.jobs)
    if asked.points:
        with ProcessPoolExecutor(1) as pool:
            count, took, normal, before, most = pool.submit(explore, asked.model, asked.points).result()
        print(
            f"explore, {count:,} designs: {took:.1f} s of a processor, {normal:.1f} s where the loop takes {LOOP_S} s"
        )
        print(f"at most {most / 1e6:,.0f} MB, {before / 1e6:,.0f} of them before")


if __name__ == "__main__":
    main()
