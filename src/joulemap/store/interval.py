"""Inputs of prediction intervals, read from the database: error scales, held-out errors, and hardware numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs
import duckdb

from joulemap.physics.interval.error_record import CROSS_VALIDATED, MEAN_TO_WIDTH, ErrorRecord, HeldOut, Widths
from joulemap.physics.interval.error_scale import ErrorScale, PowerFloor, find_peak, find_thin_bounds
from joulemap.physics.interval.scale import BASES, CALIBRATED, Subject
from joulemap.physics.record.address import SOURCE
from joulemap.physics.record.quantity import COUNTS, Evidence, Quantity
from joulemap.store.literal import execute

if TYPE_CHECKING:
    from joulemap.physics.interval.half_width import Errors, HalfWidths
    from joulemap.physics.interval.probability import Floats

CONFIGURATION: Final = (
    "work", "architecture", "runtime", "precision", "hardware", "calibration_digest", "ops_per_s", "is_single",
    "hardware_digest",
)  # fmt: skip
"""Columns of a run that determine its prediction errors."""

SCALE_COLUMNS: Final = tuple(one.name for one in attrs.fields(ErrorScale))


def load_record(connection: duckdb.DuckDBPyConnection) -> ErrorRecord:
    """Return all stored prediction errors."""
    rows = connection.execute(f"SELECT {', '.join(SCALE_COLUMNS)} FROM internal.error_scale").fetchall()
    held_out: dict[tuple[str, str, str], dict[str, HeldOut]] = {}
    for calibration, hardware, runtime, precision, *errors in execute(
        connection,
        "SELECT e.calibration_digest, c.hardware, e.runtime, e.precision, "
        "max_by(e.mean_error_fraction, e.measurement_count) FILTER (e.quantity = 'latency'), "
        "max_by(e.mean_error_fraction, e.measurement_count) FILTER (e.quantity = 'energy') "
        "FROM internal.calibration_error AS e JOIN internal.calibration AS c USING (calibration_digest) "
        "WHERE e.split = ? AND e.family IS NULL AND e.runtime IS NOT NULL "
        "AND e.precision IS NOT NULL GROUP BY ALL",
        [CROSS_VALIDATED],
    ).fetchall():
        latency, energy = (None if one is None else MEAN_TO_WIDTH * one for one in errors)
        held_out.setdefault((calibration, hardware, runtime), {})[precision] = (latency, energy)
    return ErrorRecord(
        scales=tuple(ErrorScale(**dict(zip(SCALE_COLUMNS, row, strict=True))) for row in rows),
        floors=_load_floors(connection),
        held_out=held_out,
    )


def _load_floors(connection: duckdb.DuckDBPyConnection) -> tuple[PowerFloor, ...]:
    rows = connection.execute(
        "SELECT architecture, evidence, most_ops_per_s, half_width, basis, source "
        "FROM internal.power_floor ORDER BY ALL"
    ).fetchall()
    return tuple(
        PowerFloor(
            architecture=architecture,
            evidence=evidence,
            most_ops_per_s=most,
            half_width=Quantity(value=width, unit="1", basis=basis, source=source, note=""),
        )
        for architecture, evidence, most, width, basis, source in rows
    )


def compute_half_widths(
    connection: duckdb.DuckDBPyConnection, spent: Mapping[str, Sequence[Any]]
) -> tuple[HalfWidths, Errors, Errors]:
    """Return (half-widths of runs, their latency errors, their power errors).

    `spent` has one row per run: the columns of `CONFIGURATION`, and the parts of latency and energy that `store.total`
    sums.
    """
    import numpy as np

    from joulemap.physics.interval.half_width import Spent, combine_errors, stack_errors

    keys = list(zip(*(spent[name] for name in CONFIGURATION), strict=True))
    places = {key: position for position, key in enumerate(dict.fromkeys(keys))}
    rows = np.array([places[key] for key in keys], dtype=np.int64)
    digests = {key[-1] for key in places}
    record = load_record(connection)
    latency, power = stack_errors([record.find_errors(*_describe(key)) for key in places], rows)
    numbers, evidence = _load_numbers(connection, digests), _load_evidence(connection, digests)
    own, thin = zip(*(_find_widths(numbers, evidence, key) for key in places), strict=True)
    parts = Spent(
        latency_fs=_as_floats(spent["latency_fs"]),
        bound_fs=np.stack([_as_floats(spent[name]) for name in ("compute_fs", "memory_fs", "launch_fs")], axis=1),
        own_number=_as_floats(own)[rows],
        thin=_as_floats(thin)[rows],
        suppressed_s=_as_floats(spent["suppressed_s"]),
        basis_square=_as_floats(spent["basis_square"]),
        own_square=_as_floats(spent["own_square"]),
        has_load=np.array(spent["has_load"], dtype=bool),
        breaks_law=np.array(spent["breaks_law"], dtype=bool),
        **{name: _as_floats(spent[name]) for name in ("host_share", "growth_half_width", "host_half_width")},
    )
    return combine_errors(latency, power, parts), latency, power


def describe_bases(errors: Errors) -> tuple[list[str | None], list[int | None]]:
    """Return (basis of each error, number of measurement groups behind it); None if unknown or without groups."""
    import numpy as np

    has_group = np.isnan(errors.held_out) & ~np.isnan(errors.level)
    bases = [None if np.isnan(one) else BASES[int(one)] for one in errors.level.tolist()]
    return (
        [CALIBRATED if one == one else basis for one, basis in zip(errors.held_out.tolist(), bases, strict=True)],
        [int(one) if there else None for one, there in zip(errors.group_count, has_group, strict=True)],
    )


def _as_floats(values: Sequence[Any]) -> Floats:
    """Return an array of floats, with NaN for None."""
    import numpy as np

    return np.array(values, dtype=float)


def _describe(key: tuple[Any, ...]) -> tuple[Subject, str]:
    """Return (key of an error lookup, calibration) of a configuration."""
    work, architecture, runtime, precision, hardware, calibration, ops_per_s, is_single, _ = key
    subject = Subject(
        work=work, architecture=architecture, runtime=runtime, precision=precision, hardware=hardware,
        ops_per_s=ops_per_s, is_single=is_single,
    )  # fmt: skip
    return subject, calibration


def _find_widths(
    numbers: Mapping[tuple[str, str], float], evidence: Mapping[str, Mapping[str, Evidence]], key: tuple[Any, ...]
) -> tuple[Widths, Widths]:
    """Return two half-widths for each bound of a configuration's times: of uncertain and of thinly measured numbers."""
    _, architecture, _, precision, *_, digest = key
    peak = find_peak(architecture, precision)
    clock = numbers.get((digest, "clock"), 0.0)
    compute = max(clock, numbers.get((digest, f"peak.{peak}"), 0.0))
    own = compute, numbers.get((digest, "memory_bandwidth"), 0.0), clock
    return own, find_thin_bounds(evidence.get(digest, {}), peak)


