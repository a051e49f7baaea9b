"""Comparisons in depth: parts, whole runs, several models, rankings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from joulemap.domain.answer.calibration import RunCalibration
    from joulemap.domain.answer.comparison import Caveat
    from joulemap.domain.answer.level import (
        EnergyBranch,
        HardwareNumber,
        ModelFigure,
        PartFigure,
        RankedHardware,
        RunDetail,
        UtilizationSpread,
        Victory,
    )
    from joulemap.store.query import Answer


@attrs.frozen(kw_only=True)
class Asked:
    """What an answer was asked of."""

    models: tuple[str, ...]
    """As they were named."""
    batches: tuple[int, ...]
    """Those of the runs, the smallest first: one where all models were asked at the same."""
    precision: str
    runtime: str
    run_ids: tuple[int, ...]
    """Model by model, each in the order that the hardware was asked for."""
    refusals: tuple[str, ...]
    """Why hardware cannot run it, each reason once."""
    spelling: Mapping[str, str]
    """Hardware as the rows name it -> as it must be asked for again, where that is a file."""
    caveats: tuple[Caveat, ...]
    """What the traces had to assume or could not count."""
    calibrations: tuple[RunCalibration, ...]
    """Those that the runs used; empty where all ran with the class defaults."""


@attrs.frozen(kw_only=True)
class PartAnswer:
    """Subgraph by subgraph or operator by operator: who wins each, and what each hardware wins."""

    asked: Asked
    level: str
    metric: str
    rows: tuple[PartFigure, ...]
    """Part by part, the least first."""
    victories: tuple[Victory, ...]
    """Hardware that wins most first."""
    answers: tuple[Answer, ...]


@attrs.frozen(kw_only=True)
class DetailAnswer:
    """Whole runs: figures, and an energy tree whose leaves sum to each run exactly."""

    asked: Asked
    rows: tuple[RunDetail, ...]
    tree: tuple[EnergyBranch, ...]
    """Run by run, the category with most energy first."""
    answers: tuple[Answer, ...]


@attrs.frozen(kw_only=True)
class MatrixAnswer:
    """Several models on one or several hardware."""

    asked: Asked
    metric: str
    rows: tuple[ModelFigure, ...]
    """Model by model, the best hardware first."""
    answers: tuple[Answer, ...]


@attrs.frozen(kw_only=True)
class RankingAnswer:
    """Hardware in the order that a deployment asks for."""

    asked: Asked
    sort: str
    rows: tuple[RankedHardware, ...]
    """The best first, refused ones last."""
    spread: tuple[UtilizationSpread, ...]
    """One per evaluated run; empty unless asked for."""
    numbers: tuple[HardwareNumber, ...]
    """Of each hardware; empty unless asked for."""
    parts: tuple[PartFigure, ...]
    """Subgraph by subgraph; empty unless asked for."""
    answers: tuple[Answer, ...]
