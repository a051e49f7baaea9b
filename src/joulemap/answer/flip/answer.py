"""Compute by how much each constant must be wrong for another hardware to be better."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.answer.answer import Figures, RunAnswer
from joulemap.answer.computed import make_table, told
from joulemap.answer.flip.pair import Flip, Pair
from joulemap.answer.price import find_prices
from joulemap.answer.scope import DOUBTED_IN, find_scope
from joulemap.domain.constant import STATIC
from joulemap.domain.default import SETTINGS, USAGE
from joulemap.domain.doubt import TOLD_APART
from joulemap.domain.metric import METRIC, VARIED_METRICS, VariedMetricName
from joulemap.domain.settings import BATCHES, Settings, Usage, check_name
from joulemap.domain.table import Table
from joulemap.domain.value import show_constant
from joulemap.model.root import MOST_FACTOR
from joulemap.plan.hold import holding_runs
from joulemap.plan.run import plan_selected
from joulemap.plan.selection import select_hardware, select_one
from joulemap.plan.source import Source
from joulemap.plan.variation import BILLED, find_variations
from joulemap.present.cell import show_chance, show_odds, show_quantity, show_share
from joulemap.present.document import Document, Grid, Section, grid
from joulemap.row.compare import PairChance
from joulemap.store.query import fetch
from joulemap.system.errors import UnsupportedError, UsageError
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.domain.hardware import Hardware

SIDES: Final = ("A", "B", "both")

SHOWN: Final = 10
"""Default number of constants in the main table, both sides together."""

SHOWN_STILL: Final = 4
"""Maximum constants in that table that cannot reverse the order alone; the most uncertain ones are kept."""

LEAST_LIKELY: Final = 1e-3
"""Likelihood below which a constant, if its share is below `LEAST_SHARE` too, is only in the details."""

LEAST_SHARE: Final = 5e-3

NO_FLIP: Final = ", and none of its constants alone reverses the order"

DIGITS: Final = 3
"""Significant digits of constants in the main table; the details have more."""

SCALE: Final = "_time_scale"
"""Suffix of the name of a constant that scales a time."""

DOUBLE: Final = 2.5
"""Ratio above which the chance of a factor of two is stated too."""

WORTH_TRYING: Final = 0.02
"""Likelihood above which the first next step is a trial with the constant that wrong."""

INTERVALS: Final[Mapping[str, str]] = {
    "energy": "energy_per_inference",
    "efficiency": "energy_per_inference",
    "latency": "latency",
    "throughput": "throughput",
    "edp": "edp_per_inference",
    "power": "power",
}
"""Metric -> metric in which its runs are compared with their errors. Two runs of one batch differ alike in both."""


@frozen
class BatchWinner:
    """Better of the two hardware at one batch size."""

    batch: int = told("samples per input")
    value_a: float | None = told("metric of A")
    value_b: float | None = told("metric of B")
    winner: str | None = told("A or B; null if one has no value")


@frozen(kw_only=True)
class FlipAnswer(RunAnswer):
    """Constants that would make the other hardware better, and the best next measurement."""

    metric: VariedMetricName
    paid: str
    """Way of paying, and kind of seller; empty for metrics without a price."""
    names: tuple[str, str]
    """Names of A and B, with power modes."""
    values: tuple[float, float]
    """Metric of A and of B."""
    probability: float | None
    """Probability that the winner is better, given the errors of similar predictions; None without an interval."""
    half_width: float | None
    """Half width of the 80 % interval of the ratio's logarithm; None if `probability` is."""
    limits_w: tuple[float, float]
    """Power limits of A and B, which static power cannot exceed."""
    rows: Table[Flip]
    """Rows by spreads needed for a flip, fewest first; then those that cannot flip, by variance, largest first."""
    batches: Table[BatchWinner]
    """Winner per batch size; empty if the model would have to be traced for them."""

    @property
    def winner(self) -> str:
        """Better side, `A` or `B`."""
        return _better(self.metric, *self.values)

    @property
    def ratio(self) -> float:
        """Factor by which the winner is better."""
        value_a, value_b = self.values
        return max(value_a / value_b, value_b / value_a)

    @property
    def largest(self) -> Flip | None:
        """Constant with the largest share of the ratio's uncertainty; None if no constant moves it."""
        return max(
            (row for row in self.rows if row.variance_fraction), key=lambda row: row.variance_fraction, default=None
        )

    def share(self, side: str) -> float:
        """Return the share of the variance due to constants of a side: `A`, `B` or `both`."""
        return math.fsum(row.variance_fraction for row in self.rows if row.side == side)

    def sentences(self) -> list[str]:
        """Return the winner, its confidence, the nearest flip on each side, and the next measurement."""
        return [one for one in (self.say_winner(), self.say_sure(), *self.insights()) if one]

    def say_winner(self) -> str:
        """Return the better hardware, by how much, and at which batch sizes."""
        label = METRIC[self.metric]
        value, other = (show_quantity(one, label.unit) for one in sorted(self.values, reverse=label.is_higher_better))
        first, second = map(
            self.scope.mark, sorted(self.names, key=lambda name: name != self.names["AB".index(self.winner)])
        )
        ahead = f"{first} is {self.ratio:.3g}x better in {label.label} than {second}, {value} against {other}"
        return f"{ahead}{self._say_batches()}{'' if self._flips else '; no single constant reverses the order'}"

    @property
    def _flips(self) -> bool:
        """True if some constant alone can make the two equal."""
        return any(row.flip_ratio is not None for row in self.rows)

    def say_sure(self) -> str:
        """Return the confidence in the winner, and the error needed for the other to win; empty without an interval."""
        if self.probability is None or self.half_width is None:
            return ""
        odds = show_odds(1.0 - self.probability)
        apart = "" if self.probability >= TOLD_APART else ": the two are tied"
        from joulemap.uncertainty.probability import probability_better

        half = f", by 2x in {show_odds(probability_better(0.5, self.half_width))}" if self.ratio > DOUBLE else ""
        return (
            f"{show_chance(self.probability)}{apart}; the ratio of two such predictions is off by "
            f"{self.ratio:.3g}x or more in {odds}{half}"
        )

    def insights(self) -> list[str]:
        """Return the nearest flip on each side, and the next measurement."""
        sides = [self._say_side(side) for side in ("A", "B") if self._of(side)]
        return [*sides, *(f"measure next: {line}" for line in self.measure_next())]

    def say_nearest(self) -> str:
        """Return the constant most likely to make the two equal alone, or that there is none."""
        row = next((row for row in self.rows if row.flip_ratio is not None), None)
        if row is None:
            return f"no single constant reverses the order, from 1/{MOST_FACTOR:g} to {MOST_FACTOR:g} of its value"
        return f"the {row.word} of {self._owner(row)} at {_say_flip(row)}"

    def measure_next(self) -> list[str]:
        """Return the constant whose measurement would remove the most uncertainty; empty if none moves the ratio."""
        largest = self.largest
        if largest is None:
            return []
        share = show_share(largest.variance_fraction)
        what = f" ({largest.meaning})" if largest.kind == "coefficient" and largest.meaning else ""
        return [f"the {largest.word} of {self._owner(largest)}{what}, {largest.basis}: {share} of the uncertainty"]

    def _say_side(self, side: str) -> str:
        name = self.scope.mark(self.names["AB".index(side)])
        share = show_share(self.share(side))
        row = next((row for row in self._of(side) if row.flip_ratio is not None), None)
        if row is None:
            return f"{name} contributes {share} of the uncertainty{NO_FLIP if self._flips else ''}"
        told = f"{name} contributes {share} of the uncertainty"
        return f"{told}; the order reverses with its {row.word} at {_say_flip(row)}"

    def _of(self, side: str) -> list[Flip]:
        """Return the constants of a side, the most likely flips first, then by share of the variance."""
        rows = (row for row in self.rows if row.side == side)
        return sorted(rows, key=lambda row: (-(row.likelihood or 0.0), -row.variance_fraction, row.constant))

    def _chosen(self, limit: int) -> list[Flip]:
        """Return the constants of the main table, grouped as A, B and both, chosen from each side in turn."""
        sides = []
        has_static = "latency" not in DOUBTED_IN.get(self.metric, ()) or self.metric in ("edp", "power")
        for side in SIDES:
            rows = self._of(side)
            told = [row for row in rows if row.flip_ratio is not None][:1]
            told += [row for row in rows if row.constant == STATIC and has_static and row not in told]
            telling = (
                row for row in rows if (row.likelihood or 0.0) >= LEAST_LIKELY or row.variance_fraction >= LEAST_SHARE
            )
            sides.append([*told, *(row for row in telling if row not in told)])
        turns = max(map(len, sides))
        taken = [rows[place] for place in range(turns) for rows in sides if place < len(rows)][:limit]
        idle = (row for row in taken if row.flip_ratio is None and not (has_static and row.constant == STATIC))
        still = sorted(idle, key=lambda row: -row.variance_fraction)
        return [row for side in SIDES for row in self._of(side) if row in taken and row not in still[SHOWN_STILL:]]

    def data(self) -> dict[str, Any]:
        """Return the data for machine formats, with winner, ratio and sentences."""
        largest = self.largest
        return {
            **super().data(),
            "metric": self.metric,
            **{f"hardware_{side}": name for side, name in zip("ab", self.names, strict=True)},
            **{f"value_{side}": value for side, value in zip("ab", self.values, strict=True)},
            "winner": self.winner,
            "ratio": self.ratio,
            "probability": self.probability,
            "half_width": self.half_width,
            "measure_next": None if largest is None else largest.constant,
            "variance_fractions": {side: self.share(side) for side in SIDES},
            "sentences": self.sentences(),
        }

    def figures(self) -> Figures:
        """Return the figure of flip factors beside the spread of each constant; empty if no constant flips alone."""
        if not self._flips:
            return ()
        name_a, name_b = map(self.scope.mark, self.names)
        subject = f"{self.scope.title}: {METRIC[self.metric].label} of A {name_a} and B {name_b}"
        texts = {"quantity": METRIC[self.metric].label}
        return (self._draw_figure("flip", self.rows, subject, "; ".join(self.sentences()), texts),)

    def document(self, *, limit: int = SHOWN, repeated: Sequence[str] = ()) -> Document:
        """Return the document with `limit` constants of each table; machine formats hold all."""
        name_a, name_b = map(self.scope.mark, self.names)
        chosen = self._chosen(limit)
        return self._compose(
            f"{self.scope.title}: what would flip {METRIC[self.metric].label} of A {name_a} and B {name_b}"
            f"{self.paid and f', {self.paid}'}",
            (Section("", self._decisive(chosen).out_of(len(self.rows), len(chosen), "constants", "--details")),),
            self.rows,
            answer=self.say_winner(),
            insights=self.insights(),
            sure="; ".join(filter(None, (self.say_sure(), *self._say_own_doubts()))),
            details=(Section("Every constant, the likeliest to flip it first", self._all()),),
            notes=self._notes(),
            steps=self._steps(repeated),
        )

    def _say_own_doubts(self) -> list[str]:
        """Return the uncertainty of the metric that is due to assumed numbers."""
        told = self.scope.say_own_doubts(DOUBTED_IN.get(self.metric, ()))
        return [f"part of that: {line.removeprefix('of which ')}" for line in told]

    def _decisive(self, chosen: Sequence[Flip]) -> Grid:
        return grid(
            attrs.evolve(self.rows, rows=tuple(chosen)),
            (
                ("what", "word"),
                ("of", "side"),
                ("is", lambda row: show_constant(row.value, row.unit, DIGITS)),
                ("equal at", self._alike),
                ("off by", lambda row: _show_factor(row.flip_ratio)),
                ("chance", lambda row: show_odds(row.likelihood)),
                ("uncertainty", "variance_fraction"),
                ("basis", "basis"),
            ),
            keep=("of", "equal at", "chance", "uncertainty", "is", "off by"),
        )

    def _alike(self, row: Flip) -> str:
        """Return the value of a constant that makes both equal, or that there is none."""
        if row.flip_value is not None:
            return show_constant(row.flip_value, row.unit, DIGITS)
        if row.constant == STATIC:
            limit_w = self.limits_w["AB".index(row.side)] if row.side in "AB" else min(self.limits_w)
            return f"not below {show_constant(limit_w, 'W')}"
        return "never alone"

    def _all(self) -> Grid:
        return grid(
            self.rows,
            (
                ("constant", "constant"),
                ("of", self._owner),
                ("value", lambda row: show_constant(row.value, row.unit)),
                ("equal at", self._alike),
                ("factor", lambda row: _show_factor(row.flip_ratio)),
                ("chance", lambda row: show_odds(row.likelihood)),
                ("uncertainty", "variance_fraction"),
                ("elasticity", lambda row: "" if row.ratio_elasticity is None else f"{row.ratio_elasticity:+.3f}"),
                ("one spread", lambda row: f"/{1.0 / row.low_ratio:.3g} x{row.high_ratio:.3g}"),
                ("from", "spread"),
                ("method", "method"),
                ("basis", "basis"),
                ("meaning", "meaning"),
            ),
            keep=("of", "equal at", "factor", "chance", "uncertainty", "one spread", "basis"),
        )

    def _say_batches(self) -> str:
        known = [row for row in self.batches if row.winner is not None]
        if not any(row.batch in self.scope.batches for row in known):
            return ""
        others = [str(row.batch) for row in known if row.winner != self.winner]
        if not others:
            return f"; the same at all tried batches, {known[0].batch} to {known[-1].batch}"
        return f"; the order reverses at batch {', '.join(others)}"

    def _owner(self, row: Flip) -> str:
        return "both" if row.hardware is None else self.scope.mark(row.hardware)

    def _notes(self) -> list[str]:
        return [
            "each constant alone, all others unchanged, between 1/100 and 100 times its value",
            "chance: probability that this constant is that wrong on that side; all constants together have the error "
            "of similar predictions, each by its share of the uncertainty",
            "uncertainty: a constant's share in the uncertainty of the ratio, from its own range, that of its class's "
            "fit, or that of its basis; constants count as independent, and one common to both as one",
            "--details has each constant's name for --set",
            *self.scope.describe(),
        ]

    def _steps(self, repeated: Sequence[str]) -> list[list[str]]:
        pair = [self.scope.spell(name) for name in self.names]
        steps = [["sensitivity", self.scope.model, *pair, "--metric", self.metric, *repeated]]
        if self.metric in ("energy", "latency", "edp"):
            steps.insert(0, ["explain", self.scope.model, *pair, "--metric", self.metric, *repeated])
        row = next((row for row in self.rows if row.flip_ratio is not None), None)
        if row is not None and row.flip_ratio is not None and row.kind != "use":
            beyond = row.flip_ratio * (1.02 if row.flip_ratio > 1.0 else 1.0 / 1.02)
            at = "" if row.hardware is None else f"{row.hardware}:"
            tried = ["--hardware", ",".join(pair), "--set", f"{at}{row.constant}=x{beyond:.4g}"]
            place = 0 if (row.likelihood or 0.0) >= WORTH_TRYING else len(steps)
            steps.insert(place, ["compare", self.scope.model, *tried, *repeated])
        return steps


