"""Find the factor of each constant at which two runs are equal, and its share of the uncertainty.

    f_A(k c) = f_B(k c)        solved for the factor k of each constant c of A, B or both
    v_c = d_c^2                d_c: half the change of ln(f_A / f_B) as c goes from one spread below to one above

v_c / sum of v is the share of a constant in the uncertainty of the ratio. Constants are independent, except that both
sides share the constants of a common class. The total error is that of similar predictions, so no single constant is
more likely to reverse the order than all together:

    P(c wrong by n of its spreads) = 1 / (1 + exp(ln 9 n sqrt(sum of v) / h))     h: half-width of ln(f_A / f_B)
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

import attrs

from joulemap.answer.constant.variation import Varied, describe_constant
from joulemap.domain.computed import described
from joulemap.domain.metric import VariedMetricName
from joulemap.physics.interval.error_scale import NORMAL
from joulemap.physics.record.constant import STATIC
from joulemap.physics.root import MOST_FACTOR, solve
from joulemap.plan.variation import Variation
from joulemap.system.record import frozen

SidedConstant = tuple[str, str]
"""Side of a constant (`A`, `B` or `both`) and name of the constant."""

FAR: Final = (1.0 / MOST_FACTOR, MOST_FACTOR)

MOST_EXPONENT: Final = 700.0
"""Maximum argument of `exp` that does not overflow a double."""

NEGLIGIBLE: Final = 1e-12
"""Change of ln(A / B) below which a constant counts as without effect."""


@frozen
class Flip(Varied):
    """Constant, the factor by which it must be wrong to reverse the order, and its share of the uncertainty."""

    side: str = described("owner of the constant: A, B, or both if they take it from one class")
    hardware: str | None = described("hardware with the constant; null for both")
    flip_ratio: float | None = described("factor at which both are equal; null if there is none from 1/100 to 100")
    flip_value: float | None = described("constant at that factor, in unit")
    spread_count: float | None = described(
        "distance to that factor in spreads of the constant; null for an exact constant"
    )
    likelihood: float | None = described(
        "probability that the constant is wrong by this much in this direction, if all constants together have the "
        "error of similar predictions; null for an exact constant"
    )
    low_ratio: float = described("factor one spread down")
    high_ratio: float = described("factor one spread up")
    spread: str = described(
        "origin of the spread: range (the constant's own), class (fitted by it), exact, or its basis"
    )
    ratio_elasticity: float | None = described("d ln (metric of A / metric of B) / d ln constant")
    ratio_spread: float = described("change of ln (metric of A / metric of B) for one spread, either sign")
    variance_fraction: float = described("share of the variance of that logarithm")


def _order(row: Flip) -> float:
    """Return the sort key of a row: its spreads to the break-even.

    Exact constants with a break-even come next, then constants without one.
    """
    return row.spread_count if row.spread_count is not None else 1e9 if row.flip_ratio is not None else math.inf


@frozen
class Pair:
    """Two runs, and the logarithm of the ratio of their metrics as a function of any constant."""

    a: Variation
    b: Variation
    metric: VariedMetricName
    half_width: float | None
    """Half-width of the 80 % interval of ln(A / B), from the errors of similar predictions; None if unknown."""

    def rows(self) -> list[Flip]:
        """Return every constant that changes the ratio; static power of both chips is always included."""
        for one in (self.a, self.b):
            one.prepare_all(*FAR)
        solved = solve(self._log_ratios, [one for one in self._constants() if one[1] == STATIC or self._moves(*one)])
        moving = [self._row(side, name, ends) for (side, name), ends in solved.items()]
        total = math.fsum(row.ratio_spread**2 for row in moving)
        rows = [
            attrs.evolve(
                row,
                variance_fraction=row.ratio_spread**2 / total if total else 0.0,
                likelihood=None if row.spread_count is None else self._likelihood(row.spread_count, total),
            )
            for row in moving
        ]
        return sorted(rows, key=lambda row: (_order(row), -row.variance_fraction, row.constant, row.side))

    def _likelihood(self, count: float, total: float) -> float:
        """Return the probability that a constant is off by at least `count` spreads in one direction.

        `total` is the variance of ln(A / B) due to all constants. The result is at most the probability of a reversal.
        """
        from joulemap.physics.interval.probability import probability_better

        factor = math.exp(-min(count, MOST_EXPONENT))
        if self.half_width is None or total == 0.0:
            return probability_better(factor, NORMAL)
        behind = math.exp(-abs(self.log_ratio("A", "", 1.0) or 0.0))
        return min(
            probability_better(factor, self.half_width / math.sqrt(total)), probability_better(behind, self.half_width)
        )

    def _constants(self) -> Iterable[SidedConstant]:
        for name in dict.fromkeys((*self.a.constants, *self.b.constants)):
            owners = [side for side, one in (("A", self.a), ("B", self.b)) if name in one.constants]
            if len(owners) == 2 and self._is_shared(name):
                yield "both", name
            else:
                yield from ((owner, name) for owner in owners)

    def _is_shared(self, name: str) -> bool:
        """Return whether A and B take a constant from the same source: from their common class, or from the usage."""
        one, other = self.a.constants[name], self.b.constants[name]
        if one.kind == "use":
            return True
        if self.a.hardware.architecture != self.b.hardware.architecture or one.kind not in ("price", "coefficient"):
            return False
        return one.basis == other.basis != "measured" and _origin(one.source) == _origin(other.source)

    def log_ratio(self, side: str, name: str, factor: float) -> float | None:
        """Return ln(A / B) with one constant of a side multiplied by `factor`; None if the value is impossible."""
        value_a = self.a.metric(self.metric, name if side != "B" else "", factor)
        value_b = self.b.metric(self.metric, name if side != "A" else "", factor)
        return math.log(value_a / value_b) if value_a and value_b else None

    def _log_ratios(self, asked: Sequence[tuple[SidedConstant, float]]) -> list[float | None]:
        """Return ln(A / B) for each given constant and factor; None for an impossible value."""
        for one, other in ((self.a, "B"), (self.b, "A")):
            one.prepare((name, factor) for (side, name), factor in asked if side != other)
        return [self.log_ratio(*side_and_name, factor) for side_and_name, factor in asked]

    def _ends(self, side: str, name: str) -> list[float]:
        """Return ln(A / B) at the constant's value, one spread below and one spread above; impossible values are
        omitted.
        """
        spread = (self.b if side == "B" else self.a).spread(name)
        ratios = [self.log_ratio(side, name, factor) for factor in (1.0, 1.0 / spread.down, spread.up)]
        return [value for value in ratios if value is not None]

    def _moves(self, side: str, name: str) -> bool:
        """Return whether a constant changes ln(A / B). Also true if a tested value of the constant is impossible."""
        base, *ends = self._ends(side, name)
        far = [self.log_ratio(side, name, factor) for factor in FAR]
        return any(value is None or abs(value - base) >= NEGLIGIBLE for value in (*ends, *far))

    def _row(self, side: str, name: str, flipped: tuple[float, float] | None) -> Flip:
        owner = self.b if side == "B" else self.a
        constant, spread = owner.constants[name], owner.spread(name)
        flip_value = None if flipped is None else owner.value_at(name, flipped[1])
        factor = None if flip_value is None else flip_value / constant.value
        count = None if factor is None or spread.origin == "exact" else spread.count(factor)
        ends = self._ends(side, name)
        half = (max(ends) - min(ends)) / max(len(ends) - 1, 1)
        slopes = [self._slope(one, side, mark, name) for one, mark in ((self.a, "A"), (self.b, "B"))]
        return Flip(
            side=side,
            hardware=None if side == "both" else owner.name,
            **describe_constant(constant),
            flip_ratio=factor,
            flip_value=flip_value,
            spread_count=count,
            likelihood=None,
            low_ratio=1.0 / spread.down,
            high_ratio=spread.up,
            spread=spread.origin,
            ratio_elasticity=None if None in slopes else math.fsum((slopes[0] or 0.0, -(slopes[1] or 0.0))),
            ratio_spread=half,
            variance_fraction=0.0,
            method=self._method(side, name, factor or spread.up),
        )

    def _slope(self, one: Variation, side: str, mark: str, name: str) -> float | None:
        if side not in (mark, "both") or name not in one.constants:
            return 0.0
        return one.slope(self.metric, name)[0]

    def _method(self, side: str, name: str, factor: float) -> str:
        factors = [
            one.totals(name, factor)
            for one, mark in ((self.a, "A"), (self.b, "B"))
            if side in (mark, "both") and name in one.constants
        ]
        return "exact" if all(one is not None and one[1] for one in factors) else "evaluated"


def _origin(source: str) -> str:
    """Return the source of a number without the remark on scaling to another process node."""
    return source.partition("; x ")[0]
