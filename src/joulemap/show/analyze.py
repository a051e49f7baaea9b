"""Words and tables of runs divided into parts: one run by every division, and the energy inside each part."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

import attrs

from joulemap.ask.analyze import PLURALS, AnalyzeAnswer, PartAnswer, name_part
from joulemap.ask.cause import RESIDUAL, STATIC
from joulemap.ask.fact import Entry
from joulemap.domain.column import Col
from joulemap.domain.settings import Division, PartLevel, RunDivision
from joulemap.domain.table import Table, group
from joulemap.generated.analyze import (
    BottleneckShare,
    CategoryShare,
    OperatorShare,
    StaticShare,
    SubgraphRoof,
    SubgraphShare,
)
from joulemap.generated.breakdown import PartAction, PartCategory
from joulemap.generated.report import EnergyLeaf
from joulemap.show.choice import MOST_WHY, describe_beyond, finish
from joulemap.show.column import alter, lay_columns, show_table
from joulemap.show.fact import tell
from joulemap.show.layout import fill_cells, lay_facts, lay_lines
from joulemap.show.page import (
    Asked,
    Drawings,
    Figures,
    Page,
    compose_runs,
    draw_figure,
    fill_steps,
    first_and_rest,
    sketch,
    tell_left_out,
)
from joulemap.show.part import describe_parts, describe_ranges
from joulemap.show.present.category import OVERHEAD, name_bound, name_category
from joulemap.show.present.cell import (
    AMOUNTS,
    mark_projected,
    name_unit,
    show,
    show_amount,
    show_count,
    show_plain,
    show_price,
    show_quantity,
    show_share,
    show_units,
)
from joulemap.show.present.document import Document, Grid, Section
from joulemap.show.present.picture import Picture
from joulemap.show.present.template import Template
from joulemap.show.run import find_conditions, overlaps, prove_parts, title_run, title_runs
from joulemap.show.title import bind
from joulemap.system.units import FJ_PER_J

if TYPE_CHECKING:
    from joulemap.domain.figure import DrawingName
    from joulemap.show.figure.figure import Figure

TREE_CAPTION: Final = Template("Largest actions of {energy:J}: {actions:list}.")
TREE_ACTION: Final = Template("{action} {share:%}")
ROOF_CAPTION: Final = Template(
    "{below} of {drawn:n subgraph} have their roof set by memory bandwidth; {nearest.name} comes nearest to its roof, "
    "at {nearest.roofline_fraction:%}; {longest.name} takes longest and reaches {longest.roofline_fraction:%} of its "
    "roof ({longest.bottleneck}-bound)[; {within:n subgraph} without off-chip traffic]"
    "[; {missing:n subgraph} without MACs not drawn]."
)

RUN_ROW: Final = {"category": "run", "name": "run"} | dict.fromkeys(
    ("energy_fraction", "latency_fraction", "edp_share_fraction"), 1.0
)
"""Column -> value in the row that stands for the whole run, above the rows of its parts."""

ACTION_TREE: Final = "action | energy | share | count | per | energy each | basis"
NODE: Final = "{name} | {energy_j:J} | {share:%}"
OTHER_CATEGORY: Final = ("other category", "other categories")
EVENT_TREE: Final = "event | count | per | share of parent | energy | energy share | energy each"
EVENT: Final = (
    "{indent}{event} | {count} | {per} | {event_fraction:%} | {energy_j:J} | {run_fraction:%} | {energy_per_event_j:J}"
)
FORMULA: Final = "{indent}{event} | {formula} | {meaning}"
OVERLAPPING: Final = Template("batches overlap: one every {interval_s:s}, limited by {throughput_limit}")

LEAST_USE: Final = 0.1
"""Share of the compute peak below which compute limits a run only because its kernels have too few tiles."""

FEW_TILES: Final = "too few tiles"
LEAST_FEW: Final = 0.5
"""Minimum number of kernels per wave with which their tiles are few."""
LEAST_IDLE: Final = 0.05
"""Minimum share of idle units, and of a run's energy in the last waves of kernels, if a larger batch is advised."""

