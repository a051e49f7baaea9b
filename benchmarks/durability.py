"""Cost of durability and of shared access.

python benchmarks/durability.py [--repeats N]

journal   time of one row written and the database closed, with joulemap's journaled checkpoint, over the time with the
          engine's own checkpoint
sessions  a sweep that lets others have the database every two seconds, against one that keeps it to itself
waiting   how long questions wait that are asked beside that sweep, one after the other
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final
from unittest.mock import patch

import duckdb

from joulemap.plan import stored_runs
from joulemap.store.connection import writing
from joulemap.workspace import Workspace
from sweep import SMALL_STEP, classifiers, store_workloads, sweep

REPEATS: Final = 5
NEW_ROW: Final = "INSERT INTO internal.metric BY NAME SELECT * REPLACE ($name AS name) FROM internal.metric LIMIT 1"


def time_write(path: Path, *, has_journal: bool) -> float:
    """Return the seconds from opening a database, over writing one row, to closing it."""
    name = {"name": f"benchmark {time.monotonic_ns()}"}
    start = time.perf_counter()
    if has_journal:
        with writing(path) as connection:
            connection.execute(NEW_ROW, name)
    else:
        with duckdb.connect(str(path)) as connection:
            connection.execute(NEW_ROW, name)
    return time.perf_counter() - start


def time_sweep(base: Path, path: Path, models: list[str], session_s: float) -> float:
    """Return the seconds of a sweep into a copy of a database, in sessions of this length."""
    shutil.copy(base, path)
    start = time.perf_counter()
    with patch.object(stored_runs, "LONG_SESSION_S", session_s):
        sweep(path, models)
    return time.perf_counter() - start


def time_questions(base: Path, path: Path, models: list[str]) -> list[float]:
    """Return the seconds that each question takes while another process sweeps."""
    shutil.copy(base, path)
    program = "import sys; from pathlib import Path; from sweep import sweep; sweep(Path(sys.argv[1]), sys.argv[2:])"
    taken = []
    with subprocess.Popen([sys.executable, "-c", program, str(path), *models], cwd=Path(__file__).parent) as other:
        while other.poll() is None:
            start = time.perf_counter()
            Workspace(path).sql("SELECT count(*) FROM internal.run")
            taken.append(time.perf_counter() - start)
            time.sleep(0.1)
    return taken


def main() -> None:
    """Print the three ratios and the waits."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=REPEATS)
    repeats = parser.parse_args().repeats
    models = list(classifiers()[::SMALL_STEP])
    with tempfile.TemporaryDirectory() as folder:
        base, path = Path(folder) / "base.duckdb", Path(folder) / "copy.duckdb"
        store_workloads(base, models)
        shutil.copy(base, path)
        times = [
            [time_write(path, has_journal=has_journal) for has_journal in (True, False)] for _ in range(4 * repeats)
        ]
        ours, engine = (statistics.median(one) for one in zip(*times, strict=True))
        print(f"journal: {ours * 1e3:.1f} ms, the engine alone {engine * 1e3:.1f} ms: {ours / engine:.2f}")
        times = [[time_sweep(base, path, models, session_s) for session_s in (2.0, 1e9)] for _ in range(repeats)]
        ours, alone = (statistics.median(one) for one in zip(*times, strict=True))
        print(f"sessions: {ours:.1f} s, one session {alone:.1f} s: {ours / alone:.3f}")
        taken = time_questions(base, path, models)
        print(f"waiting: {len(taken)} questions, median {statistics.median(taken):.2f} s, longest {max(taken):.2f} s")


if __name__ == "__main__":
    main()
