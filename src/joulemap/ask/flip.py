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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.ask.constant import ConstantAnswer, Varied, describe_constant, opening_variations
from joulemap.ask.decision import choose
from joulemap.ask.fact import Caveat, Choice, Facts, Quantity, Refusal, Share, Subject, Turn
from joulemap.ask.price import refuse_unpriced
from joulemap.ask.rule import find_caveats
from joulemap.domain.computed import make_table
from joulemap.domain.default import SETTINGS
from joulemap.domain.hardware_ref import name_configured
from joulemap.domain.metric import METRIC, VARIED_METRICS, MetricName, VariedMetricName
from joulemap.domain.settings import BATCHES, Settings, check_name
from joulemap.domain.table import Table, described
from joulemap.generated.compare import PairChance
from joulemap.generated.flip import BatchWinner
from joulemap.physics.interval.error_scale import NORMAL
from joulemap.physics.record.constant import STATIC
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.root import MOST_FACTOR, solve
from joulemap.plan.model_name import find_batch
from joulemap.plan.run import plan_selected
from joulemap.plan.selection import Selection, select_hardware, select_one
from joulemap.plan.source import Source
from joulemap.plan.variation import Variation
from joulemap.store.query import fetch
from joulemap.system.errors import UnsupportedError, UsageError
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.domain.column import Cell

MOST_TURNS: Final = 10
"""Maximum constants among the facts; tables have all."""

UNCERTAINTY: Final = "uncertainty"
"""Whole that shares of constants refer to."""

HALF: Final = 0.5
"""Share of a lead below which it counts as lost by half."""

SIDES: Final = ("A", "B", "both")

DOUBLE: Final = 2.5
"""Ratio of the chips above which the text also states the odds that the true ratio is at least two."""

INTERVALS: Final[Mapping[str, str]] = {
    "energy": "energy_per_inference",
    "efficiency": "energy_per_inference",
    "latency": "latency",
    "throughput": "throughput",
    "edp": "edp_per_inference",
    "power": "power",
}
"""Metric -> metric of `compare.probability` with the same ratio of two runs at one batch size."""


SidedConstant = tuple[str, str]
"""Side of a constant (`A`, `B` or `both`) and name of the constant."""

FAR: Final = (1.0 / MOST_FACTOR, MOST_FACTOR)

MOST_EXPONENT: Final = 700.0
"""Maximum argument of `exp` that does not overflow a double."""

NEGLIGIBLE: Final = 1e-12
"""Change of ln(A / B) below which a constant counts as without effect."""


class Flip(Varied):
    """Constant, the factor by which it must be wrong to reverse the order, and its share of the uncertainty."""

    side: Cell[str] = described("owner of the constant: A, B, or both if they take it from one class")
    hardware: Cell[str | None] = described("hardware with the constant; null for both")
    flip_ratio: Cell[float | None] = described(
        "factor at which both are equal; null if there is none from 1/100 to 100", heading="factor"
    )
    flip_value: Cell[float | None] = described("constant at that factor, in unit", heading="break-even")
    spread_count: Cell[float | None] = described(
        "distance to that factor in spreads of the constant; null for an exact constant"
    )
    likelihood: Cell[float | None] = described(
        "probability that the constant is wrong by this much in this direction, if all constants together have the "
        "error of similar predictions; null for an exact constant",
        heading="chance",
    )
    low_ratio: Cell[float] = described("factor one spread down", heading="spread")
    high_ratio: Cell[float] = described("factor one spread up")
    spread: Cell[str] = described(
        "origin of the spread: range (the constant's own), class (fitted by it), exact, or its basis",
        heading="spread from",
    )
    ratio_elasticity: Cell[float | None] = described(
        "d ln (metric of A / metric of B) / d ln constant", heading="elasticity"
    )
    ratio_spread: Cell[float] = described("change of ln (metric of A / metric of B) for one spread, either sign")
    variance_fraction: Cell[float] = described(
        "share of the variance of that logarithm", heading="share of uncertainty"
    )


def _order(row: Flip) -> tuple[float, float, str, str]:
    """Return the sort key of a row: its spreads to the break-even, then its share of the uncertainty.

    Exact constants with a break-even come next, then constants without one.
    """
    count = row.spread_count if row.spread_count is not None else 1e9 if row.flip_ratio is not None else math.inf
    return count, -row.variance_fraction, row.constant, row.side


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
            row.replace(
                variance_fraction=row.ratio_spread**2 / total if total else 0.0,
                likelihood=None if row.spread_count is None else self._likelihood(row.spread_count, total),
            )
            for row in moving
        ]
        return sorted(rows, key=_order)

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


