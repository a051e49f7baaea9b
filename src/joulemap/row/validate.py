"""Rows of the queries of `queries/validate`, made from their headers by `make rows`."""

from __future__ import annotations

from joulemap.row import Row


class OperatorScore(Row, query="validate.operator"):
    """Predicted device time of operators inside models against measured, by kind of operator; one row per hardware
    and operator kind, and one for all kinds.
    """

    hardware: str
    kind: str
    is_overlapping: bool
    group_count: int
    operator_count: int
    device_time_s: float
    share_fraction: float | None
    time_bias_fraction: float
    time_weighted_error_fraction: float
    scored_count: int
    mean_error_fraction: float | None
    median_error_fraction: float | None
    bias_fraction: float | None
    worst_error_fraction: float | None
    worst_case: str | None
    seen_fraction: float


class PairScore(Row, query="validate.pair"):
    """Of two hardware that served the same model alike, how often the better one is named rightly; one row per
    source and quantity, and one per quantity for all sources together.
    """

    quantity: str
    source: str
    pair_count: int
    right_fraction: float
    apart_count: int
    apart_right_fraction: float | None
    mean_probability: float | None


class ServingRefusal(Row, query="validate.refusal"):
    """Measurements of served models that no prediction scores, and why; one row per source, hardware and reason."""

    source: str
    hardware: str
    refusal: str
    measurement_count: int
    quantity_count: int


class PredictionScore(Row, query="validate.score"):
    """Predictions against measurements: how far off, which way, and whether they rank as measured; one row per
    group and measured quantity.
    """

    quantity: str
    hardware: str
    part: str
    measurement_count: int
    mean_error_fraction: float
    median_error_fraction: float
    bias_fraction: float
    worst_error_fraction: float
    highest_error_fraction: float
    worst_case: str
    rank_correlation: float | None
    covered_fraction: float | None
    exceeded_count: int | None
    seen_fraction: float
    seen: str
    calibration: str


class ServedResidual(Row, query="validate.served"):
    """The error of each prediction of a served model as a logarithm, with the groups that intervals are made of;
    one row per measurement and measured quantity with a prediction.
    """

    quantity: str
    vendor: str
    engine: str
    work: str
    hardware: str
    model: str
    source: str
    scope: str
    batch: float
    measured: float
    predicted: float
    log_error: float
    half_width: float | None
    serving_measurement_id: int