NAMED_ACTIONS: Final = 3
"""Maximum actions named in a caption."""

WHOLE: Final = "all"
OF_RUNS: Final = "the runs"
LARGEST_PART: Final = Template("{largest}, {share:%}")
KINDS: Final[Mapping[PartLevel, str]] = {"subgraph": "pattern", "operator": "kind"}
PART_STEPS: Final = (
    Template("[analyze {model} {largest} --subgraph {largest_part} --by action]"),
    Template("[analyze {model} {hardware} --level operator --subgraph {part} --by category]"),
    Template("[explain {model} {hardware} {other} --level subgraph][ --subgraph {pair_part}]"),
)
ON_HARDWARE: Final = Template("on {hardware:list}")
OF_SUBGRAPH: Final = Template("subgraph {subgraph}")
INSIDE_TABLE: Final = Template("Energy of {subgraph} by {by}[, {model}]")
PARTS_TABLE: Final = Template("Largest {level}s[, {model}]")

SHOWN_ROWS: Final = 200
"""Maximum rows in the detailed table for display; machine formats contain all rows."""

Rows = Sequence[PartCategory | PartAction]
Cause = TypeVar("Cause", PartCategory, PartAction)
Part = TypeVar("Part", CategoryShare, SubgraphShare, OperatorShare)


def draw_tree(leaves: Table[EnergyLeaf], subject: str) -> Figure:
    """Return a figure of a run's energy as a tree of categories, actions and subgraphs."""
    from joulemap.show.figure.figure import make_figure

    amounts = Counter[str]()
    for leaf in leaves:
        amounts[leaf.action] += leaf.energy_fj
    whole, largest = amounts.total(), amounts.most_common(NAMED_ACTIONS)
    named = [TREE_ACTION(action=action, share=amount / whole) for action, amount in largest if whole]
    caption = TREE_CAPTION(energy=whole / FJ_PER_J, actions=named) if named else ""
    return make_figure("tree", leaves, subject, caption)


def draw_roof(roofs: Table[SubgraphRoof], subject: str) -> Figure:
    """Return the roofline figure of a run's subgraphs."""
    from joulemap.show.figure.figure import make_figure

    return make_figure("roofline", roofs, subject, _describe_roof(list(roofs)))


def _describe_roof(roofs: list[SubgraphRoof]) -> str:
    drawn = [row for row in roofs if row.roofline_fraction is not None and row.attained_ops_per_s > 0.0]
    if not drawn:
        return "No subgraph multiplies."
    below = sum((row.dram_intensity_ops_per_byte or row.ridge_ops_per_byte) < row.ridge_ops_per_byte for row in drawn)
    return ROOF_CAPTION(
        below=below,
        drawn=len(drawn),
        nearest=max(drawn, key=lambda row: row.roofline_fraction or 0.0),
        longest=max(drawn, key=lambda row: row.latency_s),
        within=sum(row.dram_intensity_ops_per_byte is None for row in drawn) or None,
        missing=len(roofs) - len(drawn) or None,
    )


def draw_figures(answer: AnalyzeAnswer) -> Figures:
    """Return the energy tree and the roofline of the run's subgraphs."""
    subject = bind(title_run(answer.total, answer.scope), find_conditions(answer.scope))
    return draw_tree(answer.tree, subject), draw_roof(answer.roofline, subject)


def find_division(asked: Division | None) -> RunDivision:
    """Return the division of a run that was asked for; the others are of other answers."""
    return next((one for one in PLURALS if one == asked), "action")


def sketch_division(answer: AnalyzeAnswer, asked: Division) -> Drawings:
    """Return text drawings: the selected division and, except for events, the roofline."""
    by = find_division(asked)
    named: dict[RunDivision, tuple[DrawingName, dict[str, str]]] = {
        "category": ("division", {"nouns": "categories", "label": "{category}"}),
        "action": ("division", {"nouns": "actions", "label": "{component}.{action}"}),
        "event": ("events", {"of": " of one subgraph" if answer.subgraph else ""}),
    }
    name, texts = named.get(by, ("execution", {}))
    drawn = sketch(name, answer.own_tables[PLURALS[by]], {"by": by, **texts})
    return (drawn,) if by == "event" else (drawn, sketch("roofline", answer.roofline))


