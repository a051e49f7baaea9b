"""Times of traced operators from the shipped profiles, in the form of the database (`make profile`).

A row of a profile is divided among the operators that expect it (`lowering`), one call each: the same kernel at the
same shapes takes the same time. No time is lost. A row that no operator expects, or whose number of calls differs from
the expected one, stays a row without operator.
"""

from __future__ import annotations

import csv
import json
import math
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Final

import attrs

from joulemap.catalog.measurement import Profile, load_profiles
from joulemap.domain.measurement import TracedOperator
from joulemap.domain.settings import Settings
from joulemap.plan.source import Source
from joulemap.plan.workload import find_model, opening_workload
from joulemap.store.connection import open_in_memory
from joulemap.store.insert import insert_records
from joulemap.store.literal import execute
from joulemap.store.workload import read_operators
from joulemap.system.record import frozen
from tools.lowering import Expected, Key, ProfiledKernel, expect_kernels, find_key

NAMESPACE: Final = "aten::"

Configuration = tuple[str, str, int]
"""(model, precision, batch) of a profiled run."""

TIME_DIGITS: Final = 4
"""Decimal places kept of a time in microseconds; profilers report three."""


@frozen(kw_only=True)
class OperatorMeasurement:
    """Device time of a model's operators with equal operation and shapes, or of kernels that belong to no operator."""

    model: str
    precision: str
    batch: int
    operation: str
    """Operation; empty for kernels without an operator in the trace."""
    shapes: str
    """Traced shapes; argument shapes for kernels without an operator."""
    operator_count: int
    """Number of operators in the trace to which the row refers; 0 for kernels that belong to no operator."""
    kernels: str
    """ATen operators of the kernels, in alphabetical order."""
    call_count: int
    """Calls of the ATen operators in `kernels`."""
    device_time_us: float
    """Device time of all operators of the row, gaps between kernels excluded."""
    is_overlapping: bool
    """True if the kernels run concurrently in a graph, so that they take less time there."""
    pass_count: int
    """Passes in the profile; times and calls are per pass."""


@frozen
class _Row:
    """Rows of a profile that have the same key."""

    kernels: tuple[ProfiledKernel, ...]

    @property
    def call_count(self) -> int:
        return sum(kernel.call_count for kernel in self.kernels)

    @property
    def device_time_us(self) -> float:
        return math.fsum(kernel.device_time_us for kernel in self.kernels)


@frozen
class _Claim:
    """Assignment of the rows of a profile to operators of a trace."""

    rows: Mapping[Key, _Row]
    expected: Mapping[int, Sequence[Expected]]
    """Index of an operator -> kernels that it is expected to run."""
    pass_count: int
    """Number of times that the profile lists every operator."""

    @cached_property
    def certain(self) -> Counter[Key]:
        """Key -> calls per pass that operators make for certain."""
        return self._count(True)

    @cached_property
    def possible(self) -> Counter[Key]:
        """Key -> further calls per pass that operators may make."""
        return self._count(False)

    def _count(self, is_certain: bool) -> Counter[Key]:
        counts = Counter[Key]()
        for kernels in self.expected.values():
            for one in kernels:
                if one.is_certain == is_certain:
                    counts[one.key] += one.call_count
        return counts

    def is_met(self, key: Key) -> bool:
        """Return whether a row has as many calls per pass as the operators that expect it."""
        least = self.certain[key]
        return key in self.rows and least <= self.rows[key].call_count / self.pass_count <= least + self.possible[key]

    def shares(self, one: Expected) -> tuple[float, float]:
        """Return the (calls, microseconds) per pass that one kernel of an operator gets; (0, 0) if its row is not
        matched.
        """
        if not self.is_met(one.key):
            return 0.0, 0.0
        row = self.rows[one.key]
        calls = float(one.call_count)
        if not one.is_certain:
            calls *= (row.call_count / self.pass_count - self.certain[one.key]) / self.possible[one.key]
        return calls, row.device_time_us * calls / row.call_count

    def without_unmet(self) -> _Claim:
        """Return the claim without operators for which a kernel has another number of calls than expected."""
        kept = {
            index: kernels
            for index, kernels in self.expected.items()
            if all(self.is_met(one.key) for one in kernels if one.is_certain)
        }
        return attrs.evolve(self, expected=kept)


def match_profile(
    kernels: Iterable[ProfiledKernel], operators: Iterable[TracedOperator]
) -> tuple[OperatorMeasurement, ...]:
    """Return the device time of one configuration by operation and shapes, then the rows without operator.

    `kernels` are the rows of one model, precision and batch, `operators` its trace. If the profile lists every operator
    k times, times and calls are divided by k.
    """
    listed = tuple(kernels)
    traced = tuple(operators)
    by_key: dict[Key, list[ProfiledKernel]] = defaultdict(list)
    for kernel in listed:
        by_key[find_key(kernel)].append(kernel)
    rows = {key: _Row(tuple(rows_of_key)) for key, rows_of_key in by_key.items()}
    expected = {one.operator_index: expect_kernels(one, listed[0].precision) for one in traced}
    claim = _Claim(rows, {index: kernels for index, kernels in expected.items() if kernels}, 1)
    claim = attrs.evolve(claim, pass_count=_count_passes(claim))
    while len((rest := claim.without_unmet()).expected) < len(claim.expected):
        claim = rest
    groups: dict[tuple[str, str], list[TracedOperator]] = defaultdict(list)
    for operator in traced:
        is_attention = operator.operation == "scaled_dot_product_attention"
        if operator.operator_index in claim.expected or is_attention:
            groups[operator.operation, operator.shapes].append(operator)
    measured = (_measure(listed[0], group, claim) for group in groups.values())
    taken = {one.key for kernels in claim.expected.values() for one in kernels if claim.is_met(one.key)}
    return (
        *(one for one in measured if one.call_count),
        *(_leave_over(kernel, claim.pass_count) for kernel in listed if find_key(kernel) not in taken),
    )


