"""Constants of runs: how each moves a metric of one chip, which of these numbers rest on measurements, and the facts of
both.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.ask.answer import RunAnswer
from joulemap.ask.fact import Choice, Entry, Facts, Quantity, Swing
from joulemap.ask.price import UNPRICED, find_prices, refuse_unpriced
from joulemap.ask.rule import find_caveats, name_weighed
from joulemap.ask.scope import Scope
from joulemap.domain.computed import make_table
from joulemap.domain.constant import name_constant
from joulemap.domain.default import SETTINGS
from joulemap.domain.metric import METRIC, VARIED_METRICS, MetricName, VariedMetricName
from joulemap.domain.settings import Settings, check_name
from joulemap.domain.table import Row, Table, described
from joulemap.physics.interval.error_scale import MOVING, SCALED, find_thinness
from joulemap.physics.record.constant import LOSS, Constant
from joulemap.physics.record.quantity import Evidence
from joulemap.plan.run import Plan, plan_selected
from joulemap.plan.selection import select_hardware
from joulemap.plan.source import Source
from joulemap.plan.stored_runs import opening_runs
from joulemap.plan.variation import BILLED, Variation, find_variations
from joulemap.system.errors import UsageError
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.domain.column import Cell

TIMES: Final = "x"
"""Unit of a constant that scales a time, which is a factor for people."""

SCALE: Final = "_time_scale"
"""Suffix of the name of a constant that scales a time."""

MOST_SWINGS: Final = 10
"""Maximum constants of a chip among the facts; tables have all."""

STILL: Final = 5e-4
"""Elasticity below which a small change of a constant counts as without effect."""

LEAST_SPAN: Final = 1e-9
"""Relative change of a metric below which a constant counts as without effect."""

KNOWN: Final = ("measured", "published")
"""Bases of numbers that a document or a measurement states."""

USUAL: Final = "bf16"
"""Precision of a question on evidence that names none, or the nearest one that the chip has."""


class Varied(Row):
    """Constant of a run, and how its change is evaluated."""

    constant: Cell[str] = described("name of the constant, as in --set")
    word: Cell[str] = described("name of the constant for people", heading="constant")
    meaning: Cell[str] = described("meaning of a coefficient, or counting rule of a price; empty for all other")
    kind: Cell[str] = described("price, quantity, geometry, memory, peak, coefficient or use")
    value: Cell[float] = described("value in the run, for both that of A; in unit")
    unit: Cell[str] = described("SI unit")
    per: Cell[str] = described("unit of count of a price; empty for all other")
    basis: Cell[str] = described("origin of the constant; for both, the less certain one")
    source: Cell[str] = described("document, measurement or arithmetic")
    method: Cell[str] = described("exact: from the ledger, which is linear in prices; evaluated: by evaluating again")

    @property
    def shown_unit(self) -> str:
        """Unit for people: the scale of a time is a factor."""
        return TIMES if self.constant.endswith(SCALE) else self.unit


class Sensitivity(Varied):
    """Effect of one constant on a model's metrics on one chip."""

    hardware: Cell[str] = described("catalogue id, with @MODE for a power mode other than the default")
    low: Cell[float | None] = described("lower end of its range")
    high: Cell[float | None] = described("upper end of its range")
    spread: Cell[str] = described(
        "origin of the range: range (the constant's own), class (fitted by it), exact (no range), or its basis",
        heading="source of low and high",
    )
    energy_elasticity: Cell[float | None] = described("d ln energy / d ln constant: percent per percent")
    latency_elasticity: Cell[float | None] = described("d ln latency / d ln constant")
    elasticity: Cell[float | None] = described("elasticity of the requested metric")
    metric: Cell[str] = described("requested metric")
    metric_unit: Cell[str] = described("SI unit of the metric, or USD")
    metric_value: Cell[float | None] = described("metric of the run")
    metric_low: Cell[float | None] = described("metric with the constant at its lower end")
    metric_high: Cell[float | None] = described("metric with the constant at its upper end")
    span_fraction: Cell[float | None] = described(
        "largest less smallest metric of the value and both ends, over the metric of the run"
    )

    @property
    def ends(self) -> list[float]:
        """Ends of the range of the constant that are possible, the lower one first."""
        return [one for one in (self.low, self.high) if one is not None]

    @property
    def metrics(self) -> list[float]:
        """Metric at the value and at both ends of the range, lowest first."""
        return sorted(one for one in (self.metric_low, self.metric_value, self.metric_high) if one is not None)

    @property
    def is_moving(self) -> bool:
        """True if a change of the constant changes the metric."""
        return any(abs(value or 0.0) > LEAST_SPAN for value in (self.span_fraction, self.elasticity))


