"""Scales: position of a value along an axis, positions of ticks, and their labels."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from typing import Final

from joulemap.show.present.cell import show_quantity
from joulemap.show.present.sketch import Axis
from joulemap.system.record import frozen

LOG_SPAN: Final = 30.0
"""Ratio of the largest to the smallest value from which an axis is logarithmic by default."""

LEAST_SPAN: Final = 1.5
"""Smallest ratio of largest to smallest value on a logarithmic axis."""

STEPS: Final = (1.0, 2.0, 5.0)
"""Tick positions within a decade."""

LEAST_DECADES: Final = 0.6
"""Minimum number of decades for logarithmic ticks; a shorter axis has linear ticks."""

MARGIN: Final = 0.04
"""Space beyond the outermost values at each end of an axis, as a share of its range."""


@frozen
class Scale:
    """Range of values along an axis."""

    low: float
    high: float
    is_log: bool

    def locate(self, value: float) -> float:
        """Return the position of a value on the axis: 0 at the low end, 1 at the high end."""
        if self.is_log:
            return (math.log10(value) - math.log10(self.low)) / self._decades
        return (value - self.low) / (self.high - self.low)

    def holds(self, value: float) -> bool:
        """Return whether a value can be placed on the axis: it is finite and, on a logarithmic axis, positive."""
        return math.isfinite(value) and (value > 0.0 or not self.is_log)

    def cell(self, value: float, cells: int) -> int:
        """Return the index of the cell that holds a value, if the axis has `cells` cells; clipped to the axis."""
        return min(max(int(self.locate(value) * cells), 0), cells - 1)

    @property
    def _decades(self) -> float:
        return math.log10(self.high) - math.log10(self.low)

    def ticks(self, most: int) -> list[float]:
        """Return at most `most` round tick values, and at least two."""
        most = max(most, 2)
        if not self.is_log or self._decades < LEAST_DECADES:
            return _ticks_linear(self.low, self.high, most)
        first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
        choices = [self._inside(range(first, last + 1), steps) for steps in (STEPS, STEPS[::2], STEPS[:1])]
        choices += [
            self._inside((exponent for exponent in range(first, last + 1) if exponent % every == 0), STEPS[:1])
            for every in range(2, last - first + 1)
        ]
        several = [ticks for ticks in choices if len(ticks) > 1]
        return next((ticks for ticks in several if len(ticks) <= most), several[-1] if several else choices[0])

    def _inside(self, exponents: Iterable[int], steps: Sequence[float]) -> list[float]:
        ticks = (float(f"{step}e{exponent}") for exponent in exponents for step in steps)
        return [tick for tick in ticks if self.low <= tick * (1.0 + 1e-9) and tick <= self.high * (1.0 + 1e-9)]


def _ticks_linear(low: float, high: float, most: int) -> list[float]:
    least = (high - low) / most
    decade = 10.0 ** math.floor(math.log10(least))
    step = next(one * decade for one in (*STEPS, 10.0) if one * decade >= least * (1.0 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [index * step for index in range(first, last + 1)]


def find_scale(values: Iterable[float | None], axis: Axis, *, has_zero: bool = False) -> Scale:
    """Return a scale that covers the values; 0 to 1 without values.

    A linear scale with `has_zero` includes zero.
    """
    known = [value for value in values if value is not None and math.isfinite(value)]
    positive = [value for value in known if value > 0.0]
    is_log = axis.is_log
    if is_log is None:
        is_log = bool(positive) and min(known) >= 0.0 and max(positive) / LOG_SPAN > min(positive)
    if is_log:
        low, high = (min(positive), max(positive)) if positive else (1.0, 10.0)
        if high / LEAST_SPAN < low:
            middle = math.sqrt(low) * math.sqrt(high)
            low, high = middle / LEAST_SPAN, middle * LEAST_SPAN
        margin = 10.0 ** ((math.log10(high) - math.log10(low)) * MARGIN)
        return Scale(max(low / margin, sys.float_info.min), min(high * margin, sys.float_info.max), is_log=True)
    low, high = (min(known), max(known)) if known else (0.0, 1.0)
    if has_zero:
        low, high = min(low, 0.0), max(high, 0.0)
    if low == high:
        low, high = (low - abs(low) / 2.0, high + abs(high) / 2.0) if low else (0.0, 1.0)
    margin = (high - low) * MARGIN
    return Scale(low if has_zero and low >= 0.0 else low - margin, high + margin, is_log=False)


def show_tick(value: float, unit: str) -> str:
    """Format a value as a tick label."""
    if unit == "%":
        return f"{value * 100:.3g} %"
    if unit == "x":
        return f"{value:.3g}x"
    if unit in ("", "1"):
        return show_quantity(value, "") if abs(value) >= 10_000.0 else f"{value:,.4g}"
    if unit.startswith("USD"):
        return f"{value:.3g} {unit}"
    return show_quantity(value, unit)


def draw_ticks(scale: Scale, axis: Axis, cells: int, indent: int) -> list[str]:
    """Return two lines for below a canvas: the axis with its ticks, and the tick labels."""
    rule, texts = ["─"] * cells, [" "] * (indent + cells)
    free = 0
    for tick, text in _label(scale.ticks(cells // 10), axis):
        cell = scale.cell(tick, cells)
        begin = min(max(indent + cell - len(text) // 2, 0), indent + cells - len(text))
        if begin >= free:
            rule[cell] = "┬"
            texts[begin : begin + len(text)] = text
            free = begin + len(text) + 2
    return [f"{' ' * (indent - 1)}└{''.join(rule)}", "".join(texts).rstrip()]


def draw_side(scale: Scale, axis: Axis, rows: int) -> list[str]:
    """Return the text to the left of each canvas row, from the top: tick labels and the axis."""
    texts = [""] * rows
    for tick, text in _label(scale.ticks(max(rows // 3, 2)), axis):
        texts[rows - 1 - scale.cell(tick, rows)] = text
    width = max(map(len, texts))
    return [f"{text:>{width}} {'┤' if text else '│'}" for text in texts]


def _label(ticks: Sequence[float], axis: Axis) -> list[tuple[float, str]]:
    return [(tick, show_tick(tick, axis.unit)) for tick in ticks]
