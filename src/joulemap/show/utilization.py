"""Words and tables of the utilization of chips: shares, flags, remedies and pairings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from joulemap.ask.fact import Entry, Facts, Share, Turn
from joulemap.ask.utilization import BOUNDS, LOWER, OTHER_CHIP, UtilizationAnswer
from joulemap.domain.table import Column
from joulemap.generated.utilization import Pairing, Remedy, Utilization
from joulemap.show.caveat import RANGES
from joulemap.show.choice import fits
from joulemap.show.page import Figures, draw_figure, tell_left_out
from joulemap.show.part import RANGES_ARE
from joulemap.show.present.category import name_bound
from joulemap.show.present.cell import Number, mark_projected, show_plain, show_quantity, show_share, show_span
from joulemap.show.present.document import Text
from joulemap.show.present.template import Template
from joulemap.show.run_name import name_run
from joulemap.show.shape import Part, Shape, line, read
from joulemap.show.term import RANGE
from joulemap.system.name import PROJECTED

MOVED: Final = 0.05
"""Minimum change of the throughput that the first line states; below it, it states the energy."""

USES: Final = Template("{run} uses {share:%} of its [{peak} ]compute peak ({name})")
HELPS: Final = Template("{head}; {remedy} {would}[ {place}] {ratio:x} the {what}[ at {latency:x} the latency]")
MOST_TIME: Final = Template("Most of the time goes to {reasons:list}.")
TIME_ON: Final = Template("{reason} on {names:and}")
GRADES: Final = Template("grades by share of the peak, or of the roofline: {bounds:list}, else {last}")
GRADE: Final = Template("{grade} from {least_fraction:set %}")
INACCURATE: Final = "a lower precision is judged by time and energy; the accuracy of the model is not considered"
UNTRACED: Final = Template("other batches were not tried: {untraced}")
PAIRING: Final = Template(
    "size classes by operations of one inference, * marks {model}; from the stored runs with these settings[ {among}]"
)
SIZE: Final = Template("{low:~} to {high:~}[ {mark}]")
NO_MACS: Final = Template("no MACs[ {mark}]")
GOALS: Final = {"energy": "least energy", "latency": "least latency", "utilization": "highest utilization"}
BY_PAIRING: Final = "utilization {model} --hardware {rivals} --pairing"
BY_BATCH: Final = "sweep {model} --hardware {worst}"
REMEDY_TABLE, PAIRING_TABLE = "Remedies", "Best hardware per model size"

SHOWN_RIVALS: Final = 3
"""Maximum chips in the follow-up command on models of other sizes, besides the least utilized chip."""

SHOWN_FRACTION: Final = 0.0005
"""Share of an energy below which the share is displayed as zero."""

BOUND_COLUMNS: Final = (Column(name="main_bottleneck", type="VARCHAR", meaning="what takes most of the time"),)
"""Columns that the rows of a figure have in addition to the query's columns."""


def describe_use(facts: Facts) -> str:
    """Return the first line: the best and the least used chip, and the first setting that would help the latter."""
    grades = [one for one in facts.of(Share) if one.level == "grade"]
    best, worst = read(grades[0], facts), read(grades[-1], facts)
    is_tf32 = any(one.metric == "fp32" and one.runs == grades[0].runs for one in facts.of(Share))
    head = USES(None, **best, peak="TF32" if is_tf32 else "")
    if len(grades) > 1:
        head += f", {worst['run']} {show_share(worst['share'])} ({worst['name']})"
    for turn in facts.of(Turn)[:1]:
        ratios = {name: one for name, one in turn.values.items() if isinstance(one, float)}
        energy, latency, ratio = ratios.get("energy_per_inference"), ratios.get("latency", 0.0), turn.ratio or 1.0
        is_faster, is_chip = abs(ratio - 1.0) >= MOVED or energy is None, turn.axis == OTHER_CHIP
        place = "" if len(grades) < 2 or is_chip or not is_faster else worst["run"]
        whole = HELPS(
            head=head,
            remedy=_name(turn)["remedy"],
            would=("has" if is_chip else "would give") if is_faster else "would take",
            place=place,
            ratio=ratio if is_faster else energy,
            what="throughput" if is_faster else "energy per inference",
            latency=latency if is_faster and latency > 1.0 + MOVED else None,
        )
        head = whole if fits(whole) else head
    return head + "."