class Evident(Varied):
    """Number that moves a result by a tenth or more, with the measurements behind it."""

    hardware: Cell[str] = described("catalogue id, with @MODE for a power mode other than the default")
    elasticity: Cell[float] = described("d ln metric / d ln number: percent per percent")
    sources: Cell[int | None] = described(
        "sources of the measurements that the number was fitted to; null for other numbers", heading="rests on"
    )
    boards: Cell[int | None] = described("boards among these measurements")
    models: Cell[int | None] = described("models among these measurements; single operators count as one")
    half_width: Cell[float] = described(
        "half-width that these measurements add to the interval of a served model's time"
    )
    uncertainty_fraction: Cell[float | None] = described(
        "share of the result's variance from the ranges of all numbers", heading="share"
    )

    @property
    def evidence(self) -> Evidence | None:
        """Measurements that the number was fitted to; None for other numbers."""
        if self.sources is None or self.boards is None or self.models is None:
            return None
        return Evidence(sources=self.sources, boards=self.boards, models=self.models)


def describe_constant(one: Constant) -> dict[str, Any]:
    """Return column -> value for the columns that describe a constant."""
    names = ("meaning", "kind", "value", "unit", "per", "basis", "source")
    return {"constant": one.name, "word": name_constant(one), **{name: getattr(one, name) for name in names}}


@frozen(kw_only=True)
class ConstantAnswer(RunAnswer):
    """Constants of runs, and how each of them moves a metric of one run or of the ratio of two."""

    about = ("metric",)

    metric: VariedMetricName
    paid: str
    """Way of paying, and kind of seller; empty for metrics without a price."""
    facts: Facts
    """Values of the runs, reversals or effects of constants, and caveats, from which all sentences are made."""

    def can_set(self, row: Varied) -> bool:
        """Return whether `--set` may change a constant: one of a chip that the question has not set."""
        changed = {name.rpartition(":")[2] for name in self.scope.settings.changes}
        return row.kind != "use" and row.constant not in changed


@frozen(kw_only=True)
class SensitivityAnswer(ConstantAnswer):
    """Sensitivity of a model's energy and time on each chip."""

    rows: Table[Sensitivity]
    """Effect of each constant, by hardware in the order of the question, then largest effect first."""

    def of(self, hardware: str) -> tuple[Sensitivity, ...]:
        """Return the rows of one chip."""
        return tuple(row for row in self.rows if row.hardware == hardware)


@frozen(kw_only=True)
class EvidenceAnswer(ConstantAnswer):
    """Numbers that move a result of one chip by a tenth or more, and what each rests on."""

    rows: Table[Evident]
    """Numbers, largest share of the uncertainty first."""

    @property
    def known_count(self) -> int:
        """Number of rows that are measured or published."""
        return sum(row.basis in KNOWN for row in self.rows)


@contextlib.contextmanager
def opening_variations(
    source: Source, plan: Plan, metric: VariedMetricName
) -> Iterator[tuple[Scope, list[Variation], str]]:
    """Yield the scope of a question about the runs of a plan, each run as a function of its constants, and the way of
    paying.

    The site of the plan's settings applies if the metric is a cost. Raises like `opening_runs`.
    """
    is_billed = metric in BILLED
    with opening_runs(source, plan, needs_catalogue=is_billed) as runs:
        compared = find_prices(runs.connection, runs.ids, plan.settings) if is_billed else UNPRICED
        site = plan.settings.site if is_billed else None
        scope = Scope.of(runs)
        yield scope, find_variations(runs, site, compared.of_run), compared.paid
        scope.read()


