"""Answers that consist of several queries."""

from __future__ import annotations

import attrs

from joulemap.domain.answer import (
    Caveat,
    Comparison,
    EnergyTerm,
    EnergyTotal,
    Insight,
    ModelProfile,
    OperationShare,
    PatternShare,
    Recommendation,
)
from joulemap.query.run import Answer


@attrs.frozen(kw_only=True)
class CompareAnswer:
    """One workload on several hardware: recommendations, rows and insights."""

    model: str
    batch: int
    precision: str
    runtime: str
    run_ids: tuple[int, ...]
    """In the order that the hardware was asked for."""
    rows: tuple[Comparison, ...]
    """Lowest energy first, unsupported ones last."""
    recommendations: tuple[Recommendation, ...]
    insights: tuple[Insight, ...]
    caveats: tuple[Caveat, ...]
    """What the trace had to assume or could not count: it touches every row."""
    answers: tuple[Answer, ...]
    """The queries behind it, with their SQL."""


@attrs.frozen(kw_only=True)
class ExplainAnswer:
    """Why run B uses more or less energy than run A; the terms sum to the difference exactly."""

    total: EnergyTotal
    terms: tuple[EnergyTerm, ...]
    answers: tuple[Answer, ...]


@attrs.frozen(kw_only=True)
class ProfileAnswer:
    """What a model is before any hardware is chosen."""

    profile: ModelProfile
    mix: tuple[OperationShare, ...]
    """Most MACs first."""
    patterns: tuple[PatternShare, ...]
    """Fusion patterns, most MACs first."""
    answers: tuple[Answer, ...]


@attrs.frozen(kw_only=True)
class DatabaseInfo:
    """What a database file is."""

    path: str
    schema_version: int
    size_bytes: int
    content: Answer
