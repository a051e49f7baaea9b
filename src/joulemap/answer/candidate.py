"""Configurations to choose from: their shared columns, their wording, and the assumptions of their costs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar, get_args

import attrs

from joulemap.answer.base import RunAnswer
from joulemap.ask.candidate import find_chip, list_first
from joulemap.catalog.sheet import find_scenario
from joulemap.domain.default import ALONE, CANDIDATES, find_batches
from joulemap.domain.metric import METRIC, Metric, MetricName
from joulemap.domain.offer import describe_pay
from joulemap.domain.settings import Deployment, Limits, Settings, Usage
from joulemap.domain.table import Table
from joulemap.generated.cost import AssumedNumber
from joulemap.physics.record.runtime import USUAL_RUNTIME
from joulemap.physics.record.weight import spell_precision, split_precision
from joulemap.plan.budget import apply_scenario
from joulemap.plan.model_name import find_precisions
from joulemap.plan.run import Plan, plan_selected
from joulemap.plan.selection import select_hardware
from joulemap.plan.workload import choose_batches
from joulemap.show.layout import shorten
from joulemap.show.present.cell import Number, show, show_bound
from joulemap.show.present.document import Grid, Section
from joulemap.show.present.template import Template
from joulemap.show.run import repeat_boundary, show_limit
from joulemap.show.title import Title
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from typing import TypeAlias

    from joulemap.generated.cost import CostOption
    from joulemap.generated.pareto import ParetoPoint
    from joulemap.generated.recommend import RankedConfiguration
    from joulemap.plan.selection import Selection

    Candidate: TypeAlias = CostOption | ParetoPoint | RankedConfiguration

NAME: Final = Template("{hardware} ({precision}, batch {batch}[, {runtime}])")
SUBJECT: Final = Template("{model}[, batch {batch}][{origin}][, {precision}][, {common:list}]")
MODEL: Final = Template("{model}")
OF_INPUT: Final = " as in the input (--batch tries others)"
DRAWN_NAME: Final = "{hardware} {precision} batch {batch}"
DRAWN_RUNTIME: Final = " {runtime}"
CONFIGURATIONS: Final = Template("{count:n configuration}")
USED: Final = Template("{pay}, each chip busy {busy_hours:plain} of 24 hours[ for {years:plain} years]")

LIMIT: Final = Template("{metric.meaning}: {word} {bound}")
MEAN_KEPT: Final = Template("average power at {rate} of {word} {bound}")
WITH_HOST: Final = " with host"
AT_MOST: Final = "at most"
AT_LEAST: Final = "at least"

COLUMNS: Final = "hardware | *precision | *batch | "
RUNTIME: Final = "runtime | "

ASSUMPTIONS: Final = "Assumptions"
ASSUMED_COLUMNS: Final = "assumption | *value | *unit | *basis | *source | note"

BATCH_NOTE: Final = (
    "latency, memory, energy and energy x delay are per batch unless the column says per inference; every inference "
    "waits for its whole batch"
)
SINGLE_NOTE: Final = Template(
    "{names} at batch 1, the default of chips for the edge and for embedded devices, whose inputs come one at a time "
    "(--batch sets the same batch sizes for all chips)"
)
PRECISION_NOTE: Final = "the comparison ignores the accuracy that a model may lose at a narrower precision"
UNRANKED: Final = Template("chips that can be neither bought nor rented are not ranked (--all ranks them): {names}")

STEP_ANALYZE: Final = Template(
    "analyze {model} {hardware} {precision} --batch {row.batch} [--runtime {runtime}] {repeated}"
)
STEP_COMPARE: Final = Template(
    "compare {model} --hardware {hardware} --precision {precision} [--weight-precision {weights}] --batch {batch} "
    "[--runtime {runtime}] {repeated}"
)

SHOWN_NAMES: Final = 6
"""Maximum chips listed in a note."""

HOURS: Final = 24
"""Hours per day."""


Row = TypeVar("Row", bound="Candidate")


def plan_candidates(model: str, settings: Settings, rate_per_s: float = 0.0) -> Plan:
    """Plan every configuration: the product of hardware, power modes, precisions, runtimes and batch sizes.

    A quantized checkpoint uses its published precisions unless others are requested. A use case such as a camera takes
    one input at a time; otherwise, each chip runs at the default batch sizes of its deployment. At a fixed rate, power
    modes above the power budget are included, because their average power may still fit. They are excluded if the
    source also limits short pulses. Raises like `plan_runs`.
    """
    is_capped = not rate_per_s or _limits_pulses(settings)
    selection = select_hardware(settings, "every mode", is_capped=is_capped)
    batch, each = choose_each_batch((model,), settings, selection, is_single=bool(rate_per_s))
    settings = attrs.evolve(settings, batch=batch, **_find_published(model, settings))
    return plan_selected((model,), settings, selection, each)


def choose_each_batch(
    models: Sequence[str], settings: Settings, selection: Selection, *, is_single: bool = False
) -> tuple[tuple[int, ...], dict[str, tuple[int, ...]]]:
    """Return the batch sizes of a choice among hardware, and id of hardware -> its default batch sizes.

    The mapping is empty if the settings, the inputs or the models fix the batch size, or if all inputs come one at a
    time: then all hardware runs at the same batch sizes.
    """
    fixed = choose_batches(models, settings, ALONE if is_single or is_use_case(settings) else ())
    if fixed or settings.inputs:
        return fixed, {}
    asked = apply_scenario(settings).deployment
    each = {entry.id: find_batches(entry.deployment, asked) for entry, _ in selection.pairs}
    return tuple(sorted({one for sizes in each.values() for one in sizes})), each


def _limits_pulses(settings: Settings) -> bool:
    """Return whether the power source of a scenario limits even short pulses of power, as a coin cell does."""
    is_own = settings.power_budget_w is None and bool(settings.scenario)
    return is_own and find_scenario(settings.scenario).is_pulse


def is_use_case(settings: Settings) -> bool:
    """Return True for a scenario that takes one input at a time at a fixed rate, such as a camera."""
    return bool(settings.scenario) and settings.scenario.strip().lower() not in get_args(Deployment)


def find_fixed_rate(settings: Settings, limits: Limits) -> float:
    """Return the fixed rate in inferences per second, for a use case its minimum throughput; 0 if the chip runs at full
    speed.
    """
    return limits.min_throughput_per_s or 0.0 if is_use_case(settings) else 0.0


def _find_published(model: str, settings: Settings) -> dict[str, Any]:
    """Return the fields of settings with a checkpoint's published precisions; empty if the question states others."""
    if settings.precision != CANDIDATES.precision or settings.weight_precision:
        return {}
    published = find_precisions(model)
    return {} if published is None else dict(zip(("precision", "weight_precision"), published, strict=True))


