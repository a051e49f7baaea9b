"""Time of streaming rows of a statement, to the first and to all in each format, compared with the engine alone.

python benchmarks/stream.py [DATABASE]

Without DATABASE, a temporary one with about a million ledger lines is used. Each command is a process. The floor is the
engine's own `COPY` of the same rows to the same format, in a process that imports nothing else.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from joulemap.workspace import Workspace

MODELS: Final = ("resnet50", "mobilenet_v2", "vit_b_16", "efficientnet_b0", "convnext_tiny")
HARDWARE: Final = ("h100_sxm5", "tpu_v4", "kpu_t256", "xeon_8490h")
BATCHES: Final = (1, 2, 4, 8, 16, 32)
LEDGER: Final = "SELECT * FROM energy_ledger"

COPY: Final = """
import sys
import duckdb
with duckdb.connect(sys.argv[1], read_only=True) as connection:
    connection.execute(f"COPY ({sys.argv[2]}) TO '{sys.argv[3]}' (FORMAT {sys.argv[4]})")
"""

FIRST: Final = """
import sys
import duckdb
with duckdb.connect(sys.argv[1], read_only=True) as connection:
    print(connection.execute(sys.argv[2]).fetchmany(3))
"""


def timed(command: list[str], *, lines: int = 0) -> float:
    """Return the seconds of a command, or until it has printed its first `lines` lines."""
    begun = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE if lines else subprocess.DEVNULL) as process:
        if process.stdout is not None:
            for _ in range(lines):
                process.stdout.readline()
            process.stdout.close()
        taken = time.perf_counter() - begun
        if process.wait(timeout=600):
            raise SystemExit(f"{command} ended with {process.returncode}")
    return taken if lines else time.perf_counter() - begun


def measure(path: Path, folder: Path) -> None:
    """Print the time of each way to read the ledger, its floor and their ratio."""
    asked = [sys.executable, "-m", "joulemap", "sql", LEDGER, "--db", str(path)]
    floor = timed([sys.executable, "-c", FIRST, str(path), LEDGER])
    for form in ("table", "json", "csv"):
        report(f"first rows, {form}", timed([*asked, "-f", form], lines=3), floor)
    for form, engines in (("parquet", "parquet"), ("csv", "csv"), ("json", "json, ARRAY true")):
        own = timed([*asked, "-f", form, "--output", str(folder / f"own.{form}")])
        copied = timed([sys.executable, "-c", COPY, str(path), LEDGER, str(folder / f"engine.{form}"), engines])
        report(f"all rows, {form}", own, copied)
    begun = time.perf_counter()
    with Workspace(path).stream(LEDGER) as statement:
        rows = statement.arrow().read_all().num_rows
    print(f"all rows, Arrow            {time.perf_counter() - begun:8.2f}   {rows:,} rows")


def report(name: str, seconds: float, floor: float) -> None:
    """Print a line with the ratio of the seconds to the floor."""
    print(f"{name:26} {seconds:8.2f} {floor:8.2f} {seconds / floor:7.2f}")


def main() -> None:
    """Measure a given database, or a temporary one with about a million ledger lines."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(folder) / "stream.duckdb"
        if len(sys.argv) < 2:
            Workspace(path).evaluate(MODELS, hardware=HARDWARE, batch=BATCHES)
        print(f"{'ledger':26} {'s':>8} {'floor s':>8} {'ratio':>7}")
        measure(path, Path(folder))


if __name__ == "__main__":
    main()
