"""Rows of the queries of `queries/calibration`, made from their headers by `make rows`."""

from __future__ import annotations

from joulemap.row import Row


class FittedNumber(Row, query="calibration.coefficient"):
    """What a calibration changed: each coefficient and energy scale before and after; one row per coefficient."""

    part: str
    """time: a coefficient; energy: a factor on energies per action; static: static power."""
    name: str
    """Coefficient or energy scale."""
    default_value: float
    """Without the calibration, in unit."""
    value: float
    """With it, in unit."""
    unit: str
    """SI unit; 1 for a factor or share."""
    ratio: float
    """With it over without it."""
    data_weight_fraction: float
    """Part of what is known of it that the measurements said."""
    is_determined: bool
    """Whether that is enough for it to count as measured."""
    meaning: str
    """What it is."""
    coefficient_index: int
    """Order in the file."""


class CalibrationErrorRow(Row, query="calibration.error"):
    """How far a calibration is from its measurements: with class defaults, as fitted, and with each family left
    out; one row per quantity and group of rows.
    """

    quantity: str
    """Latency or energy."""
    runtime: str | None
    """Of the rows; null for all."""
    precision: str | None
    """Of the rows; null for all."""
    batch: int | None
    """Of the rows; null for all."""
    family: str | None
    """Of the rows' models; null for all."""
    measurement_count: int
    """Rows."""
    uncalibrated_mean_fraction: float | None
    """Mean absolute relative error with class defaults."""
    uncalibrated_median_fraction: float | None
    """Median of the same."""
    fitted_mean_fraction: float | None
    """Mean absolute relative error as fitted."""
    fitted_median_fraction: float | None
    """Median of the same."""
    cross_validated_mean_fraction: float | None
    """Mean absolute relative error of fits that had not seen the row's family; null for a single family."""
    cross_validated_median_fraction: float | None
    """Median of the same."""
    cross_validated_worst_fraction: float | None
    """Signed error of the row that such fits are furthest off; positive is predicted too high."""
    rank_correlation: float | None
    """Spearman's of such fits, or as fitted for a single family; null below three rows."""


class StoredCalibration(Row, query="calibration.list"):
    """Calibrations that runs have used, what they were fitted to, and how far they are from that; one row per
    calibration.
    """

    calibration: str
    """Name and first digits of the digest."""
    hardware: str
    """Id of the hardware that it is for."""
    place: str
    """shipped, the file, or given by a program."""
    hardware_generation: str
    """class, microarchitecture and process node of hardware that may inherit it."""
    inheritors: list[str]
    """Hardware of these runs that inherit it, in alphabetical order."""
    measurement_count: int
    """Measurements that it was fitted to."""
    family_count: int
    """Families of the models measured."""
    latency_credibility_fraction: float
    """How far coefficients went from the class to what fits best."""
    energy_credibility_fraction: float
    """The same of energy scales and static power."""
    moved_count: int
    """Numbers that it moved."""
    determined_count: int
    """Of them, those that the measurements determine."""
    most_moved: str | None
    """The number that it moved most; null where it moved none."""
    most_moved_ratio: float | None
    """After over before of that one."""
    precisions: list[str]
    """Of the measurements."""
    runtimes: list[str]
    """Of the measurements."""
    latency_error_fraction: float | None
    """Median absolute relative error of latencies: of families left out, or as fitted where there is one alone."""
    energy_error_fraction: float | None
    """The same of energies; null where none was measured."""
