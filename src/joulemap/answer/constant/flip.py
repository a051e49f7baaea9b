"""Compute how wrong each constant must be for the worse of two chips to become the better one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.answer.constant.pair import Flip, Pair
from joulemap.answer.constant.variation import (
    DIGITS,
    SHOWN,
    STEP_TRY,
    ConstantAnswer,
    opening_variations,
    show_elasticity,
)
from joulemap.ask.fact import Choice
from joulemap.ask.price import refuse_unpriced
from joulemap.ask.rule import find_caveats
from joulemap.ask.turn import HALF, choose, find_reversals, is_better
from joulemap.domain.computed import described, make_table
from joulemap.domain.default import SETTINGS, USAGE
from joulemap.domain.metric import METRIC, VARIED_METRICS, VariedMetricName
from joulemap.domain.settings import BATCHES, Settings, Usage, check_name
from joulemap.domain.table import Table
from joulemap.domain.value import show_constant
from joulemap.generated.compare import PairChance
from joulemap.physics.record.constant import STATIC
from joulemap.plan.model_name import find_batch
from joulemap.plan.run import plan_selected
from joulemap.plan.selection import Selection, select_hardware, select_one
from joulemap.plan.source import Source
from joulemap.plan.variation import Variation
from joulemap.show.page import Figures
from joulemap.show.present.cell import Remark, show_odds
from joulemap.show.present.document import Document, Section
from joulemap.show.present.template import Template, join_clauses
from joulemap.show.run import title_runs
from joulemap.show.turn import BOTH, REVERSAL_NOTES, describe_batches, describe_odds, describe_turn, list_reasons
from joulemap.store.query import fetch
from joulemap.system.errors import UnsupportedError, UsageError
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.physics.record.hardware import Hardware

TITLE: Final = Template("constants that would reverse the {metric.label} ranking of {a} (A) and {b} (B)[, {paid}]")
DRAWN_TITLE: Final = Template("{metric.label} of A {a} and B {b}")

COLUMNS: Final = (
    "constant word | *side | *value | *break-even flip_value | *factor flip_ratio | *chance likelihood | "
    "*share of uncertainty variance_fraction | basis"
)
ALL_TITLE: Final = "Every constant, the likeliest to reverse the order first"
ALL_COLUMNS: Final = (
    "constant | *hardware | value | *break-even flip_value | *factor flip_ratio | *chance likelihood | "
    "*share of uncertainty variance_fraction | elasticity ratio_elasticity | *spread low_ratio | spread from spread | "
    "method | *basis | meaning"
)
STEP_EXPLAIN: Final = Template("explain {model} {pair} --metric {metric} {repeated}")
STEP_SENSITIVITY: Final = Template("sensitivity {model} {pair} --metric {metric} {repeated}")
NOT_BELOW: Final = Template("none up to {limit}")
NEVER: Final = "none"
SPREAD: Final = Template("/{down:plain} x{up:plain}")

SIDES: Final = ("A", "B", "both")

FEWEST: Final = 3
"""Reversals in the main table even if none is likely."""

FIRST: Final = 4
"""Places of the main table that only the likeliest reversals use."""

SHOWN_STILL: Final = 4
"""Maximum constants in the main table that cannot reverse the order alone; the largest uncertainty shares are kept."""

LEAST_LIKELY: Final = 1e-3
"""Minimum likelihood of a reversal for the main table; `LEAST_SHARE` of the uncertainty suffices too."""

LEAST_SHARE: Final = 5e-3

DOUBLE: Final = 2.5
"""Ratio of the chips above which the text also states the odds that the true ratio is at least two."""

WORTH_TRYING: Final = 0.02
"""Minimum likelihood of a reversal for which the first follow-up command tries the constant beyond its break-even."""

BEYOND: Final = 1.02
"""Factor by which a follow-up command sets a constant beyond its break-even."""

INTERVALS: Final[Mapping[str, str]] = {
    "energy": "energy_per_inference",
    "efficiency": "energy_per_inference",
    "latency": "latency",
    "throughput": "throughput",
    "edp": "edp_per_inference",
    "power": "power",
}
"""Metric -> metric of `compare.probability` with the same ratio of two runs at one batch size."""


@frozen
class BatchWinner:
    """Better of two chips at one batch size."""

    batch: int = described("samples per input")
    value_a: float | None = described("metric of A")
    value_b: float | None = described("metric of B")
    winner: str | None = described("A or B; null if one has no value")


DOUBTED_IN: Final[Mapping[str, tuple[str, ...]]] = {
    "energy": ("energy",),
    "efficiency": ("energy",),
    "latency": ("latency",),
    "throughput": ("latency",),
    "edp": ("latency", "energy"),
    "power": ("latency", "energy"),
}
"""Metric -> quantities (`energy`, `latency`) that its uncertainty comes from."""


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
        return "AB"[list(self.facts.runs).index(self.choice.runs[0])]

    @property
    def largest(self) -> Flip | None:
        """Constant with the largest share of the ratio's uncertainty; None if no constant changes the ratio."""
        return max(
            (row for row in self.rows if row.variance_fraction), key=lambda row: row.variance_fraction, default=None
        )

    def share(self, side: str) -> float:
        """Return the share of the ratio's variance due to constants of a side: `A`, `B` or `both`."""
        return math.fsum(row.variance_fraction for row in self.rows if row.side == side)

    def sentences(self) -> list[str]:
        """Return sentences on the likeliest reversals, the confidence, and the next measurement."""
        return [describe_turn(self.facts), *filter(None, (describe_odds(self.facts), *list_reasons(self.facts)))]

    def _chosen(self, limit: int) -> list[Flip]:
        """Return at most `limit` constants for the main table: first those that can reverse the order, likeliest first.

        Static power of each side follows if there is a place behind the `FIRST` likeliest, then the constants with the
        largest shares of the uncertainty.
        """
        has_static = "latency" not in DOUBTED_IN.get(self.metric, ()) or self.metric in ("edp", "power")
        rows = sorted(self.rows, key=_order)
        flips = [row for row in rows if row.likelihood]
        likely = [row for rank, row in enumerate(flips) if (row.likelihood or 0.0) >= LEAST_LIKELY or rank < FEWEST]
        static = [row for row in rows if row.constant == STATIC and has_static]
        others = (row for row in rows if row.variance_fraction >= LEAST_SHARE and row not in (*likely, *static))
        still = sorted(others, key=lambda row: -row.variance_fraction)[:SHOWN_STILL]
        kept = likely[: max(limit - sum(row not in likely[:limit] for row in static), FIRST)]
        return [*kept, *(row for row in static if row not in kept), *still][:limit]

    def data(self) -> dict[str, Any]:
        """Return the data for machine formats, including the winner, the ratio and the sentences that people see."""
        largest = self.largest
        return {
            **super().data(),
            **{f"hardware_{side}": name for side, name in zip("ab", self.names, strict=True)},
            **{f"value_{side}": value for side, value in zip("ab", self.values, strict=True)},
            "winner": self.winner,
            "ratio": self.choice.ratio,
            "probability": self.choice.probability,
            "half_width": self.half_width,
            "measure_next": None if largest is None else largest.constant,
            "variance_fractions": {side: self.share(side) for side in SIDES},
            "sentences": self.sentences(),
        }

    def figures(self) -> Figures:
        """Return a figure of the factor at which each constant reverses the order, next to its spread.

        Empty if no constant can reverse the order alone.
        """
        if all(row.flip_ratio is None for row in self.rows):
            return ()
        texts = {"quantity": METRIC[self.metric].label}
        subject = attrs.evolve(title_runs(self.scope), about=DRAWN_TITLE(**self._pair))
        return (self._draw_figure("flip", self.rows, subject, join_clauses(self.sentences()), texts),)

    @property
    def _pair(self) -> dict[str, Any]:
        name_a, name_b = map(self._mark, self.names)
        return {"metric": METRIC[self.metric], "a": name_a, "b": name_b}

    def document(self, *, limit: int = SHOWN, repeated: Sequence[str] = ()) -> Document:
        """Return the document with `limit` constants in each table; machine formats contain all constants."""
        chosen = self._chosen(limit)
        cells: dict[str, Any] = {
            "flip_value": self._show_break_even,
            "flip_ratio": lambda row: _show_factor(row.flip_ratio),
            "likelihood": lambda row: show_odds(row.likelihood),
        }
        decisive = self._lay(
            self.rows.with_rows(chosen),
            COLUMNS,
            **cells,
            value=lambda row: row.show(row.value, DIGITS),
            ranked="break-even | chance",
            pictures="share of uncertainty",
        )
        pictures = tuple(attrs.evolve(one, heading="uncertainty") for one in decisive.pictures)
        decisive = attrs.evolve(decisive, pictures=pictures)
        every = self._lay(
            self.rows,
            ALL_COLUMNS,
            **cells,
            hardware=lambda row: self._mark(row.hardware or BOTH),
            value=lambda row: row.show(row.value),
            ratio_elasticity=lambda row: show_elasticity(row.ratio_elasticity),
            low_ratio=lambda row: SPREAD(down=1.0 / row.low_ratio, up=row.high_ratio),
        )
        known = [row for row in self.batches if row.winner is not None]
        return self._compose_constants(
            self.rows,
            decisive.out_of(len(self.rows), len(chosen), "constants", "--details"),
            chosen,
            TITLE(paid=self.paid, **self._pair),
            [*REVERSAL_NOTES, *describe_batches(self.facts, [row.batch for row in known])],
            details=(Section(ALL_TITLE, every),),
            steps=self._steps(repeated),
        )

    def _show_break_even(self, row: Flip) -> str:
        """Return the value of a constant that makes the chips equal, or a remark that there is none."""
        if row.flip_value is not None:
            return row.show(row.flip_value, DIGITS)
        if row.constant == STATIC:
            limit_w = self.limits_w["AB".index(row.side)] if row.side in "AB" else min(self.limits_w)
            return Remark(NOT_BELOW(limit=show_constant(limit_w, "W")))
        return NEVER

    def _steps(self, repeated: Sequence[str]) -> list[list[str]]:
        row = next((row for row in self.rows if row.flip_ratio is not None and self._can_set(row)), None)
        steps = [*([STEP_EXPLAIN] if self.metric in ("energy", "latency", "edp") else []), STEP_SENSITIVITY]
        setting = ""
        if row is not None and row.flip_ratio is not None:
            beyond = row.flip_ratio * (BEYOND if row.flip_ratio > 1.0 else 1.0 / BEYOND)
            at = "" if row.hardware is None else f"{row.hardware}:"
            setting = f"{at}{row.constant}=x{beyond:.4g}"
            steps.insert(0 if (row.likelihood or 0.0) >= WORTH_TRYING else len(steps), STEP_TRY)
        return self._fill_pair(steps, self.names, repeated, setting)