def lay_division(answer: AnalyzeAnswer, by: RunDivision, most: int) -> Grid:
    """Return a grid with the `most` largest parts of a division, below the whole run."""
    if by == "event":
        whole = lay_events(answer, EVENT_TREE, EVENT)
        shown = attrs.evolve(whole, rows=whole.rows[: 2 * most])
        return shown.out_of(len(whole.rows), 2 * most, "rows")
    if by == "action":
        return lay_tree(answer, most).out_of(len(answer.actions), most, PLURALS[by])
    if by == "category":
        count = CategoryShare.kind_count.headed("actions").by(
            lambda row: str(row.kind_count if row.kind_count is not None else len(answer.actions))
        )
        return _lay_largest(answer, by, answer.categories, alter(CategoryShare.table, count), most)
    if by == "subgraph":
        units = SubgraphShare.units_used_count.headed("units").by(
            lambda row: show_units(row.units_used_count, row.units_total_count, row.unit_name)
        )
        return _lay_largest(answer, by, answer.subgraphs, alter(SubgraphShare.table, units), most)
    return _lay_largest(answer, by, answer.operators, OperatorShare.table, most)


def _lay_largest(
    answer: AnalyzeAnswer, by: RunDivision, rows: Table[Part], columns: Iterable[Col[Part]], most: int
) -> Grid:
    """Return a grid of the run and of the parts with the most energy, in the order of the table."""
    largest = sorted(range(len(rows)), key=lambda index: -rows[index].energy_fj)[:most]
    own = {name: RUN_ROW.get(name, getattr(answer.total, name, None)) for name in rows.names}
    shown = [rows[0].replace(**own)] + [rows[index] for index in sorted(largest)]
    return lay_columns(answer, rows.with_rows(shown), columns).out_of(len(rows), most, PLURALS[by])


def lay_tree(answer: AnalyzeAnswer, limit: int) -> Grid:
    """Return a grid of the run, its largest actions below their common categories, and the other categories together. A
    category of one action shares its row.
    """
    whole = answer.total.energy_fj or 1
    large = sorted(answer.actions, key=lambda row: -row.energy_fj)[:limit]
    groups = group(answer.actions, lambda row: row.common_category)
    sums = {name: sum(row.energy_fj for row in rows) for name, rows in groups.items()}
    lines, shares = [], []

    def add(name: str, energy_fj: int, *more: str) -> None:
        share = energy_fj / whole
        shares.append((share,))
        cells = fill_cells(NODE, None, name=name, energy_j=energy_fj / FJ_PER_J, share=share)
        lines.append((*cells, *more))

    add("run", whole)
    named = sorted({row.common_category for row in large}, key=lambda name: (-sums[name], name))
    for name in named:
        category, is_alone = f"  {name_category(name)}", len(groups[name]) == 1
        if not is_alone:
            add(category, sums[name])
        for row in (row for row in large if row.common_category == name):
            action = f"{row.component}.{row.action}"
            add(
                f"{category}: {action}" if is_alone else f"    {action}",
                row.energy_fj,
                show_amount(row.action_count, row.per),
                "" if row.per in AMOUNTS else name_unit(row.per),
                show_price(row.energy_per_action_j, row.per),
                row.basis,
            )
    if others := groups.keys() - {*named}:
        add(f"  {show_count(len(others), *OTHER_CATEGORY)}", sum(sums[name] for name in others))
    drawn = Picture(kind="share", after="share", rows=tuple(shares))
    return lay_lines(ACTION_TREE, lines, keep="energy | share | count", is_tree=True, pictures=(drawn,))


