"""Words and tables of the utilization of chips: shares, flags, remedies and pairings."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final

from joulemap.ask.fact import Entry, Facts, Share, Turn
from joulemap.ask.scope import vary
from joulemap.ask.utilization import BOUNDS, LOWER, OTHER_CHIP, UtilizationAnswer
from joulemap.domain.table import Column, Table
from joulemap.generated.utilization import BatchZone, Pairing, PrecisionGain, Remedy, Utilization, UtilizationFlag
from joulemap.show.caveat import tell_ranges
from joulemap.show.choice import MOST_WHY, finish
from joulemap.show.column import alter, derived, show_table
from joulemap.show.fact import read
from joulemap.show.page import (
    Asked,
    Drawings,
    Figures,
    Page,
    compose_runs,
    count_left_out_below,
    draw_figure,
    fill_steps,
    first_and_rest,
    sketch,
)
from joulemap.show.present.category import name_bound
from joulemap.show.present.cell import Number, mark_projected, show_plain, show_quantity, show_share, show_span
from joulemap.show.present.document import Document, Section, Text
from joulemap.show.present.template import Template
from joulemap.show.run_name import name_first
from joulemap.show.term import RANGE
from joulemap.system.name import PROJECTED

MOVED: Final = 0.05
"""Minimum change of the throughput that the first line states; below it, it states the energy."""

USES: Final = Template("{run} uses {share:%} of its {peak} ({name})[, {others:list}].")
HELPS: Final = Template(
    "Use {remedy} {place} {run}: {ratio:x} the {what}[ at {latency:x} the latency]"
    "[; it uses {share:%} of its {peak} now]"
)
OTHER: Final = Template("{run} {share:%} ({name})")
IDLE_UNITS, PADDED = 0.25, 0.1
"""Minimum shares of idle units and of padding that explain a low utilization."""
LIMITS: Final = {
    "launch": Template(
        "{run} runs {kernels:plain} kernels in {latency}, {kernel_time} each: {share:%} of the time goes to kernels "
        "too short to hide their launch"
    ),
    "memory": Template(
        "{run} moves {dram} off chip at {dram_rate}, its memory has {bandwidth}: {share:%} of the time waits for memory"
    ),
    "compute": Template(
        "{run} computes {attained} of {peak}, {gap:x} less:[ {idle:x} from idle units,][ {padded:x} from padding,] "
        "{rest:x} from kernel efficiency and overheads"
    ),
    "busy": Template(
        "{run} computes {attained} of {peak} with all units busy: the rest is the efficiency of its kernels, which no "
        "count explains"
    ),
}
"""Bottleneck -> line on it; `busy` is computation without idle units and padding."""
IDLE: Final = Template(
    "{units_used:plain} of {units:plain} units have work on average: a kernel has {tiles:plain} tiles of work"
)
PADDING: Final = Template("{padding:%} of the MACs in tiles are padding, because layers do not fill them")
LANES: Final = Template(
    "{run}: only convolutions use TF32; {share:%} of the fp32 peak (`--matmul-precision high`: all in TF32)"
)
UNTRACED: Final = Template("other batches were not tried: {untraced}")
PAIRING: Final = Template(
    "size classes by operations of one inference, * marks {model}; from built-in models on the chips above"
)
SIZE: Final = Template("{low:~} to {high:~}[ {mark}]")
NO_MACS: Final = Template("no MACs[ {mark}]")
GOALS: Final = {"energy": "least energy", "latency": "least latency", "utilization": "highest utilization"}
PAIRINGS: Final = "Best hardware per model size"
NEXT: Final = Template("{name} ({won})")
BY_SUBGRAPH: Final = Template("analyze {model} {worst} --level subgraph")
BY_PAIRING: Final = Template("utilization {model} --hardware {rivals} --pairing")
BY_BATCH: Final = Template("sweep {model} --hardware {worst}")

SHOWN_RIVALS: Final = 3
"""Maximum chips in the follow-up command on models of other sizes, besides the least utilized chip."""

SHOWN_FRACTION: Final = 0.0005
"""Share of an energy below which the share is displayed as zero."""

BOUND_COLUMNS: Final = (
    Column(name="main_bottleneck", type="VARCHAR", meaning="what takes most of the time"),
    Column(name="label", type="VARCHAR", meaning="chip, with the setting that differs"),
)
"""Columns that the rows of a figure have in addition to the query's columns."""


