"""Predictions with intervals for measured configurations, as `compare` and `llm` make them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from joulemap.domain import HardwareRef, Measurement, Settings
from joulemap.generated.compare import Comparison
from joulemap.physics import Calibration
from joulemap.plan import Plan, Source, ensure_all, opening_runs, plan_runs, use_calibration
from joulemap.store import fetch
from joulemap.store.reading import RunReading
from joulemap.system import JoulemapError, Reason, frozen
from joulemap.wing.llm.serve import ServingPrediction, ServingRow, load_served_doubt, predict_served

FIGURES: Final = {
    "latency_s": ("latency_s", "latency_half_width"),
    "throughput_per_s": ("throughput_per_s", "latency_half_width"),
    "energy_j": ("energy_j", "energy_half_width"),
    "power_w": ("average_power_w", ""),
    "peak_memory_bytes": ("peak_memory_bytes", ""),
}
"""Quantity of a single run -> columns of a comparison with the value and its half-width."""

WIDTH: Final = 0.3
"""Half-width of the logarithm for a quantity without an interval; it only weighs the misfits of causes.

Source: assumed; latency of unscored boards (docs/accuracy.md), rounded.
"""


@frozen(kw_only=True)
class Case:
    """Configuration to predict, with changes to the measured one."""

    row: Measurement | ServingRow
    changes: tuple[tuple[str, float], ...] = ()
    """(name, value) of constants of the hardware that are changed."""
    added_s: float = 0.0
    """Seconds added to the time of each batch."""


@frozen(kw_only=True)
class Figure:
    """Predicted number, and the half-width of the 80 % interval of its logarithm; None without an interval."""

    value: float
    half_width: float | None

    @property
    def low(self) -> float | None:
        """Lower end of the interval; None without an interval."""
        return None if self.half_width is None else self.value * math.exp(-self.half_width)

    @property
    def high(self) -> float | None:
        """Upper end of the interval; None without an interval."""
        return None if self.half_width is None else self.value * math.exp(self.half_width)

    def miss(self, measured: float) -> float:
        """Return the distance between a measured number and the prediction, in half-widths of the interval."""
        return abs(math.log(measured / self.value)) / (self.half_width or WIDTH)

    def holds(self, measured: float) -> bool | None:
        """Return True if a measured number is inside the interval; None without an interval."""
        return None if self.half_width is None else self.miss(measured) <= 1.0


@frozen(kw_only=True)
class Forecast:
    """Predictions of a case by quantity, or the reason why it cannot run."""

    figures: Mapping[str, Figure] = {}
    refusal: Reason | None = None

    def miss(self, measured: Mapping[str, float]) -> float:
        """Return the mean distance between measured and predicted numbers in half-widths; 0 if none is predicted."""
        missed = [self.figures[name].miss(value) for name, value in measured.items() if name in self.figures]
        return sum(missed) / max(1, len(missed))

    def holds(self, measured: Mapping[str, float]) -> bool | None:
        """Return True if all measured numbers are inside their intervals; None if none has an interval."""
        inside = [self.figures[name].holds(value) for name, value in measured.items() if name in self.figures]
        judged = [one for one in inside if one is not None]
        return all(judged) if judged else None


def measured_of(row: Measurement | ServingRow) -> dict[str, float]:
    """Return quantity -> measured number of a row."""
    if isinstance(row, ServingRow):
        return row.measured()
    return {name: value for name in FIGURES if (value := getattr(row, name)) is not None}


def forecast(source: Source, cases: Sequence[Case], calibration: str | Calibration = "auto") -> list[Forecast]:
    """Return the prediction of each case, in order; runs of single models are stored, as `compare` does."""
    forecasts: dict[int, Forecast] = {}
    served = {index: case.row for index, case in enumerate(cases) if isinstance(case.row, ServingRow)}
    predictions = predict_served(list(served.values()), use_calibration(calibration)) if served else []
    forecasts |= {index: _read_served(row, one) for (index, row), one in zip(served.items(), predictions, strict=True)}
    singles = {index: case for index, case in enumerate(cases) if index not in served}
    forecasts |= _evaluate(source, singles, calibration)
    return [forecasts[index] for index in range(len(cases))]


def _evaluate(source: Source, cases: Mapping[int, Case], calibration: str | Calibration) -> dict[int, Forecast]:
    """Return index -> prediction of single runs, all evaluated and stored together."""
    groups: dict[tuple[Any, ...], dict[int, Case]] = {}
    for index, case in cases.items():
        row = case.row
        assert not isinstance(row, ServingRow)
        groups.setdefault((row.model, row.batch, row.precision, row.matmul_precision, row.runtime, case.changes), {})[
            index
        ] = case
    forecasts: dict[int, Forecast] = {}
    plans: list[tuple[Plan, dict[int, Case]]] = []
    for (model, batch, precision, setting, runtime, changes), group in groups.items():
        settings = Settings(
            hardware=dict.fromkeys(case.row.hardware for case in group.values()),
            precision=precision,
            matmul_precision=setting,
            runtime=runtime,
            batch=batch,
            calibration=calibration,
            changes=dict(changes),
        )
        try:
            plans.append((plan_runs((model,), settings), group))
        except JoulemapError as error:
            forecasts |= dict.fromkeys(group, Forecast(refusal=error.reason))
    ensure_all(source, [plan for plan, _ in plans])
    for plan, group in plans:
        with opening_runs(source, plan) as runs:
            rows = {
                row.hardware: row for row in fetch(runs.connection, Comparison, run_ids=list(runs.ids), baseline="")
            }
            has_refused = any(row.latency_s is None for row in rows.values())
            outlines = RunReading(runs.connection, runs.ids).outlines.values() if has_refused else ()
            reasons = {one.configured_hardware: one.reason for one in outlines}
        forecasts |= {
            index: _read_compared(case, rows[case.row.hardware], reasons.get(case.row.hardware))
            for index, case in group.items()
        }
    return forecasts


def _read_served(row: ServingRow, one: ServingPrediction) -> Forecast:
    widths = load_served_doubt().find_half_widths(
        one,
        vendor=one.vendor,
        hardware=HardwareRef.read(row.hardware).label,
        architecture=one.architecture,
        scope=row.scope,
    )
    figures = {name: Figure(value=getattr(one, name), half_width=width) for name, width in widths.items()}
    return Forecast(figures=figures, refusal=Reason(text=one.refusal) if one.refusal else None)


def _read_compared(case: Case, row: Comparison, reason: Reason | None) -> Forecast:
    if row.latency_s is None:
        return Forecast(refusal=reason or Reason(text=row.reason))
    slower = 1.0 + case.added_s / row.latency_s
    factors = {"latency_s": slower, "throughput_per_s": 1.0 / slower}
    return Forecast(
        figures={
            name: Figure(value=value * factors.get(name, 1.0), half_width=getattr(row, width, None))
            for name, (column, width) in FIGURES.items()
            if (value := getattr(row, column)) is not None
        }
    )
