"""Half-widths that an engine's thinly measured numbers add to the times of its passes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from joulemap.physics import Configuration, Evaluator, evaluate_together, stack_totals
from joulemap.physics.interval.error_scale import find_peak, find_thin_bounds
from joulemap.physics.interval.half_width import find_moving_width

if TYPE_CHECKING:
    from joulemap.physics import Floats, Hardware
    from joulemap.wing.llm.decoder.column import Asked
    from joulemap.wing.llm.serving.deployment import Deployment


def find_thin_widths(passes: Sequence[tuple[Deployment, Asked]]) -> Floats:
    """Return the half-width of the natural logarithm of the time of each pass of a deployment that its thinnest number
    adds.

    A number counts if it sets a tenth of the time. Passes of several deployments are evaluated together, which is
    fastest if these share their workloads. A pass that its chip cannot run has 0.
    """
    chips: dict[tuple[int, str], tuple[Hardware, tuple[float, float, float]]] = {}
    places: dict[tuple[int, Asked], int] = {}
    evaluators: list[Evaluator] = []
    cells: list[tuple[int, Hardware, Configuration]] = []
    rows: list[int] = []
    known: list[tuple[float, float, float]] = []
    for row, (deployment, asked) in enumerate(passes):
        under = deployment.put_under(asked)
        key = id(deployment), under.word
        if key not in chips:
            chip = under.take(under.list_ways(deployment.unlimited)[0], deployment.unlimited)
            chips[key] = chip, _find_bounds(chip, deployment.precision)
        chip, bounds = chips[key]
        if not any(bounds):
            continue
        place = id(deployment.workloads), asked
        if place not in places:
            places[place] = len(evaluators)
            evaluators.append(Evaluator(deployment.workloads.describe([asked]).works[0]))
        configuration = Configuration(
            hardware=chip.id,
            precision=deployment.precision,
            runtime=deployment.stack.runtime,
            weight_precision=deployment.weight_precision,
        )
        cells.append((places[place], chip, configuration))
        rows.append(row)
        known.append(bounds)
    widths = np.zeros(len(passes))
    if rows:
        shares = stack_totals(evaluate_together(evaluators, cells)).share_fs.astype(np.float64)
        times = shares.sum(axis=1)
        widths[rows] = np.where(times > 0.0, find_moving_width(shares, np.array(known), times), 0.0)
    return widths


def _find_bounds(chip: Hardware, precision: str) -> tuple[float, float, float]:
    """Return what thin numbers of a chip under an engine add to times bound by compute, memory and launches."""
    known = {name: one.evidence for name, one in chip.quantities() if one.evidence is not None}
    return find_thin_bounds(known, find_peak(chip.architecture, precision))
