"""Configurations to choose from: their shared columns, their wording, and the assumptions of their costs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

import attrs

from joulemap.answer.answer import RunAnswer
from joulemap.answer.scope import describe_chance
from joulemap.domain.default import CANDIDATES
from joulemap.domain.hardware_ref import HardwareRef
from joulemap.domain.metric import METRIC, MetricName
from joulemap.domain.offer import MANY, WAY_OF
from joulemap.domain.settings import Limits, Settings, Usage
from joulemap.domain.table import Table
from joulemap.domain.weight import spell_precision, split_precision
from joulemap.plan.name import list_names
from joulemap.plan.run import Plan, plan_selected
from joulemap.plan.selection import select_hardware
from joulemap.present.cell import join_names, show, show_chance, show_count, show_plain
from joulemap.present.document import Grid, Section, Shown, grid
from joulemap.row.cost import AssumedNumber
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from typing import TypeAlias

    from joulemap.row.cost import CostOption
    from joulemap.row.pareto import ParetoPoint
    from joulemap.row.recommend import RankedConfiguration

    Candidate: TypeAlias = CostOption | ParetoPoint | RankedConfiguration

BATCHES: Final = (1, 8, 32)
"""Default batch sizes."""

WAYS: Final = ("rented", "bought")
"""Ways to pay for a chip."""

HOURS: Final = 24
"""Hours per day."""

BATCH_NOTE: Final = (
    "latency, memory, energy and edp are of a batch, which every inference of it waits for, unless they say per "
    "inference"
)

PRECISION_NOTE: Final = "whether the model keeps its accuracy at a narrower precision is not part of the comparison"

SHOWN_REASONS: Final = 2
"""Maximum reasons shown for configurations that cannot run; machine formats list all."""


Row = TypeVar("Row", bound="Candidate")


def plan_candidates(model: str, settings: Settings) -> Plan:
    """Plan every configuration: the product of hardware, power modes, precisions, runtimes and batch sizes.

    A quantized checkpoint uses its published precisions unless others are requested. Raises as `plan_runs`.
    """
    batch = settings.batch or (() if settings.inputs else BATCHES)
    settings = attrs.evolve(_take_published(model, settings), batch=batch)
    return plan_selected((model,), settings, select_hardware(settings, "every mode"))


def _take_published(model: str, settings: Settings) -> Settings:
    if settings.precision != CANDIDATES.precision or settings.weight_precision:
        return settings
    published = next(filter(None, (names.list_precisions(model) for names in list_names())), None)
    if published is None:
        return settings
    precisions, weights = published
    return attrs.evolve(settings, precision=precisions, weight_precision=weights)


def read_usage(usage: Usage) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the query parameters of a usage, and those of payment.

    Negative numbers select the catalogue's assumptions; a region is given by its id. Payment is the way and the kind of
    seller. Raises UnknownNameError for an unknown region.
    """
    from joulemap.catalog.sheet import find_region

    numbers = attrs.asdict(usage)
    region, pay, seller = numbers.pop("region"), numbers.pop("pay"), numbers.pop("seller")
    given: dict[str, Any] = {name: -1.0 if value is None else float(value) for name, value in numbers.items()}
    way = pay or (WAY_OF[seller] if seller else "")
    return {**given, "region": find_region(region).region if region else ""}, {"pay": way, "seller": seller or ""}


def describe_use(assumptions: Table[AssumedNumber], pay: str, kind: str = "") -> str:
    """Return the payment, kind of seller and utilization that a cost assumes."""
    known = {row.assumption: row.value for row in assumptions}
    busy = f"each chip busy {show_plain(known['utilization'] * HOURS)} of {HOURS} hours"
    kept = "" if pay == "rented" else f" for {show_plain(known['lifetime'])} years"
    return f"{describe_pay(pay, kind)}, {busy}{kept}"


def describe_pay(pay: str, kind: str = "") -> str:
    """Return the way of paying for chips, and the kind of seller."""
    return ("rented or bought" if pay == "both" else pay) + (f" ({MANY[kind]})" if kind else "")


def describe_projection(told: str, ratio: float) -> str:
    """Return the line on an unavailable configuration that would be better, and by which ratio."""
    return f"if it could be bought: {told}, {ratio:.3g}x better (--all ranks it)"


def first_of_each(rows: Iterable[Row]) -> list[Row]:
    """Return the first row of each hardware, regardless of power mode."""
    found: dict[str, Row] = {}
    for row in rows:
        found.setdefault(find_chip(row), row)
    return list(found.values())


def find_chip(row: Candidate) -> str:
    """Return the hardware of a configuration without its power mode."""
    return HardwareRef.read(row.hardware).label


