"""Words and tables of a contrast of architecture classes: which uses the least energy, and where they spend theirs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

import attrs

from joulemap.ask.architecture import ENERGY, PARTS, ArchitecturesAnswer, find_largest, find_share
from joulemap.ask.fact import Choice, Entry, Facts, Share
from joulemap.domain.architecture import CLASS_HARDWARE, COMMON_PRECISION
from joulemap.domain.settings import ClassDivision
from joulemap.domain.table import group
from joulemap.generated.architectures import ArchitectureAction, ArchitectureCategory, ArchitectureSummary
from joulemap.physics.record.weight import spell_precision, split_precision
from joulemap.show.choice import describe_best, describe_beyond
from joulemap.show.layout import draw_ranges
from joulemap.show.present.category import CATEGORY, name_category
from joulemap.show.present.cell import (
    Number,
    Remark,
    mark_projected,
    show_amount,
    show_price,
    show_quantity,
    show_share,
    split_assumption,
)
from joulemap.show.present.document import Block, Grid, Lines
from joulemap.show.present.template import Template
from joulemap.show.run import prove_parts
from joulemap.show.run_name import name_run
from joulemap.show.shape import Part, Shape

CLASS: Final = Template("{architecture} ({hardware})")
MOSTLY: Final = Template("{head}; {share:%} is {part}")
ADDED: Final = Template("overhead takes {low:plain}x ({least}) to {high:plain}x ({most}) the energy of computing")
WAITING: Final = Template(
    "static power is most of the energy on {names:and}[; kernel launches take most of the time on {launching:and}]"
)
SPREAD: Final = Template("computing alone takes {low:J} ({least}) to {high:J} ({most}) per MAC")

TITLE: Final = "{label}: {name}, {precision}"
NOTE: Final = Template("[{topic}: ]{text} ({source})")
ACTION: Final = Template("{component}.{action}")
TWICE: Final = 2
"""Limits up to which actions are listed."""

LEVELS: Final = ("unit_memory", "chip_memory", "off_chip")
RARE: Final = Template("1[ {unit}] / {every:~}")
SOURCES: Final = Template("{names:list}[ ({basis})]: {source}")
ASSUMED: Final = "assumed"

COMMON: Final = Template("only {asked} is supported by chips of every class; --precision selects another")
REPLACED: Final = Template("{name} has no {asked}, so it is shown in {precision}")

INTO_PAIR: Final = "explain {model} {most} {least} {precision}"
AT_BATCH: Final = (
    "architectures {model}[ --hardware {hardware}][ --precision {at_precision}][ --weight-precision {weights}] "
    "--batch 64"
)

DOMINANT: Final = 0.5
"""Share of an energy, or of a time, above which a part counts as its main cause."""

LEAST_COUNT_PER_MAC: Final = 0.01
"""Minimum actions per MAC; a smaller count is shown as MACs per action."""


def name_classes(facts: Facts) -> Facts:
    """Return the facts with each run named by its class and hardware, or by its hardware if another has its class."""
    count = Counter(one.architecture for one in facts.runs.values())
    runs = {
        run_id: attrs.evolve(one, hardware=CLASS(one)) if count[one.architecture] == 1 else one
        for run_id, one in facts.runs.items()
    }
    return attrs.evolve(facts, runs=runs)


def describe_answer(facts: Facts) -> str:
    """Return the first line: the class with the least energy, by how much, how surely, and its largest part."""
    best = facts.of(Choice)[0].run
    own = next(one for one in facts.of(Share) if one.metric == ENERGY and one.run == best)
    return describe_best(name_classes(facts), MOSTLY, part=name_category(own.name), share=own.share)


def list_reasons(facts: Facts) -> list[str]:
    """Return lines on why: a named class that cannot be bought and would win, the overhead of each class, what waits,
    and the energy of computing alone; the last ones need several classes with MACs.
    """
    return [*describe_beyond(name_classes(facts)), *describe_contrast(facts)]


def describe_contrast(facts: Facts) -> list[str]:
    """Return lines that compare the classes; empty for fewer than two, or a model without MACs."""
    entries = [one for one in facts.of(Entry) if "compute_per_mac" in one.values]
    if len(entries) < 2:
        return []
    waiting = _list_dominant(facts, ENERGY, "static")
    launching = [run_id for run_id in _list_dominant(facts, "latency", "launch") if run_id in waiting]
    names = {run_id: name_class(facts, run_id) for run_id in facts.runs}
    lines = [_describe_ends(ADDED, entries, "overhead", names)]
    if waiting:
        on_all, on_launching = ([names[one] for one in some] for some in (waiting, launching))
        lines.append(WAITING(names=on_all, launching=on_launching))
    return [*filter(None, lines), _describe_ends(SPREAD, entries, "compute_per_mac", names)]


def _describe_ends(template: Template, entries: Sequence[Entry], name: str, names: Mapping[int, str]) -> str:
    """Return a line on the classes with the lowest and the highest value; empty without any."""
    ends = sorted((one.values[name].value, one.run) for one in entries if name in one.values)
    if not ends:
        return ""
    (low, least), (high, most) = ends[0], ends[-1]
    return template(low=low, high=high, least=names[least], most=names[most])


def _list_dominant(facts: Facts, metric: str, name: str) -> list[int]:
    """Return the runs of which a part takes most."""
    shares = (one for one in facts.of(Share) if (one.metric, one.name) == (metric, name))
    return [one.run for one in shares if one.share >= DOMINANT]


def name_class(facts: Facts, run_id: int) -> str:
    """Return the class of a run, or its hardware if another has its class."""
    run = facts.runs[run_id]
    is_alone = sum(one.architecture == run.architecture for one in facts.runs.values()) == 1
    return run.architecture if is_alone else name_run(run)


def list_notes(answer: ArchitecturesAnswer) -> list[str]:
    """Return notes on the common precision, replaced precisions, and what the contrast holds for."""
    return [
        *([COMMON(answer)] if answer.asked == COMMON_PRECISION else ()),
        *(
            REPLACED(row, name=mark_projected(row.hardware, answer.projected), asked=answer.asked)
            for row in answer.rows
            if row.precision != answer.asked
        ),
        "chips also differ in size and process node: differences hold for these chips, not for their classes",
    ]


def choose(
    answer: ArchitecturesAnswer, *, by: ClassDivision = "class", repeated: Sequence[str] = (), **_: Any
) -> Mapping[str, Any]:
    """Return the shown parts, the columns and the values of slots in the steps."""
    least, most = answer.ordered[0], answer.ordered[-1]
    is_pair = least.precision == most.precision and least is not most
    weights = (split_precision(row.precision)[1] for row in answer.answered)
    hardware = [answer.scope.spell(row.hardware) for row in answer.rows]
    has_macs = any(row.mac_count for row in answer.rows)
    csv, shown = {
        "class": ("rows", "answered"),
        "category": ("categories", "categories"),
        "action": ("actions", "actions"),
    }[by]
    every = ("answered", "shares", "prices", "orders", "actions", "categories")
    without_macs = () if has_macs else ("prices", "orders")
    return {
        "csv": csv,
        "shown": [shown],
        "omitted": without_macs if by == "class" else [one for one in every if one != shown],
        "count": "count per MAC count" if has_macs else "count",
        "spent": "energy_per_mac_j" if has_macs else "energy_j",
        "dropped": [INTO_PAIR] * (not is_pair) + [AT_BATCH] * bool({"--batch", "--input"} & {*repeated}),
        "model": answer.scope.model,
        "most": answer.scope.spell(most.hardware),
        "least": answer.scope.spell(least.hardware),
        "precision": spell_precision(least.precision),
        "hardware": "" if hardware == list(CLASS_HARDWARE.values()) else ",".join(hardware),
        "at_precision": "" if answer.asked == COMMON_PRECISION else answer.asked,
        "weights": ",".join(dict.fromkeys(filter(None, weights))),
    }


def lay_summary(answer: ArchitecturesAnswer, drawn: Grid) -> Grid:
    """Return the grid of the classes with the intervals of their energies and the one with the least marked."""
    ids = [row.run_id for row in answer.answered]
    picture = draw_ranges(answer.facts, ENERGY, ids, ENERGY, unit="J", yields=True)
    choice = answer.facts.of(Choice)[0]
    best = choice.runs[:1] if len(choice.runs) > 1 else ()
    return attrs.evolve(drawn, pictures=(picture,)).mark_best(ENERGY, ids, best, choice.tied)


def label(answer: ArchitecturesAnswer) -> Mapping[str, Any]:
    """Return the cell with the name of a class."""
    return {"label": lambda row: name_class(answer.facts, row.run_id)}


def divide(answer: ArchitecturesAnswer, table: str) -> Iterator[tuple[Mapping[str, Any], Any]]:
    """Yield each class with the rows of a table."""
    rows = getattr(answer, table)
    for row in answer.answered:
        names = {"label": name_class(answer.facts, row.run_id), "name": mark_projected(row.hardware, answer.projected)}
        own = rows.with_rows(one for one in rows if one.run_id == row.run_id)
        yield {"row_of": row, "rows": own, **names, "precision": row.precision}, own


def draw_actions(_answer: ArchitecturesAnswer, grid: Grid, limit: int, *, rows: Any, **_: Any) -> tuple[Block, ...]:
    """Return the actions of a class, and the sources of their energies per action."""
    sources = group(rows.rows[: TWICE * limit or None], lambda one: one.source)
    return grid, Lines(_cite([*map(ACTION, own)], source) for source, own in sources.items())


def draw_categories(
    answer: ArchitecturesAnswer, grid: Grid, _limit: int, *, row_of: ArchitectureSummary, rows: Any, **_: Any
) -> tuple[Block, ...]:
    """Return the categories of a class with their sum and the known notes."""
    notes = [one for one in answer.notes if one.architecture == row_of.architecture]
    return grid, prove_parts("categories", rows, row_of), Lines(map(NOTE, notes))


def _cite(names: Sequence[str], source: str) -> str:
    """Return a line with the source of some actions' energies; an assumption is marked after the names."""
    text, is_assumed = split_assumption(source)
    return SOURCES(names=names, source=text, basis=ASSUMED if is_assumed else "")


