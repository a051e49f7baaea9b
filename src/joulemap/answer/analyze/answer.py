"""Break down one run: energy and latency, bottlenecks, and the energy of each part."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, get_args

import attrs

from joulemap.answer.analyze.figure import draw_roof, draw_tree
from joulemap.answer.answer import Drawings, Figures, RunAnswer, fetch_tables, find_place
from joulemap.answer.run import ENERGY_PARTS, OVERHEAD, overlaps, prove, title_run
from joulemap.answer.scope import describe_recalled, holding_scope
from joulemap.domain.default import SETTINGS
from joulemap.domain.settings import RunDivision, Settings
from joulemap.domain.table import Table
from joulemap.plan.run import plan_selected
from joulemap.plan.selection import select_one
from joulemap.plan.source import Source
from joulemap.present.cell import show, show_amount, show_plain, show_price, show_quantity, show_share, show_units
from joulemap.present.document import Document, EnergyCell, Grid, Section, Shown, Text, grid, show_under
from joulemap.row.analyze import (
    ActionShare,
    BottleneckShare,
    CategoryShare,
    EventCount,
    OperatorShare,
    RunTotal,
    SubgraphRoof,
    SubgraphShare,
)
from joulemap.row.report import EnergyLeaf
from joulemap.store.query import start
from joulemap.store.run import find_subgraphs
from joulemap.system.errors import UnknownNameError
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.domain.hardware import Hardware
    from joulemap.figure.spec import DrawingName

SHOWN: Final = 8
"""Default number of rows per table."""

PART_COLUMNS: Final = tuple((part, f"{part}_energy_j") for part in ENERGY_PARTS)

COLUMNS: Final[dict[RunDivision, tuple[Shown[Any], ...]]] = {
    "category": (
        ("category", "category"),
        ("in common", "common_categories"),
        ("part", "parts"),
        ("actions", "kind_count"),
        ("energy", "energy_j"),
        ("of energy", "share_fraction"),
        ("largest action", "largest_action"),
        ("of the category", "largest_action_fraction"),
    ),
    "subgraph": (
        ("", "subgraph_index"),
        ("subgraph", "name"),
        ("pattern", "fusion_pattern"),
        ("energy", "energy_j"),
        *PART_COLUMNS,
        ("of energy", "share_fraction"),
        ("latency", "latency_s"),
        ("of time", "latency_fraction"),
        ("bound by", "bottleneck"),
        ("units", lambda row: show_units(row.units_used_count, row.units_total_count, row.unit_name)),
        ("tiles", "tile_count"),
        ("waves", "wave_count"),
        ("filled", "wave_fill_fraction"),
        ("padding", "padding_fraction"),
        ("of peak", "compute_utilization_fraction"),
        ("of bandwidth", "bandwidth_utilization_fraction"),
        ("passes", "pass_bytes"),
    ),
    "operator": (
        ("", "operator_index"),
        ("operator", "name"),
        ("kind", "kind"),
        ("subgraph", "subgraph_index"),
        ("energy", "energy_j"),
        *PART_COLUMNS,
        ("of energy", "share_fraction"),
        ("latency", "latency_s"),
        ("of time", "latency_fraction"),
        ("EDP share", "edp_share_fraction"),
        ("fused", "is_fused"),
        ("alone: energy", "separate_energy_j"),
        ("alone: latency", "separate_latency_s"),
        ("fusing saves: energy", "saved_energy_j"),
        ("fusing saves: latency", "saved_latency_s"),
        ("bias", "bias_element_count"),
        ("off chip", "dram_bytes"),
        ("passes", "pass_bytes"),
    ),
}

KEEP: Final = ("subgraph", "operator", "energy", "of energy", "latency", "of time", "bound by", "EDP share", "of peak")
"""Headings that narrow terminals keep, in every table."""

SHARED_ENERGY: Final = "an event has the energy of its actions; one action may belong to several events"

WHOLE: Final = {
    "category": "run",
    "name": "run",
    "share_fraction": 1.0,
    "latency_fraction": 1.0,
    "edp_share_fraction": 1.0,
}
"""Values of the run itself in the columns of its parts, where its own row has another value or none."""


@frozen(kw_only=True)
class AnalyzeAnswer(RunAnswer):
    """Breakdown of one run; categories, actions, subgraphs and operators each sum to its energy exactly."""

    totals: Table[RunTotal]
    """One row."""
    categories: Table[CategoryShare]
    """Sorted by energy, largest first."""
    actions: Table[ActionShare]
    """Sorted by category, then by energy, largest first."""
    subgraphs: Table[SubgraphShare]
    """Sorted by execution order."""
    operators: Table[OperatorShare]
    """Sorted by execution order."""
    bottlenecks: Table[BottleneckShare]
    tree: Table[EnergyLeaf]
    """Common categories, the actions in each, and the subgraphs with the most energy per action."""
    roofline: Table[SubgraphRoof]
    """Sorted by execution order."""
    events: Table[EventCount]
    """Instructions, cache lines, tiles …, in the order of the class's file."""
    subgraph: str
    """Subgraph that the events belong to; empty for the whole run."""

    @property
    def total(self) -> RunTotal:
        """Totals of the whole run."""
        return self.totals[0]

    def rows(self, by: RunDivision) -> Table[Any]:
        """Return the table of one division, such as categories or subgraphs."""
        return self.own_tables["categories" if by == "category" else f"{by}s"]

    def data(self) -> dict[str, Any]:
        """Return the data for machine formats, with the selected subgraph."""
        return {**super().data(), "subgraph": self.subgraph or None}

    def document(self, *, by: RunDivision = "action", limit: int = SHOWN, repeated: Sequence[str] = ()) -> Document:
        """Return the document with the `limit` largest rows of the division; csv holds the division's rows."""
        first, *others = self._divided(by, limit)
        return self._compose(
            title_run(self.total, self.scope),
            (first,),
            self.rows(by),
            answer=self.say_whole(),
            insights=self.insights(),
            details=(Section("Performance", self._facts()), Section("Bottlenecks", self._bottlenecks()), *others),
            notes=self.notes(),
            steps=self._steps(by, repeated),
        )

    def say_whole(self) -> str:
        """Return the headline: energy, latency, power, the largest energy category and the main bottleneck."""
        total, most = self.total, self.categories[0]
        bound = max(self.bottlenecks, key=lambda row: row.latency_fs)
        return (
            f"{self.scope.mark(total.hardware)} takes {show_quantity(total.energy_j, 'J')} and "
            f"{show_quantity(total.latency_s, 's')} at {show_quantity(total.average_power_w, 'W')}; "
            f"{show_share(most.share_fraction)} of the energy is {most.category.replace('_', ' ')}, "
            f"{bound.bottleneck} bounds {show_share(bound.latency_fraction)} of the time."
        )

    def insights(self) -> list[str]:
        """Return sentences on utilization, architectural overhead and the subgraph with the most energy."""
        total, largest = self.total, max(self.subgraphs, key=lambda row: row.energy_fj)
        used = f"the run uses {show_share(total.compute_utilization_fraction)} of its peak and "
        used += f"{show_share(total.bandwidth_utilization_fraction)} of its memory bandwidth"
        units = f"{total.units_used_count} of {total.units_total_count} {total.unit_name}s are busy on average"
        overhead = f"{show_share(total.overhead_fraction)} of the energy goes to {OVERHEAD}"
        part = f"{largest.name} takes most of {total.subgraph_count} subgraphs: "
        part += (
            f"{show_share(largest.share_fraction)} of the energy, {show_share(largest.latency_fraction)} of the time"
        )
        return [f"{used}; {units}", overhead, part]

    def figures(self) -> Figures:
        """Return the energy tree and the roofline of the run's subgraphs."""
        subject = self.scope.bounded(title_run(self.total, self.scope))
        return draw_tree(self.tree, subject), draw_roof(self.roofline, subject)

    def sketched(self, by: RunDivision, /) -> Drawings:
        """Return text drawings: the selected division and, except for events, the roofline."""
        named: dict[RunDivision, tuple[DrawingName, dict[str, str]]] = {
            "category": ("division", {"nouns": "categories", "label": "{category}"}),
            "action": ("division", {"nouns": "actions", "label": "{component}.{action}"}),
            "event": ("events", {"of": " of one subgraph" if self.subgraph else ""}),
        }
        name, texts = named.get(by, ("execution", {}))
        drawn = self._sketch(name, self.rows(by), {"by": by, **texts})
        return (drawn,) if by == "event" else (drawn, self._sketch("roofline", self.roofline))

    def _divided(self, by: RunDivision, limit: int) -> Iterator[Section]:
        """Yield the section of the largest rows of a division, then sections of all rows and their sum."""
        noun = "categories" if by == "category" else f"{by}s"
        if by == "event":
            title = f"Events of {self.subgraph}" if self.subgraph else "Events"
            every, told = self._events(), Text(SHARED_ENERGY)
            shown = attrs.evolve(every, rows=every.rows[: 2 * limit]).out_of(
                len(every.rows), 2 * limit, "rows", "--details"
            )
        else:
            title, told = f"Energy by {by}", self._proof(by)
            every = self._tree(len(self.actions)) if by == "action" else self._parts(by, len(self.rows(by)))
            shown = self._tree(limit) if by == "action" else self._parts(by, limit)
            shown = shown.out_of(len(self.rows(by)), limit, noun)
        yield show_under(title, shown)
        yield Section(f"{title}, whole", (every, told) if shown.cut else told)
        if by == "event":
            formulas = tuple(self._under(lambda row: (row.formula, row.meaning), 3))
            drawn = Grid(headings=("event", "follows from", "what it is"), rows=formulas, is_tree=True)
            yield Section("How they are counted, operator by operator", drawn)

    def _facts(self) -> Grid:
        total = self.total
        parts = ", ".join(f"{part} {show_quantity(getattr(total, name), 'J')}" for part, name in PART_COLUMNS)
        each = f"{show_quantity(total.energy_per_inference_j, 'J')} an inference; " if total.batch > 1 else ""
        overhead = f"{show_share(total.overhead_fraction)} of energy goes to {OVERHEAD}"
        rate, peak = show_quantity(total.attained_ops_per_s, "ops/s"), show_quantity(total.peak_ops_per_s, "ops/s")
        bandwidth = show_quantity(total.memory_bandwidth_bytes_per_s, "B/s")
        watts = f"{show_quantity(total.static_power_w, 'W')} static, cap {show_quantity(total.tdp_w, 'W')}"
        kernels = f"{total.subgraph_count} subgraphs, {total.operator_count} operators, {total.kernel_count} kernels"
        memory = f"weights {_bytes(total.weight_bytes)}, activations {_bytes(total.activation_bytes)}"
        capacity = f"fits: {show_share(total.memory_fraction)} of {_bytes(total.memory_capacity_bytes)}"
        used = f"{show(total.tile_count, 'tile_count')} tiles in {show(total.wave_count, 'wave_count')} waves"
        if total.wave_fill_fraction is not None:
            used += f", filled to {show_share(total.wave_fill_fraction)}"
        if total.padding_fraction is not None:
            used += f"; padding {show_share(total.padding_fraction)} of the MAC slots"
        moved = f"{_bytes(total.dram_bytes)} moved at {bandwidth}"
        return Grid(
            headings=("quantity", "value", "in detail"),
            energies={(0, 1): EnergyCell("energy_j", total.run_id, total.energy_j)},
            rows=(
                ("energy", show_quantity(total.energy_j, "J"), each + parts),
                ("overhead", show_quantity(total.overhead_energy_j, "J"), overhead),
                ("latency", show_quantity(total.latency_s, "s"), kernels),
                ("throughput", show_quantity(total.throughput_per_s, "1/s"), _pace(total)),
                ("energy x delay", show_quantity(total.edp_js, "Js"), ""),
                ("average power", show_quantity(total.average_power_w, "W"), watts),
                (
                    "clock",
                    show_share(total.clock_fraction),
                    f"of the full one: {show_quantity(total.clock_hz, 'Hz')}, voltage factor "
                    f"{total.voltage_factor:.3f}",
                ),
                ("compute", show_share(total.compute_utilization_fraction), f"{rate} of {peak}"),
                ("bandwidth", show_share(total.bandwidth_utilization_fraction), moved),
                ("units", f"{total.units_used_count}/{total.units_total_count} {total.unit_name}s", used),
                ("memory", _bytes(total.peak_memory_bytes), f"{memory}; {capacity}"),
            ),
        )

    def _bottlenecks(self) -> Grid:
        return grid(
            self.bottlenecks,
            (
                ("bound by", "bottleneck"),
                ("subgraphs", "subgraph_count"),
                ("time", "latency_s"),
                ("of time", "latency_fraction"),
                ("energy", "energy_j"),
                ("of energy", "energy_fraction"),
                ("own time in all", "busy_s"),
            ),
        )

    def _parts(self, by: RunDivision, limit: int) -> Grid:
        """Return a grid with one row for the run and one for each of its largest parts."""
        columns, total = COLUMNS[by], self.total
        own = {column.name: (getattr(total, column.name), column.unit) for column in self.totals.columns}
        own |= {name: (value, "") for name, value in WHOLE.items()} | {"kind_count": (len(self.actions), "")}
        empty = (None, "")
        told = ((what, *own.get(what, empty)) if isinstance(what, str) else what for _, what in columns)
        run = [show(one[1], one[0], one[2]) if isinstance(one, tuple) else one(total) for one in told]
        rows = self.rows(by)
        largest = sorted(range(len(rows)), key=lambda place: -rows[place].energy_fj)[:limit]
        shown = attrs.evolve(rows, rows=tuple(rows[place] for place in sorted(largest)))
        return grid(shown, columns, first=(run,), keep=KEEP)

    def _tree(self, limit: int) -> Grid:
        """Return a tree of the run, its categories and their large actions."""
        large = sorted(self.actions, key=lambda row: -row.energy_fj)[:limit]
        energy = show_quantity(self.total.energy_j, "J")
        rows = [("run", energy, show_share(1.0), "", "", "", "")]
        for category in self.categories:
            energy = show_quantity(category.energy_j, "J")
            rows.append((f"  {category.category}", energy, show_share(category.share_fraction), "", "", "", ""))
            rows += [_branch(row) for row in large if row.category == category.category]
        headings = ("action", "energy", "of energy", "count", "per", "energy of one", "basis")
        return Grid(headings=headings, rows=tuple(rows), is_tree=True, keep=headings[1:4])

    def _events(self) -> Grid:
        """Return a tree of components, their events and the parts of each event."""
        headings = ("event", "count", "per", "share", "energy", "of energy", "energy of one")
        return Grid(headings=headings, rows=tuple(self._under(_tell_event, len(headings))), is_tree=True)

    def _under(self, tell: Callable[[EventCount], tuple[str, ...]], width: int) -> Iterator[tuple[str, ...]]:
        """Yield a row for each component, followed by the rows that `tell` makes of its events."""
        for component, found in itertools.groupby(self.events, lambda event: event.component):
            yield component, *("",) * (width - 1)
            depths = {"": 0}
            for row in found:
                depths[row.event] = depths.get(row.part_of or "", 0) + 1
                yield "  " * depths[row.event] + row.event, *tell(row)

    def _proof(self, by: RunDivision) -> Text:
        """Return the sentence that checks the sum of the rows against the run."""
        rows, total = self.rows(by), self.total
        sums = [(sum(row.energy_fj for row in rows), total.energy_fj, "fJ")]
        if by in ("subgraph", "operator"):
            sums.append((sum(row.latency_fs for row in rows), total.latency_fs, "fs"))
        return prove("categories" if by == "category" else f"{by}s", "the run", *sums)

    def notes(self) -> list[str]:
        """Return notes on this run: clock, assumptions and other caveats."""
        total = self.total
        lines = []
        if total.clock_fraction < 1.0:
            lines.append(
                f"the power cap of {show_quantity(total.tdp_w, 'W')} lowers the clock to "
                f"{show_quantity(total.clock_hz, 'Hz')}, {show_share(total.clock_fraction)} of the full one, in steady "
                f"state, and the energy of an action on the chip to {show_share(total.voltage_factor)} of that at its "
                f"highest voltage: at the full clock the run would draw {show_quantity(total.uncapped_power_w, 'W')}, "
                f"{show_quantity(total.static_power_w, 'W')} of it static"
            )
        if total.assumed_energy_fraction:
            share = show_share(total.assumed_energy_fraction)
            lines.append(f"{share} of the energy rests on assumed prices; each action has its basis")
        lines += describe_recalled(total.recalled_energy_fraction, total.hardware)
        return lines + self.scope.describe()

    def _steps(self, by: RunDivision, repeated: Sequence[str]) -> list[list[str]]:
        total, every = self.total, get_args(RunDivision)
        deeper = every[(every.index(by) + 1) % len(every)]
        return [
            ["analyze", total.model, self.scope.spell(total.hardware), "--level", deeper, *repeated],
            ["compare", total.model, *repeated],
            ["query", "run", "edp.distribution", "-p", f"run_id={total.run_id}", *find_place(repeated)],
        ]


