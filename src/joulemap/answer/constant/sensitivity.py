"""Compute the sensitivity of a model's metrics to each constant of a chip, and the range of each metric."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import attrs

from joulemap.answer.constant.variation import (
    DIGITS,
    SHOWN,
    STEP_TRY,
    ConstantAnswer,
    Varied,
    describe_constant,
    opening_variations,
    show_elasticity,
)
from joulemap.ask.price import refuse_unpriced
from joulemap.ask.turn import find_swings
from joulemap.domain.computed import described, make_table
from joulemap.domain.default import SETTINGS, USAGE
from joulemap.domain.metric import METRIC, VARIED_METRICS, VariedMetricName
from joulemap.domain.settings import Settings, Usage, check_name
from joulemap.domain.table import Table
from joulemap.physics.record.constant import LOSS, STATIC
from joulemap.plan.run import plan_selected
from joulemap.plan.selection import select_hardware
from joulemap.plan.source import Source
from joulemap.plan.variation import BILLED, Variation
from joulemap.show.page import Figures
from joulemap.show.present.cell import show_quantity, show_share, show_span
from joulemap.show.present.document import Document, Grid, Section
from joulemap.show.present.picture import Marks, Picture
from joulemap.show.present.template import Template
from joulemap.show.run import title_runs
from joulemap.show.turn import describe_swings, list_swing_notes
from joulemap.system.errors import UsageError
from joulemap.system.record import frozen

TITLE: Final = Template("effect of each constant on {metric.label}[, {paid}]")
PER_MILLION: Final = " per million inferences"
DRAWN_TITLE: Final = Template("{metric.label} on {hardware}, {value}{per}")

OVER_RANGE: Final = Template("{metric.label} over range")
COLUMNS: Final = Template(
    "constant word | [*{owner} | ]value | *range spread | *{metric.label} over range metric_value | "
    "*{metric.label} width span_fraction | elasticity | *basis"
)
ALL_TITLE: Final = Template("{hardware}: {metric.label} {value}{per}, constants with the largest effect first")
ALL_COLUMNS: Final = Template(
    "constant | *value | *low | *high | source of low and high spread | {metric.label} at low metric_low | "
    "{metric.label} at high metric_high | *{metric.label} width span_fraction | *energy elasticity energy_elasticity | "
    "*latency elasticity latency_elasticity | method | *basis"
)
STEP_FLIP: Final = Template("flip {model} {pair} --metric {metric} {repeated}")
FROM: Final = Template("from {end}")
UP_TO: Final = Template("up to {end}")

OPERANDS: Final = Template("{row.word} (operand supply)")
INT8: Final = "int8"
SUPPLY: Final = f"peak.{INT8}"
"""Constant that sets how fast operands reach the tensor cores of a GPU, at every precision."""

FEWEST: Final = 3
"""Minimum constants listed per chip, even if many chips share the table."""

STILL: Final = 5e-4
"""Elasticity below which a small change of a constant counts as without effect."""

LEAST_SPAN: Final = 1e-9
"""Relative change of a metric below which a constant counts as without effect."""


@frozen
class Sensitivity(Varied):
    """Effect of one constant on a model's metrics on one chip."""

    hardware: str = described("catalogue id, with @MODE for a power mode other than the default")
    low: float | None = described("lower end of its range")
    high: float | None = described("upper end of its range")
    spread: str = described(
        "origin of the range: range (the constant's own), class (fitted by it), exact (no range), or its basis"
    )
    energy_elasticity: float | None = described("d ln energy / d ln constant: percent per percent")
    latency_elasticity: float | None = described("d ln latency / d ln constant")
    throughput_elasticity: float | None = described("d ln throughput / d ln constant")
    elasticity: float | None = described("elasticity of the requested metric")
    metric: str = described("requested metric")
    metric_unit: str = described("SI unit of the metric, or USD")
    metric_value: float | None = described("metric of the run")
    metric_low: float | None = described("metric with the constant at its lower end")
    metric_high: float | None = described("metric with the constant at its upper end")
    span_fraction: float | None = described(
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


@frozen(kw_only=True)
class SensitivityAnswer(ConstantAnswer):
    """Sensitivity of a model's energy and time on each chip."""

    rows: Table[Sensitivity]
    """Effect of each constant, by hardware in the order of the question, then largest effect first."""
    capped: tuple[str, ...]
    """Hardware with a clock lowered by the power cap; its energies per action affect times too."""

    def of(self, hardware: str) -> tuple[Sensitivity, ...]:
        """Return the rows of one chip."""
        return tuple(row for row in self.rows if row.hardware == hardware)

    def data(self) -> dict[str, Any]:
        """Return the data for machine formats, including the hardware with a lowered clock."""
        return {**super().data(), "capped": list(self.capped)}

    @property
    def _per(self) -> str:
        """Unit of work of the metric, if no title names it; empty otherwise."""
        return PER_MILLION if METRIC[self.metric].per == "million inferences" else ""

    def figures(self) -> Figures:
        """Return a figure for each chip that any constant affects."""
        from joulemap.show.figure.figure import describe_metric

        metric, findings, made = METRIC[self.metric], describe_swings(self.facts), []
        for name in dict.fromkeys(row.hardware for row in self.rows):
            rows = self.of(name)
            if not rows[0].span_fraction:
                continue
            value = show_quantity(rows[0].metric_value, metric.unit)
            hardware, per = self._mark(name), self._per
            about = DRAWN_TITLE(metric=metric, hardware=hardware, value=value, per=per)
            subject = attrs.evolve(title_runs(self.scope), about=about)
            table = self.rows.with_rows(rows)
            made.append(self._draw_figure("tornado", table, subject, findings[name], describe_metric(metric)))
        return tuple(made)

    def document(self, *, limit: int = SHOWN, repeated: Sequence[str] = ()) -> Document:
        """Return the document with `limit` constants in the main table; machine formats contain all constants."""
        names = list(dict.fromkeys(row.hardware for row in self.rows))
        each = max(limit // max(len(names), 1), FEWEST)
        chosen = [row for name in names for row in self._choose(name, each)]
        moving = {name: len(self._moving(name)) for name in names}
        most = max(moving.values())
        way = f"--limit {most * len(names)}" if most > 2 * limit else "--details"
        still_count = sum(not row.is_moving for row in self.rows)
        return self._compose_constants(
            self.rows,
            self._decisive(chosen, names).out_of(sum(moving.values()), len(chosen), "constants", way),
            chosen,
            TITLE(metric=METRIC[self.metric], paid=self.paid),
            list_swing_notes(map(self._mark, self.capped), still_count),
            details=[self._draw(name, 2 * limit) for name in names],
            steps=self._steps(names[:2], repeated),
        )

    def _steps(self, names: Sequence[str], repeated: Sequence[str]) -> list[list[str]]:
        is_pair = len(names) > 1
        row = next((row for row in self.rows if row.is_moving and self._can_set(row)), None)
        at = f"{row.hardware}:" if row and is_pair else ""
        setting = f"{at}{row.constant}=x{_find_factor(row):.4g}" if row else ""
        steps = [*([STEP_FLIP] if is_pair else []), *([STEP_TRY] if row else [])]
        return self._fill_pair(steps, names, repeated, setting)

    def _moving(self, hardware: str) -> list[Sensitivity]:
        return [row for row in self.of(hardware) if row.is_moving]

    def _choose(self, hardware: str, count: int) -> list[Sensitivity]:
        """Return `count` constants of a chip, those with the largest effect first; static power is always included."""
        rows = self._moving(hardware)
        static = [row for row in rows[count:] if row.constant == STATIC]
        return [*rows[: count - len(static)], *static]

    def _decisive(self, rows: Sequence[Sensitivity], names: Sequence[str]) -> Grid:
        metric = METRIC[self.metric]
        is_int8 = any(precision == INT8 for precision, _ in self.scope.precisions)
        drawn = self._lay_constants(
            rows,
            COLUMNS(metric=metric, owner="hardware" if len(names) > 1 else ""),
            word=lambda row: OPERANDS(row=row) if row.constant == SUPPLY and not is_int8 else row.word,
            value=lambda row: row.show(row.value, DIGITS),
            spread=_show_range,
        )
        marks = tuple(_mark_range(row.metrics) for row in rows)
        picture = Picture(kind="interval", after=OVER_RANGE(metric=metric), rows=marks, unit=metric.unit)
        return attrs.evolve(drawn, pictures=(picture,) if rows else ())

    def _draw(self, hardware: str, limit: int) -> Section:
        metric, rows = METRIC[self.metric], self._moving(hardware)
        columns = ALL_COLUMNS(metric=metric)
        drawn = self._lay_constants(rows, columns, limit=limit, noun="constants", value=lambda row: row.show(row.value))
        value = show_quantity(rows[0].metric_value, metric.unit) if rows else ""
        return Section(ALL_TITLE(hardware=self._mark(hardware), metric=metric, value=value, per=self._per), drawn)

    def _lay_constants(self, rows: Sequence[Sensitivity], columns: str, **more: Any) -> Grid:
        """Return a grid of constants with the range of each, and of the metric over this range."""
        unit = METRIC[self.metric].unit
        return self._lay(
            self.rows.with_rows(rows),
            columns,
            ranked="width of range",
            low=lambda row: row.show(row.low),
            high=lambda row: row.show(row.high),
            metric_value=lambda row: _show_metric(row, unit),
            metric_low=lambda row: show_quantity(row.metric_low, unit),
            metric_high=lambda row: show_quantity(row.metric_high, unit),
            span_fraction=lambda row: show_share(row.span_fraction),
            elasticity=lambda row: show_elasticity(row.elasticity),
            energy_elasticity=lambda row: show_elasticity(row.energy_elasticity),
            latency_elasticity=lambda row: show_elasticity(row.latency_elasticity),
            **more,
        )


def _mark_range(values: Sequence[float]) -> Marks:
    """Return the lowest, middle and highest value of a metric over the range of a constant, if all are positive."""
    return (values[0], values[(len(values) - 1) // 2], values[-1]) if values and values[0] else ()


def _find_factor(row: Sensitivity) -> float:
    """Return the upper end of a constant's range divided by its value; the lower end if there is no upper end.

    The factor is rounded towards 1.
    """
    if row.high is not None:
        return math.floor(100.0 * row.high / row.value) / 100.0
    return math.ceil(100.0 * (row.low or row.value) / row.value) / 100.0


def _show_range(row: Sensitivity) -> str:
    """Return the range of a constant as text; empty if it is exact. An impossible end is omitted."""
    ends = [row.show(one, DIGITS) for one in row.ends]
    if row.spread == "exact" or not ends:
        return ""
    return show_span(*ends) if len(ends) > 1 else (FROM if row.high is None else UP_TO)(end=ends[0])


def _show_metric(row: Sensitivity, unit: str) -> str:
    """Return the range of the metric over the range of a constant."""
    values = row.metrics
    return show_span(show_quantity(values[0], unit), show_quantity(values[-1], unit)) if values else ""


def sensitivity(
    source: Source,
    model: str,
    settings: Settings = SETTINGS,
    *,
    metric: VariedMetricName = "energy",
    usage: Usage = USAGE,
) -> SensitivityAnswer:
    """Compute the effect of each constant of each chip on a metric of the model.

    Only constants that the run uses are varied, one at a time; `usage` applies if the metric is a cost. Raises like
    `compare`; UsageError if no hardware is named, UnsupportedError if the cost of none is known.
    """
    check_name("metric", metric, VARIED_METRICS)
    settings.check_single("sensitivity")
    if not settings.hardware and not settings.architecture and not settings.deployment:
        raise UsageError("name a chip after the model; see `joulemap hardware list`")
    plan = plan_selected((model,), settings, select_hardware(settings))
    with opening_variations(source, plan, metric, usage) as (scope, variations, paid):
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
        capped=tuple(one.name for one in variations if one.is_capped),
    )


def _rank(variation: Variation, metric: VariedMetricName) -> list[Sensitivity]:
    """Return the constants of one run, sorted by the range of the metric that each causes.

    Constants without a local effect come last.
    """
    variation.prepare_all()
    rows = [_row(variation, name, metric) for name in variation.constants]

    def sort_key(row: Sensitivity) -> tuple[bool, float, float, str]:
        effect = abs(row.elasticity or 0.0)
        return effect < STILL, -(row.span_fraction or 0.0), -effect, row.constant

    return sorted(rows, key=sort_key)


def _row(variation: Variation, name: str, metric: VariedMetricName) -> Sensitivity:
    constant, spread = variation.constants[name], variation.spread(name)
    ends = [_end(variation, name, factor) for factor in (1.0 / spread.down, spread.up)]
    has_ends = spread.origin != "exact"
    base = variation.metric(metric)
    at_ends = [None if one is None else variation.metric(metric, name, one) for one in ends]
    is_still = (
        has_ends
        and name not in variation.use
        and all(
            totals is not None and totals[0] == variation.base
            for totals in (None if one is None else variation.totals(name, one) for one in ends)
        )
    )
    slopes: dict[str, tuple[float | None, bool]] = {
        one: (0.0, True) if is_still and one not in BILLED else variation.slope(one, name)
        for one in dict.fromkeys(("energy", "latency", "throughput", metric))
    }
    low, high = at_ends
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
        throughput_elasticity=slopes["throughput"][0],
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
    sign = math.copysign(1.0, math.log(factor))
    size = abs(math.log(factor))
    for share in (1.0, 0.75, 0.5, 0.25, 0.1):
        candidate = math.exp(sign * size * share)
        if variation.totals(name, candidate) is not None:
            return candidate
    return None