def lay_events(answer: AnalyzeAnswer, headings: str, line: str) -> Grid:
    """Return a tree of components and their events; an event that is part of another is indented below it."""
    lines: list[tuple[str, ...]] = []
    for component, events in itertools.groupby(answer.events, lambda event: event.component):
        lines.append((component,))
        depths = {"": 0}
        for row in events:
            depths[row.event] = depths.get(row.part_of or "", 0) + 1
            count = show_quantity(row.event_count, "") if row.event_count >= 1.0 else show_plain(row.event_count)
            lines.append(fill_cells(line, row, indent="  " * depths[row.event], count=count))
    return lay_lines(headings, lines, is_tree=True)


def describe_analysis(answer: AnalyzeAnswer) -> str:
    """Return the first line: energy and latency of the run, and what takes most of each."""
    facts = answer.facts
    energy, time, units = facts.share("energy", "category"), facts.share("time", "bottleneck"), facts.share("units")
    largest, limit = (one.name if one else "" for one in (energy, time))
    form = RUN
    if largest == STATIC and limit:
        has_idle = energy is not None and energy.share * find_unfilled(answer) >= LEAST_IDLE
        form = IDLE if has_idle else LAUNCHED if limit == "launch" else SHORTEN
    given = {
        "start": "" if largest in (RESIDUAL, STATIC) else START,  # nobody can act on a fitted residual
        "limit": find_few(answer) or name_bound(limit),
        "per": "batch" if answer.total.batch > 1 else "",
    }
    return finish([tell(form, facts.of(Entry)[0], facts, {"top": energy, "time": time, "units": units}, **given)])


def find_unfilled(answer: AnalyzeAnswer) -> float:
    """Return the largest share of the units' time that larger kernels could fill: each kernel's last wave."""
    total = answer.total
    is_full = total.units_used_count > (1.0 - LEAST_IDLE) * total.units_total_count
    return 0.0 if is_full else total.kernel_count / max(1.0, total.wave_count)


def find_few(answer: AnalyzeAnswer) -> str:
    """Return that kernels have too few tiles, if that is why compute attains so little; otherwise an empty text."""
    facts = answer.facts
    limits = [one.name for one in facts.shares("time", "bottleneck")[:1]]
    is_slow = limits == ["compute"] and any(one.share < LEAST_USE for one in facts.shares("compute"))
    return FEW_TILES if is_slow and find_unfilled(answer) >= LEAST_FEW else ""


def list_reasons(answer: AnalyzeAnswer) -> list[str]:
    """Return lines on why: how busy the chip is, the largest subgraph, and energy that computes nothing."""
    facts = answer.facts
    busy = "".join(tell(UNITS, one, facts, few=find_few(answer)) for one in facts.shares("units"))
    beside, largest = {"bandwidth": facts.share("bandwidth")}, {"time": facts.share("time", "subgraph")}
    return [
        *describe_beyond(facts),
        *(tell(BUSY, one, facts, beside, busy=busy) for one in facts.shares("compute")),
        *(tell(CLOCKS, one, facts) for one in facts.shares("energy", "static")),
        *(tell(LARGEST, one, facts, largest) for one in facts.shares("energy", "subgraph")),
        *(tell(OVER, one, facts) for one in facts.shares("energy", "overhead")),
    ]


START: Final = "Start with "
RUN: Final = Template(
    "[{start}{top_name:category}, {top_share:%} of the energy: ]{run} uses {energy} and takes {latency}[ per {per}]"
    "[, {time_share:%} limited by {limit}]"
)
SPENT: Final = "static power is {top_share:%} of the {energy} that {run} uses[ per {per}] in {latency}"
"""Static power, which only a shorter time or more work at a time lowers."""
RAISE: Final = "Raise the batch: "
IDLE: Final = Template(f"{RAISE}{SPENT}, with {{units_count}} of {{units_total}} {{units_name}}s busy")
LAUNCHED: Final = Template(f"{RAISE}{SPENT}, {{time_share:%}} limited by {{limit}}")
SHORTEN: Final = Template(f"Cut {{limit}} time: {SPENT}, {{time_share:%}} limited by {{limit}}")
BUSY: Final = Template("[{busy}; ]{share:%} of compute peak, {bandwidth_share:%} of off-chip bandwidth")
UNITS: Final = Template("{count} of {total} {name}s busy[ ({few})]")
LARGEST: Final = Template("{name}, largest of {total:n subgraph}: {share:%} of the energy, {time_share:%} of the time")
OVER: Final = Template(f"{OVERHEAD}: {{share:%}} of the energy")
CLOCKS: Final = Template("clocks that run, a part of static power: {share:%} of the energy")