def _show_million(row: ArchitectureSummary, level: str) -> str:
    """Return the bytes per million MACs of one memory."""
    count = getattr(row, f"{level}_bytes_per_mac")
    return "" if count is None else show_quantity(count * 1e6, "B")


def _show_count(row: ArchitectureAction) -> str:
    """Return the count of an action per MAC, of a model without MACs the whole count; a rare action is written as one
    per so many MACs.
    """
    count, unit = row.count_per_mac, "B" if row.per == "B" else ""
    if count is None:
        return show_amount(row.action_count, row.per)
    if not count:
        return ""
    if row.per == "s":
        return show_quantity(count, "s")
    if count < LEAST_COUNT_PER_MAC:
        return Remark(RARE(unit=unit, every=1.0 / count))
    return Number(f"{count:.3g} {unit}".rstrip())


def _describe_most(row: ArchitectureSummary) -> str:
    part = find_largest(row)
    return f"{name_category(part)} {show_share(find_share(row, part))}"


def _name_first(answer: ArchitecturesAnswer, row: ArchitectureCategory) -> str:
    """Return the largest action of a category of a run."""
    own = (one for one in answer.actions if one.run_id == row.run_id and one.common_category == row.common_category)
    return next((ACTION(one) for one in own if one.category_rank == 1 and row.kind_count), "")


