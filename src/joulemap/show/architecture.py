"""Words and tables of a contrast of architecture classes: which uses the least energy, and where they spend theirs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any, Final

import attrs

from joulemap.ask.architecture import ENERGY, PARTS, ArchitecturesAnswer, find_largest, find_share
from joulemap.ask.fact import Choice, Entry, Facts
from joulemap.domain.architecture import CLASS_HARDWARE, COMMON_PRECISION
from joulemap.domain.column import Col
from joulemap.domain.table import Table, group
from joulemap.generated.architectures import ArchitectureAction, ArchitectureCategory, ArchitectureSummary
from joulemap.physics.record.weight import spell_precision, split_precision
from joulemap.show.choice import MOST_WHY, describe_best, describe_beyond
from joulemap.show.column import derived, lay_columns, show_table
from joulemap.show.layout import draw_ranges
from joulemap.show.page import Asked, Page, compose_runs, count_left_out_below, fill_steps
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
from joulemap.show.present.document import Document, Grid, Lines, Section
from joulemap.show.present.template import Template
from joulemap.show.run import prove_parts
from joulemap.show.run_name import name_run
from joulemap.show.term import describe_causes

CLASS: Final = Template("{architecture} ({hardware})")
ADDED: Final = Template("overhead takes {low:plain}x ({least}) to {high:plain}x ({most}) the energy of computing")
SPREAD: Final = Template("computing alone takes {low:J} ({least}) to {high:J} ({most}) per MAC")

TITLE: Final = "{label}: {name}, {precision}"
NOTE: Final = Template("[{topic}: ]{text} ({source})")
ACTION: Final = Template("{component}.{action}")
TWICE: Final = 2
"""Limits up to which actions are listed."""

NODE: Final = Template("[{process_node_nm:plain} nm]", is_number=True)
PRICES: Final = (
    ArchitectureSummary.compute_per_mac_j,
    ArchitectureSummary.register_per_mac_j,
    ArchitectureSummary.on_chip_memory_per_mac_j,
    ArchitectureSummary.interconnect_per_mac_j,
    ArchitectureSummary.off_chip_memory_per_mac_j,
    ArchitectureSummary.control_per_mac_j,
    ArchitectureSummary.board_per_mac_j,
    ArchitectureSummary.unattributed_per_mac_j,
    ArchitectureSummary.static_per_mac_j,
)
"""Energy per MAC of each part."""
ORDERS: Final = "Instructions, and bytes moved per million MACs"
MOVED: Final = (
    ArchitectureSummary.order_name.kept,
    ArchitectureSummary.macs_per_order.kept,
    ArchitectureSummary.unit_memory_bytes_per_mac.by(lambda row: _show_million(row.unit_memory_bytes_per_mac)).kept,
    ArchitectureSummary.chip_memory_bytes_per_mac.by(lambda row: _show_million(row.chip_memory_bytes_per_mac)).kept,
    ArchitectureSummary.off_chip_bytes_per_mac.by(lambda row: _show_million(row.off_chip_bytes_per_mac)).kept,
)
"""Columns of the orders of a class, and of the bytes of each memory."""
RARE: Final = Template("1[ {unit}] / {every:~}")
SOURCES: Final = Template("{names:list}[ ({basis})]: {source}")
ASSUMED: Final = "assumed"

COMMON: Final = Template("only {asked} is supported by chips of every class; --precision selects another")
REPLACED: Final = Template("{name} has no {asked}, so it is shown in {precision}")

ANALYZE: Final = Template("analyze {model} {least} {precision}")
INTO_PAIR: Final = Template("explain {model} {most} {least} {precision}")
AT_BATCH: Final = Template(
    "architectures {model}[ --hardware {hardware}][ --precision {at_precision}][ --weight-precision {weights}] "
    "--batch 64"
)

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
    """Return the first line: the class with the least energy, by how much, and how surely."""
    return describe_best(name_classes(facts))


def list_reasons(facts: Facts) -> list[str]:
    """Return lines on why: a named class that cannot be bought and would win, the causes of the lead, the overhead of
    each class, and the energy of computing alone; the last two need several classes with MACs.
    """
    beyond = describe_beyond(name_classes(facts))
    runs = {run_id: attrs.evolve(one, hardware=name_class(facts, run_id)) for run_id, one in facts.runs.items()}
    return [*beyond, *describe_causes(attrs.evolve(facts, runs=runs)), *describe_contrast(facts)]


def describe_contrast(facts: Facts) -> list[str]:
    """Return lines that compare the classes; empty for fewer than two, or a model without MACs."""
    entries = [one for one in facts.of(Entry) if "compute_per_mac" in one.values]
    if len(entries) < 2:
        return []
    names = {run_id: name_class(facts, run_id) for run_id in facts.runs}
    ends = ((ADDED, "overhead"), (SPREAD, "compute_per_mac"))
    return [line for form, name in ends if (line := _describe_ends(form, entries, name, names))]


def _describe_ends(template: Template, entries: Sequence[Entry], name: str, names: Mapping[int, str]) -> str:
    """Return a line on the classes with the lowest and the highest value; empty without any."""
    ends = sorted((one.values[name].value, one.run) for one in entries if name in one.values)
    if not ends:
        return ""
    (low, least), (high, most) = ends[0], ends[-1]
    return template(low=low, high=high, least=names[least], most=names[most])


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


def list_steps(answer: ArchitecturesAnswer, repeated: Sequence[str]) -> list[list[str]]:
    """Return commands on the class with the least energy: its parts, why it needs less, and a larger batch."""
    least, most = answer.ordered[0], answer.ordered[-1]
    is_pair = least.precision == most.precision and least is not most
    weights = (split_precision(row.precision)[1] for row in answer.answered)
    hardware = [answer.scope.spell(row.hardware) for row in answer.rows]
    is_batched = bool({"--batch", "--input"} & {*repeated})
    return fill_steps(
        [ANALYZE, *([INTO_PAIR] if is_pair else []), *([] if is_batched else [AT_BATCH])],
        None,
        repeated,
        model=answer.scope.model,
        most=answer.scope.spell(most.hardware),
        least=answer.scope.spell(least.hardware),
        precision=spell_precision(least.precision),
        hardware="" if hardware == list(CLASS_HARDWARE.values()) else ",".join(hardware),
        at_precision="" if answer.asked == COMMON_PRECISION else answer.asked,
        weights=",".join(dict.fromkeys(filter(None, weights))),
    )


def show_summary(answer: ArchitecturesAnswer) -> list[Section]:
    """Return the section of the classes with the intervals of their energies and the one with the least marked."""
    ids = [row.run_id for row in answer.answered]
    picture = draw_ranges(answer.facts, ENERGY, ids, ENERGY, unit="J", yields=True)
    choice = answer.facts.of(Choice)[0]
    best = choice.runs[:1] if len(choice.runs) > 1 else ()
    mostly = derived("largest part", _describe_most)
    columns = (
        ArchitectureSummary.architecture.headed("class"),
        ArchitectureSummary.hardware,
        ArchitectureSummary.precision.if_varied,
        ArchitectureSummary.latency_s,
        ArchitectureSummary.energy_j,
        ArchitectureSummary.energy_per_mac_j.if_any,
        mostly,
        ArchitectureSummary.compute_utilization_fraction.headed("utilization"),
        ArchitectureSummary.static_power_w,
        derived("node", NODE),
    )
    kept = (ArchitectureSummary.hardware, ArchitectureSummary.energy_j, mostly)

    def mark(drawn: Grid) -> Grid:
        return attrs.evolve(drawn, pictures=(picture,)).mark_best(ENERGY, ids, best, choice.tied)

    return count_left_out_below(answer.scope, show_table(answer, "", answer.answered, columns, keep=kept, change=mark))


def list_contrasts(answer: ArchitecturesAnswer) -> Iterator[list[Section]]:
    """Yield the tables that compare the parts of the energy, its prices and the orders of the classes."""
    rows = answer.answered
    label: Col[ArchitectureSummary] = derived("class", lambda row: name_class(answer.facts, row.run_id))
    yield show_table(answer, "Energy shares", rows, (label, *ArchitectureSummary.table))
    if any(row.mac_count for row in answer.rows):
        prices = (one.headed(CATEGORY[part]).kept for part, one in zip(PARTS, PRICES, strict=True))
        total = ArchitectureSummary.energy_per_mac_j.headed("total").kept
        yield show_table(answer, "Energy per MAC", rows, (label, *prices, total))
        yield show_table(answer, ORDERS, rows, (label, *MOVED))


def show_actions(answer: ArchitecturesAnswer, most: int) -> Iterator[Section]:
    """Yield the actions of each class, and the sources of their energies per action."""
    has_macs = any(row.mac_count for row in answer.rows)
    spent = ArchitectureAction.energy_per_mac_j if has_macs else ArchitectureAction.energy_j
    action = ArchitectureAction.action.by(ACTION)
    count = derived("count per MAC" if has_macs else "count", _show_count)
    price, share = derived("energy each", _show_price), ArchitectureAction.energy_fraction
    columns = (action, count, price, ArchitectureAction.per, spent, share.headed("share"), ArchitectureAction.basis)
    for row in islice(answer.answered, TWICE * most or None):
        own = answer.actions.with_rows(one for one in answer.actions if one.run_id == row.run_id)
        kept = (spent, count, price, share, ArchitectureAction.basis)
        sources = group(own.rows[: TWICE * most or None], lambda one: one.source)
        drawn = lay_columns(answer, own, columns, keep=kept, limit=TWICE * most)
        cited = Lines(_cite([*map(ACTION, those)], source) for source, those in sources.items())
        yield Section(title_class(answer, row), (drawn, cited))


def show_categories(answer: ArchitecturesAnswer) -> Iterator[Section]:
    """Yield the categories of each class with their sum and the known notes."""
    for row in answer.answered:
        own = answer.categories.with_rows(one for one in answer.categories if one.run_id == row.run_id)
        notes = [one for one in answer.notes if one.architecture == row.architecture]
        drawn = lay_columns(
            answer,
            own,
            (
                ArchitectureCategory.common_category,
                ArchitectureCategory.energy_j.kept,
                ArchitectureCategory.energy_fraction.kept,
                ArchitectureCategory.energy_per_mac_j.kept,
                derived("largest action", partial(_name_first, answer)).kept,
                ArchitectureCategory.is_overhead.kept,
                ArchitectureCategory.kind_count.kept,
                ArchitectureCategory.categories,
            ),
        )
        yield Section(title_class(answer, row), (drawn, prove_parts("categories", own, row), Lines(map(NOTE, notes))))


def title_class(answer: ArchitecturesAnswer, row: ArchitectureSummary) -> str:
    """Return the title of the tables of a class."""
    name = mark_projected(row.hardware, answer.projected)
    return TITLE.format(label=name_class(answer.facts, row.run_id), name=name, precision=row.precision)


def draw_classes(answer: ArchitecturesAnswer, asked: Asked) -> Document:
    """Return the document of the classes, or of the actions or categories of each."""
    most, rest = asked.most(4), list[Section]()
    if asked.by == "category":
        table: Table[Any] = answer.categories
        first = [*show_categories(answer)]
    elif asked.by == "action":
        table, first = answer.actions, [*show_actions(answer, most)]
    else:
        table, first = answer.rows, show_summary(answer)
        rest = [one for some in list_contrasts(answer) for one in some]
        rest += [*show_actions(answer, most), *show_categories(answer)]
    return compose_runs(
        answer,
        answer.facts,
        first,
        table,
        headline=describe_answer(answer.facts),
        reasons=list_reasons(answer.facts)[:MOST_WHY],
        details=rest,
        notes=list_notes(answer),
        steps=list_steps(answer, asked.repeated),
    )


def _cite(names: Sequence[str], source: str) -> str:
    """Return a line with the source of some actions' energies; an assumption is marked after the names."""
    text, is_assumed = split_assumption(source)
    return SOURCES(names=names, source=text, basis=ASSUMED if is_assumed else "")


def _show_million(count: float | None) -> str:
    """Return bytes per MAC as bytes per million MACs."""
    return "" if count is None else show_quantity(count * 1e6, "B")


def _show_price(row: ArchitectureAction) -> str:
    return show_price(row.energy_per_action_j, row.per)


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


PAGES: Final = {ArchitecturesAnswer: Page[ArchitecturesAnswer](draw=draw_classes)}
