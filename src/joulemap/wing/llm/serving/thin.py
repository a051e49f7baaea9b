"""Half-widths that an engine's thinly measured numbers add to the times of its passes."""

from __future__ import annotations

import numpy as np

from joulemap.physics.interval.error_scale import find_peak, find_thin_bounds
from joulemap.physics.interval.half_width import find_moving_width
from joulemap.physics.pipeline import evaluate
from joulemap.physics.record.configuration import Configuration
from joulemap.wing.llm.serving.deployment import Deployment
from joulemap.wing.llm.serving.surface import Passes


def find_thin_width(deployment: Deployment, passes: Passes) -> float:
    """Return the half-width of the natural logarithm of the first pass's time that its thinnest number adds.

    A number counts if it sets a tenth of the time. Raises as `Deployment.price` does.
    """
    asked = deployment.ask(passes)[0]
    under, whole = deployment.put_under(asked), deployment.unlimited
    chip = under.take(under.list_ways(whole)[0], whole)
    known = {name: one.evidence for name, one in chip.quantities() if one.evidence is not None}
    widths = find_thin_bounds(known, find_peak(chip.architecture, deployment.precision))
    if not any(widths):
        return 0.0
    run = evaluate(
        deployment.workloads.describe([asked]).works[0],
        chip,
        Configuration(
            hardware=chip.id,
            precision=deployment.precision,
            runtime=deployment.stack.runtime,
            weight_precision=deployment.weight_precision,
        ),
    )
    parts = run.subgraphs
    is_computing = parts.compute_s >= parts.memory_s
    bounds = np.array(
        [
            np.sum(parts.compute_s[is_computing]),
            np.sum(parts.memory_s[~is_computing]) + np.sum(parts.pass_s),
            np.sum(parts.launch_s),
        ]
    )
    return float(find_moving_width(bounds, np.array(widths), bounds.sum()))