def _show_factor(factor: float | None) -> str:
    return "" if factor is None else f"x{factor:.3g}" if factor >= 1.0 else f"/{1.0 / factor:.3g}"


def _say_flip(row: Flip) -> str:
    """Return the value that a constant would need, and its likelihood."""
    chance = show_odds(row.likelihood)
    factor = row.flip_ratio or 1.0
    if row.constant.endswith(SCALE):
        return f"{factor:.3g} times the prediction ({chance})"
    there, value = (show_constant(one or 0.0, row.unit, DIGITS) for one in (row.flip_value, row.value))
    return f"{there} instead of {value} ({', '.join(filter(None, (_show_factor(factor), chance)))})"


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
    """Compute by which factor each constant must be wrong for the other hardware to be better.

    Includes the share of each constant in the ratio's uncertainty, and the best next measurement. `usage` applies if
    the metric is a cost. Raises as `explain`; UsageError if the two are the same.
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
    with holding_runs(source, plan, needs_catalogue=metric in BILLED) as runs:
        scope = find_scope(runs)
        if scope.refused:
            raise UnsupportedError("; ".join(scope.refusals))
        prices = find_prices(runs.connection, runs.ids, billed)
        side_a, side_b = find_variations(runs, billed, prices.of_run)
        chances = fetch(runs.connection, PairChance, run_ids=list(runs.ids), metric=INTERVALS.get(metric, "none"))
    values = side_a.metric(metric), side_b.metric(metric)
    value_a, value_b = values
    if value_a is None or value_b is None:
        side = side_a if value_a is None else side_b
        raise UnsupportedError(
            f"{side.name} has no {METRIC[metric].label}, {prices.paid}: no such price of it is known "
            "(--pay and --seller choose another)"
        )
    if value_a == value_b:
        raise UsageError(f"{side_a.name} and {side_b.name} are alike in {METRIC[metric].label}: nothing to flip")
    half_width = chances.rows[0].half_width if chances.rows else None
    pair = Pair(side_a, side_b, metric, half_width)
    return FlipAnswer(
        scope=scope,
        metric=metric,
        paid=prices.paid,
        names=(side_a.name, side_b.name),
        values=(value_a, value_b),
        probability=max((row.probability_better for row in chances), default=None),
        half_width=half_width,
        limits_w=(side_a.hardware.tdp.value, side_b.hardware.tdp.value),
        rows=make_table("flip", Flip, pair.rows()),
        batches=make_table("flip.batch", BatchWinner, _try_batches(source, model, settings, selection, metric, billed)),
    )


def _try_batches(
    source: Source, model: str, settings: Settings, selection: Any, metric: VariedMetricName, usage: Usage | None
) -> list[BatchWinner]:
    """Return the better hardware at each batch size.

    Empty if the model ships at a single batch size or brings its own inputs. Empty for a box too, because its placement
    would change with the batch size.
    """
    if settings.inputs or settings.modules or selection.boxes:
        return []
    batches = tuple(sorted({*BATCHES, *settings.batch}))
    plan = plan_selected((model,), attrs.evolve(settings, batch=batches), selection)
    if any(one.is_traced for one in plan.models):
        return []
    with holding_runs(source, plan, needs_catalogue=metric in BILLED) as runs:
        prices = find_prices(runs.connection, runs.ids, usage).of_run
        found = {(one.name, one.batch): one.metric(metric) for one in find_variations(runs, usage, prices)}
    names = [entry.id if mode == "default" else f"{entry.id}@{mode}" for entry, mode in selection.pairs]
    rows = []
    for batch in batches:
        value_a, value_b = (found.get((name, batch)) for name in names)
        winner = None if value_a is None or value_b is None else _better(metric, value_a, value_b)
        rows.append(BatchWinner(batch=batch, value_a=value_a, value_b=value_b, winner=winner))
    return rows