def _count_passes(claim: _Claim) -> int:
    """Return the number of passes in a profile, from the rows that consist only of certain kernels."""
    ratios = Counter(
        row.call_count // claim.certain[key]
        for key, row in claim.rows.items()
        if claim.certain[key] and not claim.possible[key] and row.call_count % claim.certain[key] == 0
    )
    return ratios.most_common(1)[0][0] if ratios else 1


def _measure(configuration: ProfiledKernel, group: Sequence[TracedOperator], claim: _Claim) -> OperatorMeasurement:
    kernels = [one for operator in group for one in claim.expected.get(operator.operator_index, ())]
    shares = [claim.shares(one) for one in kernels]
    names = {kernel.aten for one in kernels if claim.is_met(one.key) for kernel in claim.rows[one.key].kernels}
    return OperatorMeasurement(
        model=configuration.model,
        precision=configuration.precision,
        batch=configuration.batch,
        operation=group[0].operation,
        shapes=group[0].shapes,
        operator_count=len(group),
        kernels=" ".join(sorted(names)),
        call_count=round(math.fsum(calls for calls, _ in shares)),
        device_time_us=math.fsum(time for _, time in shares),
        is_overlapping=group[0].kind == "grouped_conv",
        pass_count=claim.pass_count,
    )


def _leave_over(kernel: ProfiledKernel, pass_count: int) -> OperatorMeasurement:
    return OperatorMeasurement(
        model=kernel.model,
        precision=kernel.precision,
        batch=kernel.batch,
        operation="",
        shapes=" ".join("x".join(map(str, shape)) for shape in kernel.shapes if shape),
        operator_count=0,
        kernels=kernel.aten,
        call_count=kernel.call_count // pass_count,
        device_time_us=kernel.device_time_us / pass_count,
        is_overlapping=False,
        pass_count=pass_count,
    )


def write_operator_file(path: Path, rows: Sequence[OperatorMeasurement]) -> None:
    """Write operator measurements to the Parquet file that ships."""
    connection = open_in_memory()
    connection.execute(
        "CREATE TABLE internal.shipped (model VARCHAR, precision VARCHAR, batch INTEGER, operation VARCHAR, "
        "shapes VARCHAR, operator_count INTEGER, kernels VARCHAR, call_count INTEGER, device_time_us DOUBLE, "
        "is_overlapping BOOLEAN, pass_count INTEGER)"
    )
    times = [round(row.device_time_us, TIME_DIGITS) for row in rows]
    insert_records(connection, "shipped", rows, device_time_us=times)
    execute(
        connection,
        "COPY (FROM internal.shipped ORDER BY model, precision, batch, operation, shapes, kernels) "
        "TO $path (FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 19)",
        {"path": str(path)},
    )
    connection.close()


def main() -> None:
    """Write the files, and print the share of each configuration's device time that was matched."""
    for profile in load_profiles():
        with tempfile.TemporaryDirectory() as folder:
            rows = tuple(match_all(profile, Path(folder) / "profile.duckdb"))
        write_operator_file(profile.operators, rows)
        print(f"{profile.operators.name}: {len(rows):,} rows, {profile.operators.stat().st_size:,} bytes")


def read_kernels(profile: Profile) -> dict[Configuration, tuple[ProfiledKernel, ...]]:
    """Return (model, precision, batch) -> recorded rows, in the order of the file."""
    by_configuration: dict[Configuration, list[ProfiledKernel]] = defaultdict(list)
    with profile.path.with_suffix(".csv").open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            kernel = ProfiledKernel(
                model=row["model"],
                precision=row["precision"],
                batch=int(row["batch"]),
                aten=row["op"].removeprefix(NAMESPACE),
                shapes=tuple(tuple(shape) for shape in json.loads(row["input_shapes"])),
                call_count=int(row["calls"]),
                device_time_us=float(row["device_time_us_total"]),
            )
            by_configuration[kernel.model, kernel.precision, kernel.batch].append(kernel)
    return {configuration: tuple(kernels) for configuration, kernels in by_configuration.items()}


def match_all(profile: Profile, path: Path) -> Iterator[OperatorMeasurement]:
    """Yield the rows of a profile by operator; workloads are kept in a database at `path`."""
    source = Source(path=path, talk=_log)

    @cache
    def operators(model: str, batch: int) -> tuple[TracedOperator, ...]:
        with opening_workload(source, find_model(model, Settings(), batch)) as (workload_id, connection):
            return read_operators(connection, workload_id)

    for (model, precision, batch), kernels in read_kernels(profile).items():
        rows = match_profile(kernels, operators(model, batch))
        total = math.fsum(row.device_time_us for row in rows)
        matched = math.fsum(row.device_time_us for row in rows if row.operation)
        print(f"{model:<20} {precision} batch {batch:>2}: {100.0 * matched / total:6.2f} % of {total:9.1f} us matched")
        yield from rows


def _log(message: str) -> None:
    print(message, file=sys.stderr)


if __name__ == "__main__":
    main()