def drop_idle_hours(usage: Usage) -> Usage:
    """Return the usage with utilization 1, so that only busy hours cost; a utilization that it states is kept."""
    return usage if usage.utilization else attrs.evolve(usage, utilization=1.0)


def describe_use(assumptions: Table[AssumedNumber], pay: str, kind: str = "") -> str:
    """Return the assumptions of a cost in words: way to pay, kind of seller, busy hours per day and lifetime."""
    known = {row.assumption: row.value for row in assumptions}
    years = None if pay == "rented" else known["lifetime"]
    return USED(pay=describe_pay(pay, kind), busy_hours=find_busy_hours(assumptions), years=years)


def find_busy_hours(assumptions: Table[AssumedNumber]) -> float:
    """Return the busy hours per day that a cost assumes."""
    return next(row.value for row in assumptions if row.assumption == "utilization") * HOURS


def enclose_seller(shown: str, each: str = "") -> str:
    """Return a price with its seller and date in brackets, such as `110 USD each (NVIDIA, list price, 2024)`."""
    price, _, seller = shown.partition(", ")
    return f"{price}{each} ({seller})" if seller else f"{price}{each}"


def list_metrics(names: Iterable[MetricName], but: Collection[MetricName] = ()) -> str:
    """Return the columns of metrics in the syntax of `lay`; metrics in `but` are omitted."""
    return "".join(f"{METRIC[name].label} {METRIC[name].column} | " for name in names if name not in but)