def analyze(
    source: Source, model: str, hardware: str | Hardware, settings: Settings = SETTINGS, *, subgraph: str = ""
) -> AnalyzeAnswer:
    """Break down one run by category, action, subgraph and operator, with time, memory and bottlenecks.

    `subgraph` limits the events to one subgraph. Raises as `compare`; UnknownNameError for a subgraph that the model
    does not have; UsageError for a folder with several hardware; UnsupportedError with the reason if the hardware
    cannot run the configuration, for example for lack of a precision or of memory.
    """
    settings.check_single("analyze")
    plan = plan_selected((model,), settings, select_one(hardware, settings))
    with holding_scope(source, plan) as (scope, connection, (run_id,)):
        if subgraph and subgraph not in (known := find_subgraphs(connection, [run_id])):
            raise UnknownNameError("subgraph", subgraph, known)
        events = start(connection, EventCount, run_id=run_id, subgraph=subgraph)
        found = fetch_tables(connection, AnalyzeAnswer, ("events",), run_id=run_id, run_ids=[run_id])
        return AnalyzeAnswer(scope=scope, subgraph=subgraph, **found, events=events())


def _pace(total: RunTotal) -> str:
    """Return how successive batches overlap, and what limits their rate."""
    if not overlaps(total.interval_s, total.latency_s):
        return "one batch after the other"
    every = show_quantity(total.interval_s, "s")
    return f"a batch every {every}, before another has ended; limited by {total.throughput_limit}"


def _branch(row: ActionShare) -> tuple[str, str, str, str, str, str, str]:
    count = show_amount(row.action_count, row.per)
    return (
        f"    {row.component}.{row.action}",
        show_quantity(row.energy_j, "J"),
        show_share(row.share_fraction),
        count,
        "" if count.endswith(row.per) else row.per,
        show_price(row.energy_per_action_j, row.per),
        row.basis,
    )


def _tell_event(row: EventCount) -> tuple[str, ...]:
    return (
        show_quantity(row.event_count, "") if row.event_count >= 1.0 else show_plain(row.event_count),
        row.per,
        show_share(row.share_fraction),
        show_quantity(row.energy_j, "J"),
        show_share(row.run_fraction),
        show_quantity(row.energy_per_event_j, "J"),
    )


def _bytes(value: float) -> str:
    return show_quantity(value, "B")
