"""Break down one run: energy and latency, bottlenecks, and the energy of each part."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, get_args

import attrs

from joulemap.answer.part.part import FACTS, PLURALS, PartsAnswer
from joulemap.ask.answer import fetch_tables
from joulemap.ask.fact import Facts
from joulemap.ask.part import find_analysis, opening_parts
from joulemap.domain.default import SETTINGS
from joulemap.domain.settings import RunDivision, Settings
from joulemap.domain.table import Table
from joulemap.generated.analyze import (
    ActionShare,
    BottleneckShare,
    CategoryShare,
    EventCount,
    OperatorShare,
    RunTotal,
    SubgraphRoof,
    SubgraphShare,
)
from joulemap.generated.report import EnergyLeaf
from joulemap.plan.source import Source
from joulemap.show.layout import fill_cells, lay_facts, lay_lines
from joulemap.show.page import Drawings, Figures
from joulemap.show.part import (
    NO_ROOF,
    ROOF_CAPTION,
    TREE_ACTION,
    TREE_CAPTION,
    describe_ranges,
    describe_run,
    list_reasons,
)
from joulemap.show.present.category import OVERHEAD, name_category
from joulemap.show.present.cell import (
    name_unit,
    show,
    show_amount,
    show_count,
    show_plain,
    show_price,
    show_quantity,
    show_units,
)
from joulemap.show.present.document import Document, Grid, Section, Text, show_under
from joulemap.show.present.picture import Picture
from joulemap.show.present.template import Template
from joulemap.show.run import find_conditions, overlaps, title_run
from joulemap.show.title import bind
from joulemap.store.query import start
from joulemap.system.record import frozen
from joulemap.system.units import FJ_PER_J

if TYPE_CHECKING:
    from joulemap.ask.check import CheckedRow
    from joulemap.domain.figure import DrawingName
    from joulemap.physics.record.hardware import Hardware
    from joulemap.show.figure.figure import Figure


PARTS: Final = ("compute", "memory", "control", "static")
"""Parts that an energy is divided into, in column order."""

BY_PART: Final = " | ".join(f"{part} {part}_energy_j" for part in PARTS)
"""Columns with the energy of each part, in the syntax of `lay`."""

RUN_TABLE: Final = Template("Energy by {by}")
EVENT_TABLE: Final = Template("Events[ of {subgraph}]")
ALL_ROWS: Final = Template("{title}, all rows")

RUN_COLUMNS: Final[Mapping[RunDivision, str]] = {
    "category": "*category | common categories common_categories | parts | actions kind_count | *energy energy_j | "
    "*energy share share_fraction | largest action largest_action | share of category largest_action_fraction",
    "subgraph": f"# subgraph_index | *subgraph name | pattern fusion_pattern | *energy energy_j | {BY_PART} | "
    "*energy share share_fraction | *latency latency_s | *time share latency_fraction | *bottleneck | units | "
    "tiles tile_count | waves wave_count | wave fill wave_fill_fraction | padding padding_fraction | "
    "*utilization compute_utilization_fraction | bandwidth bandwidth_utilization_fraction | extra passes pass_bytes",
    "operator": f"# operator_index | *operator name | kind | subgraph subgraph_index | *energy energy_j | {BY_PART} | "
    "*energy share share_fraction | *latency latency_s | *time share latency_fraction | "
    "*EDP share edp_share_fraction | fused is_fused | unfused energy separate_energy_j | "
    "unfused latency separate_latency_s | energy saved saved_energy_j | latency saved saved_latency_s | "
    "bias elements bias_element_count | off-chip traffic dram_bytes | extra passes pass_bytes",
}
ACTION_TREE: Final = "action | energy | share | count | per | energy each | basis"
OTHER_CATEGORY: Final = ("other category", "other categories")
ACTION_ALONE: Final = (
    "  {category}: {component}.{action} | {energy_j:J} | {share_fraction:%} | {count} | {unit} | {price} | {basis}"
)
ACTION_LINE: Final = (
    "    {component}.{action} | {energy_j:J} | {share_fraction:%} | {count} | {unit} | {price} | {basis}"
)
EVENT_TREE: Final = "event | count | per | share of parent | energy | energy share | energy each"
EVENT_LINE: Final = (
    "{indent}{event} | {count} | {per} | {share_fraction:%} | {energy_j:J} | {run_fraction:%} | {energy_per_event_j:J}"
)
FACTS_TABLE: Final = "Performance"
RUN_FACTS: Final = (
    "energy | {energy_j:J} | [{each:J} per inference; ]compute {compute_energy_j:J}, memory {memory_energy_j:J}, "
    "control and losses {control_energy_j:J}, static {static_energy_j:J}",
    "overhead | {overhead_energy_j:J} | {overhead_fraction:%} of the energy: {overhead}",
    "latency | {latency_s:s} | {subgraph_count} subgraphs, {operator_count} operators, {kernel_count} kernels",
    "throughput | {throughput_per_s:1/s} | {pace}",
    "energy x delay | {edp_js:Js}",
    "average power | {average_power_w:W} | static {static_power_w:W}, power cap {tdp_w:W}",
    "clock | {clock_hz:Hz} | {clock_fraction:%} of the full clock; energy per action {voltage_factor:%} of that at the "
    "highest voltage",
    "compute utilization | {compute_utilization_fraction:%} | {attained_ops_per_s:ops/s} of {peak_ops_per_s:ops/s}",
    "bandwidth utilization | {bandwidth_utilization_fraction:%} | "
    "{dram_bytes:B} moved; the memory has {memory_bandwidth_bytes_per_s:B/s}",
    "units | {units_used_count}/{units_total_count} {unit_name}s | {tiles} tiles in {waves} waves"
    "[, {wave_fill_fraction:%} filled][; padding {padding_fraction:%} of the MAC slots]",
    "memory | {peak_memory_bytes:B} | weights {weight_bytes:B}, activations {activation_bytes:B}; "
    "{memory_fraction:%} of {memory_capacity_bytes:B}",
)
OVERLAPPING: Final = Template("batches overlap: one every {interval_s:s}, limited by {throughput_limit}")
BOTTLENECK_TABLE: Final = "Bottlenecks"
BOTTLENECKS: Final = (
    "bottleneck | subgraphs subgraph_count | time latency_s | time share latency_fraction | energy energy_j | "
    "energy share energy_fraction | such time in all subgraphs (overlapping) busy_s"
)
RUN_STEPS: Final = (
    Template("analyze {model} {hardware} --level {deeper}"),
    Template("compare {model}"),
    Template("query run edp.distribution -p run_id={run_id}"),
)

NAMED_ACTIONS: Final = 3
"""Maximum actions named in a caption."""


def draw_tree(leaves: Table[EnergyLeaf], subject: str) -> Figure:
    """Return a figure of a run's energy as a tree of categories, actions and subgraphs."""
    from joulemap.show.figure.figure import make_figure

    return make_figure("tree", leaves, subject, _describe_actions(leaves))


