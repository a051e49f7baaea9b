"""Rows of the verification answer."""

from __future__ import annotations

from joulemap.domain.computed import described
from joulemap.system.record import frozen


@frozen(kw_only=True)
class VerifiedRow:
    """Measured quantity of a configuration next to its prediction."""

    file: str = described("file with the measurement")
    format: str = described("format of the file")
    case_index: int = described("configuration, counted from 1 over all files")
    model: str = described("model")
    hardware: str = described("catalogue id, with @MODE where the power mode is not the default")
    configuration: str = described("precision, batch, runtime or engine, devices and lengths")
    quantity: str = described("measured quantity; its name ends with the unit")
    measured: float | None = described("measured value in SI units; null where the file has no usable number")
    predicted: float | None = described(
        "predicted value in SI units; requests that arrive together wait; null where nothing is predicted"
    )
    low: float | None = described("lower end of the 80 % interval")
    high: float | None = described("upper end of the 80 % interval")
    ratio: float | None = described("measured divided by predicted")
    is_inside: bool | None = described("true where the measured value is inside the interval; null without an interval")
    calibrated: float | None = described("prediction with a calibration to these rows; null where none was fitted")
    reason: str = described("reason for a missing score: no usable number in the file, or no prediction; else empty")