def describe_use(facts: Facts) -> str:
    """Return the first line: the first setting that would help the least used chip, or the use of all chips."""
    grades = [one for one in facts.of(Share) if one.level == "grade"]
    *others, worst = [read(one, facts) for one in grades]
    is_tf32 = any(one.metric == "fp32" and one.runs == grades[-1].runs for one in facts.of(Share))
    peak = f"{'TF32 ' if is_tf32 else ''}compute peak"
    for turn in facts.of(Turn)[:1]:
        ratios = {name: one for name, one in turn.values.items() if isinstance(one, float)}
        energy, latency, ratio = ratios.get("energy_per_inference"), ratios.get("latency", 0.0), turn.ratio or 1.0
        is_faster = ratio >= 1.0 + MOVED or energy is None
        values = {
            **_name(turn),
            "run": worst["run"],
            "ratio": ratio if is_faster else energy,
            "what": "throughput" if is_faster else "energy per inference",
            "latency": latency if latency > 1.0 + MOVED else None,
        }
        return finish([HELPS(**values, share=share, peak=peak) for share in (worst["share"], None)])
    return USES(None, **worst, peak=peak, others=[OTHER(None, **one) for one in others[:1]] or None)


def _name(turn: Turn) -> dict[str, str]:
    """Return a remedy in words, and what it applies to."""
    is_chip, after = turn.axis == OTHER_CHIP, str(turn.after)
    mark = "" if not is_chip or turn.values["is_available"] else PROJECTED
    other = "" if turn.axis in ("larger batch", OTHER_CHIP) else f" ({turn.axis})"
    name = f"{mark}{after}" + (" if accurate enough" if turn.axis == LOWER else other)
    return {"remedy": name, "place": "instead of" if is_chip else "on"}


def list_reasons(facts: Facts) -> list[str]:
    """Return lines on what limits the least used chip: its bottleneck, idle units and padding."""
    lines: list[str] = []
    for work in (read(one, facts) for one in facts.of(Entry) if "kernels" in one.values):
        run, padded = work["run"], 1.0 / (1.0 - work["padding"])
        idle = work["units"] / (work["units_used"] or work["units"])
        factors = {name: one if one > 1.0 + MOVED else None for name, one in (("idle", idle), ("padded", padded))}
        shares = [one for one in (read(share, facts) for share in facts.of(Share)) if one["run"] == run]
        used = next(one["share"] for one in shares if one["level"] == "grade") or 1.0
        values = {**work, **factors, "gap": 1.0 / used, "rest": 1.0 / used / idle / padded}
        lines += [LANES(None, **one) for one in shares if one["level"] == "lanes"]
        for one in (share for share in shares if share["level"] == "bottleneck"):
            is_busy = one["name"] == BOUNDS[0] and not any(factors.values())
            lines.append(LIMITS["busy" if is_busy else one["name"]](None, **{**values, **one}))
        lines += [IDLE(None, **work)] if 1.0 - 1.0 / idle >= IDLE_UNITS else []
        lines += [PADDING(None, **work)] if work["padding"] >= PADDED else []
    return lines


def describe_ranges(facts: Facts) -> str:
    """Return the ends of the 80 % intervals of the best and of the least used chip; empty without intervals."""
    spans, used = [], [one for one in facts.of(Entry) if "utilization" in one.values]
    for one in (*used[:1], *used[1:][-1:]):
        value = one.values["utilization"]
        if value.half_width:
            ends = (min(value.value * math.exp(sign * value.half_width), 1.0) for sign in (-1.0, 1.0))
            spans.append(RANGE(range=show_span(*map(show_share, ends)), name=name_first(facts.runs, one)))
    return tell_ranges(spans)


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


def draw_figures(answer: UtilizationAnswer) -> Figures:
    """Return a figure of utilization and one of rooflines for all hardware; empty if all hardware was refused."""
    if not answer.used:
        return ()
    bound = _bind(answer.rows, (row.hardware for row in answer.rows))
    return (
        draw_figure(answer.scope, "utilization", answer.rows, facts=describe_use(answer.facts)),
        draw_figure(answer.scope, "rooflines", bound, facts=" ".join(list_reasons(answer.facts)[:1])),
    )


def _bind(rows: Table[Utilization], labels: Iterable[str]) -> Table[Any]:
    """Return rows with their main bottlenecks and labels."""
    bounds = (next((name_bound(name) for name, _ in list_bounds(row)), None) for row in rows)
    return rows.with_columns(BOUND_COLUMNS, zip(bounds, labels, strict=True))


