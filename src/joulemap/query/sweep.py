"""Models at many batches on several hardware."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from joulemap.domain.answer.store import RunTally
    from joulemap.domain.answer.sweep import SweepCrossing, SweepPoint, SweepSeries, SweepWinner
    from joulemap.store.query import Answer


@attrs.frozen(kw_only=True)
class SweepAnswer:
    """What batch suits each hardware, and where the best hardware changes with the batch."""

    tally: RunTally
    run_ids: tuple[int, ...]
    max_latency_s: float
    """The budget; 0 for none."""
    points: tuple[SweepPoint, ...]
    """One per run."""
    series: tuple[SweepSeries, ...]
    """One per model, hardware, precision and runtime."""
    winners: tuple[SweepWinner, ...]
    """One per model, precision, runtime, metric and batch."""
    crossings: tuple[SweepCrossing, ...]
    """Pairs of hardware whose order turns round with the batch."""
    spelling: Mapping[str, str]
    """Hardware as the rows name it -> as it must be asked for again, where that is a file."""
    answers: tuple[Answer, ...]
    """The queries behind it, with their SQL."""
