"""Errors of past predictions, with their groups; `make doubt` fits the half-widths of intervals to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final, Protocol

import numpy as np

from joulemap.physics.interval.error_scale import (
    COMPILER_LEVEL,
    DoubtQuantity,
)
from joulemap.system.record import frozen

LEVELS: Final = ("work", "architecture", "runtime", "precision", "compiler", "hardware")
"""Attributes by which rows are grouped, from coarse to fine."""

ALIKE: Final = ((), ("work",), ("architecture",), *(LEVELS[:count] for count in range(2, len(LEVELS) + 1)))
"""Level -> attributes that all rows of a group have in common, from coarse to fine."""


Key = tuple[str, ...]


class Grouped(Protocol):
    """Prediction error, with the key of the rows whose errors correlate with it."""

    @property
    def error(self) -> float:
        """ln(measured / predicted)."""

    @property
    def group(self) -> tuple[str, ...]:
        """Key of a set of rows with strongly correlated errors; each set has equal weight."""


@frozen(kw_only=True)
class Residual:
    """Error of one prediction, with the attributes by which it is grouped."""

    quantity: DoubtQuantity
    architecture: str
    work: str
    runtime: str
    precision: str
    hardware: str
    """Hardware without its power mode."""
    model: str
    batch: int
    family: str
    error: float
    """ln(measured / predicted)."""
    predicted: float
    measured: float
    compiler: str = ""
    """Compiler of the hardware, if it publishes a list of supported operators; otherwise empty."""
    half_width: float | None = None
    """Half-width (natural logarithm) of the interval stored with the run; None for a single operator."""
    seen: str = ""
    """Coefficients that were fitted to this measurement; empty if there are none."""
    foreign_error: float | None = None
    """ln(measured / predicted) if the prediction uses no number fitted to this hardware; None if it equals `error`."""
    is_foreign: bool = False
    """True if only `foreign_error` is scored, not `error`."""
    is_inherited: bool = False
    """True if the prediction uses the calibration of other hardware of its generation."""

    def has(self, level: int) -> bool:
        """Return whether the residual belongs to a group at this level; at the compiler level, only if its compiler is
        known.
        """
        return level != COMPILER_LEVEL or bool(self.compiler)

    def key(self, level: int) -> Key:
        """Return the key of the residual's group at a level."""
        return tuple(getattr(self, name) if name in ALIKE[level] else "" for name in LEVELS)

    @property
    def group(self) -> tuple[str, str]:
        """Hardware and model family; rows with the same pair have strongly correlated errors."""
        return self.hardware, self.family


def find_quantile(rows: Sequence[Grouped], least: float) -> float:
    """Return the 80 % quantile of absolute errors, or `least` if it is larger.

    Each `group` of rows has equal weight.
    """
    sizes = Counter(one.group for one in rows)
    weights = np.array([1.0 / sizes[one.group] for one in rows])
    errors = np.abs([one.error for one in rows])
    order = np.argsort(errors)
    weights = weights[order]
    places = (np.cumsum(weights) - 0.5 * weights) / weights.sum()
    return max(float(np.interp(0.8, places, errors[order])), least)