def _name(turn: Turn) -> dict[str, str]:
    """Return a remedy in words, and what it applies to."""
    is_chip, after = turn.axis == OTHER_CHIP, str(turn.after)
    mark = "" if not is_chip or turn.values["is_available"] else PROJECTED
    other = "" if turn.axis in ("larger batch", OTHER_CHIP) else f" ({turn.axis})"
    name = f"{mark}{after}" + (", if accurate enough," if turn.axis == LOWER else other)
    return {"remedy": name, "place": "instead of" if is_chip else "on"}


def describe_ranges(facts: Facts) -> str:
    """Return the ends of the 80 % intervals of the best and of the least used chip; empty without intervals."""
    spans = []
    for one in (*facts.of(Entry)[:1], *facts.of(Entry)[1:][-1:]):
        value = one.values["utilization"]
        if value.half_width:
            ends = (min(value.value * math.exp(sign * value.half_width), 1.0) for sign in (-1.0, 1.0))
            spans.append(RANGE(range=show_span(*map(show_share, ends)), name=name_run(facts.runs[one.runs[0]])))
    return RANGES_ARE(ranges=RANGES, spans=spans) if spans else ""


def describe_time(facts: Facts) -> str:
    """Return a sentence on what takes most of the time on each chip; empty if no run has kernels."""
    spent: dict[str, list[str]] = {}
    for one in facts.of(Share):
        if one.level == "bottleneck":
            spent.setdefault(name_bound(one.name), []).append(name_run(facts.runs[one.runs[0]]))
    reasons = [TIME_ON(reason=reason, names=names) for reason, names in spent.items()]
    return MOST_TIME(reasons=reasons) if reasons else ""


def list_notes(answer: UtilizationAnswer) -> list[str]:
    """Return notes on the least share of each grade, on why other batches were not tried, and on other precisions."""
    told = GRADES(bounds=[GRADE(row) for row in answer.grades.rows[:-1]], last=answer.grades.rows[-1].grade)
    untraced = [UNTRACED(untraced=answer.untraced)] if answer.untraced else []
    return [told, *untraced, *([INACCURATE] if answer.precisions else [])]


def list_bounds(row: Utilization) -> list[tuple[str, float]]:
    """Return the bottlenecks of a run as (name, share of the time), largest first."""
    shares = [(name, getattr(row, f"{name}_time_fraction")) for name in BOUNDS]
    return sorted((one for one in shares if one[1] and one[1] >= SHOWN_FRACTION), key=lambda one: -one[1])


def describe_bound(row: Utilization) -> str:
    """Return the main bottleneck of a run and its share of the time."""
    return next((f"{name} {show_share(share)}" for name, share in list_bounds(row)), "")


def mark_choice(answer: UtilizationAnswer, row: Remedy) -> str:
    """Return the setting of a remedy, marked if it is a chip that can be neither bought nor rented."""
    return mark_projected(row.choice, answer.projected)


def describe_size(answer: UtilizationAnswer, row: Pairing) -> str:
    """Return a size class, marked if it is that of the model."""
    low, mark = row.least_flop_count, "*" if row.least_flop_count == answer.used[0].least_flop_count else ""
    return SIZE(low=low, high=10 * low, mark=mark) if low else NO_MACS(mark=mark)


def choose(answer: UtilizationAnswer, repeated: Sequence[str] = (), **_: Any) -> Mapping[str, Any]:
    """Return the values of slots in the texts of parts and steps."""
    *others, worst = [answer.scope.spell(row.hardware) for row in answer.used]
    return {
        "remedies": "" if answer.remedies is None else "*remedy choice | *throughput x efficiency gain | ",
        "model": answer.scope.model,
        "worst": worst,
        "rivals": ",".join((*others[:SHOWN_RIVALS], worst)),
        "dropped": [BY_PAIRING] * bool(answer.pairings) + [BY_BATCH] * ("--batch" in repeated),
    }


def draw(answer: UtilizationAnswer) -> Figures:
    """Return a figure of utilization and one of rooflines for all hardware; empty if all hardware was refused."""
    if not answer.used:
        return ()
    reasons = (next((name_bound(name) for name, _ in list_bounds(row)), None) for row in answer.rows)
    bound = answer.rows.with_columns(BOUND_COLUMNS, ((reason,) for reason in reasons))
    return (
        draw_figure(answer.scope, "utilization", answer.rows, facts=describe_use(answer.facts)),
        draw_figure(answer.scope, "rooflines", bound, facts=describe_time(answer.facts)),
    )


