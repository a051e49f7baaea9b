"""Comparisons by law: how many were made, which broke it, and which of these are explained."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence

import attrs
import numpy as np
from numpy.typing import ArrayLike

from joulemap.system.record import define, frozen
from laws.exempt import EXEMPT
from laws.question import Question
from laws.table import BY_NAME, Exempt

Place = tuple[int, ...]
"""Place in compared arrays."""

Asked = Sequence[Question] | Callable[[Place], Sequence[Question]]
"""Compared questions, or a function that returns those of a place."""


@frozen(kw_only=True)
class Violation:
    """Comparison that breaks a law."""

    law: str
    ratio: float
    """Left value over the right one; infinite where the right one is 0 or no number."""
    questions: tuple[Question, ...]
    left: float
    right: float


@define(kw_only=True)
class Court:
    """Tally of the comparisons of a run."""

    compared: Counter[str] = attrs.field(factory=Counter)
    broken: Counter[str] = attrs.field(factory=Counter)
    explained: Counter[Exempt] = attrs.field(factory=Counter)
    open: list[Violation] = attrs.field(factory=list)
    """Violations that no exemption explains."""
    refused: Counter[str] = attrs.field(factory=Counter)
    """Reasons for which questions had no answer."""

    def compare(self, name: str, left: ArrayLike, right: ArrayLike, asked: Asked) -> None:
        """Compare values with bounds, element by element; a refused one, NaN on both sides, counts as none.

        An infinite number, or none on one side alone, breaks the law.
        """
        tolerance = BY_NAME[name].tolerance
        values, bounds = np.broadcast_arrays(np.asarray(left, dtype=float), np.asarray(right, dtype=float))
        is_known = ~(np.isnan(values) & np.isnan(bounds))
        self.compared[name] += int(is_known.sum())
        with np.errstate(invalid="ignore"):
            is_broken = is_known & ~((values <= bounds * tolerance) & np.isfinite(values) & np.isfinite(bounds))
        for place in map(tuple, np.argwhere(is_broken).tolist()):
            self.report(name, float(values[place]), float(bounds[place]), asked(place) if callable(asked) else asked)

    def equal(self, name: str, left: ArrayLike, right: ArrayLike, asked: Asked) -> None:
        """Compare values that must be equal, element by element."""
        values, others = np.broadcast_arrays(np.asarray(left, dtype=float), np.asarray(right, dtype=float))
        self.compare(name, np.maximum(values, others), np.minimum(values, others), asked)

    def same(self, name: str, left: object, right: object, questions: Sequence[Question]) -> None:
        """Compare two things that must be equal, such as texts."""
        self.compared[name] += 1
        if left != right:
            self.report(name, math.inf, 0.0, questions)

    def report(self, name: str, left: float, right: float, questions: Sequence[Question]) -> None:
        """Count a broken comparison, and keep it unless an exemption explains it."""
        ratio = left / right if right > 0.0 and math.isfinite(left) else math.inf
        self.broken[name] += 1
        for one in EXEMPT:
            if any(one.covers(name, own, ratio) for own in questions):
                self.explained[one] += 1
                return
        self.open.append(Violation(law=name, ratio=ratio, questions=tuple(questions), left=left, right=right))

    def add(self, other: Court) -> None:
        """Add the tally of another process."""
        self.compared.update(other.compared)
        self.broken.update(other.broken)
        self.explained.update(other.explained)
        self.open.extend(other.open)
        self.refused.update(other.refused)