def sensitivity(
    source: Source,
    model: str,
    settings: Settings = SETTINGS,
    *,
    metric: VariedMetricName = "energy",
) -> SensitivityAnswer:
    """Compute the effect of each constant of each chip on a metric of the model.

    Only constants that the run uses are varied, one at a time; the site applies if the metric is a cost. Raises like
    `compare`; UsageError if no hardware is named, UnsupportedError if the cost of none is known.
    """
    check_name("metric", metric, VARIED_METRICS)
    settings.check_single("sensitivity")
    if not settings.hardware and not settings.architecture and not settings.deployment:
        raise UsageError("name a chip after the model; see `joulemap hardware list`")
    plan = plan_selected((model,), settings, select_hardware(settings))
    with opening_variations(source, plan, metric) as (scope, variations, paid):
        scope.check_evaluated()
        if all(one.metric(metric) is None for one in variations):
            refuse_unpriced(variations[0].name, metric, paid)
        rows = [row for one in variations for row in _rank(one, metric)]
        facts = find_swings(scope, rows, metric)
    return SensitivityAnswer(
        scope=scope,
        metric=metric,
        paid=paid,
        facts=facts,
        rows=make_table("sensitivity", Sensitivity, rows),
    )


def _rank(variation: Variation, metric: VariedMetricName) -> list[Sensitivity]:
    """Return the constants of one run, sorted by the range of the metric that each causes.

    Constants without a local effect come last.
    """
    variation.prepare_all()

    def sort_key(row: Sensitivity) -> tuple[bool, float, float, str]:
        effect = abs(row.elasticity or 0.0)
        return effect < STILL, -(row.span_fraction or 0.0), -effect, row.constant

    return sorted((_vary(variation, name, metric) for name in variation.constants), key=sort_key)


def _vary(variation: Variation, name: str, metric: VariedMetricName) -> Sensitivity:
    constant, spread = variation.constants[name], variation.spread(name)
    ends = [_end(variation, name, factor) for factor in (1.0 / spread.down, spread.up)]
    base = variation.metric(metric)
    low, high = (None if one is None else variation.metric(metric, name, one) for one in ends)
    is_still = (
        spread.origin != "exact"
        and name not in variation.use
        and all(
            totals is not None and totals[0] == variation.base
            for totals in (None if one is None else variation.totals(name, one) for one in ends)
        )
    )
    slopes: dict[str, tuple[float | None, bool]] = {
        one: (0.0, True) if is_still and one not in BILLED else variation.slope(one, name)
        for one in dict.fromkeys(("energy", "latency", metric))
    }
    known = [value for value in (low, base, high) if value is not None]
    is_exact = slopes["energy"][1] and (constant.is_linear or name == LOSS)
    return Sensitivity(
        hardware=variation.name,
        **describe_constant(constant),
        low=None if ends[0] is None else variation.value_at(name, ends[0]),
        high=None if ends[1] is None else variation.value_at(name, ends[1]),
        spread=spread.origin,
        energy_elasticity=slopes["energy"][0],
        latency_elasticity=slopes["latency"][0],
        elasticity=slopes[metric][0],
        metric=metric,
        metric_unit=METRIC[metric].unit,
        metric_value=base,
        metric_low=low,
        metric_high=high,
        span_fraction=(max(known) - min(known)) / base if base and len(known) > 1 else None,
        method="exact" if is_exact else "evaluated",
    )


def _end(variation: Variation, name: str, factor: float) -> float | None:
    """Return the factor, or the nearest factor towards 1 at which the constant is possible; None if there is none."""
    near = (math.exp(math.log(factor) * share) for share in (1.0, 0.75, 0.5, 0.25, 0.1))
    return next((one for one in near if variation.totals(name, one) is not None), None)


