"""Fit the inputs of intervals to all measurements and write them (`make doubt`).

python -m tools.interval [--database PATH] [--served]

All measurements, including certain public tables, are evaluated in a new database or in the one at PATH. With
`--served`, only served models are evaluated, and only their scales are written.
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final

import attrs

from joulemap.calibrate.error_fit import Residual
from joulemap.catalog.error_scale import SCALE_COLUMNS, SCALES, SHARES, load_compilers
from joulemap.catalog.public import load_public_tables
from joulemap.domain.hardware_ref import HardwareRef
from joulemap.domain.settings import Bounds
from joulemap.physics.interval.error_scale import MODEL, ErrorScale, ErrorShare, list_error_groups
from joulemap.physics.record.quantity import Quantity
from joulemap.plan.source import Source
from joulemap.system.wing import load
from joulemap.workspace import Workspace
from tools.error_fit import MODEL_LEVEL, fit_scales, fit_shares
from tools.left_out import ENDING, describe_left_out, read_left_out

PRICES_SHARE: Final = 0.3
"""Share of a power's error variance that runs of one class have in common, through the price table of the class."""

PRICES_SOURCE: Final = (
    f"the value for latency x {1.0 - PRICES_SHARE:.1f}, plus {PRICES_SHARE} for energies per action that a class takes "
    "from one table; too few boards per class have measured power to fit it"
)


SHARE_COLUMNS: Final = ("quantity", "factor", "share", "basis", "source")

LOAD: Final = "of this load"
"""Text in the column `seen` of a power that a hardware file uses as a measured load; such a power is not scored."""


EVERYTHING: Final = Bounds(max_rows=None, timeout_s=600.0)

CONFIGURATIONS: Final = """
SELECT hardware, precision, runtime, batch, list(model ORDER BY model) AS models
FROM measurements
WHERE
    coalesce(energy_j, power_w, wall_power_w) IS NOT NULL
    AND list_contains($boards, split_part(hardware, '@', 1))
    AND operator_kind(model) = ''
GROUP BY ALL
ORDER BY ALL
"""

FOREIGN: Final = """
SELECT
    m.measurement_id,
    CASE WHEN m.energy_j + m.latency_s IS NULL THEN r.average_power_w ELSE r.energy_j / r.latency_s END AS power_w
FROM measurements AS m
JOIN workload_names AS w ON w.measured_model = m.model
JOIN runs AS r
    ON r.workload_id = w.workload_id
    AND r.hardware = split_part(m.hardware, '@', 1) || $ending
    AND split_part(r.configured_hardware, '@', 2) = split_part(m.hardware, '@', 2)
    AND (r.precision, r.weight_precision, r.runtime, r.batch) = (m.precision, m.precision, m.runtime, m.batch)
WHERE r.is_newest AND operator_kind(m.model) = ''
"""


def read_foreign(workspace: Workspace) -> dict[int, float]:
    """Return the power of each measured model on a board of `left_out.csv` in W, predicted without the board's own
    measurements; runs that the workspace lacks are evaluated.
    """
    boards = {name: describe_left_out(name) for name in read_left_out()}
    for row in workspace.sql(CONFIGURATIONS, {"boards": list(boards)}, bounds=EVERYTHING).records():
        board = HardwareRef.read(row["hardware"])
        workspace.evaluate(
            row["models"],
            hardware=[boards[board.id]],
            power_mode=board.mode,
            **{name: row[name] for name in ("precision", "runtime", "batch")},
        )
    return dict(workspace.sql(FOREIGN, {"ending": ENDING}, bounds=EVERYTHING))


