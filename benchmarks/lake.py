"""Speed of writing and querying a lake of ten million points, compared with the Parquet writers of engines.

python benchmarks/lake.py [--points 10_000_000] [--block 262_144] [--keep FOLDER]
python benchmarks/lake.py --hand-out 10_000      time to hand out tasks of this many designs

The points are synthetic: a grid of clock, units, bandwidth and cache of one model on one chip, with mostly distinct
numbers, so that compression is realistic. The time of a query is the lowest of 3; the first opening, which checks new
shards, is shown separately. Writers are timed over the same tables, one after the other, shard by shard. Each wall time
is shown with its processor time, also in multiples of a loop that adds 20 million numbers: compare these multiples if
the machine is shared.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import resource
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from joulemap.ask.query import reading
from joulemap.domain.settings import Settings
from joulemap.plan.source import Source
from joulemap.plan.version import formula_version
from joulemap.wing.explore.block import QUESTION, Block
from joulemap.wing.explore.design.question import prepare_question
from joulemap.wing.explore.design.task import DesignTask, evaluate_task, make_tasks
from joulemap.wing.explore.lake.fill import fill, run_task
from joulemap.wing.explore.lake.shard import ROW_GROUP, encode, open_lake, store_points

REPEATS: Final = 3
COMPARED: Final = 8
"""Number of shards that the engines' writers also write."""

CLOCKS: Final = np.linspace(0.5e9, 2e9, 64)
UNITS: Final = np.array([16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0])
BANDWIDTHS: Final = np.geomspace(1e11, 4e12, 128)

FRONT: Final = """
    SELECT run_id, latency_s, energy_j FROM (
        SELECT run_id, latency_s, energy_j, min(energy_j) OVER (
            ORDER BY latency_s, energy_j, run_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
        FROM points WHERE {})
    WHERE before IS NULL OR energy_j < before ORDER BY latency_s"""

STEPPED: Final = """
    WITH kept AS MATERIALIZED (
        SELECT run_id, latency_s, energy_j, floor(16 * log2(latency_s)) AS step
        FROM points WHERE refusal IS NULL AND {}),
    least AS MATERIALIZED (
        SELECT step, min(min(energy_j)) OVER (ORDER BY step ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
        FROM kept GROUP BY step),
    few AS (
        SELECT k.run_id, k.latency_s, k.energy_j
        FROM kept AS k JOIN least AS s ON s.step = k.step AND (s.before IS NULL OR k.energy_j < s.before))
""" + FRONT.replace("points WHERE {}", "few")
"""Pareto front of all points; points beaten by one in a lower step of latency are dropped first."""

ASKED: Final = {
    "count": "SELECT count(*) FROM runs",
    "winner": "SELECT run_id, energy_j FROM runs ORDER BY energy_j LIMIT 1",
    "winner under a limit": "SELECT run_id, energy_j FROM runs WHERE latency_s < 2e-4 ORDER BY energy_j LIMIT 1",
    "least energy": "SELECT min(energy_j) FROM runs",
    "least at each unit count": "SELECT set_unit_count, min(energy_j), min(latency_s) FROM runs GROUP BY ALL",
    "front": FRONT.format("is_edge"),
    "front under a limit": STEPPED.format("average_power_w < 60"),
    "front under no limit": STEPPED.format("TRUE"),
    "mean of a slice": "SELECT avg(latency_s) FROM runs WHERE set_clock_hz > 1e9 AND set_unit_count = 256",
}


