"""Costs: a million inferences on each hardware, a break-even, carbon by grid, and what all of it assumes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

from joulemap.domain.answer.choice import BreakEven, CostOption
from joulemap.present.cell import PROJECTED
from joulemap.query.answer import CostAnswer
from joulemap.report.choice import (
    WIDE,
    count_more,
    describe_refused,
    describe_rows,
    draw_assumptions,
    join_sections,
    list_lines,
    mark,
    name_configuration,
    records,
    show_figure,
    show_plain,
    write_analyze,
)
from joulemap.report.format import Format
from joulemap.report.render import draw_table, write_csv, write_json
from joulemap.units import format_si

WAYS: Final = {"cloud": "rented", "purchase": "bought"}

SCOPE_NOTE: Final = (
    "counted: the chip, board or kit that the price is of, and electricity where it is bought; not counted: host, "
    "network, staff, the carbon of making it"
)
UTILIZATION_NOTE: Final = "a chip idles for the rest of its hours: that energy and that rent are part of each inference"


def render_cost(answer: CostAnswer, form: Format, limit: int, options: Sequence[str] = ()) -> str:
    """Return the costs; csv has every configuration and way of paying, people see the cheapest of each hardware."""
    if form is Format.JSON:
        return write_json(
            {
                "model": answer.model,
                "rows": records(answer.rows),
                "break_even": attrs.asdict(answer.break_even) if answer.break_even else None,
                "grid": records(answer.grid),
                "assumptions": records(answer.assumptions),
                "caveats": records(answer.caveats),
                "next_steps": next_steps(answer, options),
            }
        )
    if form is Format.CSV:
        names = [field.name for field in attrs.fields(CostOption)]
        return write_csv(names, [[getattr(row, name) for name in names] for row in answer.rows])
    is_markdown = form is Format.MARKDOWN
    best = [row for row in answer.rows if row.is_best_of_hardware]
    priced = [row for row in best if row.status == "ok"]
    unpriced = [row for row in best if row.status == "no price"]
    steps = next_steps(answer, options)
    sections = [
        ("Million inferences, each hardware at its cheapest configuration", _costs(priced, limit, is_markdown)),
        ("Without a price, each hardware at its least energy", _unpriced(unpriced, limit, is_markdown)),
        ("Break-even", list_lines(describe_break_even(answer))),
        ("Carbon of a million inferences by grid", _grid(answer, is_markdown)),
        ("Prices", _prices(priced[:limit], is_markdown)),
        ("Assumptions", draw_assumptions(answer.assumptions, is_markdown)),
        ("Notes", list_lines(_notes(answer, best))),
        ("Next steps", "\n".join(f"- `{line}`" if is_markdown else f"  {line}" for line in steps)),
    ]
    title = f"{answer.model}: cost of a million inferences, {len(answer.rows):,} configurations and ways to pay"
    return join_sections(title, sections, is_markdown)


def _costs(rows: Sequence[CostOption], limit: int, is_markdown: bool) -> str:
    if not rows:
        return "the catalogue has no price of any of this hardware"
    headings = (
        "rank", "hardware", "precision", "batch", "way", "cost", "= hardware", "+ energy", "price", "throughput",
        "latency", "energy", "CO2",
    )  # fmt: skip
    cells = [
        [
            str(row.rank),
            mark(row),
            row.precision,
            str(row.batch),
            WAYS[row.way],
            show_figure(row.usd_per_million, "USD"),
            show_figure(row.hardware_usd_per_million, "USD"),
            show_figure(row.energy_usd_per_million, "USD") if row.way == "purchase" else "in the rent",
            show_figure(row.price, row.price_unit),
            show_figure(row.throughput_per_s, "1/s"),
            show_figure(row.latency_s, "s"),
            show_figure(row.kwh_per_million, "kWh"),
            show_figure(row.gco2_per_million, "g"),
        ]
        for row in rows[:limit]
    ]
    return draw_table(headings, cells, is_markdown=is_markdown) + count_more(len(rows), limit)


def _unpriced(rows: Sequence[CostOption], limit: int, is_markdown: bool) -> str:
    if not rows:
        return ""
    cells = [
        [
            mark(row),
            row.precision,
            str(row.batch),
            "no price",
            show_figure(row.throughput_per_s, "1/s"),
            show_figure(row.latency_s, "s"),
            show_figure(row.kwh_per_million, "kWh"),
            show_figure(row.gco2_per_million, "g"),
        ]
        for row in rows[:limit]
    ]
    headings = ("hardware", "precision", "batch", "cost", "throughput", "latency", "energy", "CO2")
    return draw_table(headings, cells, is_markdown=is_markdown) + count_more(len(rows), limit)


def describe_break_even(answer: CostAnswer) -> list[str]:
    """Return two options and from which volume on which one is cheaper."""
    even = answer.break_even
    if even is None:
        return ["there are no two options with a price, one bought and one rented: name two with --between"]
    projected = {row.run_id for row in answer.rows if row.is_projection}
    names = {
        side: f"{PROJECTED if run in projected else ''}{hardware}"
        for side, run, hardware in (("A", even.run_a, even.hardware_a), ("B", even.run_b, even.hardware_b))
    }
    lines = [
        _describe_option("A", names["A"], even.precision_a, even.batch_a, even.way_a, even.fixed_a_usd,
                         even.variable_a_usd_per_million),
        _describe_option("B", names["B"], even.precision_b, even.batch_b, even.way_b, even.fixed_b_usd,
                         even.variable_b_usd_per_million),
    ]  # fmt: skip
    return [*lines, *_describe_crossing(even)]


def _describe_option(
    side: str, hardware: str, precision: str, batch: int, way: str, fixed_usd: float, variable_usd: float
) -> str:
    return (
        f"{side}: {hardware} {precision} batch {batch}, {WAYS[way]}: {show_figure(fixed_usd, 'USD')} to begin with, "
        f"then {show_figure(variable_usd, 'USD')} per million inferences"
    )


def _describe_crossing(even: BreakEven) -> list[str]:
    if even.break_even_inferences is None:
        if even.cheaper_below is None:
            return ["both cost the same at any volume"]
        return [f"{even.cheaper_below} is cheaper at any volume"]
    volume = f"{format_si(even.break_even_inferences, '').strip()} inferences"
    if even.is_within_life:
        years = (
            "" if even.break_even_years is None else f", {show_plain(even.break_even_years)} years of one chip's work"
        )
        return [f"break-even at {volume}{years}: {even.cheaper_below} is cheaper below, {even.cheaper_above} above"]
    lives = [life for life in (even.inferences_per_life_a, even.inferences_per_life_b) if life is not None]
    return [
        f"break-even at {volume}, more than the {format_si(min(lives), '').strip()} that one bought chip does in its "
        f"lifetime: {even.cheaper_below} stays cheaper"
    ]


def _grid(answer: CostAnswer, is_markdown: bool) -> str:
    runs = list(dict.fromkeys(row.run_id for row in answer.grid))
    names = {row.run_id: name_configuration(row) for row in answer.rows if row.run_id in runs}
    regions = {row.region: row for row in answer.grid}
    carbon = {(row.region, row.run_id): row.gco2_per_million for row in answer.grid}
    cells = [
        [
            one.region,
            one.name,
            str(one.year),
            f"{one.gco2_per_kwh:.3g} g/kWh",
            *(show_figure(carbon[one.region, run], "g") for run in runs),
        ]
        for one in regions.values()
    ]
    used = {row.run_id: row.kwh_per_million for row in answer.grid}
    totals = ["", "energy", "", "", *(show_figure(used[run], "kWh") for run in runs)]
    headings = ("region", "grid", "year", "carbon", *(names[run] for run in runs))
    return draw_table(headings, [totals, *cells], is_markdown=is_markdown)


def _prices(rows: Sequence[CostOption], is_markdown: bool) -> str:
    cells = list(
        dict.fromkeys(
            (
                mark(row).partition("@")[0],
                show_figure(row.price, row.price_unit),
                row.price_basis or "",
                row.price_source or "",
                row.price_note or "",
            )
            for row in rows
        )
    )
    headings = ("hardware", "price", "basis", "source", "what it buys")
    return draw_table(headings, cells, is_markdown=is_markdown, widths=(None, None, None, WIDE, WIDE)) if cells else ""


def _notes(answer: CostAnswer, best: Sequence[CostOption]) -> list[str]:
    lines = [SCOPE_NOTE, UTILIZATION_NOTE]
    lines += describe_published(answer)
    lines += describe_rows(answer.rows, answer.caveats)
    if any(row.idle_quantity == "static_power" for row in best):
        lines.append("idle power: static power where the catalogue has no other number, which is rather too high")
    return lines + describe_refused((row.status, row.reason) for row in answer.rows)


def describe_published(answer: CostAnswer) -> list[str]:
    """Return the cheapest option whose numbers are published, where the cheapest is a projection."""
    cheapest = next((row for row in answer.rows if row.rank == 1), None)
    if cheapest is None or not cheapest.is_projection:
        return []
    published = next((row for row in answer.rows if row.status == "ok" and not row.is_projection), None)
    if published is None:
        return ["the cheapest is a projection; nothing published has a price"]
    return [
        f"the cheapest is a projection; best published: {name_configuration(published)}, {WAYS[published.way]}, "
        f"{show_figure(published.usd_per_million, 'USD')}"
    ]


def next_steps(answer: CostAnswer, options: Sequence[str] = ()) -> list[str]:
    """Return the command that takes the cheapest configuration apart."""
    evaluated = [row for row in answer.rows if row.status != "unsupported"]
    return [write_analyze(answer.model, row, answer.spelling, options) for row in evaluated[:1]]