def draw_rooflines(answer: UtilizationAnswer) -> Drawings:
    """Return the rooflines of the used chips, with a mark where the first remedy leads."""
    worst, named = answer.used[-1], [row.hardware for row in answer.used]
    for row in answer.remedied:
        varied = vary((worst, row))[row.run_id] if row.hardware == worst.hardware else ()
        named.append(" ".join((row.hardware, *varied)))
    rows = answer.rows.with_rows((*answer.used, *answer.remedied))
    return (sketch("rooflines", _bind(rows, named)),)


def show_median(row: Pairing) -> str:
    """Return the median of what a goal is measured by."""
    return show_share(row.median_value) if row.unit == "1" else show_quantity(row.median_value, row.unit)


def show_used(answer: UtilizationAnswer, most: int) -> list[Section]:
    """Return the section of the chips that run the model: their use, what limits it, and what helps most."""

    def choose(row: Utilization) -> str:
        return mark_choice(answer, answer.better[row.run_id]) if row.run_id in answer.better else ""

    def show_gain(row: Utilization) -> str:
        return Number(f"{show_plain(answer.better[row.run_id].gain_ratio)}x") if row.run_id in answer.better else ""

    use, grade = Utilization.compute_utilization_fraction, Utilization.compute_grade
    bound, remedy = derived("bottleneck, share of time", describe_bound), derived("remedy", choose)
    gain = derived("throughput x efficiency", show_gain)
    columns = (
        Utilization.hardware,
        use.ranking,
        grade,
        bound,
        Utilization.idle_units_fraction,
        *(() if answer.remedies is None else (remedy, gain)),
        Utilization.bandwidth_utilization_fraction,
        Utilization.average_power_w,
    )
    kept = (use, bound, remedy, gain, grade)
    used = show_table(answer, "", answer.used_rows, columns, keep=kept, limit=most, noun="chips")
    return count_left_out_below(answer.scope, used)


def list_details(answer: UtilizationAnswer) -> Iterator[list[Section]]:
    """Yield the tables behind that of the chips."""

    def size(row: Pairing) -> str:
        return describe_size(answer, row)

    def name_next(row: Pairing) -> str:
        name = mark_projected(row.runner_up or "", answer.projected)
        return NEXT(name=name, won=row.runner_up_won_count) if row.runner_up else ""

    yield show_table(answer, "Roofline", answer.rows, Utilization.table)
    yield show_table(answer, "Flags", answer.flags, UtilizationFlag.table)
    choice = Remedy.choice.by(partial(mark_choice, answer)).kept
    yield show_table(answer, "Remedies", answer.tried, alter(Remedy.table, choice))
    yield show_table(answer, "Efficient batch sizes", answer.varied_zones, BatchZone.table)
    yield show_table(answer, "Gain of each precision", answer.precisions, PrecisionGain.table)
    won, median, use = Pairing.won_count, Pairing.median_value, Pairing.median_utilization_fraction
    altered = alter(
        Pairing.table,
        Pairing.least_flop_count.by(size),
        Pairing.goal.by(lambda row: GOALS[row.goal]),
        median.by(show_median),
        Pairing.runner_up.by(name_next),
    )
    note = Text(PAIRING(model=answer.scope.model))
    yield show_table(
        answer, PAIRINGS, answer.pairings, altered, note, keep=(Pairing.goal, Pairing.hardware, won, median, use)
    )


def list_steps(answer: UtilizationAnswer, repeated: Sequence[str]) -> list[list[str]]:
    """Return commands on the least used chip: its subgraphs, a pairing if there are several, and batches."""
    *others, worst = [answer.scope.spell(row.hardware) for row in answer.used]
    steps = [
        BY_SUBGRAPH,
        *([] if answer.pairings or not others else [BY_PAIRING]),
        *([] if "--batch" in repeated else [BY_BATCH]),
    ]
    rivals = ",".join((*others[:SHOWN_RIVALS], worst))
    return fill_steps(steps, None, repeated, model=answer.scope.model, worst=worst, rivals=rivals)


def draw_utilization(answer: UtilizationAnswer, asked: Asked) -> Document:
    """Return the document of the use of chips."""
    first, rest = first_and_rest([show_used(answer, asked.most(10)), *list_details(answer)])
    return compose_runs(
        answer,
        answer.facts,
        first,
        answer.rows,
        headline=describe_use(answer.facts),
        reasons=list_reasons(answer.facts)[:MOST_WHY],
        trust=describe_ranges(answer.facts),
        details=rest,
        notes=[UNTRACED(untraced=answer.untraced)] if answer.untraced else [],
        steps=list_steps(answer, asked.repeated),
        picture=partial(draw_rooflines, answer),
    )


PAGES: Final = {UtilizationAnswer: Page[UtilizationAnswer](draw=draw_utilization, draw_figures=draw_figures)}
