"""A recommendation: what keeps every limit, best first, and what misses which limit by how much."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import attrs

from joulemap.domain.answer.choice import RankedConfiguration
from joulemap.present.cell import show
from joulemap.query.answer import RecommendAnswer
from joulemap.report.choice import (
    BASES_OF_USE,
    MEANING,
    count_configurations,
    count_more,
    describe_refused,
    describe_rows,
    draw_assumptions,
    join_sections,
    list_lines,
    mark,
    name_configuration,
    name_goal,
    records,
    show_figure,
    show_plain,
    write_analyze,
)
from joulemap.report.format import Format
from joulemap.report.render import draw_table, write_csv, write_json

UNITS: Final = {
    "latency": "s",
    "energy": "J",
    "energy_per_inference": "J",
    "memory": "B",
    "power": "W",
    "throughput": "1/s",
    "price": "USD/h",
    "purchase": "USD",
}
"""Limited metric -> unit."""

HEADINGS: Final = ("hardware", "precision", "batch")

TIE_RATIO: Final = 1.0005
"""Configurations closer than this look alike at the digits shown."""

MISS_NOTE: Final = (
    "infeasible ones are in the order of their largest miss, relative to its limit: value / limit - 1, "
    "for throughput limit / value - 1"
)


def render_recommendation(answer: RecommendAnswer, form: Format, limit: int, options: Sequence[str] = ()) -> str:
    """Return the ranking and the misses; csv has every configuration, people see `limit` rows of each table."""
    if form is Format.JSON:
        return write_json(
            {
                "model": answer.model,
                "objective": answer.objective,
                "objective_meaning": MEANING[answer.objective],
                "limits": [
                    {"limit_name": name, "bound": bound, "unit": UNITS[name], "meaning": describe_limit(name, bound)}
                    for name, bound in answer.limits.bounds
                ],
                "feasible_count": sum(row.status == "feasible" for row in answer.rows),
                "best": _record(answer.best),
                "best_published": _record(answer.best_published),
                "nearest_miss": _record(answer.nearest_miss),
                "nearest_published_miss": _record(answer.nearest_published_miss),
                "rows": records(answer.rows),
                "violations": records(answer.violations),
                "assumptions": records(answer.assumptions),
                "caveats": records(answer.caveats),
                "next_steps": next_steps(answer, options),
            }
        )
    if form is Format.CSV:
        names = [field.name for field in attrs.fields(RankedConfiguration)]
        return write_csv(names, [[getattr(row, name) for name in names] for row in answer.rows])
    is_markdown = form is Format.MARKDOWN
    feasible, unranked, infeasible = (
        [row for row in answer.rows if row.status == status] for status in ("feasible", "unranked", "infeasible")
    )
    bases = answer.assumptions if answer.objective in BASES_OF_USE else ()
    steps = next_steps(answer, options)
    sections = [
        ("Limits", list_lines(describe_limit(name, bound) for name, bound in answer.limits.bounds) or "none"),
        ("Recommendation", list_lines(describe_best(answer))),
        (f"Feasible ({len(feasible):,})", _feasible(answer, feasible, limit, is_markdown)),
        (f"Infeasible ({len(infeasible):,}), nearest first", _infeasible(infeasible, limit, is_markdown)),
        ("Assumptions", draw_assumptions(bases, is_markdown) if bases else ""),
        ("Notes", list_lines(_notes(answer, unranked, infeasible))),
        ("Next steps", "\n".join(f"- `{line}`" if is_markdown else f"  {line}" for line in steps)),
    ]
    title = f"{answer.model}: {name_goal(answer.objective)} among {count_configurations(len(answer.rows))}"
    return join_sections(title, sections, is_markdown)


def _record(row: RankedConfiguration | None) -> dict[str, Any] | None:
    return attrs.asdict(row) if row else None


def describe_limit(name: str, bound: float) -> str:
    """Return a limit in words, as it was understood."""
    word = "at least" if name == "throughput" else "at most"
    return f"{MEANING[name]}: {word} {show_figure(bound, UNITS[name])}"


def describe_best(answer: RecommendAnswer) -> list[str]:
    """Return what to choose, the best published beside a projection, or the nearest miss where nothing fits."""
    best, published = answer.best, answer.best_published
    if best is None:
        return _describe_miss(answer)
    lines = [f"{name_configuration(best)}: {_objective(answer, best)}{_against(answer)}"]
    if best.is_projection:
        lines.append(
            f"best published: {name_configuration(published)}: {_objective(answer, published)} "
            f"({show(published.objective_ratio, 'objective_ratio')} of that)"
            if published
            else "best published: none keeps every limit"
        )
    return lines


def _objective(answer: RecommendAnswer, row: RankedConfiguration) -> str:
    return f"{MEANING[answer.objective]} {show_figure(row.objective_value, row.objective_unit)}"


def _against(answer: RecommendAnswer) -> str:
    second = next((row for row in answer.rows if row.rank == 2), None)
    if second is None or second.objective_ratio is None:
        return ""
    if second.objective_ratio < TIE_RATIO:
        return f", same as {name_configuration(second)} to three digits"
    return f", {second.objective_ratio:.3g}x better than {name_configuration(second)}"


def _describe_miss(answer: RecommendAnswer) -> list[str]:
    nearest = answer.nearest_miss
    if nearest is None:
        return [f"{MEANING[answer.objective]} is not known of any configuration that keeps the limits"]
    lines = ["nothing keeps every limit", f"nearest: {_describe_one_miss(nearest)}"]
    published = answer.nearest_published_miss
    if nearest.is_projection and published is not None:
        lines.append(f"nearest published: {_describe_one_miss(published)}")
    return lines


def _describe_one_miss(row: RankedConfiguration) -> str:
    also = [name for name in row.failed.split(", ") if name != row.worst_limit]
    more = f"; it misses {' and '.join(also)} too" if also else ""
    return f"{name_configuration(row)} misses {row.worst_limit} {_miss(row)}{more}"


def _miss(row: RankedConfiguration) -> str:
    bound = show_figure(row.worst_bound, row.worst_unit)
    if row.violation_fraction is None:
        return f"of {bound}: its price is not known"
    has = show_figure(row.worst_value, row.worst_unit)
    return f"by {show_plain(row.violation_fraction * 100)} % ({has} against {bound})"


def _feasible(answer: RecommendAnswer, rows: Sequence[RankedConfiguration], limit: int, is_markdown: bool) -> str:
    if not rows:
        return ""
    headings = (
        "rank", *HEADINGS, answer.objective, "of the best", *(name for name in _FIGURES if name != answer.objective),
    )  # fmt: skip
    cells = [
        [
            str(row.rank),
            mark(row),
            row.precision,
            str(row.batch),
            show_figure(row.objective_value, row.objective_unit),
            show(row.objective_ratio, "objective_ratio"),
            *(
                show_figure(getattr(row, field), unit)
                for name, (field, unit) in _FIGURES.items()
                if name != answer.objective
            ),
        ]
        for row in rows[:limit]
    ]
    return draw_table(headings, cells, is_markdown=is_markdown) + count_more(len(rows), limit)


_FIGURES: Final = {
    "latency": ("latency_s", "s"),
    "energy_per_inference": ("energy_per_inference_j", "J"),
    "throughput": ("throughput_per_s", "1/s"),
    "power": ("average_power_w", "W"),
    "memory": ("peak_memory_bytes", "B"),
    "rent": ("price_cloud_usd_per_hour", "USD/h"),
    "purchase": ("price_purchase_usd", "USD"),
}


def _infeasible(rows: Sequence[RankedConfiguration], limit: int, is_markdown: bool) -> str:
    if not rows:
        return ""
    cells = [
        [
            mark(row),
            row.precision,
            str(row.batch),
            row.worst_limit or "",
            "" if row.violation_fraction is None else f"{show_plain(row.violation_fraction * 100)} %",
            show_figure(row.worst_value, row.worst_unit) or "not known",
            show_figure(row.worst_bound, row.worst_unit),
            ", ".join(name for name in row.failed.split(", ") if name != row.worst_limit),
        ]
        for row in rows[:limit]
    ]
    headings = (*HEADINGS, "misses most", "by", "has", "limit", "also misses")
    return draw_table(headings, cells, is_markdown=is_markdown) + count_more(len(rows), limit)


def _notes(
    answer: RecommendAnswer, unranked: Sequence[RankedConfiguration], infeasible: Sequence[RankedConfiguration]
) -> list[str]:
    lines = describe_rows(answer.rows, answer.caveats)
    if infeasible:
        lines.append(MISS_NOTE)
    unpriced = [row for row in infeasible if row.violation_fraction is None]
    for rows, word in ((unranked, "without a rank"), (unpriced, "outside a limit on the price")):
        if rows:
            names = dict.fromkeys(mark(row).partition("@")[0] for row in rows)
            lines.append(f"{count_configurations(len(rows))} {word}, {rows[0].reason}: {', '.join(names)}")
    return lines + describe_refused((row.status, row.reason) for row in answer.rows)


def next_steps(answer: RecommendAnswer, options: Sequence[str] = ()) -> list[str]:
    """Return the commands that take the recommended configurations apart."""
    rows = [row for row in (answer.best, answer.best_published, answer.nearest_miss) if row is not None]
    return [write_analyze(answer.model, row, answer.spelling, options) for row in dict.fromkeys(rows)]
