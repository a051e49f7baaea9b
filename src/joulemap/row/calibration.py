"""Rows of the queries of `queries/calibration`, made from their headers by `make rows`."""

from __future__ import annotations

from joulemap.row import Row


class FittedNumber(Row, query="calibration.coefficient"):
    """What a calibration changed: each coefficient and energy scale before and after; one row per coefficient."""

    part: str
    name: str
    default_value: float
    value: float
    unit: str
    ratio: float
    data_weight_fraction: float
    is_determined: bool
    meaning: str
    coefficient_index: int


class CalibrationErrorRow(Row, query="calibration.error"):
    """How far a calibration is from its measurements: with class defaults, as fitted, and with each family left
    out; one row per quantity and group of rows.
    """

    quantity: str
    runtime: str | None
    precision: str | None
    batch: int | None
    family: str | None
    measurement_count: int
    uncalibrated_mean_fraction: float | None
    uncalibrated_median_fraction: float | None
    fitted_mean_fraction: float | None
    fitted_median_fraction: float | None
    cross_validated_mean_fraction: float | None
    cross_validated_median_fraction: float | None
    cross_validated_worst_fraction: float | None
    rank_correlation: float | None


class StoredCalibration(Row, query="calibration.list"):
    """Calibrations that runs have used, what they were fitted to, and how far they are from that; one row per
    calibration.
    """

    calibration: str
    hardware: str
    place: str
    hardware_generation: str
    inheritors: list[str]
    measurement_count: int
    family_count: int
    latency_credibility_fraction: float
    energy_credibility_fraction: float
    moved_count: int
    determined_count: int
    most_moved: str | None
    most_moved_ratio: float | None
    precisions: list[str]
    runtimes: list[str]
    latency_error_fraction: float | None
    energy_error_fraction: float | None
