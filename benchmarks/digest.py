"""Cost of the digests of stored runs: a sweep written with and without them, and a check of its database.

python benchmarks/digest.py [--repeats N]

Evaluates every tenth classification model on every chip at three batches, as benchmarks/sweep.py does. Both kinds of
sweep alternate, and the lowest processor time of each counts, because the machine may be shared.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import duckdb

from joulemap.store.digest import Columns, Digester
from joulemap.workspace import Workspace
from sweep import SMALL_STEP, classifiers, store_workloads, sweep

REPEATS: Final = 5


def digest_nothing(
    _digester: Digester, runs: Mapping[str, Sequence[Any]], _parts: Mapping[str, Columns]
) -> Sequence[str]:
    """Return an empty digest for each run."""
    return [""] * len(runs["run_id"])


def time_sweep(base: Path, path: Path, models: Sequence[str]) -> float:
    """Return the seconds of processor time that a sweep into a copy of a database takes."""
    shutil.copy(base, path)
    start = time.process_time()
    sweep(path, models)
    return time.process_time() - start


def main() -> None:
    """Print the ratio of both sweeps, and the time of a check per million ledger lines."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=REPEATS, help="sweeps of each kind")
    repeats = parser.parse_args().repeats
    models = classifiers()[::SMALL_STEP]
    with tempfile.TemporaryDirectory() as folder:
        base, path = Path(folder) / "base.duckdb", Path(folder) / "sweep.duckdb"
        store_workloads(base, models)
        time_sweep(base, path, models[:1])
        with_digests, without = [], []
        for _ in range(repeats):
            with patch.object(Digester, "digest_runs", digest_nothing):
                without.append(time_sweep(base, path, models))
            with_digests.append(time_sweep(base, path, models))
        connection = duckdb.connect(str(path), read_only=True)
        ((lines,),) = connection.execute("SELECT count(*) FROM internal.ledger_line").fetchall()
        connection.close()
        start = time.perf_counter()
        findings = Workspace(path).check().findings
        elapsed = time.perf_counter() - start
    assert not findings.rows
    print(f"{lines:,} ledger lines: {min(without):.2f} s without digests, {min(with_digests):.2f} s with them")
    print(f"with / without: {min(with_digests) / min(without):.3f}")
    print(f"check: {elapsed:.1f} s, {elapsed / lines * 1e6:.2f} s for a million ledger lines")


if __name__ == "__main__":
    main()