def describe_had(pay: str) -> str:
    """Return the set of chips to choose from, by way of paying; both ways if none is given."""
    return f"what can be {pay}" if pay in WAYS else "what can be bought or rented"


def metric_columns(names: Iterable[MetricName], but: Iterable[MetricName] = ()) -> tuple[Shown[Any], ...]:
    """Return the columns of metrics, except those shown elsewhere."""
    return tuple((METRIC[name].label, METRIC[name].column) for name in names if name not in but)


def count_candidates(count: int) -> str:
    """Return the number of configurations, in words."""
    return show_count(count, "configuration")


def show_metric(metric: MetricName, value: float | None) -> str:
    """Return a metric's value for people; empty if unknown."""
    return show(value, METRIC[metric].column, METRIC[metric].unit)


def describe_limit(name: MetricName, bound: float) -> str:
    """Return a limit in words, as it was parsed."""
    word = "at least" if METRIC[name].is_higher_better else "at most"
    return f"{METRIC[name].meaning}: {word} {show_metric(name, bound)}"


def describe_kept(limits: Limits) -> str:
    """Return limits as part of a sentence; empty for none."""
    told = []
    for name, bound in limits.bounds:
        word = "at least" if METRIC[name].is_higher_better else "at most"
        told.append(f"{METRIC[name].label} of {word} {show_metric(name, bound)}")
    return join_names(told)