def make_block(number: int, count: int) -> Block:
    """Return a block of the grid."""
    place = np.arange(number * count, (number + 1) * count)
    plain: dict[str, Any] = dict.fromkeys(QUESTION, "")
    clock = CLOCKS[place % 64]
    return Block(
        columns={
            **plain, "model": "resnet50", "source": "torchvision:resnet50", "hardware": "tpu_v4", "architecture": "tpu",
            "workload_key": "0" * 16, "hardware_digest": "0" * 16, "work": "model", "parameter_count": 25_557_032,
            "precision": "bf16", "weight_precision": "bf16", "batch": 1, "runtime": "fused", "power_mode": "default",
            "boundary": "board", "formula_version": formula_version("tpu"), "full_clock_hz": clock,
            "input_spec": "1x3x224x224:fp32", "input_shape": "3x224x224", "deployment": "datacenter",
        },
        varied={
            "clock": ("Hz", clock),
            "unit_count": ("1", UNITS[place // 64 % 8]),
            "memory_bandwidth": ("B/s", BANDWIDTHS[place // 512 % 128]),
            "memory.cmem.capacity": ("B", 2.0**20 * (1 + place // 65_536)),
        },
    )  # fmt: skip


def make_points(number: int, block: Block) -> Any:
    """Return totals computed from the varied constants, with a little noise."""
    random = np.random.default_rng(number)
    clock, units, bandwidth, cache = (values for _, values in block.varied.values())
    count = len(clock)

    def spread() -> Any:
        return random.uniform(1.0, 1.1, count)

    seconds = (4e9 / (clock * units * 128.0) + 1.5e8 / bandwidth / (1.0 + cache / 1e9)) * spread()
    category = {
        name: (joules * spread() * 1e15).astype(np.int64)
        for name, joules in {
            "compute": 2e-3 * (clock / 1e9) ** 2, "register": 1e-3 * (clock / 1e9) ** 2, "unit_memory": 1e-3,
            "chip_memory": 2e-3 * (cache / 1e8) ** 0.5, "interconnect": 5e-4, "off_chip_memory": 1e-2, "control": 1e-4,
            "board": 1e-2, "static": 0.1 * units * seconds,
        }.items()
    }  # fmt: skip
    latency = (seconds * 1e15).astype(np.int64)
    ones = np.ones(count)
    return SimpleNamespace(
        latency_fs=latency, interval_fs=latency - 1_000, energy_fj=sum(category.values()), category_fj=category,
        refusal=np.where(random.uniform(size=count) < 0.01, "static power is above the power limit", ""),
        clock_fraction=np.minimum(1.0, random.uniform(0.5, 1.5, count)), voltage_factor=random.uniform(0.5, 1.0, count),
        uncapped_power_w=random.uniform(100.0, 300.0, count), dram_bytes=1.5e8 * ones, moved_bytes=3e8 * ones,
        mac_count=4_089_184_256 * ones, computed_mac_count=4_089_184_256 * ones,
        peak_ops_per_s=clock * units * 256.0, memory_bandwidth_bytes_per_s=bandwidth,
        weight_bytes=np.full(count, 51_114_064), activation_bytes=np.full(count, 12_845_056),
        latency_half_width=0.3 * ones, energy_half_width=random.uniform(0.3, 0.4, count),
        bottleneck=(units > 256).astype(np.int64), throughput_limit=np.full(count, "latency"),
    )  # fmt: skip


def make(points: int, size: int) -> Iterator[tuple[Block, Any]]:
    """Yield blocks and their points."""
    for number in range(-(-points // size)):
        block = make_block(number, size)
        yield block, make_points(number, block)


class Clock:
    """Accumulated wall time and processor time in seconds."""

    def __init__(self) -> None:
        self.wall_s = self.cpu_s = 0.0

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Sum the time spent inside the block."""
        wall, cpu = time.perf_counter(), time.process_time()
        yield
        self.wall_s += time.perf_counter() - wall
        self.cpu_s += time.process_time() - cpu


def compare_writers(lake: Path, folder: Path, points: int, size: int) -> None:
    """Write every shard, and the same columns by the engines' writers; print rates and ratios."""
    clocks = {name: Clock() for name in ("shards", "pyarrow", "duckdb")}
    done = 0
    engine = duckdb.connect(config={"threads": 1})
    for block, totals in make(points, size):
        with clocks["shards"].running():
            shard = store_points(lake, block, totals)
        done += block.point_count
        if done <= COMPARED * size:
            table = pq.read_table(pa.BufferReader(encode(block, totals)))
            with clocks["pyarrow"].running():
                pq.write_table(table, folder / "plain.parquet", compression="zstd", row_group_size=ROW_GROUP)
            with clocks["duckdb"].running():
                engine.from_arrow(table).write_parquet(str(folder / "plain.parquet"), compression="zstd")
    count = len(list(lake.glob("*/*.parquet")))
    print(f"{done:,} points in {count} shards, {shard.size_bytes / size:.0f} B a point")
    own = done / clocks["shards"].cpu_s
    for name, clock in clocks.items():
        some = done if name == "shards" else min(done, COMPARED * size)
        rate = some / clock.cpu_s
        told = f"{clock.wall_s:6.1f} s, {clock.cpu_s:6.1f} s of a processor, {rate / 1e6:.2f} M points in one of those"
        print(f"{name:31} {told}" + ("" if name == "shards" else f"; ratio {own / rate:.2f}"))


def ask(lake: Path) -> None:
    """Print the time to open the lake and to answer each question."""
    for label in ("first opening", "opening"):
        clock = Clock()
        with clock.running(), reading(Source(path=lake)) as connection:
            connection.execute("SELECT 1")
        print(f"{label:31} {clock.wall_s:6.3f} s, {clock.cpu_s:6.3f} s of a processor")
    with reading(Source(path=lake)) as connection:
        for label, statement in ASKED.items():
            clocks = []
            for _ in range(REPEATS):
                clocks.append(Clock())
                with clocks[-1].running():
                    rows = connection.execute(statement).fetchall()
            least = min(clocks, key=lambda one: one.wall_s)
            cpu_s = min(one.cpu_s for one in clocks)
            told = (
                f"{least.wall_s:6.3f} s, {cpu_s:6.3f} s of a processor, {cpu_s / add():4.2f} loops, {len(rows):,} rows"
            )
            print(f"{label:31} {told}")


def add() -> float:
    """Return the seconds of processor time in which a loop adds 20 million numbers."""
    start, total = time.process_time(), 0
    for number in range(20_000_000):
        total += number
    return time.process_time() - start


def give_nothing(task: DesignTask) -> Any:
    """Return points that take no time to compute, so that only scheduling and writing are timed."""
    none = np.zeros(task.block.point_count, np.int64)
    return SimpleNamespace(latency_fs=none, energy_fj=none, category_fj={}, refusal=none.astype(str))


def hand_out(size: int, folder: Path) -> None:
    """Print the time of an `explore` task of `size` designs in the process that hands it out, and in a worker.

    The time to hand out is the increase for a hundred more tasks on two workers that evaluate nothing, because an idle
    cluster takes time too. The worker's time is measured in this process.
    """
    vary = {"clock": "x0.5:x1:40", "units": "1,2,4,8"}
    vary |= {"dram.bandwidth": "x0.5:x2:100", "memory.cmem.capacity": f"x0.5:x2:{size // 100}"}
    source = Source(path=folder / "asked.duckdb")
    settings = Settings(hardware="tpu_v4", precision="bf16")
    question = prepare_question(source, ["resnet50"], settings, vary, {}, None, 0, is_kept=True)
    parts = [
        (group, group.numbers[start : start + size])
        for group in question.groups
        for start in range(0, len(group.numbers), size)
    ]
    spent = []
    for count in (10, 110):
        start = time.process_time()
        tasks = (task for _, task in make_tasks(parts[:count]))
        fill(folder / f"lake-{count}", tasks, give_nothing, cluster="local:2")
        spent.append(time.process_time() - start)
    share_s = (spent[1] - spent[0]) / 100
    (_, first), *others = make_tasks(parts[:9])
    open_lake(folder / "own")
    run_task(folder / "own", evaluate_task, first)
    start = time.process_time()
    for _, task in others:
        run_task(folder / "own", evaluate_task, task)
    each_s = (time.process_time() - start) / len(others)
    print(
        f"a task of {size:,}: handing out {1e3 * share_s:.1f} ms of a processor, evaluating and writing "
        f"{1e3 * each_s:.0f} ms: {100.0 * share_s / each_s:.1f} %; one scheduler has work for {each_s / share_s:,.0f} "
        f"such workers; a loop takes {add():.2f} s"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=10_000_000)
    parser.add_argument("--block", type=int, default=1 << 18)
    parser.add_argument("--hand-out", type=int, help="designs of a task that a cluster is given")
    parser.add_argument("--keep", type=Path, help="a folder for the lake, asked as it is where it is there")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        if given.hand_out:
            hand_out(given.hand_out, Path(place))
            return
        lake = given.keep or Path(place) / "lake"
        if not lake.exists():
            open_lake(lake)
            compare_writers(lake, Path(place), given.points, given.block)
        ask(lake)
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"memory {used:.2f} GB at most; load of the machine {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")


if __name__ == "__main__":
    main()
