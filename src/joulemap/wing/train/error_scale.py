"""Errors of predicted training steps, for the fit of error scales."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from joulemap.physics import ErrorGroup

if TYPE_CHECKING:
    from joulemap.calibrate.error_fit import Residual
    from joulemap.plan import Source

TRAINING: Final = "training"
"""Kind of work of training steps."""

NEW_FRAMEWORK: Final = 0.2
"""Additional half-width of the time of a training step, because a training framework is always a new source.

Assumed. Groups of errors count chips and sources, not frameworks: the same model on the same chip takes 0.92 times
(NeMo) to 1.33 times (FSDP of llm-foundry) the predicted time.
"""

GROUP: Final = ErrorGroup(
    work=TRAINING, new_source=NEW_FRAMEWORK, residuals="joulemap.wing.train.error_scale:read_training"
)


def read_training(source: Source) -> tuple[Residual, ...]:
    """Return the errors of published training rates; rates of one source on one chip are one group."""
    from joulemap.calibrate.error_fit import Residual
    from joulemap.wing.train.published import published_training

    return tuple(
        Residual(
            quantity="latency",
            architecture=row.architecture,
            work=TRAINING,
            runtime=row.runtime,
            precision=row.precision,
            hardware=row.hardware,
            model=row.model,
            batch=row.batch,
            family=row.source.partition(",")[0],
            error=math.log(row.predicted_per_s / row.measured_per_s),
            predicted=row.batch / row.predicted_per_s,
            measured=row.batch / row.measured_per_s,
            half_width=row.latency_half_width,
        )
        for row in published_training(source)
        if row.predicted_per_s
    )
