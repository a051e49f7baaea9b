"""Compare two versions of a model: latency, energy, memory and cost on each chip."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import attrs

from joulemap.answer.base import RunAnswer
from joulemap.ask.candidate import read_usage
from joulemap.ask.diff import find_facts, is_above
from joulemap.ask.fact import Facts
from joulemap.ask.scope import opening_scope
from joulemap.domain.default import SETTINGS, USAGE
from joulemap.domain.settings import Settings
from joulemap.domain.table import Table
from joulemap.generated.cost import CostOption
from joulemap.generated.diff import VersionFigure
from joulemap.generated.explain import SubgraphDifference
from joulemap.plan.revision import find_revision
from joulemap.plan.run import Plan, plan_selected
from joulemap.plan.selection import Selection, is_choice, select_hardware
from joulemap.plan.source import Source
from joulemap.show.diff import describe_shared, describe_versions, list_failures, list_reasons, show_change, show_ends
from joulemap.show.page import keep_database
from joulemap.show.present.cell import show_quantity, show_signed
from joulemap.show.present.document import Document, Grid, Section, show_under
from joulemap.show.present.picture import Picture
from joulemap.show.present.template import Template
from joulemap.show.run import list_settings
from joulemap.show.title import Title
from joulemap.store.connection import Connection
from joulemap.store.query import fetch
from joulemap.system.errors import UsageError
from joulemap.system.record import frozen
from joulemap.system.units import FJ_PER_J, FS_PER_S

TYPICAL: Final = ("l4", "h100_sxm5", "jetson_orin_nano_8gb", "xeon_8490h")
"""Default hardware: one chip each for rented inference, throughput, the edge, and a host alone."""

METRICS: Final = ("latency", "energy", "memory", "cost")
"""Metrics that two versions of a model are compared by, in display order."""

NOTHING: Final[Mapping[str, float]] = {}

TITLE: Final = Template("{before} -> {after}[ on {name}], batch {batches:and}, {precisions:list}[, {runtimes:list}]")

METRIC_COLUMNS: Final = (
    "*metric | before value_a | after value_b | *change change_fraction | *range low_fraction? | *limit allowed?"
)
"""Columns of one chip, with a row per metric."""
CHIP_COLUMNS: Final = (
    "hardware | energy energy_change | energy range energy_range? | latency latency_change | "
    "latency range latency_range? | memory memory_change? | cost cost_change? | limits verdicts?"
)
"""Columns of several chips, with a row each."""
CHIP_KEEP: Final = "limits | latency | memory | cost"
ALL_TABLE: Final = "Before and after"
ALL_COLUMNS: Final = f"hardware | {METRIC_COLUMNS}"
MORE, LESS = "more", "less"
VERDICTS: Final = {"above": "FAILS ({limit})", "below": "kept ({limit})", "unsure": "not significant ({limit})"}
OF_CHIP: Final = {"above": "FAILS: {metrics}", "unsure": "not significant: {metrics}"}
KEPT: Final = "kept"
PARTS_TABLE: Final = Template("Subgraphs that differ on {name}")
PART_COLUMNS: Final = (
    "subgraph name | pattern fusion_pattern | energy energy_difference_fj | *latency latency_difference_fs | "
    "share share_fraction | *status unit?"
)
NEW, GONE = "new", "removed"
PER_MILLION: Final = "cost per million"

NOTES: Final = (
    "change: after / before - 1; range: its 80 % interval; significant: the interval excludes zero",
    "share: of the sum of all changes of energy without their signs; negative if it works against the whole",
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

    facts: Facts
    """Changes, limits and caveats, from which all sentences are made."""

    @property
    def failures(self) -> tuple[str, ...]:
        """Sentences on increases that surely exceed the allowed limit, and on hardware that runs only the earlier
        version.
        """
        return tuple(list_failures(self.facts))

    def data(self) -> dict[str, Any]:
        """Return the data for machine formats."""
        parts = {name: table.records() for name, table in self.subgraphs.items()}
        asked = {"before": self.before, "after": self.after, "allowed": dict(self.allowed)}
        return {**super().data(), **asked, "subgraphs": parts, "failures": self.failures}

    def document(self, *, limit: int = 5, repeated: Sequence[str] = ()) -> Document:
        """Return the document with `limit` subgraphs of each chip; csv contains the figures."""
        rows = self.rows.with_rows(row for row in self.rows if row.change_fraction is not None)
        chips = list(dict.fromkeys(row.hardware for row in rows))
        drawn = self._lay_chips(rows) if len(chips) > 1 else self._lay_metrics(rows, METRIC_COLUMNS)
        every = [Section(ALL_TABLE, self._lay_metrics(rows, ALL_COLUMNS))] if len(chips) > 1 else []
        changed = [row for row in rows if row.metric == "energy" and row.change_fraction and row.run_a != row.run_b]
        only = self._mark(chips[0]) if len(chips) == 1 else ""
        return self._compose_facts(
            self.facts,
            (show_under("", drawn, *self._count_left_out()),),
            self.rows,
            title=Title(
                form=TITLE,
                values={"before": self.before, "after": self.after, "name": only, **list_settings(self.scope)},
            ),
            answer=describe_versions(self.facts),
            reasons=list_reasons(self.facts),
            trust=describe_shared(self.facts),
            details=[*every, *(self._list_parts(name, limit) for name in chips)],
            notes=NOTES,
            steps=[
                [*STEP.words(row), *keep_database(repeated)]
                for row in sorted(changed, key=lambda row: -abs(row.change_fraction or 0.0))[:1]
            ],
        )

    def _lay_metrics(self, rows: Table[VersionFigure], columns: str) -> Grid:
        """Return a grid with a row per metric and chip: both values, the change, its range and the limit."""
        drawn = self._lay(
            rows,
            columns,
            ranked="change",
            metric=lambda row: PER_MILLION if row.metric == "cost" else row.metric,
            value_a=lambda row: show_quantity(row.value_a, row.unit),
            value_b=lambda row: show_quantity(row.value_b, row.unit),
            change_fraction=lambda row: show_change(row.change_fraction),
            low_fraction=_show_ends,
            allowed=self._judge,
        )
        is_one_chip = columns == METRIC_COLUMNS
        return attrs.evolve(drawn, pictures=(_draw_changes("change", rows.rows),) if is_one_chip else ())

    def _lay_chips(self, rows: Table[VersionFigure]) -> Grid:
        """Return a grid with a row per chip: the change of each metric, with the ranges of energy and latency."""
        by_metric = {(row.hardware, row.metric): row for row in rows}
        first = [row for row in rows if row.metric == METRICS[0]]
        cells: dict[str, Any] = {}
        for metric in METRICS:
            cells[f"{metric}_change"] = _show_of(by_metric, metric, lambda row: show_change(row.change_fraction))
            cells[f"{metric}_range"] = _show_of(
                by_metric, metric, lambda row: show_ends(row.low_fraction, row.high_fraction)
            )
        drawn = self._lay(
            rows.with_rows(first),
            CHIP_COLUMNS,
            keep=CHIP_KEEP,
            ranked="energy | energy range",
            verdicts=lambda row: self._judge_chip(row, by_metric),
            **cells,
        )
        picture = _draw_changes("energy", [by_metric[row.hardware, "energy"] for row in first])
        return attrs.evolve(drawn, pictures=(picture,))

    def _judge_chip(self, row: VersionFigure, by_metric: Mapping[tuple[str, str], VersionFigure]) -> str:
        """Return the metrics of a chip that fail, and those that might; empty without a limit."""
        known = [by_metric[row.hardware, metric] for metric in self.allowed if (row.hardware, metric) in by_metric]
        groups = {verdict: [one.metric for one in known if self._compare(one) == verdict] for verdict in OF_CHIP}
        shown = [OF_CHIP[verdict].format(metrics=", ".join(names)) for verdict, names in groups.items() if names]
        return "; ".join(shown) or (KEPT if known else "")

    def _judge(self, row: VersionFigure) -> str:
        """Return the verdict on a change, with its limit; empty without one."""
        verdict = self._compare(row)
        return VERDICTS[verdict].format(limit=show_change(self.allowed[row.metric])) if verdict else ""

    def _compare(self, row: VersionFigure) -> str:
        """Return whether a change is above or below its limit, or uncertain; empty without a limit."""
        allowed = self.allowed.get(row.metric)
        if allowed is None:
            return ""
        is_below = (row.change_fraction or 0.0) <= allowed
        return "above" if is_above(row, allowed) else "below" if is_below else "unsure"

    def _list_parts(self, hardware: str, limit: int) -> Section:
        """Return a section on the subgraphs that differ most on one chip."""
        drawn = self._lay(
            self.subgraphs[hardware],
            PART_COLUMNS,
            limit=limit,
            noun="subgraphs",
            ranked="energy",
            energy_difference_fj=lambda row: show_signed(row.energy_difference_fj / FJ_PER_J, "J"),
            latency_difference_fs=lambda row: show_signed(row.latency_difference_fs / FS_PER_S, "s"),
            unit=lambda row: NEW if not row.energy_a_fj else GONE if not row.energy_b_fj else "",
        )
        rows = tuple((float(row.energy_difference_fj),) for row in self.subgraphs[hardware].rows[:limit])
        picture = Picture(kind="difference", after="energy", rows=rows, heading=MORE, left=LESS)
        title = PARTS_TABLE(name=self._mark(hardware))
        return Section(title, attrs.evolve(drawn, pictures=(picture,)))


def _show_ends(row: VersionFigure) -> str:
    return show_ends(row.low_fraction, row.high_fraction)


def _draw_changes(after: str, rows: Sequence[VersionFigure]) -> Picture:
    """Return a picture of relative changes around zero, beside the column with this heading."""
    marks = tuple((row.change_fraction or 0.0,) for row in rows)
    return Picture(kind="difference", after=after, rows=marks, heading=MORE, left=LESS)


def _show_of(
    by_metric: Mapping[tuple[str, str], VersionFigure], metric: str, show: Callable[[VersionFigure], str]
) -> Callable[[VersionFigure], str]:
    """Return a function that formats the row of a metric on the chip of another row; empty if it has none."""
    return lambda row: show(by_metric[row.hardware, metric]) if (row.hardware, metric) in by_metric else ""


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
    used, _ = read_usage(USAGE, Settings())
    costs: dict[int, dict[str, CostOption]] = {}
    for option in fetch(connection, CostOption, run_ids=ids, **used):
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