@frozen(kw_only=True)
class FlipAnswer(ConstantAnswer):
    """Constants that would make the other hardware better, and the best next measurement."""

    values: tuple[float, float]
    """Values of the metric for A and B, in the unit of the metric."""
    half_width: float | None
    """Half-width of the 80 % interval of the ratio, in natural logarithms; None if unknown."""
    limits_w: tuple[float, float]
    """Power limits of A and B in watts; static power cannot exceed them."""
    rows: Table[Flip]
    """Rows that can reverse the order, fewest spreads first, then other rows by variance."""
    batches: Table[BatchWinner]
    """Winner per batch size; empty if the model would have to be traced again for each batch size."""

    @property
    def choice(self) -> Choice:
        """The better run, and how surely it is better."""
        return self.facts.of(Choice)[0]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of A and B, with power modes."""
        return tuple(one.hardware for one in self.facts.runs.values())

    @property
    def winner(self) -> str:
        """Better side, `A` or `B`."""
        return "AB"[list(self.facts.runs).index(self.choice.run)]

    def data(self) -> dict[str, Any]:
        """Return the data for machine formats, including the winner and the ratio."""
        return {
            **super().data(),
            **{f"hardware_{side}": name for side, name in zip("ab", self.names, strict=True)},
            **{f"value_{side}": value for side, value in zip("ab", self.values, strict=True)},
            "winner": self.winner,
            "ratio": self.choice.ratio,
            "probability": self.choice.probability,
            "half_width": self.half_width,
        }


def flip(
    source: Source,
    model: str,
    hardware_a: str | Hardware,
    hardware_b: str | Hardware,
    settings: Settings = SETTINGS,
    *,
    metric: VariedMetricName = "energy",
) -> FlipAnswer:
    """Compute by which factor each constant must be wrong for the other chip to win.

    Includes the share of each constant in the ratio's uncertainty, and the best next measurement. The site applies if
    the metric is a cost. Raises like `explain`; UsageError if both chips are the same.
    """
    check_name("metric", metric, VARIED_METRICS)
    settings.check_single("flip")
    hardware = (hardware_a, hardware_b)
    for one in hardware:
        select_one(one, settings)
    selection = select_hardware(attrs.evolve(settings, hardware=hardware))
    if len(selection.pairs) != 2:
        raise UsageError("name two different chips after the model, A and B")
    plan = plan_selected((model,), settings, selection)
    with opening_variations(source, plan, metric) as (scope, variations, paid):
        if scope.refused:
            raise UnsupportedError("; ".join(scope.refusals))
        side_a, side_b = variations
        chances = fetch(scope.connection, PairChance, run_ids=list(scope.run_ids), metric=INTERVALS.get(metric, "none"))
        values = _read_values(side_a, side_b, metric, paid)
        probability = max((row.probability_better for row in chances), default=None)
        known = (Quantity(value, METRIC[metric].unit) for value in values)
        choice = choose(metric, dict(zip(scope.run_ids, known, strict=True)), lambda *_: probability)
        caveats = find_caveats(scope, [choice], metric=metric)
        named = scope.subjects({})
    half_width = chances.rows[0].half_width if chances.rows else None
    rows = Pair(side_a, side_b, metric, half_width).rows()
    batches = _try_batches(source, model, settings, selection, metric)
    odds_of_half = _find_odds_of_half(choice.ratio, half_width)
    return FlipAnswer(
        scope=scope,
        metric=metric,
        paid=paid,
        values=values,
        half_width=half_width,
        facts=find_reversals(named, choice, caveats, rows, batches, odds_of_half),
        limits_w=(side_a.hardware.tdp.value, side_b.hardware.tdp.value),
        rows=make_table("flip", Flip, rows),
        batches=make_table("flip.batch", BatchWinner, batches),
    )


def _read_values(side_a: Variation, side_b: Variation, metric: VariedMetricName, paid: str) -> tuple[float, float]:
    """Return the values of both chips; UnsupportedError if one is unknown, UsageError if they are equal."""
    value_a, value_b = side_a.metric(metric), side_b.metric(metric)
    if value_a is None or value_b is None:
        side = side_a if value_a is None else side_b
        refuse_unpriced(side.name, metric, paid)
    if value_a == value_b:
        raise UsageError(f"{side_a.name} and {side_b.name} have the same {METRIC[metric].label}: no order to reverse")
    return value_a, value_b


def _find_odds_of_half(ratio: float | None, half_width: float | None) -> float | None:
    """Return the probability that the true ratio is at most half of a large one; None for a small ratio."""
    if half_width is None or ratio is None or ratio <= DOUBLE:
        return None
    from joulemap.physics.interval.probability import probability_better

    return probability_better(HALF, half_width)


def _try_batches(
    source: Source, model: str, settings: Settings, selection: Selection, metric: VariedMetricName
) -> list[BatchWinner]:
    """Return the better hardware at each batch size, and whether both are statistically tied.

    Empty if the model has a fixed batch size or brings its own inputs. Empty also for a box, because its placement
    would change with the batch size.
    """
    if settings.inputs or settings.modules or selection.boxes or find_batch(model):
        return []
    batches = tuple(sorted({*BATCHES, *settings.batch}))
    plan = plan_selected((model,), attrs.evolve(settings, batch=batches), selection)
    if any(one.is_traced for one in plan.models):
        return []
    with opening_variations(source, plan, metric) as (scope, variations, _):
        by_batch = {(one.name, one.batch): one.metric(metric) for one in variations}
        ids = list(scope.evaluated_ids)
        chances = fetch(scope.connection, PairChance, run_ids=ids, metric=INTERVALS.get(metric, "none"))
        batch_of = {run_id: one.batch for run_id, one in scope.outlines.items()}
    close = [{batch_of[row.run_id], batch_of[row.other_run_id]} for row in chances if not row.is_told_apart]
    names = [name_configured(entry.id, mode) for entry, mode in selection.pairs]
    rows = []
    for batch in batches:
        value_a, value_b = (by_batch.get((name, batch)) for name in names)
        winner = None if value_a is None or value_b is None else "AB"[not is_better(metric, value_a, value_b)]
        rows.append(BatchWinner(batch=batch, value_a=value_a, value_b=value_b, winner=winner, is_tied={batch} in close))
    return rows


def is_better(metric: MetricName, value: float, other: float) -> bool:
    """Return whether a value of a metric is better than another one."""
    return (value < other) != METRIC[metric].is_higher_better


def find_reversals(
    runs: Mapping[int, Subject],
    choice: Choice,
    caveats: Sequence[Caveat | Refusal],
    rows: Sequence[Any],
    batches: Iterable[Any],
    odds_of_half: float | None,
) -> Facts:
    """Return the facts of a reversal: the better run, constants that would reverse the order, batch sizes at which it
    is the other one, and shares of the uncertainty.

    `runs` are A and B, `rows` the constants, `batches` the better side at each batch size, and `odds_of_half` is the
    probability that the true ratio is at most half of the predicted one.
    """
    run_a, run_b = runs
    sides = {"A": (run_a,), "B": (run_b,), "both": (run_a, run_b)}
    winner, loser = choice.runs
    reverting = sorted((row for row in rows if row.flip_ratio is not None), key=lambda row: -(row.likelihood or 0.0))
    turns = [
        Turn(
            runs=(loser, winner),
            axis=row.constant,
            name=row.word,
            of=sides[row.side],
            before=Quantity(row.value, row.shown_unit),
            after=Quantity(row.flip_value, row.shown_unit),
            probability=row.likelihood,
        )
        for row in reverting
    ]
    own = "A" if winner == run_a else "B"
    other = [row for row in batches if row.winner not in (None, own)]
    half = [Turn(runs=(loser, winner), axis="ratio", after=HALF, probability=odds_of_half)]
    facts = (
        choice,
        *turns[:MOST_TURNS],
        *(one for one in turns[MOST_TURNS:] if one.of not in {known.of for known in turns[:MOST_TURNS]}),
        *(Turn(runs=(loser, winner), axis="batch", after=row.batch, is_tied=row.is_tied) for row in other),
        *(half if odds_of_half is not None else ()),
        *_share_out(rows, sides),
        *caveats,
    )
    return Facts(asked=(choice.metric,), runs=runs, facts=facts)


def _share_out(rows: Sequence[Any], sides: Mapping[str, tuple[int, ...]]) -> Iterator[Share]:
    """Yield the share of the uncertainty of the constant with the largest, of those that can reverse the order if some
    can, then of each side.
    """
    moving = [row for row in rows if row.variance_fraction]
    if moving:
        reversing = [row for row in moving if row.flip_ratio is not None]
        first = max(reversing or moving, key=lambda row: row.variance_fraction)
        yield Share(
            runs=sides[first.side],
            metric=UNCERTAINTY,
            axis=first.constant,
            name=first.word,
            basis=first.basis,
            share=first.variance_fraction,
        )
    for side, runs in sides.items():
        share = math.fsum(row.variance_fraction for row in moving if row.side == side)
        if share:
            yield Share(runs=runs, metric=UNCERTAINTY, share=share)