STEPS: Final = (
    Template("analyze {model} {hardware} --level {deeper}"),
    Template("compare {model}"),
    Template("query run edp.distribution -p run_id={run_id}"),
)
FIGURES: Final = (
    "energy | {energy_j:J} | [{each:J} per inference; ]compute {compute_energy_j:J}, "
    "memory {memory_energy_j:J}, control and losses {control_energy_j:J}, static {static_energy_j:J}",
    "overhead | {overhead_energy_j:J} | {overhead_fraction:%} of the energy: {overhead}",
    "latency | {latency_s:s} | {subgraph_count} subgraphs, {operator_count} operators, {kernel_count} kernels",
    "throughput | {throughput_per_s:1/s} | {pace}",
    "energy x delay | {edp_js:Js}",
    "average power | {average_power_w:W} | static {static_power_w:W}, power cap {tdp_w:W}",
    "clock | {clock_hz:Hz} | {clock_fraction:%} of the full clock; energy per action {voltage_factor:%} of that at the "
    "highest voltage",
    "compute utilization | {compute_utilization_fraction:%} | {attained_ops_per_s:ops/s} of {peak_ops_per_s:ops/s}",
    "bandwidth utilization | {bandwidth_utilization_fraction:%} | {dram_bytes:B} moved; the memory has "
    "{memory_bandwidth_bytes_per_s:B/s}",
    "units | {units_used_count}/{units_total_count} {unit_name}s | {tiles} tiles in {waves} waves"
    "[, {wave_fill_fraction:%} filled][; padding {padding_fraction:%} of the MAC slots]",
    "memory | {peak_memory_bytes:B} | weights {weight_bytes:B}, activations {activation_bytes:B}; "
    "{memory_fraction:%} of {memory_capacity_bytes:B}",
)


def list_details(answer: AnalyzeAnswer, by: RunDivision) -> Iterator[list[Section]]:
    """Yield the tables behind that of the division: figures of the run, bottlenecks, and formulas of the events."""
    total = answer.total
    figures = lay_facts(
        "quantity | value | detail",
        FIGURES,
        total,
        each=total.energy_per_inference_j if total.batch > 1 else None,
        overhead=OVERHEAD,
        pace=OVERLAPPING(total) if overlaps(total.interval_s, total.latency_s) else "one batch after the other",
        tiles=show(total.tile_count, "tile_count"),
        waves=show(total.wave_count, "wave_count"),
    )
    yield [Section("Performance", (figures, prove_parts("actions", answer.actions, total)))]
    yield show_table(answer, "Bottlenecks", answer.bottlenecks, BottleneckShare.table)
    yield show_table(answer, "Static power", answer.static_parts, StaticShare.table)
    if by == "event" and answer.events:
        yield [Section("Formulas of the events", lay_events(answer, "event | formula | meaning", FORMULA))]


def draw_run(answer: AnalyzeAnswer, asked: Asked) -> Document:
    """Return the document of a run by one division."""
    total, divisions = answer.total, tuple(PLURALS)
    by = find_division(asked.by)
    table = answer.own_tables[PLURALS[by]]
    division = [Section("", lay_division(answer, by, asked.most(5)), is_tight=True)] if table else []
    first, rest = first_and_rest([division, *list_details(answer, by)])
    deeper = dict(itertools.pairwise(divisions + divisions[:1]))[by]
    return compose_runs(
        answer,
        answer.facts,
        first,
        table,
        title=title_run(total, answer.scope),
        headline=describe_analysis(answer),
        reasons=list_reasons(answer)[:MOST_WHY],
        trust=describe_ranges(answer.facts),
        details=rest,
        steps=fill_steps(STEPS, total, asked.repeated, hardware=answer.scope.spell(total.hardware), deeper=deeper),
    )