def read_residuals(
    workspace: Workspace, *, is_calibrated: bool = False, foreign: Mapping[int, float] = MappingProxyType({})
) -> tuple[Residual, ...]:
    """Return the errors of uncalibrated predictions, or with `is_calibrated` those of calibrated ones.

    `foreign` has powers from `read_foreign`; for calibrated chips and measured loads, only their errors are returned.
    """
    left = "is_foreign", "compiler"
    names = [field.name for field in attrs.fields(Residual) if "error" not in field.name and field.name not in left]
    residuals = []
    for row in workspace.query("validate.residual").records():
        power_w = foreign.get(row["measurement_id"]) if row["quantity"] == "power" else None
        error = None if power_w is None else math.log(row["measured"] / power_w)
        is_scored = row["is_calibrated"] is is_calibrated and not (row["quantity"] != "latency" and LOAD in row["seen"])
        if is_scored or (error is not None and not is_calibrated):
            residuals.append(
                Residual(
                    error=row["log_error"] if is_scored or error is None else error,
                    foreign_error=error,
                    is_foreign=not is_scored,
                    **{name: row[name] for name in names},
                )
            )
    return tuple(residuals)


def read_of_wings(source: Source) -> tuple[Residual, ...]:
    """Return the errors that wings contribute to the fit of the built-in scales."""
    groups = (load(one.residuals)(source) for one in list_error_groups() if one.residuals)
    return tuple(residual for residuals in groups for residual in residuals)


def evaluate_all(path: Path, *, served: bool = False) -> Workspace:
    """Return a workspace with all measurements evaluated, or with `served` only those of served models."""
    workspace = Workspace(path, talk=_log)
    for one in load_public_tables().values():
        if not one.doubt and not (served and one.is_single):
            workspace.import_measurements(one.address)
            if served:
                for source in sorted({row.source for row in one.read_rows()}):
                    workspace.validate(source=source)
    if not served:
        workspace.validate()
    return workspace


def fit_doubt(residuals: Sequence[Residual]) -> tuple[tuple[ErrorScale, ...], tuple[ErrorShare, ...]]:
    """Return the error scales of both quantities, and the shared parts of errors, latency first."""
    latencies = [one for one in residuals if one.quantity == "latency"]
    scales = fit_scales(latencies, load_compilers())
    shares = fit_shares([one for one in latencies if one.work == MODEL], scales)
    powers = fit_scales([one for one in residuals if one.quantity == "power"])
    return (*scales, *powers), (*shares, *(_share_prices(one) for one in shares))


def _share_prices(share: ErrorShare) -> ErrorShare:
    value = (1.0 - PRICES_SHARE) * share.share.value + (PRICES_SHARE if share.factor == "class" else 0.0)
    return ErrorShare(
        quantity="power",
        factor=share.factor,
        share=Quantity(value=value, unit="1", basis="assumed", source=PRICES_SOURCE, note=""),
    )


def write_doubt(scales: Sequence[ErrorScale], shares: Sequence[ErrorShare]) -> None:
    """Replace the built-in error scales and shares."""
    _write(SCALES, SCALE_COLUMNS, [attrs.asdict(one) | {"half_width": f"{one.half_width:.4g}"} for one in scales])
    _write(
        SHARES,
        SHARE_COLUMNS,
        [
            {
                "quantity": one.quantity,
                "factor": one.factor,
                "share": f"{one.share.value:.2g}",
                "basis": one.share.basis,
                "source": one.share.source,
            }
            for one in shares
        ],
    )


def _write(path: Path, columns: Sequence[str], rows: Sequence[Mapping[str, object]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n", extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)


def main() -> None:
    """Fit and write the built-in error scales and shares."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--database", type=Path, help="one that holds evaluated runs; a fresh one if left out")
    parser.add_argument("--served", action="store_true", help="only what is served")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="joulemap-") as folder:
        workspace = evaluate_all(options.database or Path(folder) / "doubt.duckdb", served=options.served)
        source = Source(path=workspace.path, talk=_log)
        for group in list_error_groups():
            if group.fit:
                _log(load(group.fit)(source))
        if options.served:
            return
        residuals = read_residuals(workspace, foreign=read_foreign(workspace))
        scales, shares = fit_doubt((*residuals, *read_of_wings(source)))
    write_doubt(scales, shares)
    _log(f"{len(scales)} scales, of {sum(one.row_count for one in scales if one.level < 1):,} errors")
    for one in scales:
        if one.level == MODEL_LEVEL and one.work == MODEL:
            _log(f"{one.quantity} of models on {one.architecture}: half-width {one.half_width:.3f}")


def _log(message: str) -> None:
    print(message, file=sys.stderr)


if __name__ == "__main__":
    main()
