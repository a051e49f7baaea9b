"""Flips: by how much each constant would have to be wrong for another hardware to be the better one.

    f_A(k c) = f_B(k c)        solved for the factor k of each constant c that A, B or both rest on
    v_c = d_c^2                d_c: half of what ln(f_A / f_B) moves between one spread down and one up

The shares v_c / sum of v say whose doubt makes the doubt about the ratio. Constants are taken as independent, but for
those that both sides have from one class: such a one is wrong on both at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.answer.answer import RunAnswer
from joulemap.answer.computed import make_table, told
from joulemap.answer.scope import describe_advantage, find_scope
from joulemap.domain.default import SETTINGS, USAGE
from joulemap.domain.doubt import TOLD_APART
from joulemap.domain.metric import METRIC, VARIED_METRICS, VariedMetricName
from joulemap.domain.settings import BATCHES, check_name
from joulemap.domain.table import Table
from joulemap.model.root import MOST_FACTOR, solve
from joulemap.plan.change import show_constant
from joulemap.plan.hold import holding_runs
from joulemap.plan.run import plan_selected
from joulemap.plan.selection import select_hardware, select_one
from joulemap.plan.variation import BILLED, Variation, find_variations
from joulemap.present.cell import show_chance, show_quantity, show_share
from joulemap.present.document import Document, Lines, Section, Text, grid, say_rest
from joulemap.row.compare import PairChance
from joulemap.store.query import fetch
from joulemap.system.errors import UnsupportedError, UsageError
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.domain.hardware import Hardware
    from joulemap.domain.settings import Settings, Usage
    from joulemap.figure.figure import Figure
    from joulemap.plan.source import Source

SIDES: Final = ("A", "B", "both")

NEGLIGIBLE: Final = 1e-12
"""Of a logarithm: nothing moves by less."""


@frozen
class Flip:
    """How wrong one constant would have to be for the other hardware to be better, and what its doubt makes."""

    side: str = told("whose constant it is: A, B, or both where they have it from one class")
    hardware: str | None = told("the hardware that has it; null for both")
    constant: str = told("its name, as --set takes it")
    kind: str = told("price, quantity, geometry, memory, peak, coefficient or use")
    value: float = told("as the run has it, that of A for both; in unit")
    unit: str = told("SI unit")
    per: str = told("what one count of a price is; empty for all other")
    flip_ratio: float | None = told("factor at which both are alike; null where there is none from 1/100 to 100")
    flip_value: float | None = told("the constant there, in unit")
    spread_count: float | None = told("how many of its spreads that is; null where it is stated exactly")
    likelihood: float | None = told(
        "probability that it is that wrong, on that side, if a spread is a standard deviation; null where it is exact"
    )
    low_ratio: float = told("one spread down, as a factor")
    high_ratio: float = told("one spread up, as a factor")
    spread: str = told("where the spread comes from: range (its own), class (that fits it), exact, or its basis")
    ratio_elasticity: float | None = told("d ln (metric of A / metric of B) / d ln constant")
    ratio_spread: float = told("what ln (metric of A / metric of B) moves for one spread, either sign")
    variance_fraction: float = told("share of the variance of that logarithm")
    method: str = told("exact: from the ledger, which is linear in prices; evaluated: by evaluating again")
    basis: str = told("where the constant comes from, the less sure of two")
    source: str = told("document, measurement or arithmetic")


INTERVALS: Final[Mapping[str, str]] = {
    "energy": "energy_per_inference",
    "efficiency": "energy_per_inference",
    "latency": "latency",
    "throughput": "throughput",
    "edp": "edp_per_inference",
    "power": "power",
}
"""Metric -> the one in which its runs are compared with their errors. Two runs of one batch differ alike in both."""


@frozen
class BatchWinner:
    """Which of the two is better at a batch."""

    batch: int = told("samples in one input")
    value_a: float | None = told("the metric on A")
    value_b: float | None = told("the metric on B")
    winner: str | None = told("A or B; null where one has no value")


@frozen(kw_only=True)
class FlipAnswer(RunAnswer):
    """What would make the other hardware the better one, and what to measure next."""

    metric: VariedMetricName
    names: tuple[str, str]
    """A and B, with their power modes."""
    values: tuple[float, float]
    """The metric on each."""
    probability: float | None
    """That the winner is better, by the errors of predictions like these; None for metrics without an interval."""
    rows: Table[Flip]
    """What takes least, in spreads of each, first; those that cannot flip it last, the largest variance first."""
    batches: Table[BatchWinner]
    """Empty where the model would have to be traced for them."""

    @property
    def winner(self) -> str:
        """`A` or `B`."""
        return _better(self.metric, *self.values)

    @property
    def ratio(self) -> float:
        """How many times better the winner is."""
        value_a, value_b = self.values
        return max(value_a / value_b, value_b / value_a)

    @property
    def log_spread(self) -> float:
        """Standard deviation of ln(A / B), of all constants together."""
        return math.sqrt(sum(row.ratio_spread**2 for row in self.rows))

    @property
    def largest(self) -> Flip | None:
        """The constant whose doubt makes most of the doubt about the ratio; None where none moves it."""
        return max(
            (row for row in self.rows if row.variance_fraction), key=lambda row: row.variance_fraction, default=None
        )

    def share(self, side: str) -> float:
        """Return the share of the variance that constants of a side make: `A`, `B` or `both`."""
        return math.fsum(row.variance_fraction for row in self.rows if row.side == side)

    def sentences(self) -> list[str]:
        """Return who wins, how sure that is in spreads, what flips it, and what to measure."""
        first, second = self._ordered
        label = METRIC[self.metric]
        lines = [f"{self._say(first)} is better in {label.label}: {describe_advantage(self.ratio, self._say(second))}"]
        if self.log_spread > NEGLIGIBLE:
            count = math.log(self.ratio) / self.log_spread
            lines.append(
                f"one spread of all constants together moves the ratio by a factor of {math.exp(self.log_spread):.3g}: "
                f"the lead is {count:.2g} of these spreads"
            )
        if self.probability is not None:
            apart = "" if self.probability >= TOLD_APART else ": the two cannot be told apart"
            sure = show_chance(self.probability)
            lines.append(f"by how far predictions like these were off, it is better with {sure}{apart}")
        return [*lines, self.say_nearest(), *self._say_batches()]

    def say_nearest(self) -> str:
        """Return which constant alone takes fewest of its spreads to make them alike, or that none does."""
        row = next((row for row in self.rows if row.flip_ratio is not None), None)
        if row is None:
            return f"no constant alone flips it, from 1/{MOST_FACTOR:g} to {MOST_FACTOR:g} of its value"
        value, there = (show_constant(one or 0.0, row.unit) for one in (row.value, row.flip_value))
        return (
            f"{row.constant} of {self._owner(row)} at {there} in place of {value} makes them alike: "
            f"x{row.flip_ratio:.3g}, {_show_count(row)} of its spreads"
        )

    def measure_next(self) -> list[str]:
        """Return the single measurement that takes away most doubt: of a constant, and of the question itself."""
        largest = self.largest
        if largest is None:
            return []
        left = math.exp(self.log_spread * math.sqrt(max(0.0, 1.0 - largest.variance_fraction)))
        lines = [
            f"of all constants {largest.constant} of {self._owner(largest)} ({largest.basis}): "
            f"{show_share(largest.variance_fraction)} of the doubt about the ratio; known exactly, one spread is a "
            f"factor of {left:.3g} in place of {math.exp(self.log_spread):.3g}"
        ]
        side = max("AB", key=self.share)
        name = self.names["AB".index(side)]
        if self.share(side) > largest.variance_fraction:
            label = METRIC[self.metric].label
            lines.append(
                f"{label} of {self.scope.model} on {self.scope.mark(name)} itself: {show_share(self.share(side))}, "
                "which its own constants make together"
            )
        return lines

    def data(self) -> dict[str, Any]:
        """Return what programs get, with winner, ratio and sentences."""
        largest = self.largest
        return {
            **super().data(),
            "metric": self.metric,
            "hardware_a": self.names[0],
            "hardware_b": self.names[1],
            "value_a": self.values[0],
            "value_b": self.values[1],
            "winner": self.winner,
            "ratio": self.ratio,
            "probability": self.probability,
            "log_spread": self.log_spread,
            "measure_next": None if largest is None else largest.constant,
            "variance_fractions": {side: self.share(side) for side in SIDES},
            "sentences": [*self.sentences(), *self.measure_next()],
        }

    def figures(self) -> tuple[Figure, ...]:
        """Return the factors that flip it, beside what a spread of each constant is; none where none does alone."""
        from joulemap.figure.figure import make_figure

        if all(row.flip_ratio is None for row in self.rows):
            return ()
        name_a, name_b = map(self._say, self.names)
        subject = self.scope.bounded(f"{self.scope.title}: {METRIC[self.metric].label} of A {name_a} and B {name_b}")
        texts = {"quantity": METRIC[self.metric].label}
        return (make_figure("flip", self.rows, subject, "; ".join(self.sentences()), texts),)

    def document(self, *, limit: int = 20, repeated: Sequence[str] = ()) -> Document:
        """Return it with `limit` constants of each table; programs get all."""
        flips = attrs.evolve(self.rows, rows=tuple(row for row in self.rows if row.flip_ratio is not None))
        doubts = attrs.evolve(
            self.rows,
            rows=tuple(
                sorted(
                    (row for row in self.rows if row.variance_fraction > 5e-4),
                    key=lambda row: (-row.variance_fraction, row.constant, row.side),
                )
            ),
        )
        (value_a, value_b), metric = self.values, METRIC[self.metric]
        name_a, name_b = self.names
        sections = (
            Section("", Text(f"A {show_quantity(value_a, metric.unit)}, B {show_quantity(value_b, metric.unit)}")),
            Section("Answer", Lines(self.sentences())),
            Section("What would flip it, what takes fewest of its spreads first", self._flips(flips, limit)),
            Section("What makes the doubt", self._doubts(doubts, limit)),
            Section("What to measure next", Lines(self.measure_next())),
        )
        return self._compose(
            f"{self.scope.title}: what would flip {metric.label} of A {self._say(name_a)} and B {self._say(name_b)}",
            sections,
            self.rows,
            notes=self._notes(),
            steps=self._steps(flips, repeated),
        )

    def _flips(self, rows: Table[Flip], limit: int) -> tuple[Any, ...]:
        if not rows.rows:
            return (Text("nothing alone"),)
        drawn = grid(
            rows,
            (
                ("constant", "constant"),
                ("of", self._owner),
                ("value", lambda row: show_constant(row.value, row.unit)),
                ("alike at", lambda row: show_constant(row.flip_value or 0.0, row.unit)),
                ("factor", lambda row: f"x{row.flip_ratio:.4g}"),
                ("spreads", _show_count),
                ("likelihood", lambda row: "" if row.likelihood is None else show_share(row.likelihood)),
                ("one spread", _show_spread),
                ("from", "spread"),
                ("method", "method"),
                ("basis", "basis"),
            ),
            limit=limit,
            keep=("of", "factor", "likelihood", "spreads", "alike at", "value", "basis"),
        )
        return drawn, *say_rest(len(rows), limit, "constants")

    def _doubts(self, rows: Table[Flip], limit: int) -> tuple[Any, ...]:
        drawn = grid(
            rows,
            (
                ("constant", "constant"),
                ("of", self._owner),
                ("share", "variance_fraction"),
                (
                    "ratio elasticity",
                    lambda row: "" if row.ratio_elasticity is None else f"{row.ratio_elasticity:+.3f}",
                ),
                ("one spread", _show_spread),
                ("from", "spread"),
                ("basis", "basis"),
            ),
            limit=limit,
            keep=("of", "share", "one spread", "basis"),
        )
        return drawn, *say_rest(len(rows), limit, "constants")

    def _say_batches(self) -> list[str]:
        known = [row for row in self.batches if row.winner is not None]
        own = [row for row in known if row.batch in self.scope.batches]
        others = [row.batch for row in known if row.winner != self.winner]
        if not known or not own:
            return []
        if not others:
            return [f"no batch from {known[0].batch} to {known[-1].batch} that was tried flips it"]
        return [f"at batch {', '.join(map(str, others))} {self._say(self._ordered[1])} is better"]

    @property
    def _ordered(self) -> tuple[str, str]:
        """The winner, then the other."""
        return self.names if self.winner == "A" else (self.names[1], self.names[0])

    def _say(self, name: str) -> str:
        return self.scope.mark(name)

    def _owner(self, row: Flip) -> str:
        return "both" if row.hardware is None else self._say(row.hardware)

    def _notes(self) -> list[str]:
        return [
            "each constant alone, all others as they are; looked for between 1/100 and 100 of its value",
            "a spread is the constant's own range, what its class fits it with, or what its basis is worth; constants "
            "count as independent, one that both have from their class as one",
            *self.scope.describe(),
        ]

    def _steps(self, flips: Table[Flip], repeated: Sequence[str]) -> list[list[str]]:
        pair = [self.scope.spell(name) for name in self.names]
        both = ["--hardware", ",".join(pair)]
        steps = []
        for row in flips.rows[:1]:
            if row.kind != "use" and row.flip_ratio is not None:
                beyond = row.flip_ratio * (1.02 if row.flip_ratio > 1.0 else 1.0 / 1.02)
                at = "" if row.hardware is None else f"{row.hardware}:"
                steps.append(
                    ["compare", self.scope.model, *both, "--set", f"{at}{row.constant}=x{beyond:.4g}", *repeated]
                )
        steps += [["sensitivity", self.scope.model, *pair, "--metric", self.metric, *repeated]]
        if self.metric in ("energy", "latency", "edp"):
            steps.append(["explain", self.scope.model, *pair, "--metric", self.metric, *repeated])
        return steps


def _order(row: Flip) -> float:
    """Return how much it takes: spreads, then what is exact and flips it, then what does not."""
    return row.spread_count if row.spread_count is not None else 1e9 if row.flip_ratio is not None else math.inf


def _show_count(row: Flip) -> str:
    return "none" if row.spread_count is None else f"{row.spread_count:.2f}"


def _show_spread(row: Flip) -> str:
    down, up = 1.0 / row.low_ratio, row.high_ratio
    return f"/{down:.3g} x{up:.3g}"


def _better(metric: VariedMetricName, value_a: float, value_b: float) -> str:
    return "A" if (value_a < value_b) != METRIC[metric].is_higher_better else "B"


def flip(
    source: Source,
    model: str,
    hardware_a: str | Hardware,
    hardware_b: str | Hardware,
    settings: Settings = SETTINGS,
    *,
    metric: VariedMetricName = "energy",
    usage: Usage = USAGE,
) -> FlipAnswer:
    """Return by which factor each constant would have to be wrong for the other hardware to be the better one.

    With how much of the doubt about the ratio each of them makes, and what to measure next. `usage` counts where
    the metric is a cost. Raises as `explain`; UsageError where the two are alike.
    """
    check_name("metric", metric, VARIED_METRICS)
    settings.check_single("flip")
    hardware = (hardware_a, hardware_b)
    for one in hardware:
        select_one(one, settings)
    selection = select_hardware(attrs.evolve(settings, hardware=hardware))
    if len(selection.pairs) != 2:
        raise UsageError("name two different hardware after the model, A and B")
    plan = plan_selected((model,), settings, selection)
    billed = usage if metric in BILLED else None
    with holding_runs(source, plan) as runs:
        scope = find_scope(runs)
        if scope.refused:
            raise UnsupportedError("; ".join(scope.refusals))
        side_a, side_b = find_variations(runs, billed)
        chances = fetch(runs.connection, PairChance, run_ids=list(runs.ids), metric=INTERVALS.get(metric, "none"))
    values = side_a.metric(metric), side_b.metric(metric)
    for side, value in zip((side_a, side_b), values, strict=True):
        if value is None:
            raise UnsupportedError(f"{side.name} has no {METRIC[metric].label}: its price is not known")
    value_a, value_b = values
    assert value_a is not None
    assert value_b is not None
    if value_a == value_b:
        raise UsageError(f"{side_a.name} and {side_b.name} are alike in {METRIC[metric].label}: nothing to flip")
    pair = _Pair(side_a, side_b, metric)
    return FlipAnswer(
        scope=scope,
        metric=metric,
        names=(side_a.name, side_b.name),
        values=(value_a, value_b),
        probability=max((row.probability_better for row in chances), default=None),
        rows=make_table("flip", Flip, pair.rows()),
        batches=make_table("flip.batch", BatchWinner, _try_batches(source, model, settings, selection, metric, billed)),
    )


def _try_batches(
    source: Source, model: str, settings: Settings, selection: Any, metric: VariedMetricName, usage: Usage | None
) -> list[BatchWinner]:
    """Return who is better at each batch; none where the model ships at one batch alone, or brings its own inputs."""
    if settings.inputs or settings.modules:
        return []
    batches = tuple(sorted({*BATCHES, *settings.batch}))
    plan = plan_selected((model,), attrs.evolve(settings, batch=batches), selection)
    if any(one.is_traced for one in plan.models):
        return []
    with holding_runs(source, plan) as runs:
        found = {(one.name, one.batch): one.metric(metric) for one in find_variations(runs, usage)}
    names = [entry.id if mode == "default" else f"{entry.id}@{mode}" for entry, mode in selection.pairs]
    rows = []
    for batch in batches:
        value_a, value_b = (found.get((name, batch)) for name in names)
        is_known = value_a is not None and value_b is not None
        winner = _better(metric, value_a, value_b) if value_a is not None and value_b is not None else None
        rows.append(BatchWinner(batch=batch, value_a=value_a, value_b=value_b, winner=winner if is_known else None))
    return rows


@frozen
class _Pair:
    """Two runs, and the logarithm of the ratio of their metrics as a function of one constant."""

    a: Variation
    b: Variation
    metric: VariedMetricName

    def rows(self) -> list[Flip]:
        """Return every constant that moves the ratio."""
        drawn = [self._row(side, name) for side, name in self._constants()]
        moving = [row for row in drawn if row is not None]
        total = math.fsum(row.ratio_spread**2 for row in moving)
        rows = [attrs.evolve(row, variance_fraction=row.ratio_spread**2 / total if total else 0.0) for row in moving]
        return sorted(
            rows,
            key=lambda row: (_order(row), -row.variance_fraction, row.constant, row.side),
        )

    def _constants(self) -> Iterable[tuple[str, str]]:
        for name in dict.fromkeys((*self.a.constants, *self.b.constants)):
            owners = [side for side, one in (("A", self.a), ("B", self.b)) if name in one.constants]
            if len(owners) == 2 and self._is_shared(name):
                yield "both", name
            else:
                yield from ((owner, name) for owner in owners)

    def _is_shared(self, name: str) -> bool:
        """Whether both have a constant from their class, or from how any chip is used: it is one constant."""
        one, other = self.a.constants[name], self.b.constants[name]
        if one.kind == "use":
            return True
        if self.a.hardware.architecture != self.b.hardware.architecture or one.kind not in ("price", "coefficient"):
            return False
        return one.basis == other.basis != "measured" and _origin(one.source) == _origin(other.source)

    def log_ratio(self, side: str, name: str, factor: float) -> float | None:
        """Return ln(A / B) where a constant of a side is wrong by a factor; None where it cannot be."""
        value_a = self.a.metric(self.metric, name if side != "B" else "", factor)
        value_b = self.b.metric(self.metric, name if side != "A" else "", factor)
        return math.log(value_a / value_b) if value_a and value_b else None

    def _row(self, side: str, name: str) -> Flip | None:
        owner = self.b if side == "B" else self.a
        constant, spread = owner.constants[name], owner.spread(name)
        base = self.log_ratio(side, name, 1.0)
        ends = [self.log_ratio(side, name, factor) for factor in (1.0 / spread.down, spread.up)]
        far = [self.log_ratio(side, name, factor) for factor in (1.0 / MOST_FACTOR, MOST_FACTOR)]
        assert base is not None
        moved = [value - base for value in (*ends, *far) if value is not None]
        if all(abs(one) < NEGLIGIBLE for one in moved) and all(value is not None for value in far):
            return None
        found = solve(lambda factor: self.log_ratio(side, name, factor))
        flip_value = None if found is None else owner.value_at(name, found[1])
        factor = None if flip_value is None else flip_value / constant.value
        count = None if factor is None or spread.origin == "exact" else spread.count(factor)
        known = [value for value in ends if value is not None]
        half = (max([*known, base]) - min([*known, base])) / max(len(known), 1)
        slopes = [self._slope(one, side, mark, name) for one, mark in ((self.a, "A"), (self.b, "B"))]
        return Flip(
            side=side,
            hardware=None if side == "both" else owner.name,
            constant=name,
            kind=constant.kind,
            value=constant.value,
            unit=constant.unit,
            per=constant.per,
            flip_ratio=factor,
            flip_value=flip_value,
            spread_count=count,
            likelihood=None if count is None else math.erfc(count / math.sqrt(2.0)) / 2.0,
            low_ratio=1.0 / spread.down,
            high_ratio=spread.up,
            spread=spread.origin,
            ratio_elasticity=None if None in slopes else math.fsum((slopes[0] or 0.0, -(slopes[1] or 0.0))),
            ratio_spread=half,
            variance_fraction=0.0,
            method=self._method(side, name, factor or spread.up),
            basis=constant.basis,
            source=constant.source,
        )

    def _slope(self, one: Variation, side: str, mark: str, name: str) -> float | None:
        if side not in (mark, "both") or name not in one.constants:
            return 0.0
        return one.slope(self.metric, name)[0]

    def _method(self, side: str, name: str, factor: float) -> str:
        found = [
            one.totals(name, factor)
            for one, mark in ((self.a, "A"), (self.b, "B"))
            if side in (mark, "both") and name in one.constants
        ]
        return "exact" if all(one is not None and one[1] for one in found) else "evaluated"


def _origin(source: str) -> str:
    """Return what a number comes from, without how it was scaled to a node."""
    return source.partition("; x ")[0]
