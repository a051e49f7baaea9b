"""Hardware in the order that a deployment asks for."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from joulemap.domain.answer.level import HardwareNumber, RankedHardware, UtilizationSpread
from joulemap.present.cell import show, show_quantity
from joulemap.query.level import RankingAnswer
from joulemap.report.asked import assemble, describe, list_steps, mark, notes, repeat, spell, title, write_lines
from joulemap.report.format import Format
from joulemap.report.note import write_steps
from joulemap.report.part import draw_parts
from joulemap.report.render import draw_table, write_csv, write_json

HEADINGS = ("rank", "hardware", "type", "latency", "inferences/s", "power", "inferences/s/W", "mJ/inference", "tdp")


def render_ranking(answer: RankingAnswer, form: Format, limit: int, options: Sequence[str] = ()) -> str:
    """Return the ranking, and what was asked for below it; csv holds the ranking."""
    steps = next_steps(answer, options)
    if form is Format.JSON:
        return write_json(
            {
                **describe(answer.asked),
                "sort": answer.sort,
                "rows": [attrs.asdict(row) for row in answer.rows],
                "spread": [attrs.asdict(row) for row in answer.spread],
                "numbers": [attrs.asdict(row) for row in answer.numbers],
                "subgraphs": [attrs.asdict(row) for row in answer.parts],
                "next_steps": steps,
            }
        )
    if form is Format.CSV:
        names = [field.name for field in attrs.fields(RankedHardware)]
        return write_csv(names, [[getattr(row, name) for name in names] for row in answer.rows])
    is_markdown = form is Format.MARKDOWN
    projected = answer.answers[0].projected
    table = draw_table(HEADINGS, [_cells(row) for row in answer.rows], is_markdown=is_markdown)
    sections = [(f"Ranked by {answer.sort}", table)]
    spread = {row.run_id: row for row in answer.spread}
    if spread:
        sections += [
            (
                f"{row.rank}. {mark(row.hardware, row.is_projection)}",
                _details(row, spread[row.run_id], answer, is_markdown),
            )
            for row in answer.rows
            if row.run_id in spread
        ]
    if answer.parts:
        metric = answer.parts[0].metric
        sections.append(
            (
                f"{metric.capitalize()} of each subgraph",
                draw_parts(answer.parts, projected, "subgraph", limit, is_markdown),
            )
        )
    sections += [
        ("Notes", write_lines(notes(answer.asked, [table]))),
        ("Next steps", list_steps(steps, is_markdown)),
    ]
    return assemble(title(answer.asked), sections, is_markdown)


def _cells(row: RankedHardware) -> list[str]:
    hardware = mark(row.hardware, row.is_projection)
    if row.status != "ok":
        return ["", hardware, row.architecture, "unsupported", *[""] * 5]
    return [
        str(row.rank),
        hardware,
        row.architecture,
        show(row.latency_s, "latency_s", "s"),
        "" if row.throughput_per_s is None else f"{row.throughput_per_s:.4g}",
        show(row.average_power_w, "average_power_w", "W"),
        "" if row.inferences_per_s_per_w is None else f"{row.inferences_per_s_per_w:.4g}",
        "" if row.energy_per_inference_j is None else f"{row.energy_per_inference_j * 1e3:.4g}",
        show(row.tdp_w, "tdp_w", "W"),
    ]


def _details(row: RankedHardware, spread: UtilizationSpread, answer: RankingAnswer, is_markdown: bool) -> str:
    """Return what one hardware is made of, and how its utilization spreads."""
    numbers = [one for one in answer.numbers if one.run_id == row.run_id]
    facts = [
        (section, "; ".join(_number(one) for one in numbers if one.section == section))
        for section in ("geometry", "memory", "power", "peak")
    ]
    facts += [
        (
            "performance",
            f"{show(row.latency_s, 'latency_s', 's')}, {show(row.throughput_per_s, 'throughput_per_s', '1/s')}, "
            f"{show(row.average_power_w, 'average_power_w', 'W')} on average",
        ),
        ("utilization", describe_utilization(spread)),
        (
            "bound by",
            ", ".join(
                f"{bound} {getattr(spread, f'{bound}_bound_count')} of {spread.subgraph_count} "
                f"({_share(getattr(spread, f'{bound}_time_fraction'))} of the time)"
                for bound in ("compute", "memory", "launch")
            ),
        ),
    ]
    return draw_table(
        ("about", "figures"),
        [(about, text) for about, text in facts if text],
        is_markdown=is_markdown,
        widths=(None, 110),
    )


def describe_utilization(spread: UtilizationSpread) -> str:
    """Return the mean utilization, its ends with who is responsible, and the time without MACs."""
    text = f"{_share(spread.mean_utilization_fraction)} on average"
    if spread.min_utilization_fraction is not None:
        text += (
            f"; least {_share(spread.min_utilization_fraction)} ({spread.min_kind} {spread.min_name}), "
            f"most {_share(spread.max_utilization_fraction)} ({spread.max_kind} {spread.max_name})"
        )
    if spread.idle_kind is not None:
        time = _share(spread.idle_time_fraction)
        text += f"; {time} of the time in subgraphs without MACs, most of it {spread.idle_kind}"
    return text


def _share(value: float | None) -> str:
    return show(value, "share_fraction")


def _number(one: HardwareNumber) -> str:
    """Return a number with what it is, in words."""
    name = one.quantity.removeprefix("geometry.").removeprefix("memory.")
    name = name.removeprefix("power_mode.").replace("_", " ").replace(".", " ")
    if one.quantity == "unit_count":
        return f"{one.value:g} {one.unit_name}s"
    if one.unit == "1":
        return f"{name} {one.value:g}"
    if one.quantity == "memory_capacity":
        name = f"{one.memory_type}"
    return f"{name} {show_quantity(one.value, one.unit)}"


def next_steps(answer: RankingAnswer, options: Sequence[str] = ()) -> list[str]:
    """Return commands that go on from here, ready to paste into a shell."""
    asked = answer.asked
    settings = repeat(asked, options)
    answered = [spell(asked, row.hardware) for row in answer.rows if row.status == "ok"]
    steps = [["compare", asked.models[0], "--level", "detailed", "--hardware", answered[0], *settings]]
    if len(answered) > 1:
        steps.append(["explain", asked.models[0], answered[1], answered[0], *settings])
    return write_steps(steps)
