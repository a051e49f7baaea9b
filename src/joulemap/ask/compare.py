"""Comparison of one model on several chips: the best chip for each goal, a row per chip, and causes of differences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, cast

from joulemap.ask.answer import RunAnswer
from joulemap.ask.cause import find_causes
from joulemap.ask.decision import decide
from joulemap.ask.fact import Choice, Decision, Entry, Facts, Quantity, Term, Turn
from joulemap.ask.rule import find_caveats
from joulemap.ask.scope import VARYING, Scope, opening_scope, vary
from joulemap.ask.standing import choose_best, list_choosable
from joulemap.domain.default import SETTINGS
from joulemap.domain.metric import METRIC, RUN_METRICS, MetricName, RunMetricName
from joulemap.domain.settings import Settings, check_name
from joulemap.domain.table import Table
from joulemap.generated.compare import Comparison, Recommendation
from joulemap.plan.run import plan_runs
from joulemap.plan.selection import name_configuration
from joulemap.plan.source import Source
from joulemap.store.query import fetch, fetch_none
from joulemap.system.errors import UnsupportedError
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.ask.check import CheckedRow

VALUES: Final[tuple[MetricName, ...]] = (
    "energy", "energy_per_inference", "latency", "power", "throughput", "edp", "memory", "utilization",
    "efficiency",
)  # fmt: skip
"""Metrics of an entry."""


@frozen(kw_only=True)
class CompareAnswer(RunAnswer):
    """One model on several chips, and the best hardware for each goal."""

    recommendations: Table[Recommendation]
    """Best configuration for each goal among all hardware; empty for a single run."""
    available: Table[Recommendation]
    """Best available configuration for each goal; of all hardware if no chip is available."""
    rows: Table[Comparison]
    """Figures of each run, lowest energy per inference first; unsupported configurations are last."""
    facts: Facts
    """Decision, causes, rows and caveats, from which all sentences are made."""
    metric: RunMetricName
    """Metric that decides."""

    @property
    def varying(self) -> tuple[str, ...]:
        """Settings that differ between rows (precision, batch or runtime); tables state them in each row."""
        return tuple(name for name in VARYING if len({getattr(row, name) for row in self.rows}) > 1)

    @property
    def answered(self) -> tuple[Comparison, ...]:
        """Rows of runs that were not refused."""
        return tuple(row for row in self.rows if row.status == "ok")

    @property
    def checked(self) -> Sequence[CheckedRow]:
        """Runs that were not refused."""
        return self.answered


def find_facts(
    scope: Scope,
    rows: Sequence[Comparison],
    available: Iterable[Recommendation],
    everything: Iterable[Recommendation],
    metric: RunMetricName,
) -> Facts:
    """Return the facts of a comparison: choices by `metric`, energy and latency among available hardware, then those of
    unavailable hardware that would win, causes of the gap between the pair of the decision, rows and caveats.
    """
    answered = [row for row in rows if row.status == "ok"]
    varied = vary(answered)
    chosen, every = tuple(available), tuple(everything)
    per = "_per_inference" if any(row.goal == "energy_per_inference" for row in chosen) else ""
    wanted = tuple(
        dict.fromkeys(
            (
                f"{metric}{per}" if metric in ("energy", "edp") else metric,
                *([f"energy{per}"] if metric != "efficiency" else ()),  # the same runs in the same order
                "throughput" if per else "latency",  # latencies of unlike batches are of unlike work
            )
        )
    )
    entries = [_enter(row) for row in answered]
    values = {one.run: one.values for one in entries}
    chips = {run_id: one.hardware for run_id, one in scope.outlines.items()}
    choices = list(_choose(chosen, wanted, chips, values))
    runs = scope.subjects(varied)
    own = {one.run for one in choices}
    beyond = [
        one for one in _choose(every, wanted, chips, values) if not runs[one.run].is_available and one.run not in own
    ]
    terms: list[Term] = []
    turns: list[Turn] = []
    if choices:
        decision = decide(choices, runs)
        lead = next((one for one in decision.leads if not one.is_tied), decision.leads[0])
        rivals = (*decision.runs[1:], *(one.run for one in beyond))  # one on sale alone is compared with what is not
        pair = (decision.run, next(iter(rivals), decision.run))
        batches = tuple(scope.outlines[one].batch if per else 1 for one in pair)
        terms = find_causes(scope, pair, cast("MetricName", lead.metric), (batches[0], batches[1]))
        turns = _list_turns(scope, decision, answered) if per else []
    caveats = find_caveats(scope, choices, metric=choices[0].metric if choices else metric)
    return Facts(asked=wanted, runs=runs, facts=(*choices, *beyond, *terms, *turns, *entries, *caveats))


def _list_turns(scope: Scope, decision: Decision, rows: Iterable[Comparison]) -> list[Turn]:
    """Return the batch sizes from which another chip is the best by the deciding metric, as in a sweep at the precision
    and runtime of the run to take.
    """
    from joulemap.ask.sweep import find_turns
    from joulemap.generated.sweep import SweepPoint, SweepWinner

    alike = {row.run_id: (row.precision, row.runtime) for row in rows}
    ids = [run_id for run_id, one in alike.items() if one == alike[decision.run]]
    winners = fetch(scope.connection, SweepWinner, run_ids=ids, takes_all=scope.settings.takes_all)
    turns = find_turns(winners, fetch(scope.connection, SweepPoint, run_ids=ids).rows)
    return [one for one in turns if one.metric == decision.choice.metric]


def _enter(row: Comparison) -> Entry:
    """Return the values of a run."""
    values: dict[str, Quantity] = {}
    if row.energy_per_inference_j is not None and row.latency_s is not None:
        values["edp_per_inference"] = Quantity(row.energy_per_inference_j * row.latency_s, "Js")
    for name in VALUES:
        one = METRIC[name]
        value = getattr(row, one.column, None)
        if value is not None:
            width = getattr(row, one.half_width_column, None) if one.half_width_column else None
            values[name] = Quantity(float(value), one.unit, width)
    return Entry(runs=(row.run_id,), values=values)


def _choose(
    rows: Iterable[Recommendation],
    wanted: Iterable[str],
    chips: Mapping[int, str],
    values: Mapping[int, Mapping[str, Quantity]],
) -> Iterator[Choice]:
    """Yield the best run by each wanted metric, and the next run of another chip."""
    goals: dict[str, Recommendation] = {row.goal: row for row in rows}
    for name in wanted:
        if (row := goals.get(name)) is not None:
            yield choose_best(row, name, {run_id: values[run_id][name] for run_id in row.ranked_ids}, chips)


def compare(
    source: Source, model: str, settings: Settings = SETTINGS, *, metric: RunMetricName = "energy", baseline: str = ""
) -> CompareAnswer:
    """Compare a model on several chips: named chips, those of an architecture or deployment, or the default four.

    `model` is a known name, `path/to/file.py:factory`, `path/to/model.pt2`, `timm:NAME`, `hf:NAME`, or an `nn.Module`
    followed by example inputs, here and in every question. Keywords are the fields of `Settings`. Ratios are relative
    to `baseline`, by default the available run with the lowest energy per inference; `metric` decides. A chip that
    cannot run the configuration is an `unsupported` row with its reason. Raises UnknownNameError, UsageError,
    ModelError, CatalogueError or DatabaseError; UnsupportedError if no hardware can run it.
    """
    check_name("metric", metric, RUN_METRICS)
    plan = plan_runs((model,), settings)
    baseline = name_configuration(baseline, settings) if baseline else ""
    with opening_scope(source, plan) as scope:
        scope.check_evaluated()
        connection = scope.connection
        compared = fetch(connection, Comparison, run_ids=list(scope.run_ids), baseline=baseline, metric=metric)
        scope = scope.narrow(row.run_id for row in compared)  # all else follows from the rows
        ids = list(scope.run_ids)
        is_choice = len(scope.evaluated_ids) > 1  # a single run has no competitor
        among = list(list_choosable(scope, scope.evaluated_ids))
        others = among if len(among) < len(scope.evaluated_ids) else []
        asked = {"run_ids": ids, "among_ids": others, "metric": metric}
        recommended = (fetch if is_choice else fetch_none)(connection, Recommendation, **asked)
        recommendations = recommended.with_rows(row for row in recommended if not row.is_among)
        available = recommended.with_rows(row for row in recommended if row.is_among or not others)
        facts = find_facts(scope, compared.rows, available, recommendations, metric)
        scope.read()
    answer = CompareAnswer(
        scope=scope,
        recommendations=recommendations,
        available=available,
        rows=compared,
        facts=facts,
        metric=metric,
    )
    if baseline and all(row.hardware != baseline or row.status != "ok" for row in answer.rows):
        raise UnsupportedError(f"the baseline {baseline} is not among the compared hardware that can run the model")
    return answer
