"""Error scale of a prediction, from the finest group of measurements that contains it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

import attrs

from joulemap.physics.interval.error_scale import (
    COMPILER_LEVEL,
    MEASURED_CLASSES,
    OWN_LEVEL,
    UNMEASURED,
    DoubtQuantity,
    ErrorScale,
    PowerFloor,
    find_new_source,
)
from joulemap.physics.record.runtime import DEPLOYED_RUNTIME, RUNTIME
from joulemap.physics.record.workload import DECOMPOSITION
from joulemap.system.record import frozen

CLASS_LEVEL: Final = 2
"""Lowest level of error scales that were measured on the hardware's own class."""

OTHER_WORK: Final = "other work of its class"
"""Description of an error scale from measurements of the class, but of other kinds of work."""

BASES: Final = (
    "measurements of other classes, widened", "measurements of other classes, widened", OTHER_WORK, "its class",
    "its runtime", "its precision", "boards of its compiler", "its own measurements",
)  # fmt: skip
"""Level of an error scale -> description of its measurements."""

CALIBRATED: Final = "its calibration"
"""Description of an error scale from the held-out errors of a calibration."""


@frozen(kw_only=True)
class Subject:
    """Configuration for which an error scale is sought."""

    work: str
    """Kind of work: of a whole model, or of a single operator."""
    architecture: str
    runtime: str
    precision: str
    hardware: str
    """Catalogue id; for a variant, the id of its base."""
    ops_per_s: float | None = None
    """Highest peak of the hardware at any precision; None if it is unknown, so that scales of every size apply."""
    is_single: bool = False
    """True if the batch is 1, so that the way in which software is called matters more."""

    @property
    def scored_runtime(self) -> str:
        """Runtime whose measured errors apply. It is `engine` for named engines, and for fused runs of classes other
        than CPU and GPU, because their only compiler is the vendor's. SQL may ask about no runtime.
        """
        way = RUNTIME.get(self.runtime)
        if way and (way.of_class or (way.is_compiled and self.architecture not in ("cpu", "gpu"))):
            return DEPLOYED_RUNTIME
        return self.runtime


def find_least(floors: Iterable[PowerFloor], subject: Subject, level: int) -> float:
    """Return the minimum half-width of a power if the best evidence has this level; 0 if the class was not measured.

    A floor for all classes applies to a class without a floor.
    """
    if level < CLASS_LEVEL:
        return 0.0
    evidence = "own" if level == OWN_LEVEL else "class"
    fitting = [
        one
        for one in floors
        if one.evidence == evidence
        and one.architecture in ("", subject.architecture)
        and (subject.ops_per_s or 0.0) <= one.most_ops_per_s
    ]
    floor = min(fitting, key=lambda one: (one.architecture == "", one.most_ops_per_s), default=None)
    return floor.half_width.value if floor else 0.0


def find_scale(
    scales: Iterable[ErrorScale], quantity: DoubtQuantity, subject: Subject, floors: Iterable[PowerFloor] = ()
) -> ErrorScale | None:
    """Return the error scale of the finest group that contains a configuration; None if no group does.

    The half-width of a power is at least the floor of its class and evidence. Any half-width is at least `UNMEASURED`
    for decompositions that no board of the class has run. The same minimum holds for latency outside `MEASURED_CLASSES`
    if neither the hardware nor another board of its compiler was measured. Software that is new to the measurements
    adds to the half-width of latency (`find_new_source`).
    """
    asked = {
        "work": subject.work,
        "architecture": subject.architecture,
        "runtime": subject.scored_runtime,
        "precision": subject.precision,
        "hardware": subject.hardware,
    }
    fitting = [
        one
        for one in scales
        if one.quantity == quantity
        and all(getattr(one, name) in ("", text) for name, text in asked.items())
        and (subject.ops_per_s is None or one.is_of_size(subject.ops_per_s))
    ]
    finest = max(fitting, key=lambda one: one.level, default=None)
    if finest is None:
        return None
    is_new = subject.work == DECOMPOSITION and finest.level <= CLASS_LEVEL
    is_known = finest.level >= COMPILER_LEVEL or subject.architecture in MEASURED_CLASSES
    if quantity == "latency":
        added = find_new_source(subject.architecture, subject.work, subject.scored_runtime, is_single=subject.is_single)
        finest = attrs.evolve(finest, half_width=math.hypot(finest.half_width, added)) if added else finest
    least = find_least(floors, subject, finest.level) if quantity == "power" else 0.0
    if is_new or (quantity == "latency" and not is_known):
        least = max(least, UNMEASURED)
    return attrs.evolve(finest, half_width=least) if least > finest.half_width else finest