def _load_numbers(connection: duckdb.DuckDBPyConnection, digests: Iterable[str]) -> dict[tuple[str, str], float]:
    """Return (hardware digest, quantity) -> additional half-width that follows from the basis of the hardware's number.

    Numbers that the user set by `--set` are omitted.
    """
    rows: Sequence[tuple[str, str, float]] = execute(
        connection,
        "SELECT f.hardware_digest, f.quantity, b.own_number_half_width FROM internal.hardware_fact AS f "
        "JOIN internal.basis_spread AS b ON b.number_basis = f.basis "
        "WHERE list_contains($digests, f.hardware_digest) AND NOT ends_with(f.source, $set) "
        "AND (f.quantity IN ('clock', 'memory_bandwidth') OR starts_with(f.quantity, 'peak.'))",
        {"digests": sorted(digests), "set": SOURCE},
    ).fetchall()
    return {(digest, quantity): width for digest, quantity, width in rows}


def _load_evidence(connection: duckdb.DuckDBPyConnection, digests: Iterable[str]) -> dict[str, dict[str, Evidence]]:
    """Return hardware digest -> dotted name of a fitted number -> measurements behind it."""
    by_digest: dict[str, dict[str, Evidence]] = {}
    for digest, quantity, *counts in execute(
        connection,
        f"SELECT hardware_digest, quantity, {', '.join(COUNTS)} FROM internal.hardware_fact "
        "WHERE list_contains($digests, hardware_digest) AND sources IS NOT NULL",
        {"digests": sorted(digests)},
    ).fetchall():
        by_digest.setdefault(digest, {})[quantity] = Evidence(**dict(zip(COUNTS, counts, strict=True)))
    return by_digest
