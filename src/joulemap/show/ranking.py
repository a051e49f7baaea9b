"""Words and tables of a ranking: the best chip by one metric, and what limits it and the next one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import attrs

from joulemap.ask.fact import Choice, Entry, Facts, Share
from joulemap.ask.ranking import EVEN, RankingAnswer
from joulemap.domain.metric import METRIC, Metric
from joulemap.domain.table import group
from joulemap.generated.compare import HardwareNumber, RankedHardware
from joulemap.show.choice import describe_best, describe_beyond
from joulemap.show.contest import lay_parts
from joulemap.show.figure.figure import describe_metric
from joulemap.show.layout import draw_ranges
from joulemap.show.page import Drawings, lay_rows, sketch
from joulemap.show.present.cell import drop_first_name, mark_projected, show_busy_units, show_ends
from joulemap.show.present.document import Grid, choose_rows
from joulemap.show.present.template import Template
from joulemap.show.run_name import name_first
from joulemap.show.shape import Part, Shape

LIMITED: Final = Template("{name} {limits:and}")
LIMITS: Final = {
    "launch": Template("spends {share:%} of the time in kernel launches"),
    "memory": Template("spends {share:%} of the time waiting for memory"),
    "utilization": Template("reaches {share:%} of its compute peak"),
    "units": Template("leaves its {name}s idle {share:%} of the time"),
}
"""Part of the time, or whole of a share -> its clause."""

OPERATORS_TITLE: Final = "Operators of the model"
NUMBERS_TITLE: Final = "Numbers of each chip"
STRENGTHS_TITLE: Final = "Strengths and weaknesses"
SPREADS_TITLE: Final = "Utilization of each chip"
COLUMNS: Final = (
    "*inferences_per_j", "*latency_s", "*average_power_w", "throughput_per_s", "architecture", "energy_per_inference_j",
    "tdp_w", "compute_utilization_fraction", "units_used_count", "microarchitecture", "rank",
)  # fmt: skip
"""Columns beside the hardware, most important first."""

RANGE: Final = "range"

STEPS: Final = ("compare {model} --level detailed --hardware {best}", "explain {model} {other} {best}")

FEWEST_FOR_MEDIAN: Final = 3
"""Minimum chips for a comparison with their median; with two chips, the median adds nothing to the table."""


def list_reasons(facts: Facts) -> list[str]:
    """Return lines on why: what limits the first runs, and named hardware that cannot be bought and would win."""
    lines = [
        LIMITED(
            name=name_first(facts.runs, own[0]),
            limits=[(LIMITS.get(one.metric) or LIMITS[one.name])(name=one.name, share=one.share) for one in own],
        )
        for own in group(facts.of(Share), lambda one: one.run).values()
    ]
    return [*lines, *describe_beyond(facts)]


def find_metric(answer: RankingAnswer) -> Metric:
    """Return the metric that ranks the hardware."""
    return METRIC[answer.facts.asked[0]]


def choose(answer: RankingAnswer, **_: Any) -> Mapping[str, Any]:
    """Return the columns and steps on the best chip, and on the next one if there is one."""
    ranked = find_metric(answer).column
    columns = sorted(COLUMNS, key=lambda one: one.strip("*") != ranked)
    choice = answer.facts.of(Choice)[0]
    hardware = [answer.scope.spell(answer.facts.runs[run_id].hardware) for run_id in choice.runs[:2]]
    return {
        "shown": ["answered", "placements", "subgraphs"],
        "columns": " | ".join(("hardware", columns[0], f"{RANGE} spread", *columns[1:])),
        "ranked": ranked,
        "metric": answer.subgraphs[0].metric.capitalize() if answer.subgraphs else "",
        "steps": STEPS[: len(hardware)],
        "model": answer.scope.model,
        "best": hardware[0],
        "other": hardware[-1],
    }


def lay_ranking(answer: RankingAnswer, rows: Any, limit: int, *, columns: str, ranked: str, **_: Any) -> Grid:
    """Return a grid of the first `limit` chips by rank, with the interval of the metric that ranks them."""
    metric = answer.facts.asked[0]
    values = {one.run: one.values[metric] for one in answer.facts.of(Entry)}

    def stays(row: RankedHardware) -> bool:
        return row is answer.best_available

    def show_spread(row: RankedHardware) -> str:
        value = values[row.run_id]
        return show_ends(value.value, value.unit, value.half_width)

    drawn = lay_rows(
        answer,
        rows,
        columns,
        ranked=ranked,
        keep="spread",
        limit=limit,
        noun="chips",
        stays=stays,
        spread=show_spread,
        throughput_per_s=lambda row: _show_digits(row.throughput_per_s),
        inferences_per_j=lambda row: _show_digits(row.inferences_per_j),
        units_used_count=show_busy_units,
    )
    ids = [row.run_id for row in choose_rows(rows.rows, limit, stays)]
    (heading,) = drawn.ranked
    picture = draw_ranges(answer.facts, metric, ids, RANGE, of=heading, unit=find_metric(answer).unit)
    drawn = attrs.evolve(drawn, pictures=(picture,))
    choice = answer.facts.of(Choice)[0]
    is_choice = len(choice.runs) > 1 and len(choice.tied) < len(choice.runs) - 1
    return drawn.mark_best(heading, ids, choice.runs[:1], choice.tied) if is_choice else drawn


def divide_placements(answer: RankingAnswer) -> Iterator[tuple[Mapping[str, Any], Any]]:
    """Yield the rank, the hardware and the placements of each chip that were requested."""
    placed = answer.placements
    for row in answer.answered if placed is not None else ():
        own = placed and placed.with_rows(one for one in placed if one.run_id == row.run_id)
        yield {"rank": row.rank, "hardware": mark_projected(row.hardware, answer.projected)}, own


def divide_strengths(answer: RankingAnswer) -> Iterator[tuple[Mapping[str, Any], Any]]:
    """Yield the strengths and weaknesses; those beside a median need several chips."""
    is_large = len(answer.facts.of(Entry)) >= FEWEST_FOR_MEDIAN
    told = [row for row in answer.strengths if row.verdict != EVEN and (is_large or row.median_ratio is None)]
    yield {}, answer.strengths.with_rows(told)


def sketch_metric(answer: RankingAnswer, _by: str) -> Drawings:
    """Return a text drawing of the metric that ranks the hardware."""
    metric = find_metric(answer)
    return (sketch("ranking", answer.rows, {**describe_metric(metric), "column": metric.column}),)


def _show_digits(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def _name_quantity(row: HardwareNumber) -> str:
    """Return the displayed name of a hardware number."""
    if row.quantity == "unit_count":
        return f"{row.unit_name}s"
    return row.memory_type if row.quantity == "memory_capacity" else drop_first_name(row.quantity)


RANKING: Final = Shape(
    first=describe_best,
    why=list_reasons,
    choices=choose,
    sketch=sketch_metric,
    limit=10,
    parts=(
        Part(table="answered", draw=lay_ranking, counts_left_out=True),
        Part(
            title="Subgraphs on {rank}. {hardware}",
            table="placements",
            divide=divide_placements,
            columns="subgraph | *latency_s | *bottleneck | *units_used_count | *compute_utilization_fraction | "
            "*energy_j | latency_fraction | tile_count | wave_count | fusion_pattern",
            lay={"units_used_count": show_busy_units, "noun": "subgraphs"},
            is_long=1,
        ),
        Part(
            title="{metric} of each subgraph",
            table="subgraphs",
            draw=lambda answer, rows, limit, **_: lay_parts(
                rows,
                answer.projected,
                "subgraph",
                limit or len(rows),
                takes_all=answer.scope.settings.takes_all,
            ),
        ),
        Part(
            title=OPERATORS_TITLE,
            table="mix",
            columns="kind | *subgraph_count | *operator_count | operator_fraction | mac_count | *mac_fraction",
        ),
        Part(
            title=STRENGTHS_TITLE,
            table="strengths",
            divide=divide_strengths,
            columns="*hardware | *aspect | *verdict | *value | median_ratio? | grade? | unit_name?",
        ),
        Part(
            title=NUMBERS_TITLE,
            table="numbers",
            columns="*hardware | section | *quantity | *value | basis",
            lay={"quantity": _name_quantity},
        ),
        Part(
            title=SPREADS_TITLE,
            table="spread",
            columns="hardware | *mean_utilization_fraction | *min_utilization_fraction | min_name | "
            "*max_utilization_fraction | max_name | idle_time_fraction | compute_time_fraction | "
            "memory_time_fraction | launch_time_fraction",
        ),
    ),
)

PAGES: Final = {RankingAnswer: RANKING}