def find_swings(scope: Scope, rows: Sequence[Sensitivity], metric: MetricName) -> Facts:
    """Return the facts of a sensitivity: the metric of each run, the constants that move it most, and caveats."""
    ids = {one.configured_hardware: run_id for run_id, one in scope.outlines.items()}
    width = f"{name_weighed(metric)}_half_width"
    unit = METRIC[metric].unit
    is_plain = sum(abs(one) for one in (METRIC[metric].latency_power, METRIC[metric].energy_power)) == 1.0
    entries, swings = [], []
    for hardware, run_id in ids.items():
        own = [row for row in rows if row.hardware == hardware]
        if not own or own[0].metric_value is None:
            continue
        half_width = getattr(scope.outlines[run_id], width) if is_plain else None
        entries.append(Entry(runs=(run_id,), values={metric: Quantity(own[0].metric_value, unit, half_width)}))
        swings += [
            Swing(
                runs=(run_id,),
                axis=row.constant,
                name=row.word,
                basis=row.basis,
                ends=tuple(Quantity(one, row.shown_unit) for one in row.ends),
                values=tuple(Quantity(one, unit) for one in row.metrics),
            )
            for row in own[:MOST_SWINGS]
            if row.span_fraction or row.elasticity
        ]
    weights = [Choice(runs=tuple(scope.evaluated_ids[:2]), metric=metric, value=Quantity(0.0, unit))]
    caveats = find_caveats(scope, weights, metric=metric)
    return Facts(asked=(metric,), runs=scope.subjects({}), facts=(*entries, *swings, *caveats))


def evidence(
    source: Source, model: str, settings: Settings = SETTINGS, *, metric: VariedMetricName = "latency"
) -> EvidenceAnswer:
    """List the numbers that move a result of a chip by a tenth or more, with the measurements behind each.

    A tenth: a tenth of a percent per percent of the number. A question without a precision takes `USUAL`
    or the nearest one that the chip has. Raises like `sensitivity`; UsageError for more than one chip.
    """
    selection = select_hardware(settings)
    if len(selection.pairs) != 1:
        raise UsageError(f"evidence takes one chip, found {len(selection.pairs)}: name one of them")
    if not settings.states_precision:
        settings = attrs.evolve(settings, precision=selection.pairs[0][0].nearest_precision(USUAL))
    settings.check_single("evidence")
    plan = plan_selected((model,), settings, selection)
    with opening_variations(source, plan, metric) as (scope, variations, paid):
        scope.check_evaluated()
        (variation,) = variations  # none of a chip that refused the model
        rows = make_table("evidence", Evident, _list_moving(variation, metric))
        facts = find_swings(scope, [], metric)
    return EvidenceAnswer(scope=scope, metric=metric, paid=paid, facts=facts, rows=rows)


def _list_moving(variation: Variation, metric: VariedMetricName) -> list[Evident]:
    """Return the numbers that move a result by a tenth or more, largest share of its uncertainty first."""
    variation.prepare_all()
    known = _find_evidence(variation)
    slopes = {name: variation.slope(metric, name)[0] or 0.0 for name in variation.constants}
    squares = {name: (one * variation.spread(name).log) ** 2 for name, one in slopes.items()}
    total = sum(squares.values())
    rows = [
        Evident(
            hardware=variation.name,
            **describe_constant(variation.constants[name]),
            method="evaluated",
            elasticity=slope,
            **(attrs.asdict(one) if (one := known.get(name)) else dict.fromkeys(("sources", "boards", "models"))),
            half_width=find_thinness(known.get(name)),
            uncertainty_fraction=squares[name] / total if total else None,
        )
        for name, slope in slopes.items()
        # a factor of all times that no calibration has stated claims nothing
        if abs(slope) >= MOVING and not (name in SCALED and variation.constants[name].value == 1.0)
    ]
    return sorted(rows, key=lambda row: (-(row.uncertainty_fraction or 0.0), -abs(row.elasticity), row.constant))


def _find_evidence(variation: Variation) -> Mapping[str, Evidence | None]:
    """Return name of a constant -> measurements behind it."""
    hardware = variation.hardware
    prices = {".".join(one.key): one.evidence for one in hardware.reference}
    return {**{name: one.evidence for name, one in hardware.quantities()}, **prices}
