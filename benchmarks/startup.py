"""Start-up and end-to-end times as ratios to a floor, the imports that are needed anyway. Medians of 5 in one run.

python benchmarks/startup.py

Processor time is printed next to wall time, because it does not depend on other load. Compiled code is cached as in an
installed package, regardless of PYTHONDONTWRITEBYTECODE.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

REPEATS = 5

BARE_TYPER = """
import typer
app = typer.Typer()
@app.command()
def one(name: str, count: int = 1): "Do one thing."
@app.command()
def two(name: str): "Do another."
app()
"""

FLOOR = "import duckdb; duckdb.connect({path!r}, read_only=True).execute('SELECT run_id FROM internal.run').fetchall()"


def spent() -> float:
    """Return the processor seconds of all child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def timed(command: list[str]) -> tuple[float, float]:
    """Return (wall seconds, processor seconds) of a command; exit with its stderr if it fails."""
    start, before = time.perf_counter(), spent()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed: {done.stderr}")
    return time.perf_counter() - start, spent() - before


def main() -> None:
    """Print the time of each command, its floor and their ratio."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    python = sys.executable
    joulemap = str(Path(python).with_name("joulemap"))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "bench.duckdb")
        fresh = [os.path.join(folder, f"fresh{index}.duckdb") for index in range(REPEATS + 1)]
        traced = [os.path.join(folder, f"traced{index}.duckdb") for index in range(REPEATS + 1)]
        bare = os.path.join(folder, "bare.py")
        Path(bare).write_text(BARE_TYPER)
        subprocess.run([joulemap, "compare", "resnet18", "--db", path], capture_output=True, check=True)
        pairs: dict[str, tuple[Callable[[int], list[str]], list[str], float]] = {
            "first compare, no database, traced": (
                lambda index: ["env", "JOULEMAP_RETRACE=1", joulemap, "compare", "resnet18", "--db", traced[index]],
                [python, "-c", "import torch, torchvision.models"],
                0.65,
            ),
            "first compare, no database, as it ships": (
                lambda index: [joulemap, "compare", "resnet18", "--db", fresh[index]],
                [python, "-c", "import duckdb, typer, rich"],
                3.0,
            ),
            "second compare, runs stored": (
                lambda _: [joulemap, "compare", "resnet18", "--db", path],
                [python, "-c", "import duckdb, typer, rich"],
                1.9,
            ),
            "second compare, workload stored, evaluated again": (
                lambda index: [joulemap, "compare", "resnet18", "--db", fresh[index], "--runtime", "graph"],
                [python, "-c", "import duckdb, typer, rich"],
                3.0,
            ),
            "query run": (
                lambda _: [joulemap, "query", "run", "edp.distribution", "-p", "run_id=1", "--db", path],
                [python, "-c", FLOOR.format(path=path)],
                1.35,
            ),
            "sql": (
                lambda _: [joulemap, "sql", "SELECT hardware, energy_j FROM runs", "--db", path],
                [python, "-c", FLOOR.format(path=path)],
                1.25,
            ),
            "hardware list": (
                lambda _: [joulemap, "hardware", "list", "--db", path],
                [python, "-c", FLOOR.format(path=path)],
                1.4,
            ),
            "--help": (lambda _: [joulemap, "--help"], [python, bare, "--help"], 0.6),
        }
        print(f"{'command':<50} {'median s':>9} {'floor s':>9} {'ratio':>7} {'processor':>9} {'goal':>6}")
        for name, (command, floor, goal) in pairs.items():
            timed(command(REPEATS)), timed(floor)
            ours, theirs = [], []
            for index in range(REPEATS):
                ours.append(timed(command(index)))
                theirs.append(timed(floor))
            mine, cpu = map(statistics.median, zip(*ours, strict=True))
            base, base_cpu = map(statistics.median, zip(*theirs, strict=True))
            print(f"{name:<50} {mine:>9.3f} {base:>9.3f} {mine / base:>7.2f} {cpu / base_cpu:>9.2f} {goal:>6.2f}")


if __name__ == "__main__":
    main()