def draw_roof(roofs: Table[SubgraphRoof], subject: str) -> Figure:
    """Return the roofline figure of a run's subgraphs."""
    from joulemap.show.figure.figure import make_figure

    return make_figure("roofline", roofs, subject, _describe_roof(list(roofs)))


def _describe_actions(leaves: Iterable[EnergyLeaf]) -> str:
    amounts: dict[str, int] = {}
    for leaf in leaves:
        amounts[leaf.action] = amounts.get(leaf.action, 0) + leaf.energy_fj
    whole = sum(amounts.values())
    largest = sorted(amounts.items(), key=lambda item: (-item[1], item[0]))[:NAMED_ACTIONS]
    named = [TREE_ACTION(action=action, share=amount / whole) for action, amount in largest if whole]
    return TREE_CAPTION(energy=whole / FJ_PER_J, actions=named) if named else ""


def _describe_roof(roofs: list[SubgraphRoof]) -> str:
    drawn = [row for row in roofs if row.roofline_fraction is not None and row.attained_ops_per_s > 0.0]
    if not drawn:
        return NO_ROOF
    below = sum((row.dram_intensity_ops_per_byte or row.ridge_ops_per_byte) < row.ridge_ops_per_byte for row in drawn)
    return ROOF_CAPTION(
        below=below,
        drawn=len(drawn),
        nearest=max(drawn, key=lambda row: row.roofline_fraction or 0.0),
        longest=max(drawn, key=lambda row: row.latency_s),
        within=sum(row.dram_intensity_ops_per_byte is None for row in drawn) or None,
        missing=len(roofs) - len(drawn) or None,
    )


SHOWN: Final = 5
"""Default number of rows per table."""