def show_metric(metric: MetricName, value: float | None) -> str:
    """Return a metric's value for display; empty if unknown."""
    return show(value, METRIC[metric].column, METRIC[metric].unit)


def show_given(metric: MetricName, value: float) -> str:
    """Return a limit that the user set on a metric, with enough digits to repeat the user's number."""
    return show_bound(value, METRIC[metric].unit)


def find_limited(name: MetricName) -> Metric:
    """Return a metric as limits refer to it: a limit on the purchase price includes the host."""
    metric = METRIC[name]
    return attrs.evolve(metric, label=f"{metric.label}{WITH_HOST}") if name == "purchase" else metric


def describe_limits(limits: Limits, template: Template, rate: str = "") -> list[str]:
    """Return one sentence per limit. If a `rate` is given, the power limit applies to the average power."""
    return [
        (MEAN_KEPT if rate and name == "power" else template)(
            metric=find_limited(name),
            word=AT_LEAST if METRIC[name].is_higher_better else AT_MOST,
            bound=show_given(name, bound),
            **({"rate": rate} if rate and name == "power" else {}),
        )
        for name, bound in limits.bounds
    ]


@frozen(kw_only=True)
class CandidateAnswer(RunAnswer):
    """Configurations to choose from; `rows` has one row per configuration, or one per configuration and way to pay."""

    rows: Table[Any]
    assumptions: Table[AssumedNumber]
    """Assumed inputs of cost and carbon."""

    def select(self, *statuses: str) -> Table[Any]:
        """Return the rows with one of these statuses."""
        return self.rows.with_rows(row for row in self.rows if row.status in statuses)

    def name(self, row: Candidate) -> str:
        """Return the name of a configuration."""
        runtime = "" if row.runtime == USUAL_RUNTIME else row.runtime
        return self._fill(NAME, row, runtime=runtime)

    def _title(self, about: str, precision: str | None = None, common: Sequence[str] = ()) -> Title:
        """Return the subject line: the model, the batch size of all configurations, if they share one, its origin if
        the input fixes it, and what else all configurations share.
        """
        batches, settings = self.scope.batches, self.scope.settings
        values = {
            "model": self.scope.model,
            "batch": batches[0] if len(batches) == 1 else None,
            "origin": OF_INPUT if settings.inputs and not settings.batch else None,
            "precision": precision,
            "common": common,
        }
        return Title(form=SUBJECT, values=values, about=about)

    def _name_model(self, about: str) -> Title:
        """Return the subject line of a figure of all configurations."""
        return Title(form=MODEL, values={"model": self.scope.model}, about=about)

    def _list_common(self, drawn: Grid) -> list[str]:
        """Return what all shown configurations share; the subject states a batch size that all have."""
        return [one for one in drawn.common if len(self.scope.batches) > 1 or one != f"batch {self.scope.batches[0]}"]

    @property
    def _has_runtimes(self) -> bool:
        return len(self.scope.runtimes) > 1

    @property
    def _drawn_name(self) -> str:
        """Template for the name of a configuration in drawings; the columns of its row fill it."""
        return DRAWN_NAME + (DRAWN_RUNTIME if self._has_runtimes else "")

    def _lay_rows(
        self, rows: Iterable[Any], columns: str, limit: int, *, noun: str = "configurations", **shown: Any
    ) -> Grid:
        """Return a grid of the first `limit` configurations; `shown` holds further options of `lay`."""
        return self._lay(
            self.rows.with_rows(rows),
            COLUMNS + (RUNTIME if self._has_runtimes else "") + columns,
            limit=limit,
            noun=noun,
            throughput_limit=show_limit,
            **shown,
        )

    def _describe_unranked(self, rows: Iterable[Candidate]) -> list[str]:
        """Return a note on hardware that is not ranked because it can be neither bought nor rented."""
        names = [self._mark(find_chip(row)) for row in list_first(rows)]
        return [UNRANKED(names=", ".join(shorten(names, SHOWN_NAMES)))] if names else []

    def _find_single(self) -> list[str]:
        """Return the hardware that runs at one batch size although other hardware runs at several, in alphabetical
        order.
        """
        sizes: dict[str, set[int]] = {}
        for run in self.scope.outlines.values():
            sizes.setdefault(run.hardware, set()).add(run.batch)
        is_mixed = any(len(values) > 1 for values in sizes.values())
        return sorted(name for name, values in sizes.items() if is_mixed and len(values) == 1)

    def _describe_terms(self) -> list[str]:
        """Return the notes on batch sizes and precision."""
        names = shorten([*map(self._mark, self._find_single())], SHOWN_NAMES)
        single = [SINGLE_NOTE(names=", ".join(names))] if names else []
        precision = [PRECISION_NOTE] if len({row.precision for row in self.rows}) > 1 else []
        return [*single, *precision]

    def _assume(self, *metrics: MetricName) -> Section:
        """Return the section on the assumptions of cost and carbon, with sources; empty if no metric uses them."""
        rows = self.assumptions if {"cost", "carbon"} & set(metrics) else self.assumptions.with_rows(())
        return Section(
            ASSUMPTIONS,
            self._lay(
                rows,
                ASSUMED_COLUMNS,
                value=lambda row: Number(f"{row.value:,.6g}" if row.value < 1000.0 else f"{row.value:,.0f}"),
                unit=lambda row: "" if row.unit == "1" else row.unit,
            ),
        )

    def _analyze_each(self, rows: Iterable[Candidate], repeated: Sequence[str]) -> list[list[str]]:
        """Return the `analyze` commands of configurations, each once."""
        return [
            STEP_ANALYZE.words(
                row=row,
                model=self.scope.model,
                hardware=self.scope.spell(row.hardware),
                precision=spell_precision(row.precision),
                runtime="" if row.runtime == USUAL_RUNTIME else row.runtime,
                repeated=repeat_boundary(self.scope, [row.hardware], repeated),
            )
            for row in {row.run_id: row for row in rows}.values()
        ]

    def _compare_both(self, one: Candidate, other: Candidate, repeated: Sequence[str]) -> list[str]:
        """Return the command that compares two configurations; it sets every option in which they differ."""
        runs = (one, other)
        pairs = [split_precision(row.precision) for row in runs]
        options = {
            "hardware": [self.scope.spell(row.hardware) for row in runs],
            "precision": [precision for precision, _ in pairs],
            "weights": [weights for _, weights in pairs if weights],
            "batch": [str(batch) for batch in sorted({row.batch for row in runs})],
            "runtime": [row.runtime for row in runs if {row.runtime for row in runs} != {USUAL_RUNTIME}],
        }
        joined = {name: ",".join(dict.fromkeys(values)) for name, values in options.items()}
        given = repeat_boundary(self.scope, (row.hardware for row in runs), repeated)
        return STEP_COMPARE.words(model=self.scope.model, repeated=given, **joined)


@frozen(kw_only=True)
class RankedAnswer(CandidateAnswer):
    """Configurations ranked by one metric, unlike those of a Pareto front."""

    @property
    def best(self) -> Any:
        """Best available configuration, or best of all if none is available; None without rows."""
        return next((row for row in self.rows if row.rank == 1), None)

    def _is_best(self, row: Any) -> bool:
        return row is self.best

    def _find_rivals(self, column: str) -> list[Candidate]:
        """Return the configurations that `column` marks as tied with the best configuration.

        One configuration per other chip comes first, then those of the best chip.
        """
        likely = [row for row in self.rows if getattr(row, column) and row is not self.best]
        own = find_chip(self.best) if self.best is not None else ""
        return [
            *list_first(row for row in likely if find_chip(row) != own),
            *(row for row in likely if find_chip(row) == own),
        ]

    def _compare_first(self, rivals: Sequence[Candidate], repeated: Sequence[str]) -> list[list[str]]:
        """Return the command that compares the best configuration with the first rival; empty if both are the same
        chip.
        """
        is_other = self.best is not None and rivals and find_chip(rivals[0]) != find_chip(self.best)
        return [self._compare_both(self.best, rivals[0], repeated)] if is_other else []
