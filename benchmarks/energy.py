"""Measured energies and predictions, with intervals that exclude the measurements of the judged board or source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

from joulemap.calibrate.error_fit import Residual
from joulemap.catalog.error_scale import load_doubt
from joulemap.domain.settings import Bounds
from joulemap.physics.interval.error_scale import DOUBTED, Doubt
from joulemap.plan.source import Source
from joulemap.store.catalogue import write_doubt, write_scales
from joulemap.store.connection import writing
from joulemap.wing.llm.error_fit import fit_served, read_served
from joulemap.wing.llm.error_scale import TABLE, ServingScale, load_served_doubt
from joulemap.workspace import Workspace
from tools.error_fit import fit_scales
from tools.interval import read_foreign, read_residuals

ROWS: Final = """
SELECT *, split_part(hardware, '@', 1) AS board, starts_with(calibration, board || ' ') AS is_calibrated
FROM energy_errors
WHERE half_width IS NOT NULL
ORDER BY measurement_id, serving_measurement_id, boundary
"""

EVERYTHING: Final = Bounds(max_rows=None, timeout_s=600.0)

Row = Mapping[str, Any]


def judge_energies(workspace: Workspace, *, unseen: bool = False) -> list[Row]:
    """Return the rows of `energy_errors` of whole and served models, with intervals from other measurements only.

    The interval of a served row excludes its source, that of any other row its board, including constants that were
    measured on the board. A row with `is_calibrated` keeps the interval of its board's calibration, which is based on
    held-out model families. With `unseen`, rows that a coefficient or a calibration was fitted to are omitted. The
    stored intervals are restored afterwards.
    """
    rows = [row for row in _read(workspace) if not (unseen and row["seen"])]
    foreign = read_foreign(workspace)
    free, served = read_residuals(workspace, foreign=foreign), read_served(Source(path=workspace.path))
    ratios = {
        row["measurement_id"]: foreign[row["measurement_id"]] / row["predicted"]
        for row in workspace.query("validate.residual").records()
        if row["quantity"] == "power" and not row["is_calibrated"] and row["measurement_id"] in foreign
    }
    kept, kept_served = load_doubt(), load_served_doubt().scales
    found: list[Row] = []
    try:
        for part in sorted({_name_part(row) for row in rows}):
            is_served, name = part
            if is_served:
                others = [one for one in served if one.source.casefold() != name]
                _replace(workspace, kept, fit_served(others))
            else:
                others_of_board = [one for one in free if one.hardware != name]
                _replace(workspace, attrs.evolve(kept, scales=fit_all(others_of_board)), kept_served)
            found += [
                row | {name: row[name] * ratios.get(row["measurement_id"], 1.0) for name in ("low", "high")}
                for row in map(dict, _read(workspace))
                if _name_part(row) == part and not (unseen and row["seen"])
            ]
    finally:
        _replace(workspace, kept, kept_served)
    return found


def fit_all(residuals: Sequence[Residual]) -> tuple[Any, ...]:
    """Return the error scales of latency and power."""
    return tuple(scale for name in DOUBTED for scale in fit_scales([one for one in residuals if one.quantity == name]))


def _name_part(row: Row) -> tuple[bool, str]:
    """Return the held-out part of a row: (True, source) if it is served, else (False, board)."""
    is_served = row["serving_measurement_id"] is not None
    return is_served, row["source"].casefold() if is_served else row["board"]


def _read(workspace: Workspace) -> Iterator[Row]:
    yield from workspace.sql(ROWS, bounds=EVERYTHING).records()


def _replace(workspace: Workspace, doubt: Doubt, served: Sequence[ServingScale]) -> None:
    with writing(workspace.path) as connection:
        write_scales(connection, TABLE, served)
        write_doubt(connection, doubt)
