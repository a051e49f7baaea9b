"""Compare two versions of a model: latency, energy, memory and cost on each chip."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import attrs

from joulemap.answer.answer import RunAnswer, find_place
from joulemap.answer.candidate import read_usage
from joulemap.answer.scope import find_scope
from joulemap.domain.default import SETTINGS, USAGE
from joulemap.domain.settings import Settings
from joulemap.domain.table import Table
from joulemap.plan.hold import holding_runs
from joulemap.plan.revision import find_revision
from joulemap.plan.run import Plan, plan_selected
from joulemap.plan.selection import Selection, is_choice, select_hardware
from joulemap.plan.source import Source
from joulemap.present.cell import show_plain, show_quantity, show_share, show_signed, show_span
from joulemap.present.document import Document, Grid, Section
from joulemap.present.template import Template
from joulemap.row.cost import CostOption
from joulemap.row.diff import VersionFigure
from joulemap.row.explain import SubgraphDifference
from joulemap.store.connection import Connection
from joulemap.store.query import fetch
from joulemap.system.errors import UsageError
from joulemap.system.record import frozen

TYPICAL: Final = ("l4", "h100_sxm5", "jetson_orin_nano_8gb", "xeon_8490h")
"""Default hardware: one chip each for rented inference, throughput, the edge, and a host alone."""

ROUNDED: Final = 1e-9
"""Half-width of a change's interval (relative) below which the change counts as exact."""

METRICS: Final = ("latency", "energy", "memory", "cost")
"""Metrics that two versions of a model are compared by, in display order."""

NOTHING: Final[Mapping[str, float]] = {}

TITLE: Final = Template("{before} -> {after}{settings}")
HEADLINE: Final = Template("From {before} to {after}[ across {count} chips]: {change:list}.")
EQUAL: Final = Template("Both versions are equal in {metrics:and}[ on all {count} chips].")
CHANGE: Final = Template("{metric} {first}[ to {last}][ ({sure})]")
ON_BOTH: Final = "significant on both chips"
ON_ALL: Final = Template("significant on all {total} chips")
ON_SOME: Final = Template("significant on {sure} of {total} chips")
ON_NONE: Final = "not significant"
EXACT: Final = Template("{change} (exact)")
INTERVAL: Final = Template("{change} ({low} to {high})")

COLUMNS: Final = "hardware | *metric | before value_a | after value_b | *change change_fraction"
VERDICT: Final = " | *limit allowed"
VERDICTS: Final = {"above": "FAILS ({limit})", "below": "kept ({limit})", "unsure": "not significant ({limit})"}
PARTS_TABLE: Final = Template("Subgraphs that differ on {name}")
PART_COLUMNS: Final = (
    "subgraph name | pattern fusion_pattern | *energy energy_difference_fj | *latency latency_difference_fs | "
    "share of all energy changes share_fraction | status unit"
)
NEW, GONE = "new", "removed"
PER_MILLION: Final = "cost per million inferences"

FAILURE: Final = Template("{metric} on {name} changed by {change}, more than {limit:set %}")
NOT_RUNNING: Final = Template("the version after does not run: {reason}")
KEPT: Final = Template("no change exceeds its limit beyond the uncertainty: {limits:and}")
LIMIT: Final = Template("{metric} {limit}")

SAME_WORK: Final = Template(
    "{share} of the energy of {before} is in kernels that {after} also has, whose errors cancel; the 80 % intervals "
    "cover the errors that other kernels do not share"
)
NO_SAME_WORK: Final = "the two versions share almost no kernels, so their prediction errors do not cancel"
LEAST_SHARED: Final = 0.01
"""Minimum share of the energy in kernels common to both versions; below it, the text says that errors do not cancel."""

NOTES: Final = (
    "change: after / before - 1, with its 80 % interval",
    "both versions share the errors of identical kernels, of the chip and of its class, and part of the errors of "
    "kernels of similar size; only the other errors make the change uncertain",
    "changes of single subgraphs have no interval here: these intervals are computed for whole models",
    "memory is counted, so it is exact; cost is per million inferences, rented where a rental price is known, else "
    "bought, with the same price before and after",
)

