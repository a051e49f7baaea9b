"""Times of traced operators from the profiles that ship, as databases hold them (`make profile`)."""

from __future__ import annotations

import math
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from joulemap.catalog.profile import Profile, load_profiles
from joulemap.domain.measurement import OperatorMeasurement, TracedOperator
from joulemap.plan.question import ask, holding
from joulemap.store.operator_file import write_operator_file
from joulemap.store.read_operator import read_operators
from joulemap.tools.profile_match import match_profile


def main() -> None:
    """Write the files and tell how much of each configuration's device time was matched."""
    for profile in load_profiles():
        with tempfile.TemporaryDirectory() as folder:
            rows = tuple(match_all(profile, Path(folder) / "profile.duckdb"))
        write_operator_file(profile.operators, rows)
        print(f"{profile.operators.name}: {len(rows):,} rows, {profile.operators.stat().st_size:,} bytes")


def match_all(profile: Profile, path: Path) -> Iterator[OperatorMeasurement]:
    """Yield the rows of a profile by operator; workloads are kept in a database at `path`."""

    @cache
    def operators(model: str, batch: int) -> tuple[TracedOperator, ...]:
        with holding(path, ask(model, batch=batch), _tell) as (workload_id, connection):
            return read_operators(connection, workload_id)

    for (model, precision, batch), kernels in profile.read_kernels().items():
        rows = match_profile(kernels, operators(model, batch))
        total = math.fsum(row.device_time_us for row in rows)
        matched = math.fsum(row.device_time_us for row in rows if row.operation)
        print(f"{model:<20} {precision} batch {batch:>2}: {matched / total:7.2%} of {total:9.1f} us matched")
        yield from rows


def _tell(message: str) -> None:
    print(message, file=sys.stderr)


if __name__ == "__main__":
    main()