def list_runs(answer: PartAnswer) -> list[Rows]:
    """Return the rows of each run that has some, in the order of the runs."""
    runs = ([row for row in answer.rows.rows if row.run_id == one] for one in answer.scope.evaluated_ids)
    return [rows for rows in runs if rows]


def _name(answer: PartAnswer, rows: Rows) -> str:
    return mark_projected(rows[0].hardware, answer.projected)


def show_models(answer: PartAnswer, most: int) -> Iterator[Section]:
    """Yield the parts of the runs of each model, or what is inside of the requested part."""
    is_inside = answer.subgraph or answer.level == "run"
    lay, head = (lay_inside, INSIDE_TABLE) if is_inside else (lay_parts, PARTS_TABLE)
    below = tell_left_out(answer.scope)
    for model in dict.fromkeys(row.model for row in answer.rows):
        named = model if len(answer.scope.models) > 1 else ""
        title = head(by=answer.by, level=answer.level, subgraph=answer.subgraph or OF_RUNS, model=named)
        runs = [rows for rows in list_runs(answer) if rows[0].model == model]
        yield Section(title, (lay(answer, runs, most), *below), is_tight=True)


def lay_inside(answer: PartAnswer, runs: Sequence[Rows], limit: int) -> Grid:
    """Return a grid of one part, with a row per category or action and a column per run; a single run has shares."""
    sums: dict[str, list[int]] = {WHOLE: [0] * len(runs)}
    for index, rows in enumerate(runs):
        for row in rows:
            for name in (WHOLE, name_part(row)):
                sums.setdefault(name, [0] * len(runs))[index] += row.energy_fj
    whole, *ordered = sorted(sums.items(), key=lambda item: -sum(item[1]))
    is_single = len(runs) == 1
    lines = [
        (
            name_category(name),
            *(_show(value) if value else "" for value in values),
            *([show_share(values[0] / (whole[1][0] or 1))] if is_single else []),
        )
        for name, values in (whole, *ordered[:limit])
    ]
    names = [_name(answer, rows) for rows in runs]
    headings = (answer.by, *names, *(["share"] if is_single else []))
    drawn = Grid(headings=headings, rows=tuple(lines), keep=tuple(names))
    return drawn.out_of(len(ordered), limit, PLURALS[answer.by])


def lay_parts(answer: PartAnswer, runs: Sequence[Rows], limit: int) -> Grid:
    """Return a grid of the parts with the most energy, with a column per run.

    A single run has its largest category in a further column.
    """
    weights: dict[int, float] = {}
    for row in itertools.chain(*runs):
        weights[row.part_index] = weights.get(row.part_index, 0.0) + (row.run_fraction or 0.0)
    parts = sorted(weights, key=lambda part: (-weights[part], part))
    is_single, lines = len(runs) == 1, []
    for part in parts[:limit]:
        mine = [[row for row in rows if row.part_index == part] for rows in runs]
        first = next(itertools.chain(*mine))
        cells = [_show(sum(row.energy_fj for row in rows)) for rows in mine]
        if is_single:
            largest = max(mine[0], key=lambda row: row.energy_fj)
            share = LARGEST_PART(largest=name_category(name_part(largest)), share=largest.energy_fraction)
            cells += [show_share(weights[part]), share]
        lines.append((first.name, *cells, first.fusion_pattern if answer.level == "subgraph" else first.kind))
    names = ["energy", "run share", "largest share"] if is_single else [_name(answer, rows) for rows in runs]
    headings = (answer.level, *names, KINDS[answer.level])
    drawn = Grid(headings=headings, rows=tuple(lines), keep=tuple(names))
    return drawn.out_of(len(parts), limit, f"{answer.level}s")


