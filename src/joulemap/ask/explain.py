"""Difference of two runs: which needs less, the terms that sum to the difference exactly, and caveats."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.ask.answer import RunAnswer, fetch_tables
from joulemap.ask.cause import list_roles, list_times, make_term
from joulemap.ask.decision import choose
from joulemap.ask.fact import LEADING, Caveat, Choice, Entry, Facts, Quantity, Refusal, Subject, Term, TermQuantity
from joulemap.ask.rule import find_caveats
from joulemap.ask.scope import Scope, opening_scope
from joulemap.catalog.sheet import find_notes
from joulemap.domain.catalogue import ArchitectureNote
from joulemap.domain.default import SETTINGS
from joulemap.domain.metric import METRIC, PART_METRICS, PartMetricName
from joulemap.domain.settings import Settings, check_name
from joulemap.domain.table import Table
from joulemap.generated.explain import (
    CategoryDifference,
    EdpTerm,
    Effect,
    EnergyTerm,
    LatencyTerm,
    MemoryTerm,
    PurposeDifference,
    RoleDifference,
    RunPair,
    SubgraphDifference,
    Traffic,
)
from joulemap.plan.run import plan_selected
from joulemap.plan.selection import select_hardware, select_one
from joulemap.plan.source import Source
from joulemap.system.errors import UnknownNameError, UnsupportedError, UsageError
from joulemap.system.record import frozen
from joulemap.system.units import FJ_PER_J

if TYPE_CHECKING:
    from joulemap.ask.check import CheckedRow
    from joulemap.physics.record.hardware import Hardware

MetricTerm = LatencyTerm | EdpTerm | MemoryTerm
"""Term of a difference in a metric other than energy."""

TERMS: Final[dict[PartMetricName, type[MetricTerm]]] = {"latency": LatencyTerm, "edp": EdpTerm, "memory": MemoryTerm}
"""Metric -> record type of its terms; energy is missing, because its terms are always present."""

PLACES: Final[dict[PartMetricName, tuple[str, str, str]]] = {
    "energy": ("energy_a_j", "energy_b_j", "difference_fj"),
    "latency": ("latency_a_s", "latency_b_s", "latency_difference_fs"),
    "edp": ("edp_a_js", "edp_b_js", "edp_difference_exact"),
    "memory": ("memory_a_bytes", "memory_b_bytes", "memory_difference_bytes"),
}
"""Metric -> names of three fields of `RunPair`: value of A, value of B, and the exact difference."""

OF_WHOLE_RUNS: Final = ("assumed", "recalled", "unattributed", "host", "hosted", "fallback")
"""Kinds of caveats on the share of a whole run, which say nothing about one subgraph."""


@frozen(kw_only=True)
class ExplainAnswer(RunAnswer):
    """Causes of the difference between runs A and B in a metric; the terms sum to B minus A exactly."""

    metric: PartMetricName
    subgraph: str
    """Name of the explained subgraph; empty for whole runs. The table `subgraphs` always lists all."""
    totals: Table[RunPair]
    """Totals of both runs; one row."""
    terms: Table[EnergyTerm]
    """Terms of the energy difference, largest first; present for every metric."""
    metric_terms: Table[MetricTerm] | None
    """Terms of the difference in the metric, largest first; None for energy."""
    effects: Table[Effect]
    """Energy differences by kind of cause."""
    categories: Table[CategoryDifference]
    """Differences in the metric by category, or in energy if the metric is memory; largest first."""
    roles: Table[RoleDifference]
    """Energy differences by role of the actions, largest first."""
    purposes: Table[PurposeDifference]
    """Energy and time differences by purpose of the work in a language model, largest first."""
    subgraphs: Table[SubgraphDifference]
    """Differences in the metric by subgraph, largest first."""
    traffic: Table[Traffic] | None
    """Bytes moved per memory; None unless the metric is memory."""
    facts: Facts
    """Choice, terms and caveats, from which all sentences are made."""

    @property
    def total(self) -> RunPair:
        """Totals of both runs."""
        return self.totals[0]

    @property
    def probability(self) -> float | None:
        """Probability that the run with the lower predicted value really needs less; None if unknown."""
        known: float | None = getattr(self.total, f"{self.metric}_probability", None)
        return known

    @property
    def names(self) -> tuple[str, str]:
        """Names of A and B: hardware, or run ids if both runs are on one chip."""
        total = self.total
        if total.hardware_a == total.hardware_b and total.run_a != total.run_b:
            return f"run {total.run_a}", f"run {total.run_b}"
        return total.hardware_a, total.hardware_b

    def ends(self, metric: PartMetricName) -> tuple[float, float]:
        """Return the values of A and B in any metric, in SI units."""
        value_a, value_b, _ = (float(getattr(self.total, name)) for name in PLACES[metric])
        return value_a, value_b

    @property
    def difference_exact(self) -> int:
        """Metric of B minus the metric of A, as an integer in the exact unit."""
        return int(getattr(self.total, PLACES[self.metric][2]))

    @property
    def notes(self) -> tuple[ArchitectureNote, ...]:
        """Known properties of the two classes from literature; they are not results."""
        return find_notes((self.total.architecture_a, self.total.architecture_b))

    @property
    def checked(self) -> Sequence[CheckedRow]:
        """Runs A and B."""
        from joulemap.ask.check import split_pair

        return split_pair(self.total)

    def data(self) -> dict[str, Any]:
        """Return the data for machine formats; `terms` holds the terms of the explained metric."""
        rows = super().data()
        terms = rows.pop("metric_terms", rows["terms"])
        return {
            **rows,
            "metric": self.metric,
            "subgraph": self.subgraph or None,
            "terms": terms,
            "traffic": rows.get("traffic", []),
            "architecture_notes": [attrs.asdict(note) for note in self.notes],
        }


def find_facts(
    scope: Scope,
    total: RunPair,
    categories: Iterable[CategoryDifference],
    roles: Sequence[RoleDifference],
    subgraphs: Sequence[SubgraphDifference],
    terms: Iterable[MemoryTerm],
    traffic: Iterable[Traffic],
    *,
    metric: PartMetricName,
    subgraph: str = "",
) -> Facts:
    """Return the facts of a difference: the choice, its terms, both runs, and caveats.

    `terms` and `traffic` are used for memory, `categories` for other metrics; `subgraph` restricts them to one.
    """
    choice = _choose(total, metric)
    if metric == "memory":
        details = [*_list_contributors(terms, total), *_sum_traffic(traffic, total)]
    else:
        listed = list(categories)
        details = [*_list_categories(listed, total), *list_times(listed, _pair(total), total)]
        details.sort(key=lambda one: -abs(one.exact or 0))
        details += _sum_quantities(details, total) if metric == "edp" else []
        whole = next((one.share or 0.0 for one in details if (one.level, one.name) == ("quantity", "energy")), 1.0)
        macs = (total.mac_count_a, total.mac_count_b)
        details += list_roles(roles if metric != "latency" else (), _pair(total), macs=macs, whole=whole)
        details += _lead(subgraphs, total, subgraph, is_tied=bool(choice.tied))
    caveats: Iterable[Caveat | Refusal] = find_caveats(
        scope, [choice], metric="latency" if metric == "latency" else "energy"
    )
    caveats = (
        attrs.evolve(one, weight=0.0)
        if isinstance(one, Caveat) and (metric == "memory" or (subgraph and one.kind in OF_WHOLE_RUNS))
        else one
        for one in caveats
    )
    sides = dict.fromkeys((total.run_a, total.run_b)).keys()
    entries = [_enter(scope, run_id, total, side, subgraph) for run_id, side in zip(sides, "ab", strict=False)]
    return Facts(asked=(metric,), runs=_name(scope, total), facts=(choice, *details, *entries, *caveats), part=subgraph)


def _name(scope: Scope, total: RunPair) -> dict[int, Subject]:
    """Return the runs; two runs on one chip differ by their ids."""
    is_same = total.hardware_a == total.hardware_b and total.run_a != total.run_b
    return scope.subjects({run_id: (f"run {run_id}",) for run_id in scope.run_ids} if is_same else {})


def _choose(total: RunPair, metric: PartMetricName) -> Choice:
    """Return which run needs less."""
    names, unit = PLACES[metric][:2], METRIC[metric].unit
    sides = zip((total.run_a, total.run_b), names, strict=True)
    ends = {run_id: Quantity(float(getattr(total, name)), unit) for run_id, name in sides}
    chance = getattr(total, f"{metric}_probability", None)
    return choose(metric, ends, lambda *_: chance)


def _enter(scope: Scope, run_id: int, total: RunPair, side: str, subgraph: str) -> Entry:
    """Return the values of one run, with its intervals; of a `subgraph` no interval is known."""
    one = scope.outlines[run_id]
    energy, latency = (None, None) if subgraph else (one.energy_half_width, one.latency_half_width)
    return Entry(
        runs=(run_id,),
        values={
            "energy": Quantity(getattr(total, f"energy_{side}_j"), "J", energy),
            "latency": Quantity(getattr(total, f"latency_{side}_s"), "s", latency),
            "edp": Quantity(getattr(total, f"edp_{side}_js"), "Js"),
            "memory": Quantity(float(getattr(total, f"memory_{side}_bytes")), "B"),
        },
    )


def _list_categories(rows: Iterable[CategoryDifference], total: RunPair) -> Iterator[Term]:
    """Yield a term per category of energy, largest first."""
    for row in rows:
        if row.quantity == "energy":
            amounts = (row.spent_a, row.spent_b)
            yield make_term(_pair(total), "category", "energy", row.category, amounts, "J", row)


def _pair(total: Any) -> tuple[int, int]:
    return total.run_a, total.run_b


def make_subgraph(row: SubgraphDifference, rows: Sequence[SubgraphDifference], total: Any, **more: Any) -> Term:
    """Return the term of a subgraph among all `rows`, with the number of those that differ alike."""
    amounts = row.energy_a_fj / FJ_PER_J, row.energy_b_fj / FJ_PER_J
    alike = sum(one.difference == row.difference for one in rows) - 1
    return make_term(
        _pair(total), "subgraph", "energy", row.name, amounts, "J", row, alike=alike, total=len(rows), **more
    )


def _sum_quantities(terms: Iterable[Term], total: RunPair) -> Iterator[Term]:
    """Yield how much energy and time contribute to a difference in energy x delay."""
    listed = list(terms)
    whole = sum(one.exact or 0 for one in listed)
    ends: Mapping[TermQuantity, tuple[Any, ...]] = {
        "energy": ("J", total.energy_a_j, total.energy_b_j),
        "time": ("s", total.latency_a_s, total.latency_b_s),
    }
    for name, (unit, *amounts) in ends.items():
        if own := [one for one in listed if one.quantity == name]:
            exact = sum(one.exact or 0 for one in own)
            sums = {"difference": Quantity(sum(one.difference.value for one in own), "Js"), "exact": exact}
            share = exact / whole if whole else None
            yield make_term(_pair(total), "quantity", name, name, amounts, unit, **sums, share=share)


def _lead(rows: Sequence[SubgraphDifference], total: RunPair, subgraph: str, *, is_tied: bool) -> list[Term]:
    """Return the explained subgraph, or the one that contributes most if it makes a tenth of the difference."""
    own = [row for row in rows if row.name == subgraph] if subgraph else list(rows[:1])
    if is_tied or not own or (not subgraph and (len(rows) < 2 or (own[0].difference_fraction or 0.0) < LEADING)):
        return []
    return [make_subgraph(own[0], rows, total)]


def _list_contributors(rows: Iterable[MemoryTerm], total: RunPair) -> Iterator[Term]:
    """Yield a term per term of a difference in memory."""
    for row in rows:
        amounts = (count * (price or 0.0) for count, price in ((row.count_a, row.price_a), (row.count_b, row.price_b)))
        yield make_term(_pair(total), "contributor", "memory", row.contributor, amounts, row.unit, row)


def _sum_traffic(rows: Iterable[Traffic], total: RunPair) -> list[Term]:
    """Return the bytes that each run moves off chip; empty if no memory is off chip."""
    own = [row for row in rows if row.is_off_chip]
    bytes_a, bytes_b = (sum(getattr(row, name) or 0.0 for row in own) for name in ("bytes_a", "bytes_b"))
    difference = Quantity(bytes_b - bytes_a, "B")
    name = "off_chip_memory"
    term = make_term(_pair(total), "traffic", "memory", name, (bytes_a, bytes_b), "B", difference=difference)
    return [term] if own else []


def explain(
    source: Source,
    model: str,
    hardware_a: str | Hardware,
    hardware_b: str | Hardware,
    settings: Settings = SETTINGS,
    *,
    metric: PartMetricName = "energy",
    subgraph: str = "",
) -> ExplainAnswer:
    """Explain why B differs from A in a metric, as terms that sum to the difference exactly.

    `subgraph` restricts the terms to one subgraph; its EDP is its energy at the mean time of both runs plus its time at
    their mean energy, so that subgraphs sum to the difference. Memory is the peak of the whole runs. Raises like
    `compare`; UnsupportedError if either chip cannot run the configuration; UsageError for a folder of several chips.
    """
    check_name("metric", metric, PART_METRICS)
    if subgraph and metric == "memory":
        raise UsageError(
            "peak memory applies to the whole run; for a subgraph choose the metric energy, latency or edp"
        )
    settings.check_single("explain")
    hardware = (hardware_a, hardware_b)
    for one in hardware:
        select_one(one, settings)
    selection = select_hardware(attrs.evolve(settings, hardware=hardware))
    with opening_scope(source, plan_selected((model,), settings, selection)) as scope:
        scope.check_evaluated()
        return explain_pair(scope, scope.run_ids[0], scope.run_ids[-1], metric, subgraph)


def explain_pair(scope: Scope, run_a: int, run_b: int, metric: PartMetricName, subgraph: str = "") -> ExplainAnswer:
    """Explain why stored run B differs from stored run A in a metric.

    Raises UnsupportedError if a run was refused, UnknownNameError for a subgraph that neither run has.
    """
    if scope.refused:
        raise UnsupportedError("; ".join(scope.refusals))
    more: dict[str, type[Any]] = {"metric_terms": TERMS[metric]} if metric in TERMS else {}
    more |= {"traffic": Traffic} if metric == "memory" else {}
    given: dict[str, Any] = {"run_a": run_a, "run_b": run_b, "subgraph": subgraph, "metric": metric}
    tables: dict[str, Any] = {
        "traffic": None,
        "metric_terms": None,
        **fetch_tables(scope.connection, ExplainAnswer, more=more, **given),
    }
    if subgraph and subgraph not in (known := [row.name for row in tables["subgraphs"]]):
        raise UnknownNameError("subgraph", subgraph, known)
    facts = find_facts(
        scope,
        tables["totals"][0],
        tables["categories"],
        tables["roles"].rows,
        tables["subgraphs"].rows,
        tables["metric_terms"] if metric == "memory" else (),
        tables["traffic"] or (),
        metric=metric,
        subgraph=subgraph,
    )
    return ExplainAnswer(scope=scope, metric=metric, subgraph=subgraph, facts=facts, **tables)
