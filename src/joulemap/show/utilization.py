"""Words on how well chips are used: shares of the peak, what would help, and flags."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from joulemap.ask.fact import Entry, Facts, Limit, Share, Turn
from joulemap.present.cell import show_share, show_span
from joulemap.present.template import Template
from joulemap.show.caveat import RANGES
from joulemap.show.choice import MOST_WHY, MOST_WORDS
from joulemap.show.explain import RANGE
from joulemap.show.part import BOUND, RANGES_ARE
from joulemap.show.run_name import name_run
from joulemap.system.name import PROJECTED

USES: Final = Template("{name} uses {share:%} of its [{peak} ]compute peak ({grade})")
LEAST: Final = Template("{head}, {name} {share:%} ({grade})")
HELPS: Final = Template("{head}; {remedy} would give {ratio:x} the throughput[ at {latency:x} the latency]")
HELPS_LAST: Final = Template("{head}; {remedy} would give {name} {ratio:x} the throughput[ at {latency:x} the latency]")
HELPS_ENERGY: Final = Template("{head}; {remedy} would take {ratio:x} the energy per inference")
HELPS_CHIP: Final = Template("{head}; {remedy} has {ratio:x} the throughput[ at {latency:x} the latency]")
OTHER_CHIP: Final = "another chip"
"""Remedy that replaces the chip."""

TF32: Final = "TF32"
MOVED: Final = 0.05
"""Minimum change of the throughput that the first line states; below it, it states the energy."""

REMEDY: Final[Mapping[str, Template]] = {
    "larger batch": Template("{choice}"),
    "lower precision": Template("{choice}, if accurate enough,"),
    OTHER_CHIP: Template("{choice}"),
    "": Template("{choice} ({remedy})"),
}
"""Remedy -> the setting in words."""

GAIN: Final = Template(
    "{remedy} on {name}: {throughput:x} the throughput[, {energy:plain}x the energy per inference]"
    "[, {latency:plain}x the latency]"
)
GAIN_CHIP: Final = Template(
    "{remedy} instead of {name}: {throughput:x} the throughput[, {energy:plain}x the energy per inference]"
    "[, {latency:plain}x the latency]"
)
SPENT: Final = Template("{name}: {share:%} of the time is limited by {bound}")
LANES: Final = Template(
    "{name}: only convolutions use TF32; {share:%} of the fp32 peak (`--matmul-precision high`: all in TF32)"
)
FLAG: Final[Mapping[str, Template]] = {
    "utilization": Template("{name}: compute utilization {value:%}, below {bound:set %}[; most time lost in {worst}]"),
    "bandwidth": Template(
        "{name}: {value:%} of the sustained off-chip bandwidth in use, above {bound:set %}[; most in {worst}]"
    ),
    "idle": Template("{name}: units idle {value:%} of the time, above {bound:set %}[; most in {worst}]"),
}
WORST: Final = Template("{subgraph} ({share:%})")

MOST_TIME: Final = Template("Most of the time goes to {reasons:list}.")
TIME_ON: Final = Template("{reason} on {names:and}")

GRADES: Final = Template("grades by share of the peak, or of the roofline: {bounds:list}, else {last}")
GRADE: Final = Template("{grade} from {least:set %}")
INACCURATE: Final = "a lower precision is judged by time and energy; the accuracy of the model is not considered"
UNTRACED: Final = Template("other batches were not tried: {untraced}")
PAIRING: Final = Template(
    "size classes by operations of one inference, * marks {model}; from the stored runs with these settings[ {among}]"
)
ON_THESE: Final = "on the chips above"


def describe_use(facts: Facts) -> str:
    """Return the first line: the best and the least used chip, and the first setting that would help the latter."""
    grades = [one for one in facts.of(Share) if one.level == "grade"]
    best, worst = grades[0], grades[-1]
    peaks = {one.runs[0] for one in facts.of(Share) if one.metric == "fp32"}
    name = name_run(facts.runs[worst.runs[0]])
    head = USES(
        name=name_run(facts.runs[best.runs[0]]),
        share=best.share,
        peak=TF32 if best.runs[0] in peaks else "",
        grade=best.name,
    )
    if worst is not best:
        head = LEAST(head=head, name=name, share=worst.share, grade=worst.name)
    turn = next(iter(facts.of(Turn)), None)
    if turn is not None and turn.ratio is not None:
        energy = turn.values.get("energy_per_inference")
        is_faster = abs(turn.ratio - 1.0) >= MOVED or not isinstance(energy, float)
        own = HELPS_CHIP if turn.axis == OTHER_CHIP else HELPS if worst is best else HELPS_LAST
        template = own if is_faster else HELPS_ENERGY
        latency = turn.values.get("latency") if is_faster else None
        latency = latency if isinstance(latency, float) and latency > 1.0 + MOVED else None
        given = {"head": head, "remedy": _name(turn), "name": name, "latency": latency}
        whole = template(ratio=turn.ratio if is_faster else energy, **given)
        head = whole if whole.count(" ") < MOST_WORDS else head
    return head + "."


def list_reasons(facts: Facts) -> list[str]:
    """Return lines on what would help the least used chip, and on flags, least used chips first."""
    turns = [_describe_turn(one, facts) for one in facts.of(Turn)][:1]
    return [*turns, *_describe_lanes(facts), *_describe_flags(facts), *_describe_time(facts)][:MOST_WHY]


def describe_ranges(facts: Facts) -> str:
    """Return the ends of the 80 % intervals of the best and of the least used chip; empty without intervals."""
    entries = facts.of(Entry)
    spans = []
    for one in (*entries[:1], *entries[1:][-1:]):
        value = one.values["utilization"]
        if value.half_width:
            ends = (value.value * math.exp(sign * value.half_width) for sign in (-1.0, 1.0))
            span = show_span(*(show_share(min(end, 1.0)) for end in ends))
            spans.append(RANGE(range=span, name=name_run(facts.runs[one.runs[0]])))
    return RANGES_ARE(ranges=RANGES, spans=spans) if spans else ""


def _name(turn: Turn) -> str:
    template = REMEDY.get(turn.axis, REMEDY[""])
    mark = "" if turn.axis != OTHER_CHIP or turn.values["is_available"] else PROJECTED
    return template(choice=f"{mark}{turn.after}", remedy=turn.axis)


def _describe_turn(turn: Turn, facts: Facts) -> str:
    return (GAIN_CHIP if turn.axis == OTHER_CHIP else GAIN)(
        remedy=_name(turn),
        name=name_run(facts.runs[turn.of[0]]),
        throughput=turn.ratio,
        energy=turn.values.get("energy_per_inference"),
        latency=turn.values.get("latency"),
    )


def _describe_lanes(facts: Facts) -> Iterator[str]:
    for one in facts.of(Share):
        if one.level == "lanes":
            yield LANES(name=name_run(facts.runs[one.runs[0]]), share=one.share)


def _describe_flags(facts: Facts) -> Iterator[str]:
    worst = {(one.runs[0], one.metric): one for one in facts.of(Share) if one.level == "subgraph"}
    for one in facts.of(Limit):
        if one.value is not None:
            most = worst.get((one.runs[0], one.metric))
            yield FLAG[one.metric](
                name=name_run(facts.runs[one.runs[0]]),
                value=one.value.value,
                bound=one.bound.value,
                worst=WORST(subgraph=most.name, share=most.share) if most else "",
            )


def _describe_time(facts: Facts) -> Iterator[str]:
    for one in reversed(facts.of(Share)):
        if one.level == "bottleneck":
            yield SPENT(name=name_run(facts.runs[one.runs[0]]), share=one.share, bound=BOUND[one.name])


def describe_time(facts: Facts) -> str:
    """Return a sentence on what takes most of the time on each chip; empty if no run has kernels."""
    spent: dict[str, list[str]] = {}
    for one in facts.of(Share):
        if one.level == "bottleneck":
            spent.setdefault(one.name, []).append(name_run(facts.runs[one.runs[0]]))
    reasons = [TIME_ON(reason=BOUND[name], names=names) for name, names in spent.items()]
    return MOST_TIME(reasons=reasons) if reasons else ""


def list_notes(grades: Sequence[tuple[str, float]], untraced: str, *, has_precisions: bool) -> list[str]:
    """Return notes on the least share of each grade, on why other batches were not tried, and on other precisions."""
    *bounds, (last, _) = grades
    told = GRADES(bounds=[GRADE(grade=grade, least=least) for grade, least in bounds], last=last)
    notes = [told, *([UNTRACED(untraced=untraced)] if untraced else [])]
    return [*notes, *([INACCURATE] if has_precisions else [])]


def describe_pairing(model: str, *, has_several: bool) -> str:
    """Return a line on the best hardware of each model size; several chips are compared among themselves."""
    return PAIRING(model=model, among=ON_THESE if has_several else "")