def _show(energy_fj: int) -> str:
    return show_quantity(energy_fj / FJ_PER_J, "J")


def list_steps(answer: PartAnswer, repeated: Sequence[str]) -> list[list[str]]:
    """Return commands on what is inside of a part, and on the difference of two chips."""
    rows: Rows = answer.rows.rows
    scope, subgraph, is_whole = answer.scope, answer.subgraph, answer.level == "subgraph"
    hardware, *others = dict.fromkeys(scope.spell(row.hardware) for row in rows)
    largest = max(rows, key=lambda row: row.energy_fj)
    return fill_steps(
        PART_STEPS,
        None,
        repeated,
        model=scope.model,
        largest=scope.spell(largest.hardware),
        largest_part=largest.name if is_whole and not subgraph else "",
        hardware=hardware,
        part=subgraph if is_whole else "",
        other="".join(others[:1]),
        pair_part=subgraph if others else "",
    )


def show_all(answer: PartAnswer, table: Table[Cause] | None, columns: Iterable[Col[Cause]]) -> list[Section]:
    """Return the section of all parts by category or action."""
    title = f"Energy of each {answer.level} by {answer.by}"
    return show_table(
        answer, title, table, columns, limit=SHOWN_ROWS, change=partial(attrs.evolve, way="--format json")
    )


def draw_parts(answer: PartAnswer, asked: Asked) -> Document:
    """Return the document of the parts of one or several runs."""
    named = list(dict.fromkeys(_name(answer, one) for one in list_runs(answer)))
    inside = [OF_SUBGRAPH(subgraph=answer.subgraph)] if answer.subgraph else []
    return compose_runs(
        answer,
        answer.facts,
        show_models(answer, asked.most(10)),
        answer.rows,
        title=attrs.evolve(title_runs(answer.scope), beside=(ON_HARDWARE(hardware=named), *inside)),
        headline=describe_parts(answer.facts, answer.by, answer.subgraph or f"the {answer.level}s"),
        reasons=describe_beyond(answer.facts)[:MOST_WHY],
        trust=describe_ranges(answer.facts),
        details=[
            *show_all(answer, answer.categories, PartCategory.table),
            *show_all(answer, answer.actions, PartAction.table),
        ],
        steps=list_steps(answer, asked.repeated),
    )


def sketch_parts(answer: PartAnswer, _by: Division) -> Drawings:
    """Return a stacked bar for each run, or for each part of a single run, largest energy first."""
    is_single = len({row.run_id for row in answer.rows}) == 1
    label = "{model} on {hardware}" if len(answer.scope.models) > 1 else "{hardware}"
    texts = {
        "part": "{category}" if answer.by == "category" else "{component}.{action}",
        "by": answer.by,
        "group": "part_index" if is_single else "run_id",
        "order": "value" if is_single else "",
        "label": "{name}" if is_single else label,
        "what": "{name}" if answer.subgraph else f"each {answer.level}" if is_single else "each run",
        "nouns": f"{answer.level}s" if is_single else "runs",
    }
    return (sketch("parts", answer.rows, texts),)


def draw_runs(answer: PartAnswer) -> Figures:
    """Return the energy of each run by action in its common category; empty unless whole runs are divided by action."""
    if answer.actions is None or answer.level != "run":
        return ()
    texts = {"label": "{model} on {hardware}" if len(answer.scope.models) > 1 else "{hardware}"}
    told = describe_parts(answer.facts, answer.by, OF_RUNS)
    return (draw_figure(answer.scope, "breakdown", answer.actions, None, told, texts),)


PAGES: Final = {
    AnalyzeAnswer: Page[AnalyzeAnswer](draw=draw_run, draw_figures=draw_figures, sketch=sketch_division),
    PartAnswer: Page[PartAnswer](draw=draw_parts, draw_figures=draw_runs, sketch=sketch_parts),
}
