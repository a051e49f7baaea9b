"""Rows that only a report asks for."""

from __future__ import annotations

from typing import ClassVar, Literal

from joulemap.record import frozen

Standing = Literal["this hardware", "its class", "other classes"]
"""What the measurements are of that a prediction is judged by."""


@frozen
class PredictionStanding:
    """How predictions like one of a run have scored."""

    query: ClassVar[str] = "report.accuracy"

    model: str
    hardware: str
    quantity: str
    """`latency` or `energy`."""
    half_width: float
    """Of the 80 % interval of the natural logarithm."""
    standing: Standing
    basis: str
    """What the interval follows from."""
    measurement_count: int | None
    """None where they are of other classes."""
    group_count: int | None
    """Model families times boards."""
    calibration: str
    run_id: int


@frozen
class NumberSource:
    """What numbers of a run's hardware are from."""

    query: ClassVar[str] = "report.source"

    model: str
    hardware: str
    basis: str
    source: str
    number_count: int
    numbers: str
    energy_fj: int
    """What the prices among them price of the run."""
    run_fraction: float | None
    run_id: int