def _show_factor(factor: float | None) -> str:
    return "" if factor is None else f"x{factor:.3g}" if factor >= 1.0 else f"/{1.0 / factor:.3g}"


def _order(row: Flip) -> tuple[float, int, float, str]:
    """Return the sort key of a row: most likely reversals first, then by side and share of the uncertainty."""
    return -(row.likelihood or 0.0), SIDES.index(row.side), -row.variance_fraction, row.constant


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
    """Compute by which factor each constant must be wrong for the other chip to win.

    Includes the share of each constant in the ratio's uncertainty, and the best next measurement. `usage` applies if
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
    with opening_variations(source, plan, metric, usage) as (scope, variations, paid):
        if scope.refused:
            raise UnsupportedError("; ".join(scope.refusals))
        side_a, side_b = variations
        chances = fetch(scope.connection, PairChance, run_ids=list(scope.run_ids), metric=INTERVALS.get(metric, "none"))
        values = _read_values(side_a, side_b, metric, paid)
        probability = max((row.probability_better for row in chances), default=None)
        choice = choose(scope, metric, values, probability)
        caveats = find_caveats(scope, [choice], metric=metric)
        named = scope.subjects({})
    half_width = chances.rows[0].half_width if chances.rows else None
    rows = Pair(side_a, side_b, metric, half_width).rows()
    batches = _try_batches(source, model, settings, selection, metric, usage)
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
    source: Source, model: str, settings: Settings, selection: Selection, metric: VariedMetricName, usage: Usage
) -> list[BatchWinner]:
    """Return the better hardware at each batch size.

    Empty if the model has a fixed batch size or brings its own inputs. Empty also for a box, because its placement
    would change with the batch size.
    """
    if settings.inputs or settings.modules or selection.boxes or find_batch(model):
        return []
    batches = tuple(sorted({*BATCHES, *settings.batch}))
    plan = plan_selected((model,), attrs.evolve(settings, batch=batches), selection)
    if any(one.is_traced for one in plan.models):
        return []
    with opening_variations(source, plan, metric, usage) as (_, variations, _):
        by_batch = {(one.name, one.batch): one.metric(metric) for one in variations}
    names = [entry.id if mode == "default" else f"{entry.id}@{mode}" for entry, mode in selection.pairs]
    rows = []
    for batch in batches:
        value_a, value_b = (by_batch.get((name, batch)) for name in names)
        winner = None if value_a is None or value_b is None else "AB"[not is_better(metric, value_a, value_b)]
        rows.append(BatchWinner(batch=batch, value_a=value_a, value_b=value_b, winner=winner))
    return rows