STEP: Final = Template("db diff {run_a} {run_b}")


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

    @property
    def failures(self) -> tuple[str, ...]:
        """Sentences on increases that surely exceed the allowed limit, and on hardware that runs only the earlier
        version.
        """
        above = [
            FAILURE(row, name=self.scope.mark(row.hardware), change=_show_change(row), limit=self.allowed[row.metric])
            for row in self.rows
            if row.metric in self.allowed and _is_above(row, self.allowed[row.metric])
        ]
        lost = {row.hardware: row for row in self.rows if row.value_a is not None and row.value_b is None}
        return (*above, *(NOT_RUNNING(row) for row in lost.values() if self.allowed))

    def data(self) -> dict[str, Any]:
        """Return the data for machine formats."""
        parts = {name: table.records() for name, table in self.subgraphs.items()}
        asked = {"before": self.before, "after": self.after, "allowed": dict(self.allowed)}
        return {**super().data(), **asked, "subgraphs": parts, "failures": self.failures}

    def document(self, *, limit: int = 5, repeated: Sequence[str] = ()) -> Document:
        """Return the document with `limit` subgraphs of each chip; csv contains the figures."""
        rows = self.rows.with_rows(row for row in self.rows if row.change_fraction is not None)
        drawn = self._lay(
            rows,
            COLUMNS + (VERDICT if self.allowed else ""),
            metric=lambda row: PER_MILLION if row.metric == "cost" else row.metric,
            value_a=lambda row: show_quantity(row.value_a, row.unit),
            value_b=lambda row: show_quantity(row.value_b, row.unit),
            change_fraction=_show_change,
            allowed=self._judge,
        )
        parts = [Section(PARTS_TABLE(name=name), self._lay_parts(name, limit)) for name in self.subgraphs]
        limits = [LIMIT(metric=metric, limit=_show_fraction(most)) for metric, most in self.allowed.items()]
        changed = [row for row in rows if row.metric == "energy" and row.change_fraction and row.run_a != row.run_b]
        settings = self.scope.title.removeprefix(", ".join(self.scope.models))
        return self._compose(
            TITLE(before=self.before, after=self.after, settings=settings),
            (Section("", (drawn, *self.scope.describe_left_out())), *parts[:1]),
            self.rows,
            answer=self._describe_change(rows.rows),
            insights=self.failures or ([KEPT(limits=limits)] if limits else []),
            sure=self._describe_same_work(),
            details=parts[1:],
            notes=[*self.scope.describe_refusals(), *NOTES, *self.scope.describe()],
            steps=[
                [*STEP.words(row), *find_place(repeated)]
                for row in sorted(changed, key=lambda row: -abs(_change(row)))[:1]
            ],
        )

    def _describe_change(self, rows: Sequence[VersionFigure]) -> str:
        """Return the headline: the change of each metric, or a statement that both versions are equal."""
        count = len({row.hardware for row in rows})
        if rows and all(row.value_a == row.value_b for row in rows):
            metrics = [metric for metric in METRICS if any(row.metric == metric for row in rows)]
            return EQUAL(self, metrics=metrics, count=count if count > 1 else None)
        return HEADLINE(
            self,
            count=count if count > 1 else None,
            change=[one for metric in METRICS if (one := _describe(metric, rows))],
        )

    def _describe_same_work(self) -> str:
        """Return how far the prediction errors of both versions cancel, because they share kernels.

        Empty if every change is exact.
        """
        if all((row.half_width or 0.0) < ROUNDED for row in self.rows):
            return ""
        same = [row.same_fraction for row in self.rows if row.metric == "energy" and row.same_fraction is not None]
        ends = show_span(*map(show_share, (min(same), max(same)))) if same else ""
        return SAME_WORK(self, share=ends) if same and max(same) >= LEAST_SHARED else NO_SAME_WORK

    def _judge(self, row: VersionFigure) -> str:
        """Return the verdict on a change: above or below the allowed limit, or uncertain; empty without a limit."""
        allowed = self.allowed.get(row.metric)
        if allowed is None:
            return ""
        verdict = "above" if _is_above(row, allowed) else "below" if _change(row) <= allowed else "unsure"
        return VERDICTS[verdict].format(limit=_show_fraction(allowed))

    def _lay_parts(self, hardware: str, limit: int) -> Grid:
        """Return a grid of the subgraphs that differ most on one chip."""
        return self._lay(
            self.subgraphs[hardware],
            PART_COLUMNS,
            limit=limit,
            noun="subgraphs",
            energy_difference_fj=lambda row: show_signed(row.energy_difference_fj / 1e15, "J"),
            latency_difference_fs=lambda row: show_signed(row.latency_difference_fs / 1e15, "s"),
            unit=lambda row: NEW if not row.energy_a_fj else GONE if not row.energy_b_fj else "",
        )


