"""Inputs of the intervals of a configuration: error scales, held-out errors, and uncertain numbers of its hardware.

Stored runs and points that were never stored get their inputs here, so that both have the same intervals.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

import attrs

from joulemap.physics.interval.error_scale import DOUBTED, MODEL, OWN_LEVEL, ErrorScale, PowerFloor
from joulemap.physics.interval.scale import Subject, find_least, find_scale
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.physics.record.calibration import Calibration

MEAN_TO_WIDTH: Final = math.log(5.0)
"""Ratio of the half-width of an 80 % interval to the mean absolute error, if errors are distributed exponentially."""

HeldOut = tuple[float | None, float | None]
"""(half-width of latency, half-width of energy); None for a quantity without measurements."""

HeldOutErrors = Mapping[tuple[str, str, str], Mapping[str, HeldOut]]
"""(calibration, hardware, runtime) -> precision -> half-widths measured on held-out model families."""

Widths = tuple[float, float, float]
"""Half-widths of what bounds compute, memory and launches."""

CROSS_VALIDATED: Final = "cross_validated"
"""Split of a calibration's errors on model families that its fit left out."""


@frozen(kw_only=True)
class ErrorRecord:
    """Known prediction errors, from which intervals are computed."""

    scales: tuple[ErrorScale, ...]
    floors: tuple[PowerFloor, ...]
    held_out: HeldOutErrors = attrs.field(factory=dict)
    _found: dict[tuple[Subject, str], tuple[float, ...]] = attrs.field(factory=dict, init=False, eq=False, repr=False)

    def find_held_out(self, calibration: str, subject: Subject) -> HeldOut:
        """Return the held-out half-widths of a calibration for a configuration; (None, None) if it has none.

        A precision without measurements gets the largest half-width among the precisions of its runtime.
        """
        known = self.held_out.get((calibration, subject.hardware, subject.runtime), {})
        if subject.work != MODEL or not known:
            return (None, None)
        mine = known.get(subject.precision, (None, None))
        latency, energy = (
            max((width for width in widths if width is not None), default=None) if own is None else own
            for own, widths in zip(mine, zip(*known.values(), strict=True), strict=True)
        )
        return latency, energy

    def find_errors(self, subject: Subject, calibration: str = "") -> tuple[float, ...]:
        """Return the nine numbers of a configuration's errors, NaN where unknown.

        Latency and power have four each: half-width, level, group count and held-out half-width. The last is the least
        half-width of a calibrated power. Results are cached, because many points have one subject.
        """
        key = subject, calibration
        if key not in self._found:
            errors: list[float | None] = []
            for quantity, held_out in zip(DOUBTED, self.find_held_out(calibration, subject), strict=True):
                scale = find_scale(self.scales, quantity, subject, self.floors)
                errors += [scale.half_width, scale.level, scale.group_count] if scale else [None, None, None]
                errors.append(held_out)
            errors.append(find_least(self.floors, subject, OWN_LEVEL) or None)  # an archive may hold no floors
            self._found[key] = tuple(math.nan if one is None else float(one) for one in errors)
        return self._found[key]


def collect_held_out(calibrations: Iterable[Calibration]) -> HeldOutErrors:
    """Return the half-widths that calibrations measured on held-out model families.

    Of several errors of one quantity, runtime and precision, the one with the most measurements counts.
    """
    collected: dict[tuple[str, str, str], dict[str, HeldOut]] = {}
    for calibration in calibrations:
        most: dict[tuple[str, str], dict[str, tuple[int, float]]] = {}
        for one in calibration.errors:
            if one.split == CROSS_VALIDATED and one.runtime and one.precision and not one.family:
                of_quantity = most.setdefault((one.runtime, one.precision), {})
                found = one.row_count, MEAN_TO_WIDTH * one.mean_error_fraction
                if found[0] > of_quantity.get(one.quantity, (0, 0.0))[0]:
                    of_quantity[one.quantity] = found
        for (runtime, precision), widths in most.items():
            latency, energy = (widths.get(name, (0, None))[1] for name in ("latency", "energy"))
            key = calibration.digest, calibration.hardware, runtime
            collected.setdefault(key, {})[precision] = latency, energy
    return collected
