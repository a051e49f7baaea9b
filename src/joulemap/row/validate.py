"""Rows of the queries of `queries/validate`, made from their headers by `make rows`."""

from __future__ import annotations

from joulemap.row import Row


class OperatorScore(Row, query="validate.operator"):
    """Predicted device time of operators inside models against measured, by kind of operator; one row per hardware
    and operator kind, and one for all kinds.
    """

    hardware: str
    """Catalogue id, with @MODE where the power mode is not the default."""
    kind: str
    """Kind of operator, or all: every kind but those whose kernels overlap."""
    is_overlapping: bool
    """Kernels run side by side in a graph, so that the profile is too slow: not in all."""
    group_count: int
    """Groups of operators with one operation and shapes in one model, precision and batch."""
    operator_count: int
    """Operators in them."""
    device_time_s: float
    """s: measured."""
    share_fraction: float | None
    """Of the device time of all profiles that the filters let pass, matched or not."""
    time_bias_fraction: float
    """Total predicted over total measured time, minus 1."""
    time_weighted_error_fraction: float
    """Absolute errors of all groups, weighted by measured time."""
    scored_count: int
    """Groups whose operators take longer than above_s each."""
    mean_error_fraction: float | None
    """Of those: mean absolute relative error."""
    median_error_fraction: float | None
    """Of those: median absolute relative error."""
    bias_fraction: float | None
    """Of those: mean signed relative error; positive is predicted too high."""
    worst_error_fraction: float | None
    """Of those: signed relative error of the group that is furthest off."""
    worst_case: str | None
    """That group: model, precision, batch, operation, shapes."""
    seen_fraction: float
    """Part of the groups that coefficients were chosen with in view."""


class PairScore(Row, query="validate.pair"):
    """Of two hardware that served the same model alike, how often the better one is named rightly; one row per
    source and quantity, and one per quantity for all sources together.
    """

    quantity: str
    """As in serving_predictions."""
    source: str
    """Name of where both measurements come from; all where that is any."""
    pair_count: int
    """pairs: same source, model, precision of weights, scope, tokens in and sequences, tokens out within a tenth,
    other hardware.
    """
    right_fraction: float
    """Part of them in which the one that was measured lower is predicted lower."""
    apart_count: int
    """Pairs that predictions tell apart: the better one is so with a probability of 80 % or more."""
    apart_right_fraction: float | None
    """Part of these that is right; null for none."""
    mean_probability: float | None
    """Mean probability with which the pairs that are told apart were called."""


class ServingRefusal(Row, query="validate.refusal"):
    """Measurements of served models that no prediction scores, and why; one row per source, hardware and reason."""

    source: str
    """Where the measurements come from."""
    hardware: str
    """Catalogue id, or the name of hardware that the catalogue does not have."""
    refusal: str
    """Why there is no prediction."""
    measurement_count: int
    """Measurements of which at least one quantity is not predicted."""
    quantity_count: int
    """Quantities of these that are not predicted."""


class PredictionScore(Row, query="validate.score"):
    """Predictions against measurements: how far off, which way, and whether they rank as measured; one row per
    group and measured quantity.
    """

    quantity: str
    """As in prediction_errors; wall_power_w is that of the system around a board, which the prediction for the
    board may not exceed.
    """
    hardware: str
    """Catalogue id, with @MODE where the power mode is not the default; all where source or quantity divides."""
    part: str
    """Value of what divides the rows, of sources their names, which prediction_errors has whole; single operators,
    models and what is served stand apart.
    """
    measurement_count: int
    """Measurements that have this quantity and a prediction."""
    mean_error_fraction: float
    """Mean absolute relative error."""
    median_error_fraction: float
    """Median absolute relative error."""
    bias_fraction: float
    """Mean signed relative error; positive is predicted too high."""
    worst_error_fraction: float
    """Signed relative error of the row that is furthest off."""
    highest_error_fraction: float
    """Largest signed relative error."""
    worst_case: str
    """That row: model, precision, batch, runtime; of what is served also tokens in and out, devices and engine."""
    rank_correlation: float | None
    """Spearman's: whether predictions order the rows as measured; null below three different predictions."""
    covered_fraction: float | None
    """Part of the rows whose interval holds what was measured; null where predictions have none."""
    exceeded_count: int | None
    """Of wall_power_w: rows whose system drew less than is predicted for its boards, which cannot be; null for all
    else.
    """
    seen_fraction: float
    """Part of the rows that coefficients, or a calibration, were chosen with their family in view."""
    seen: str
    """Which coefficients and calibrations those are; empty where none."""
    calibration: str
    """Calibration of the predictions; none for the class defaults."""


class ServedResidual(Row, query="validate.served"):
    """The error of each prediction of a served model as a logarithm, with the groups that intervals are made of;
    one row per measurement and measured quantity with a prediction.
    """

    quantity: str
    """As in serving_predictions."""
    vendor: str
    """Of the hardware."""
    engine: str
    """That is taken for the prediction."""
    work: str
    """model, or experts where tokens choose among weights."""
    hardware: str
    """Catalogue id, without its operating point."""
    model: str
    """As its source names it."""
    source: str
    """Where the measurement comes from."""
    scope: str
    """prefill_step, decode_step, request, offline or steady_serving."""
    batch: float
    """Sequences of a call, or the mean of requests in flight."""
    measured: float
    """In the quantity's unit."""
    predicted: float
    """In the quantity's unit."""
    log_error: float
    """ln(measured / predicted)."""
    half_width: float | None
    """Of the 80 % interval that the prediction states, of the natural logarithm."""
    serving_measurement_id: int
    """Number of the measurement."""
