"""Differences of two versions of a model on each chip, and of two stored runs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

from joulemap.ask.answer import RunAnswer, fetch_tables
from joulemap.ask.explain import TERMS, ExplainAnswer, MetricTerm, explain_pair, make_subgraph
from joulemap.ask.fact import Caveat, Change, Facts, Limit, Quantity, Refusal, Term
from joulemap.ask.finding import Finding
from joulemap.ask.rule import list_findings, weigh_findings
from joulemap.ask.scope import Scope, opening_scope
from joulemap.domain.default import SETTINGS
from joulemap.domain.settings import Settings
from joulemap.domain.table import Table
from joulemap.generated.analyze import RunTotal
from joulemap.generated.cost import CostOption
from joulemap.generated.diff import VersionFigure
from joulemap.generated.explain import SubgraphDifference
from joulemap.generated.run import Constant, Setting
from joulemap.plan.reader import reading
from joulemap.plan.revision import find_revision
from joulemap.plan.run import Plan, plan_selected
from joulemap.plan.selection import Selection, is_choice, select_hardware
from joulemap.plan.source import Source
from joulemap.store.connection import Connection
from joulemap.store.library import find_query
from joulemap.store.query import check_ledgers, check_runs, fetch
from joulemap.system.errors import UsageError
from joulemap.system.record import frozen
from joulemap.system.units import FJ_PER_J

TYPICAL: Final = ("l4", "h100_sxm5", "jetson_orin_nano_8gb", "xeon_8490h")
"""Default hardware: one chip each for rented inference, throughput, the edge, and a host alone."""

METRICS: Final = ("latency", "energy", "memory", "cost")
"""Metrics that two versions of a model are compared by, in display order."""

NOTHING: Final[Mapping[str, float]] = {}

ASKED: Final = ("energy", "latency")
"""Metrics of the decision."""


@frozen(kw_only=True)
class DiffAnswer(RunAnswer):
    """Comparison of two versions of a model on each chip."""

    before: str
    """Name of the earlier version, as the caller gave it; `after` names the later one."""
    after: str
    rows: Table[VersionFigure]
    """Latency, energy and memory of both versions on each chip, and cost where a price is known."""
    subgraphs: Mapping[str, Table[SubgraphDifference]]
    """Hardware -> subgraphs that differ between the versions, largest energy difference first.

    Only hardware that runs both versions is included.
    """
    allowed: Mapping[str, float]
    """Metric -> largest relative increase that is not a failure."""
    facts: Facts
    """Changes, limits and caveats, from which all sentences are made."""

    @property
    def changed(self) -> Table[VersionFigure]:
        """Rows of the hardware that runs both versions."""
        return self.rows.with_rows(row for row in self.rows if row.change_fraction is not None)

    def data(self) -> dict[str, Any]:
        """Return the data for machine formats."""
        parts = {name: table.records() for name, table in self.subgraphs.items()}
        asked = {"before": self.before, "after": self.after, "allowed": dict(self.allowed)}
        return {**super().data(), **asked, "subgraphs": parts}


@frozen(kw_only=True)
class DifferenceAnswer(RunAnswer):
    """Differences between two runs, and how much each constant and action contributes to the energy difference."""

    settings: Table[Setting]
    constants: Table[Constant]
    explanation: ExplainAnswer | None
    """Explanation of the energy difference; None if a run was refused."""
    delays: Table[MetricTerm] | None
    """Terms of the latency difference, largest first; None if a run was refused."""

    @property
    def tables(self) -> tuple[Table[Any], ...]:
        """Query results behind the answer, with their SQL."""
        explained = self.explanation.own_tables.values() if self.explanation else ()
        return (*self.own_tables.values(), *explained)

    def data(self) -> dict[str, Any]:
        """Return the data for machine formats."""
        data = self.explanation.data() if self.explanation else {}
        rows = {"total": data.get("total")} | {name: data.get(name, []) for name in ("effects", "terms", "subgraphs")}
        return {"delays": [], **super().data(), **rows}


def find_facts(
    scope: Scope,
    rows: Sequence[VersionFigure],
    parts: Mapping[str, Sequence[SubgraphDifference]],
    allowed: Mapping[str, float],
) -> Facts:
    """Return the facts of two versions: the change of each metric on each chip, limits, the work and the subgraphs
    behind the change on each chip, hardware that runs only one version, and caveats.

    `parts` maps hardware to its subgraphs that differ, and `allowed` maps metrics to the largest relative increase that
    is not a failure.
    """
    known = [row for row in rows if row.change_fraction is not None]
    pairs = {row.hardware: (row.run_a, row.run_b) for row in known}
    ids = {run_id for pair in pairs.values() for run_id in pair}
    weighed = scope.narrow(ids)
    findings = pair_findings(list_findings(weighed, metric=ASKED[0]), pairs.values())
    return Facts(
        asked=ASKED,
        runs=scope.subjects({}),
        facts=(
            *map(_change, known),
            *(_bound(known, metric, most) for metric, most in allowed.items()),
            *(
                term
                for row in {one.hardware: one for one in known}.values()
                for term in _divide(scope, parts[row.hardware], row)
            ),
            *_find_lost(rows),
            *weigh_findings(list(findings), []),
        ),
    )


def is_sure(row: VersionFigure) -> bool:
    """Return whether the interval of a change excludes zero."""
    return (row.low_fraction or 0.0) > 0.0 or (row.high_fraction or 0.0) < 0.0


def is_above(row: VersionFigure, allowed: float) -> bool:
    """Return whether a change surely is an increase, and exceeds the allowed one."""
    return (row.change_fraction or 0.0) > allowed and (row.low_fraction or 0.0) > 0.0


def _change(row: VersionFigure) -> Change:
    return Change(
        runs=(row.run_a, row.run_b),
        metric=row.metric,
        before=Quantity(row.value_a or 0.0, row.unit),
        after=Quantity(row.value_b or 0.0, row.unit),
        values={
            "fraction": row.change_fraction,
            "low": row.low_fraction,
            "high": row.high_fraction,
            "is_sure": is_sure(row),
            "same_fraction": row.same_fraction if row.half_width else None,
        },
    )


def _bound(rows: Iterable[VersionFigure], metric: str, allowed: float) -> Limit:
    """Return the limit on the increase of a metric: the runs beyond it, largest increase first, or the nearest run."""
    own = sorted((row for row in rows if row.metric == metric), key=lambda row: -(row.change_fraction or 0.0))
    failing = [row for row in own if is_above(row, allowed)]
    first = next(iter(failing or own), None)
    change = None if first is None else first.change_fraction or 0.0
    miss = None
    if change is not None and (failing or change <= allowed):
        miss = math.log((1.0 + change) / (1.0 + allowed)) if failing else 0.0
    return Limit(
        runs=tuple(row.run_b for row in failing or own[:1]),
        metric=metric,
        bound=Quantity(allowed),
        value=None if change is None else Quantity(change),
        miss=miss,
        missed_count=max(0, len(failing) - 1),
    )


def _divide(scope: Scope, rows: Sequence[SubgraphDifference], pair: VersionFigure) -> Iterator[Term]:
    """Yield the work of both versions on one chip, the energy of subgraphs by their origin, which sums to the change,
    and the subgraph whose energy changes most.
    """
    runs = (pair.run_a, pair.run_b)
    totals = [one for run_id in runs for one in fetch(scope.connection, RunTotal, run_id=run_id)]
    before, after = (Quantity(one.energy_j, "J") for one in totals)
    yield Term(
        runs=runs, level="work", quantity="energy", name="macs", amounts=(before, after),
        difference=Quantity(after.value - before.value, "J"),
        counts=tuple(Quantity(float(one.mac_count)) for one in totals),
    )  # fmt: skip
    origins: dict[str, list[SubgraphDifference]] = {"new": [], "removed": [], "changed": []}
    for row in rows:
        origins["new" if not row.energy_a_fj else "removed" if not row.energy_b_fj else "changed"].append(row)
    for name, some in origins.items():
        amounts = [Quantity(sum(getattr(row, f"energy_{one}_fj") for row in some) / FJ_PER_J, "J") for one in "ab"]
        exact = sum(row.energy_difference_fj for row in some)
        if some:
            yield Term(
                runs=runs, level="origin", quantity="energy", name=name, amounts=(amounts[0], amounts[1]), exact=exact,
                difference=Quantity(exact / FJ_PER_J, "J"), total=len(some),
            )  # fmt: skip
    yield from (make_subgraph(row, rows, pair, exact=row.energy_difference_fj) for row in rows[:1])


def _find_lost(rows: Iterable[VersionFigure]) -> Iterator[Caveat]:
    """Yield the hardware that runs only the earlier version, and that which runs only the later one."""
    runs: dict[bool, dict[int, None]] = {True: {}, False: {}}
    for row in rows:
        if (row.value_a is None) != (row.value_b is None):
            runs[row.value_b is None][row.run_b] = None
    for is_lost, ids in runs.items():
        if ids:
            yield Caveat(kind="lost" if is_lost else "gained", runs=tuple(ids), values={})


def pair_findings(
    findings: Iterable[Finding | Refusal], pairs: Iterable[tuple[int, int]]
) -> Iterator[Finding | Refusal]:
    """Yield findings on changes in place of those on runs: what moves both versions on a chip alike moves no change.

    `pairs` are the runs of the earlier and of the later version on each chip.
    """
    own: dict[tuple[str, int], list[Finding]] = {}
    for one in findings:
        if isinstance(one, Refusal) or one.run_id is None:
            yield one
        else:
            own.setdefault((one.kind, one.run_id), []).append(one)
    for run_a, run_b in pairs:
        for kind in dict.fromkeys(kind for kind, run_id in own if run_id in (run_a, run_b)):
            before, after = (own.get((kind, one), []) for one in (run_a, run_b))
            moved, move = (sum(one.bias or one.doubt for one in alike) for alike in (before, after))
            bias = 0.0 if move == moved else move - moved
            for one in before if abs(moved) > abs(move) else after:
                known = {"bias": bias, "doubt": 0.0} if one.bias else {"bias": 0.0, "doubt": abs(bias)}
                yield attrs.evolve(one, run_id=run_b, **known)


def diff(
    source: Source,
    before: str,
    after: str,
    settings: Settings = SETTINGS,
    *,
    fail_above: Mapping[str, float] = NOTHING,
) -> DiffAnswer:
    """Compare two versions of a model on several chips: named chips, or four typical chips by default.

    A version is a model name as in `compare`, or `REV:path/to/file.py:NAME`: the file at a commit of the repository in
    the working directory. Code files are traced each time. `fail_above` maps latency, energy, memory or cost to the
    largest relative increase that is not a failure: 0.05 is 5 %. Raises like `compare`; ModelError for an unknown
    commit.
    """
    settings.check_single("diff")
    for version in (before, after):
        if not isinstance(version, str):
            raise UsageError(f"diff takes the names of two models, found a {type(version).__name__}")
    for metric in fail_above:
        if metric not in METRICS:
            raise UsageError(f"unknown metric {metric!r} in fail_above; known: {', '.join(METRICS)}")
    chosen = settings if is_choice(settings) else attrs.evolve(settings, hardware=TYPICAL)
    selection = select_hardware(chosen)
    plans = [_plan(source, name, chosen, selection) for name in (before, after)]
    whole = attrs.evolve(plans[0], models=tuple(model for plan in plans for model in plan.models))
    with opening_scope(source, whole, needs_catalogue=True) as scope:
        connection, count = scope.connection, len(selection.pairs)
        scope.check_evaluated()
        ids_a, ids_b = scope.run_ids[:count], scope.run_ids[count:] or scope.run_ids
        rows = fetch(connection, VersionFigure, run_ids_a=ids_a, run_ids_b=ids_b)
        pairs = {row.hardware: (row.run_a, row.run_b) for row in rows if row.change_fraction is not None}
        parts = {name: _find_parts(connection, *pair) for name, pair in pairs.items()}
        whole_rows = _add_costs(connection, rows)
        return DiffAnswer(
            scope=scope,
            before=before,
            after=after,
            rows=whole_rows,
            subgraphs=parts,
            allowed=dict(fail_above),
            facts=find_facts(scope, whole_rows.rows, {name: one.rows for name, one in parts.items()}, fail_above),
        )


def _plan(source: Source, name: str, settings: Settings, selection: Selection) -> Plan:
    """Return the plan of one version; a version that is code is traced."""
    model = find_revision(name, settings, source.talk)
    if model.traced is None:
        return plan_selected((name,), settings, selection)
    known = attrs.evolve(settings, modules={model.request.model: model}, inputs=(), arguments={}, config="")
    return plan_selected((model.request.model,), known, selection)


def _find_parts(connection: Connection, run_a: int, run_b: int) -> Table[SubgraphDifference]:
    """Return the subgraphs that differ between two runs."""
    parts = fetch(connection, SubgraphDifference, run_a=run_a, run_b=run_b)
    moved = tuple(row for row in parts if row.energy_difference_fj or row.latency_difference_fs)
    return parts.with_rows(moved)


def _add_costs(connection: Connection, rows: Table[VersionFigure]) -> Table[VersionFigure]:
    """Insert a cost row after each chip's memory row if both versions have a cost; return all rows.

    Renting is preferred. The change of a rent has the interval of the latency, and the change of electricity that of
    energy.
    """
    ids = list(dict.fromkeys(run_id for row in rows for run_id in (row.run_a, row.run_b)))
    costs: dict[int, dict[str, CostOption]] = {}
    for option in fetch(connection, CostOption, run_ids=ids):
        costs.setdefault(option.run_id, {})[option.way] = option
    widths = {(row.hardware, row.metric): row.half_width or 0.0 for row in rows}
    figures: list[VersionFigure] = []
    for row in rows:
        figures.append(row)
        if row.metric != "memory" or row.change_fraction is None:
            continue
        ways = [way for way in ("rented", "bought") if way in costs[row.run_a] and way in costs[row.run_b]]
        if ways:
            figures.append(_price(row, costs[row.run_a][ways[0]], costs[row.run_b][ways[0]], widths))
    return rows.with_rows(figures)


def _price(
    row: VersionFigure, before: CostOption, after: CostOption, widths: Mapping[tuple[str, str], float]
) -> VersionFigure:
    value_a, value_b = before.usd_per_million or 0.0, after.usd_per_million or 0.0
    energy = (after.energy_usd_per_million or 0.0) / value_b if value_b else 0.0
    ratio = value_b / value_a if value_a else 1.0
    width = (1.0 - energy) * widths[row.hardware, "latency"] + energy * widths[row.hardware, "energy"]
    return row.replace(
        metric="cost",
        unit="USD",
        value_a=value_a,
        value_b=value_b,
        change_fraction=ratio - 1.0,
        low_fraction=ratio * math.exp(-width) - 1.0,
        high_fraction=ratio * math.exp(width) - 1.0,
        half_width=width,
        basis=f"{before.way}, price {before.price_basis}",
    )


def difference(source: Source, run_a: int, run_b: int) -> DifferenceAnswer:
    """Compare two runs: settings, constants, and the terms of their energies.

    Raises UnknownNameError for a run that is not stored, UsageError for a run without a ledger, DatabaseError.
    """
    with reading(source) as connection:
        pair: dict[str, Any] = {"run_a": run_a, "run_b": run_b}
        check_runs(connection, pair)
        scope = Scope.of_runs(connection, (run_a, run_b))
        scope.read()
        is_whole = not scope.refused
        if is_whole:
            check_ledgers(connection, find_query(TERMS["latency"].query), pair)
        return DifferenceAnswer(
            scope=scope,
            **fetch_tables(connection, DifferenceAnswer, **pair),
            explanation=explain_pair(scope, run_a, run_b, "energy") if is_whole else None,
            delays=fetch(connection, TERMS["latency"], **pair) if is_whole else None,
        )
