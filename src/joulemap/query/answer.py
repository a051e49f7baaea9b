"""Answers that consist of several queries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from joulemap.domain.answer.calibration import RunCalibration
    from joulemap.domain.answer.choice import (
        AssumedNumber,
        BreakEven,
        CostOption,
        GridFootprint,
        ParetoPoint,
        RankedConfiguration,
        Violation,
    )
    from joulemap.domain.answer.comparison import Caveat
    from joulemap.domain.answer.score import Score
    from joulemap.domain.calibration import Calibration
    from joulemap.domain.choice import Limits
    from joulemap.domain.timing import Timing
    from joulemap.store.query import Answer


@attrs.frozen(kw_only=True)
@attrs.frozen(kw_only=True)
class ParetoAnswer:
    """Every configuration of a model in two metrics: the front, and who beats the rest."""

    model: str
    x: str
    """One of `METRICS`."""
    y: str
    points: tuple[ParetoPoint, ...]
    """The front first."""
    assumptions: tuple[AssumedNumber, ...]
    """What cost and carbon rest on."""
    caveats: tuple[Caveat, ...]
    spelling: Mapping[str, str]
    answers: tuple[Answer, ...]


@attrs.frozen(kw_only=True)
class RecommendAnswer:
    """Every configuration of a model against limits: the best that keep them, and how far the others are."""

    model: str
    objective: str
    """One of `OBJECTIVES`."""
    limits: Limits
    rows: tuple[RankedConfiguration, ...]
    """The best first; then what misses a limit, the nearest first."""
    violations: tuple[Violation, ...]
    assumptions: tuple[AssumedNumber, ...]
    """What cost and carbon rest on."""
    caveats: tuple[Caveat, ...]
    spelling: Mapping[str, str]
    answers: tuple[Answer, ...]

    @property
    def best(self) -> RankedConfiguration | None:
        """The first of those that keep every limit, if any does."""
        return next((row for row in self.rows if row.rank == 1), None)

    @property
    def best_published(self) -> RankedConfiguration | None:
        """The first of those whose numbers are neither projections nor estimates."""
        return next((row for row in self.rows if row.published_rank == 1), None)

    @property
    def nearest_miss(self) -> RankedConfiguration | None:
        """Where none keeps every limit, the one whose worst miss is the smallest."""
        if any(row.status in ("feasible", "unranked") for row in self.rows):
            return None
        return next((row for row in self.rows if row.miss_rank == 1), None)

    @property
    def nearest_published_miss(self) -> RankedConfiguration | None:
        """Likewise, of those whose numbers are neither projections nor estimates."""
        if self.nearest_miss is None:
            return None
        return next((row for row in self.rows if row.status == "infeasible" and not row.is_projection), None)


@attrs.frozen(kw_only=True)
class CostAnswer:
    """What a million inferences of a model cost on each configuration, rented or bought."""

    model: str
    rows: tuple[CostOption, ...]
    """The cheapest first; those without a price last."""
    break_even: BreakEven | None
    """None where there are no two options with a price."""
    grid: tuple[GridFootprint, ...]
    """Of a few configurations in every grid, the cleanest grid first."""
    assumptions: tuple[AssumedNumber, ...]
    caveats: tuple[Caveat, ...]
    spelling: Mapping[str, str]
    answers: tuple[Answer, ...]


@attrs.frozen(kw_only=True)
class MeasureAnswer:
    """A measurement of this machine beside the prediction for it."""

    score: Score
    timing: Timing
    """How the repetitions spread."""
    is_described: bool
    """Whether somebody described the hardware, not the machine itself."""
    calibrations: tuple[RunCalibration, ...]
    """Those that its runs used; empty where all ran with the class defaults."""
    answers: tuple[Answer, ...]


@attrs.frozen(kw_only=True)
class CalibrateAnswer:
    """A calibration that was fitted, and how well it does."""

    calibration: Calibration
    summary: RunCalibration
    place: str
    """The file that it was written to; empty for a trial."""
    error: Answer
    """One row per quantity and group of measurements."""
    coefficient: Answer
    """One row per coefficient and energy scale that it changed."""
    warnings: tuple[str, ...]
    """Measurements that contradict each other."""
    left_out: tuple[str, ...]
    """Measurements that were not fitted, and why."""
    answers: tuple[Answer, ...]


@attrs.frozen(kw_only=True)
class HardwareAnswer:
    """One hardware: what it is, its rooflines, every number."""

    summary: Answer
    """One row."""
    ridge: Answer
    """One row per precision."""
    fact: Answer
    """One row per number."""
    calibrations: tuple[RunCalibration, ...]
    """The one that the numbers are under; empty for class defaults."""


@attrs.frozen(kw_only=True)
class DatabaseInfo:
    """What a database file is."""

    path: str
    schema_version: int
    size_bytes: int
    content: Answer