def join_parts(suffix: str, last: str) -> str:
    """Return the columns of a field of each part of the energy, after the class and before a `last` column."""
    return " | ".join(("class label", *(f"*{CATEGORY[part]} {part}{suffix}" for part in PARTS), last))


ARCHITECTURES: Final = Shape(
    first=describe_answer,
    why=list_reasons,
    choices=choose,
    notes=list_notes,
    csv="{csv}",
    limit=4,
    steps=("analyze {model} {least} {precision}", INTO_PAIR, AT_BATCH),
    parts=(
        Part(
            table="answered",
            columns="class architecture | hardware | precision! | latency_s | energy_j | energy_per_mac_j? | "
            "largest part mostly | utilization compute_utilization_fraction | static_power_w | node",
            lay={
                "keep": "hardware energy_j mostly",
                "mostly": _describe_most,
                "node": Template("[{process_node_nm:plain} nm]", is_number=True),
            },
            make=lay_summary,
            counts_left_out=True,
        ),
        Part(
            title="Energy shares",
            table="shares",
            rows="answered",
            columns=join_parts("_fraction", "*overhead_fraction"),
            cells=label,
        ),
        Part(
            title="Energy per MAC",
            table="prices",
            rows="answered",
            columns=join_parts("_per_mac_j", "*total energy_per_mac_j"),
            cells=label,
        ),
        Part(
            title="Instructions, and bytes moved per million MACs",
            table="orders",
            rows="answered",
            columns="class label | *order_name | *macs_per_order | *unit_memory_bytes_per_mac | "
            "*chip_memory_bytes_per_mac | *off_chip_bytes_per_mac",
            lay={f"{level}_bytes_per_mac": partial(_show_million, level=level) for level in LEVELS},
            cells=label,
        ),
        Part(
            title=TITLE,
            table="actions",
            divide=partial(divide, table="actions"),
            columns="action | {count} | energy each price | per | {spent} | share energy_fraction | basis",
            lay={
                "keep": "energy_j energy_per_mac_j count price energy_fraction basis",
                "action": ACTION,
                "count": _show_count,
                "price": lambda row: show_price(row.energy_per_action_j, row.per),
            },
            draw=draw_actions,
            is_long=TWICE,
        ),
        Part(
            title=TITLE,
            table="categories",
            divide=partial(divide, table="categories"),
            columns="common_category | *energy_j | *energy_fraction | *energy_per_mac_j | *largest action action | "
            "*is_overhead | *kind_count | categories",
            cells=lambda answer: {"action": partial(_name_first, answer)},
            draw=draw_categories,
        ),
    ),
)

PAGES: Final = {ArchitecturesAnswer: ARCHITECTURES}