def _change(row: VersionFigure) -> float:
    return row.change_fraction or 0.0


def _is_sure(row: VersionFigure) -> bool:
    """Return whether the interval of a change excludes zero."""
    return (row.low_fraction or 0.0) > 0.0 or (row.high_fraction or 0.0) < 0.0


def _describe(metric: str, every: Iterable[VersionFigure]) -> str:
    """Return a clause on the change of a metric over all hardware, with its confidence; empty without rows."""
    rows = sorted((row for row in every if row.metric == metric), key=_change)
    if len(rows) < 2:
        return CHANGE(metric=metric, first=_show_change(rows[0]), last="", sure=None) if rows else ""
    first, *others = dict.fromkeys(_show_fraction(row.change_fraction) for row in rows)
    is_exact = all((row.half_width or 0.0) < ROUNDED for row in rows)
    sure, total = sum(map(_is_sure, rows)), len(rows)
    where = ON_SOME(sure=sure, total=total) if sure < total else ON_BOTH if total == 2 else ON_ALL(total=total)
    where = where if sure else ON_NONE
    return CHANGE(metric=metric, first=first, last="".join(others[-1:]), sure=None if is_exact else where)


def _is_above(row: VersionFigure, allowed: float) -> bool:
    return _change(row) > allowed and (row.low_fraction or 0.0) > 0.0


def _show_fraction(value: float | None) -> str:
    sign = "" if not value else "+" if value > 0.0 else "-"
    return "" if value is None else f"{sign}{show_plain(abs(value) * 100)} %"


def _show_change(row: VersionFigure) -> str:
    """Return a change with its 80 % interval."""
    change = _show_fraction(row.change_fraction)
    if (row.half_width or 0.0) < ROUNDED:
        return EXACT(change=change)
    low, high = (_show_fraction(one).removesuffix(" %") for one in (row.low_fraction, row.high_fraction))
    return INTERVAL(change=change, low=low, high=high)


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
    with holding_runs(source, whole, needs_catalogue=True) as runs:
        scope, count = find_scope(runs), len(selection.pairs)
        scope.check_evaluated()
        ids_a, ids_b = runs.ids[:count], runs.ids[count:] or runs.ids
        rows = fetch(runs.connection, VersionFigure, run_ids_a=ids_a, run_ids_b=ids_b)
        pairs = {row.hardware: (row.run_a, row.run_b) for row in rows if row.change_fraction is not None}
        return DiffAnswer(
            scope=scope,
            before=before,
            after=after,
            rows=_add_costs(runs.connection, rows),
            subgraphs={name: _find_parts(runs.connection, *pair) for name, pair in pairs.items()},
            allowed=dict(fail_above),
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
    found = fetch(connection, SubgraphDifference, run_a=run_a, run_b=run_b)
    moved = tuple(row for row in found if row.energy_difference_fj or row.latency_difference_fs)
    return found.with_rows(moved)


def _add_costs(connection: Connection, rows: Table[VersionFigure]) -> Table[VersionFigure]:
    """Insert a cost row after each chip's memory row if both versions have a cost; return all rows.

    Renting is preferred. The change of a rent has the interval of the latency, and the change of electricity that of
    energy.
    """
    ids = list(dict.fromkeys(run_id for row in rows for run_id in (row.run_a, row.run_b)))
    used, _ = read_usage(USAGE, Settings())
    costs: dict[int, dict[str, CostOption]] = {}
    for option in fetch(connection, CostOption, run_ids=ids, **used):
        costs.setdefault(option.run_id, {})[option.way] = option
    widths = {(row.hardware, row.metric): row.half_width or 0.0 for row in rows}
    found: list[VersionFigure] = []
    for row in rows:
        found.append(row)
        if row.metric != "memory" or row.change_fraction is None:
            continue
        ways = [way for way in ("rented", "bought") if way in costs[row.run_a] and way in costs[row.run_b]]
        if ways:
            found.append(_price(row, costs[row.run_a][ways[0]], costs[row.run_b][ways[0]], widths))
    return rows.with_rows(found)


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
