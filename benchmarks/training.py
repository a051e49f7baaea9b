"""Compare predicted training rates with published ones: `python benchmarks/training.py`."""

from __future__ import annotations

import argparse
import math
import tempfile
from pathlib import Path

from joulemap.workspace import Workspace


def main() -> None:
    """Print each row, the mean error by source and the number of rows within their interval."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="rows whose model or source contains this text")
    asked = parser.parse_args()
    errors: dict[str, list[float]] = {}
    covered = 0
    with tempfile.TemporaryDirectory() as folder:
        rows = Workspace(Path(folder) / "training.duckdb").published_training()
    for row in rows:
        if asked.only not in row.model + row.source:
            continue
        predicted = row.predicted_per_s or math.nan
        error = math.log(row.measured_per_s / predicted)
        errors.setdefault(row.source.partition(",")[0], []).append(error)
        covered += abs(error) <= (row.latency_half_width or 0.0)
        label = f"{row.model} {row.hardware} x{row.device_count} {row.precision} {row.tokens or ''}"
        change = 100.0 * math.expm1(-error)
        print(f"{label:62s} published {row.measured_per_s:9.4g}/s predicted {predicted:9.4g}/s {change:+6.1f} %")
    every = [error for some in errors.values() for error in some]
    for source, some in {**errors, "all": every}.items():
        print(f"{source}: mean error {100.0 * math.expm1(sum(map(abs, some)) / len(some)):.1f} % of {len(some)} rows")
    print(f"{covered} of {len(every)} within their 80 % interval")


if __name__ == "__main__":
    main()