@frozen(kw_only=True)
class CandidateAnswer(RunAnswer):
    """Configurations to choose from; `rows` has one row each, or one per way to pay."""

    rows: Table[Any]
    assumptions: Table[AssumedNumber]
    """Assumed inputs of cost and carbon."""

    @property
    def best(self) -> Any:
        """Best available configuration, or best of all if none is available; None without rows."""
        return next((row for row in self.rows if row.rank == 1), None)

    def _is_best(self, row: Any) -> bool:
        return row is self.best

    def select(self, *statuses: str) -> Table[Any]:
        """Return the rows with one of these statuses."""
        return attrs.evolve(self.rows, rows=tuple(row for row in self.rows if row.status in statuses))

    def name(self, row: Candidate) -> str:
        """Return the name of a configuration."""
        runtime = "" if row.runtime == "fused" else f" {row.runtime}"
        return f"{self.scope.mark(row.hardware)} {row.precision} batch {row.batch}{runtime}"

    @property
    def _template(self) -> str:
        """Template that names a configuration in drawings, from the columns of its rows."""
        runtime = " {runtime}" if len(self.scope.settings.runtime) > 1 else ""
        return f"{{hardware}} {{precision}} batch {{batch}}{runtime}"

    def _draw(
        self,
        rows: Table[Any],
        columns: Iterable[Shown[Any]],
        limit: int,
        keep: Sequence[str],
        noun: str = "configurations",
        ranked: Sequence[str] = (),
        stays: Callable[[Any], bool] | None = None,
    ) -> tuple[Grid, ...]:
        """Return a grid of `limit` configurations and those that `stays` keeps; empty without rows."""
        if not rows.rows:
            return ()
        names = ("hardware", "precision", "batch", *(("runtime",) if len(self.scope.settings.runtime) > 1 else ()))
        drawn = grid(
            rows,
            (*((name, name) for name in names), *columns),
            limit=limit,
            keep=("precision", "batch", *keep),
            ranked=ranked,
            projected=self.scope.projected,
            noun=noun,
            stays=stays,
        )
        return (drawn,)

    def _chances(self, column: str) -> dict[str, float]:
        """Return hardware -> probability that one of its configurations is the best, from a column."""
        found: dict[str, float] = {}
        for row in self.rows:
            chance = getattr(row, column)
            if chance is not None:
                found[find_chip(row)] = found.get(find_chip(row), 0.0) + chance
        return found

    def _find_rivals(self, column: str) -> list[Candidate]:
        """Return the configurations tied with the best: one of each other hardware, then those of the same hardware."""
        likely = [row for row in self.rows if getattr(row, column) and row is not self.best]
        own = find_chip(self.best) if self.best is not None else ""
        return [
            *first_of_each(row for row in likely if find_chip(row) != own),
            *(row for row in likely if find_chip(row) == own),
        ]

    def _tell_standing(self, rivals: Sequence[Candidate], chances: Mapping[str, float]) -> str:
        """Return the confidence in the first rank: tied configurations, and the probability of its hardware.

        Empty if there is only one hardware. `chances` maps hardware to the probability that one of its configurations
        is the best.
        """
        chip = find_chip(self.best)
        if len(chances) < 2:
            return ""
        others = [row for row in rivals if find_chip(row) != chip]
        if not others:
            more = ", at whichever of its configurations" if rivals else ""
            return f"{show_chance(chances[chip])} that it is {chip}{more}"
        told = describe_chance(chances[chip], list(map(self.name, others)))
        rival = max(map(find_chip, others), key=lambda name: chances.get(name, 0.0))
        more = ", at any of its modes and batches" if chances.get(rival, 0.0) > chances[chip] else ""
        sure = f"{show_chance(chances[chip])} that it is {chip}, {show_chance(chances.get(rival, 0.0))} {rival}"
        return f"{told}: {sure}{more}"

    def _tell_unranked(self, rows: Iterable[Candidate]) -> list[str]:
        """Return the line on hardware without a rank, because it can be neither bought nor rented."""
        names = ", ".join(self.scope.mark(find_chip(row)) for row in first_of_each(rows))
        return (
            [f"behind all others, as no board of them can be bought or rented: {names}; --all ranks them"]
            if names
            else []
        )

    def _tell_unknown(self, rows: Sequence[Candidate], what: str) -> list[str]:
        """Return a line on configurations that lack a number in the catalogue."""
        names = dict.fromkeys(HardwareRef.read(self.scope.mark(row.hardware)).label for row in rows)
        return [f"{count_candidates(len(rows))} {what}, {rows[0].reason}: {', '.join(names)}"] if rows else []

    def _tell_left_out(self, status: str) -> list[str]:
        """Return the line on available hardware that lacks the number to rank it by; empty for none."""
        rows = first_of_each(row for row in self.rows if row.status == status and row.is_available)
        return [f"left out, {rows[0].reason}: {len(rows)} hardware (--notes names them)"] if rows else []

    def _describe(self) -> list[str]:
        """Return notes that apply to all such rows."""
        precision = [PRECISION_NOTE] if len({row.precision for row in self.rows}) > 1 else []
        reasons = [row.reason for row in self.rows if row.status == "unsupported"]
        distinct = list(dict.fromkeys(reasons))
        rest = len(distinct) - SHOWN_REASONS
        more = f"; and {rest} more reasons, which --format json has" if rest > 0 else ""
        text = f"{count_candidates(len(reasons))} unsupported: {'; '.join(distinct[:SHOWN_REASONS])}{more}"
        return [*precision, *self.scope.describe(), *([text] if reasons else [])]

    def _assume(self, *metrics: MetricName) -> Section:
        """Return the section on the assumptions of cost and carbon, with sources; empty if no metric uses them."""
        rows = self.assumptions if {"cost", "carbon"} & set(metrics) else attrs.evolve(self.assumptions, rows=())
        drawn = grid(
            rows,
            (
                ("assumption", "assumption"),
                ("value", lambda row: f"{row.value:,.6g}" if row.value < 1000.0 else f"{row.value:,.0f}"),
                ("unit", lambda row: "" if row.unit == "1" else row.unit),
                ("basis", "basis"),
                ("source", "source"),
                ("note", "note"),
            ),
            keep=("value", "unit", "basis", "source"),
        )
        return Section("Assumptions", drawn)

    def _analyze_each(self, rows: Iterable[Candidate], repeated: Sequence[str]) -> list[list[str]]:
        """Return the `analyze` commands of configurations, each once."""
        return [
            [
                "analyze", self.scope.model, self.scope.spell(row.hardware), *spell_precision(row.precision), "--batch",
                str(row.batch), *(("--runtime", row.runtime) if row.runtime != "fused" else ()), *repeated,
            ]
            for row in {row.run_id: row for row in rows}.values()
        ]  # fmt: skip

    def _compare_first(self, rivals: Sequence[Candidate], repeated: Sequence[str]) -> list[list[str]]:
        """Return the command that compares the best with the first rival, if that is another hardware."""
        is_other = self.best is not None and rivals and find_chip(rivals[0]) != find_chip(self.best)
        return [self._compare_both(self.best, rivals[0], repeated)] if is_other else []

    def _compare_both(self, one: Candidate, other: Candidate, repeated: Sequence[str]) -> list[str]:
        """Return the command that compares two configurations, with every option in which they differ."""
        runs = (one, other)
        pairs = [split_precision(row.precision) for row in runs]
        options = {
            "--hardware": [self.scope.spell(row.hardware) for row in runs],
            "--precision": [precision for precision, _ in pairs],
            "--weight-precision": [weights for _, weights in pairs if weights],
            "--batch": [str(batch) for batch in sorted({row.batch for row in runs})],
            "--runtime": [row.runtime for row in runs if {row.runtime for row in runs} != {"fused"}],
        }
        written = [(name, ",".join(dict.fromkeys(values))) for name, values in options.items() if values]
        return ["compare", self.scope.model, *(word for pair in written for word in pair), *repeated]