UTILIZATION: Final = Shape(
    first=describe_use,
    why=(
        line(
            "{remedy} {place} {of}: {ratio:x} the throughput[, {energy_per_inference:plain}x the energy per inference]"
            "[, {latency:plain}x the latency]",
            "turn",
            more=_name,
            among=slice(1),
        ),
        line(
            "{run}: only convolutions use TF32; {share:%} of the fp32 peak (`--matmul-precision high`: all in TF32)",
            "share lanes",
        ),
        line(
            {
                "utilization": "{run}: compute utilization {value:%}, below {bound:set %}"
                "[; most time lost in {name} ({share:%})]",
                "bandwidth": "{run}: {value:%} of the sustained off-chip bandwidth in use, above {bound:set %}"
                "[; most in {name} ({share:%})]",
                "idle": "{run}: units idle {value:%} of the time, above {bound:set %}[; most in {name} ({share:%})]",
            },
            "limit",
            "share subgraph",
        ),
        line(
            "{run}: {share:%} of the time is limited by {name:bound}",
            "share bottleneck",
            among=slice(None, None, -1),
        ),
    ),
    trust=describe_ranges,
    notes=list_notes,
    csv="rows",
    choices=choose,
    draw=draw,
    limit=10,
    steps=("analyze {model} {worst} --level subgraph", BY_PAIRING, BY_BATCH),
    parts=(
        Part(
            table="used_rows",
            columns="hardware | *compute_utilization_fraction | compute_grade | *bottleneck, share of time bound | "
            "idle_units_fraction | {remedies}bandwidth_utilization_fraction | average_power_w",
            lay={
                "noun": "chips",
                "keep": "compute_utilization_fraction bound choice gain compute_grade",
                "ranked": "compute_utilization_fraction",
                "bound": describe_bound,
            },
            cells=lambda answer: {
                "choice": lambda row: (
                    mark_choice(answer, answer.better[row.run_id]) if row.run_id in answer.better else ""
                ),
                "gain": lambda row: (
                    Number(f"{show_plain(answer.better[row.run_id].gain_ratio)}x")
                    if row.run_id in answer.better
                    else ""
                ),
            },
            is_long=True,
            is_tight=True,
            draw=lambda answer, grid, _, **__: (grid, *tell_left_out(answer.scope, is_brief=True)),
        ),
        Part(
            title="Roofline",
            table="rows",
            columns="hardware | *compute_utilization_fraction | *compute_grade | *roofline_fraction | "
            "*roofline_grade | *idle_units_fraction | attained_ops_per_s | peak_ops_per_s | "
            "bandwidth_utilization_fraction | sustained_bandwidth_fraction | dram_intensity_ops_per_byte | "
            "ridge_ops_per_byte | roof | units_used_count | units_total_count | average_power_w | "
            "ops_per_j | flags",
        ),
        Part(
            title="Flags",
            table="flags",
            columns="hardware | *flag | *value_fraction | *limit_fraction | *subgraph | *subgraph_fraction | "
            "bottleneck | subgraph_count | bottleneck_fraction | units_used_count",
        ),
        Part(
            title=REMEDY_TABLE,
            table="tried",
            columns="hardware | *choice | *throughput_ratio | *energy_ratio | *gain_ratio | latency_ratio | remedy | "
            "is_better",
            cells=lambda answer: {"choice": partial(mark_choice, answer)},
        ),
        Part(
            title="Efficient batch sizes",
            table="varied_zones",
            columns="hardware | *zone_batches | *best_batch | *best_utilization_fraction | "
            "*least_energy_per_inference_j | *latency_s | *peak_memory_bytes | *refused_batch",
        ),
        Part(
            title="Gain of each precision",
            table="precisions",
            columns="hardware | *precision | *speedup_ratio | *energy_ratio | *peak_ratio | *memory_ratio | "
            "*compute_utilization_fraction | *baseline_precision",
        ),
        Part(
            title=PAIRING_TABLE,
            table="pairings",
            columns="least_flop_count | goal | hardware | won_count | median_value | median_advantage_ratio | "
            "median_utilization_fraction | model_count | hardware_count | runner_up",
            lay={
                "keep": "goal hardware won_count median_value median_utilization_fraction",
                "goal": lambda row: GOALS[row.goal],
                "median_value": lambda row: (
                    show_share(row.median_value) if row.unit == "1" else show_quantity(row.median_value, row.unit)
                ),
            },
            cells=lambda answer: {
                "least_flop_count": partial(describe_size, answer),
                "runner_up": lambda row: (
                    f"{mark_projected(row.runner_up, answer.projected)} ({row.runner_up_won_count})"
                    if row.runner_up
                    else ""
                ),
            },
            draw=lambda answer, grid, _, **__: (
                grid,
                Text(PAIRING(model=answer.scope.model, among="on the chips above" if len(answer.rows) > 1 else "")),
            ),
        ),
    ),
)

PAGES: Final = {UtilizationAnswer: UTILIZATION}
