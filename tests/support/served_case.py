"""Prediction of one measured configuration of a served model."""

from __future__ import annotations

from joulemap.physics import Hardware
from joulemap.system import UnsupportedError
from joulemap.wing.llm.row import Prediction, ServingRow
from joulemap.wing.llm.serving.predict import predict


def predict_row(row: ServingRow, hardware: Hardware) -> Prediction:
    """Return the predicted quantities of one row; raise UnsupportedError with the reason if there are none."""
    (found,) = predict([row], hardware)
    if not isinstance(found, Prediction):
        raise UnsupportedError.of(found)
    return found