@frozen(kw_only=True)
class AnalyzeAnswer(PartsAnswer):
    """Breakdown of one run. Categories, actions, subgraphs and operators each sum to the energy of the run exactly."""

    totals: Table[RunTotal]
    """Totals of the run; one row."""
    categories: Table[CategoryShare]
    """Energy of each category, largest first."""
    actions: Table[ActionShare]
    """Energy of each action by category, largest first."""
    subgraphs: Table[SubgraphShare]
    """Energy and time of each subgraph, in execution order."""
    operators: Table[OperatorShare]
    """Energy and time of each operator, in execution order."""
    bottlenecks: Table[BottleneckShare]
    tree: Table[EnergyLeaf]
    """Energies by common category and action; each action lists the subgraphs with the most energy."""
    roofline: Table[SubgraphRoof]
    """Arithmetic intensity and throughput of each subgraph, in execution order."""
    events: Table[EventCount]
    """Counts of instructions, cache lines, tiles and other events, in the order of the class file."""
    subgraph: str
    """Subgraph that the events belong to; empty for the whole run."""
    facts: Facts
    """Values, largest parts, limits and caveats, from which all sentences are made."""

    @property
    def checked(self) -> Sequence[CheckedRow]:
        """The analyzed run."""
        return self.totals.rows

    @property
    def total(self) -> RunTotal:
        """Totals of the whole run."""
        return self.totals[0]

    def rows(self, by: RunDivision) -> Table[Any]:
        """Return the table of one division, such as categories or subgraphs."""
        return self.own_tables[PLURALS[by]]

    def data(self) -> dict[str, Any]:
        """Return the data for machine formats, including the name of the selected subgraph."""
        return {**super().data(), "subgraph": self.subgraph or None}

    def document(self, *, by: RunDivision = "action", limit: int = SHOWN, repeated: Sequence[str] = ()) -> Document:
        """Return the document with the `limit` largest rows of the division; csv contains the division's rows."""
        total, divisions = self.total, get_args(RunDivision)
        first, *others = self._divided(by, limit)
        bottlenecks = self._lay(self.bottlenecks, BOTTLENECKS)
        return self._compose_facts(
            self.facts,
            (first,),
            self.rows(by),
            title=title_run(total, self.scope),
            answer=describe_run(self.facts, "batch" if total.batch > 1 else ""),
            reasons=list_reasons(self.facts),
            trust=describe_ranges(self.facts),
            details=(Section(FACTS_TABLE, self._facts()), Section(BOTTLENECK_TABLE, bottlenecks), *others),
            steps=self._fill_steps(
                RUN_STEPS,
                total,
                repeated,
                hardware=self.scope.spell(total.hardware),
                deeper=divisions[(divisions.index(by) + 1) % len(divisions)],
            ),
        )

    def figures(self) -> Figures:
        """Return the energy tree and the roofline of the run's subgraphs."""
        subject = bind(title_run(self.total, self.scope), find_conditions(self.scope))
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
        """Yield a section with the largest parts of a division, then one with all parts and the check of their sum.

        For events, a third section lists their formulas.
        """
        rows = self.rows(by)
        if by == "event":
            title, below = EVENT_TABLE(subgraph=self.subgraph), list[Text]()
            whole = self._lay_events(EVENT_TREE, EVENT_LINE)
            shown = attrs.evolve(whole, rows=whole.rows[: 2 * limit])
            shown = shown.out_of(len(whole.rows), 2 * limit, "rows", "--details")
        else:
            title, below = RUN_TABLE(by=by), [self._prove(PLURALS[by], rows, self.total)]
            whole, shown = self._parts(by, len(rows)), self._parts(by, limit)
            shown = shown.out_of(len(rows), limit, PLURALS[by])
        yield attrs.evolve(show_under("", shown), is_brief=bool(shown.cut))
        yield Section(ALL_ROWS(title=title), (whole, *below) if shown.cut else below)
        if by == "event":
            yield Section(
                "Formulas of the events",
                self._lay_events("event | formula | meaning", "{indent}{event} | {formula} | {meaning}"),
            )

    def _facts(self) -> Grid:
        total = self.total
        return lay_facts(
            FACTS,
            RUN_FACTS,
            total,
            each=total.energy_per_inference_j if total.batch > 1 else None,
            overhead=OVERHEAD,
            pace=OVERLAPPING(total) if overlaps(total.interval_s, total.latency_s) else "one batch after the other",
            tiles=show(total.tile_count, "tile_count"),
            waves=show(total.wave_count, "wave_count"),
        )

    def _parts(self, by: RunDivision, limit: int) -> Grid:
        """Return a grid of the run and its largest parts; actions are listed below their category."""
        if by == "action":
            return self._tree(limit)
        return self._lay_largest(
            self.rows(by),
            RUN_COLUMNS[by],
            self.total,
            limit,
            kind_count=lambda row: str(row.kind_count if row.kind_count is not None else len(self.actions)),
            units=lambda row: show_units(row.units_used_count, row.units_total_count, row.unit_name),
        )

    def _tree(self, limit: int) -> Grid:
        """Return a grid of the run, its largest actions below their common categories, and the other categories
        together. A category of one action shares its row.
        """
        whole = self.total.energy_fj or 1
        large = sorted(self.actions, key=lambda row: -row.energy_fj)[:limit]
        named = {row.common_category for row in large}
        groups: dict[str, list[ActionShare]] = {}
        for row in self.actions:
            groups.setdefault(row.common_category, []).append(row)
        sums = {name: sum(row.energy_fj for row in rows) for name, rows in groups.items()}
        lines, amounts = [fill_cells("run | {energy_j:J} | {whole:%}", self.total, whole=1.0)], [whole]
        for name in sorted(named, key=lambda name: (-sums[name], name)):
            given = {"category": name_category(name)}
            is_alone = len(groups[name]) == 1
            if not is_alone:
                energy = {"energy_j": sums[name] / FJ_PER_J, "share": sums[name] / whole}
                lines.append(fill_cells("  {category} | {energy_j:J} | {share:%}", None, **given, **energy))
                amounts.append(sums[name])
            for row in (row for row in large if row.common_category == name):
                count, price = show_amount(row.action_count, row.per), show_price(row.energy_per_action_j, row.per)
                unit = "" if count.endswith(row.per) else name_unit(row.per)
                line = ACTION_ALONE if is_alone else ACTION_LINE
                lines.append(fill_cells(line, row, count=count, unit=unit, price=price, **given))
                amounts.append(row.energy_fj)
        if others := groups.keys() - named:
            rest = sum(sums[name] for name in others)
            energy = {"energy_j": rest / FJ_PER_J, "share": rest / whole}
            counted = show_count(len(others), *OTHER_CATEGORY)
            lines.append(fill_cells("  {named} | {energy_j:J} | {share:%}", None, named=counted, **energy))
            amounts.append(rest)
        drawn = Picture(kind="share", after="share", rows=tuple((one / whole,) for one in amounts))
        return lay_lines(ACTION_TREE, lines, keep="energy | share | count", is_tree=True, pictures=(drawn,))

    def _lay_events(self, headings: str, line: str) -> Grid:
        """Return a tree of components and their events; an event that is part of another is indented below it."""
        lines: list[tuple[str, ...]] = []
        for component, events in itertools.groupby(self.events, lambda event: event.component):
            lines.append((component,))
            depths = {"": 0}
            for row in events:
                depths[row.event] = depths.get(row.part_of or "", 0) + 1
                count = show_quantity(row.event_count, "") if row.event_count >= 1.0 else show_plain(row.event_count)
                lines.append(fill_cells(line, row, indent="  " * depths[row.event], count=count))
        return lay_lines(headings, lines, is_tree=True)


def analyze(
    source: Source, model: str, hardware: str | Hardware, settings: Settings = SETTINGS, *, subgraph: str = ""
) -> AnalyzeAnswer:
    """Break down one run by category, action, subgraph and operator, with time, memory and bottlenecks.

    `subgraph` limits the events to one subgraph. Raises like `compare`; UnknownNameError for a subgraph that the model
    does not have; UsageError for a folder with several chips; UnsupportedError with the reason if the hardware
    cannot run the configuration, for example for lack of a precision or of memory.
    """
    with opening_parts(source, "analyze", model, hardware, settings, subgraph=subgraph) as scope:
        connection, run_id = scope.connection, scope.run_ids[0]
        events = start(connection, EventCount, run_id=run_id, subgraph=subgraph)
        tables = fetch_tables(connection, AnalyzeAnswer, ("events",), run_id=run_id, run_ids=[run_id])
        (total,) = tables["totals"]
        facts = find_analysis(scope, total, tables["actions"], tables["bottlenecks"], tables["subgraphs"].rows)
        return AnalyzeAnswer(scope=scope, subgraph=subgraph, **tables, events=events(), facts=facts)
