"""Words for fusion: what it saves or costs, the pattern that saves most, and why subgraphs change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from joulemap.ask.fact import Change, Entry, Facts, Quantity, Term, Value
from joulemap.show.caveat import RANGES
from joulemap.show.choice import MOST_WHY
from joulemap.show.present.cell import show_ends, show_quantity
from joulemap.show.present.template import Template
from joulemap.show.run_name import name_run

LEAST_SHARE: Final = 5e-4
"""Share that rounds to 0.0 %, which no sentence states."""

FUSION: Final = "fusion"
"""Cause of the changes of whole runs."""

SAVES: Final = Template("Fusion saves {gains:and} on {name}[, but costs {costs:and}]: {kernels}")
COSTS: Final = Template("Fusion costs {costs:and} on {name}: {kernels}")
NEITHER: Final = Template("Fusion saves under 0.1 % of energy and time on {name}: {kernels}")
SHARE: Final = Template("{share:%} of the {noun}")
KERNELS: Final = Template("{after} kernels replace {before} separate ones")
NOT_FUSED: Final = Template("Nothing is fused on {name}: {subgraphs} is one kernel in every runtime")
EACH_OF: Final = Template("each of the {count} subgraphs")
ONLY: Final = "the only subgraph"
NOUNS: Final[Mapping[str, str]] = {"energy": "energy", "latency": "time"}

LARGEST: Final = Template("{name} saves most: {amounts:and}")
COSTS_IN: Final = Template("{count:n fused subgraph} {takes} {change}[, most in {worst}]: {cause}")
COSTS_IN_ONE: Final = Template("the fused kernel of {worst} takes {change}: {cause}")
UNFUSED: Final = Template("{count:n unfused subgraph} {takes} {change}: {cause}")
TAKES, TAKE = "takes", "take"
SAME_SIGN: Final = Template("{amounts:and} {direction}")
MIXED: Final = Template("{first} more, {second} less")
BYTES: Final = Template("[{inside:%} of moved bytes stay inside kernels; ]off-chip traffic {change}")
SAME_BYTES: Final = "is the same"
FEWER_BYTES: Final = Template("falls by {amount}[ ({share:%})]")
MORE_BYTES: Final = Template("rises by {amount}[ ({share:%})]")

RANGES_OF: Final = Template("{ranges} of the fused run: {spans:list}")

CAUSES: Final[Mapping[str, Template]] = {
    "passed": Template("passes after GEMMs"),
    "merged": Template("the bias is merged"),
    "streamed": Template("more bytes move off chip"),
    "cached": Template("weights find room on chip"),
    "busier": Template("one kernel keeps its units busy longer than several"),
    "compiled": Template("a compiler's kernel"),
    "launched": Template("in eager the host launches every kernel"),
    "capped": Template("the power cap leaves {clock:%} of the clock, {separate_clock:%} without fusion"),
}
"""Cause of the change of a group of subgraphs -> its words."""


def describe_saving(facts: Facts) -> str:
    """Return the first line: the share of energy and time that fusion saves or costs, or that nothing is fused."""
    changes = {one.metric: one for one in facts.of(Change) if one.cause == FUSION}
    kernels = changes["kernels"]
    name = name_run(facts.runs[kernels.runs[1]])
    if not kernels.values["fused_subgraphs"]:
        count = kernels.values["subgraphs"]
        return NOT_FUSED(name=name, subgraphs=ONLY if count == 1 else EACH_OF(count=count)) + "."
    saved = {NOUNS[metric]: _find_share(changes[metric]) for metric in facts.asked}
    gains = [SHARE(share=share, noun=noun) for noun, share in saved.items() if share >= LEAST_SHARE]
    costs = [SHARE(share=-share, noun=noun) for noun, share in saved.items() if share <= -LEAST_SHARE]
    template = SAVES if gains else COSTS if costs else NEITHER
    counts = {"before": f"{kernels.before.value:.0f}", "after": f"{kernels.after.value:.0f}"}
    return template(gains=gains, costs=costs, name=name, kernels=KERNELS(**counts)) + "."


def _find_share(change: Change) -> float:
    """Return the share of the separate value that the fused run saves; negative if it costs more."""
    return 1.0 - change.after.value / change.before.value if change.before.value else 0.0


def list_reasons(facts: Facts) -> list[str]:
    """Return lines on why: where fusion costs, the pattern that saves most, subgraphs that change without fusion, and
    bytes.
    """
    changes = {one.metric: one for one in facts.of(Change) if one.cause == FUSION}
    is_fused = bool(changes["kernels"].values["fused_subgraphs"])
    unfused = _list_groups(facts, "unfused")
    if not is_fused:
        return unfused[:MOST_WHY]
    lines = _list_groups(facts, "fused")[:1]
    lines += _describe_largest(facts.of(Term)) if _find_share(changes["edp"]) > 0.0 else []
    return [*lines, *unfused[:1], *_describe_bytes(changes["moved_bytes"], changes["dram_bytes"])][:MOST_WHY]


def _describe_largest(terms: Iterable[Term]) -> list[str]:
    """Return a line on the pattern that saves most energy x delay, if there are several."""
    patterns: dict[str, list[Term]] = {}
    for one in terms:
        patterns.setdefault(one.name, []).append(one)
    name, own = next(iter(patterns.items()))
    saved = [one for one in own if one.difference.value < 0.0]
    if len(patterns) < 2 or not saved:
        return []
    amounts = [show_quantity(-one.difference.value, one.difference.unit) for one in saved]
    return [LARGEST(name=name, amounts=amounts)]


def _list_groups(facts: Facts, part: str) -> list[str]:
    """Return a line per cause of the changes of fused or of unfused subgraphs, in the order of the facts."""
    groups: dict[str, list[Change]] = {}
    for one in facts.of(Change):
        if one.values.get("part") == part:
            groups.setdefault(one.cause, []).append(one)
    return [_describe_group(part, own) for own in groups.values()]


def _describe_group(part: str, changes: list[Change]) -> str:
    first = changes[0]
    values, count = first.values, first.values["subgraphs"]
    given = {
        "count": count,
        "change": _describe_change([one.values["saved"] for one in changes]),
        "cause": CAUSES[first.cause](**values),
    }
    if part == "fused" and count == 1:
        return COSTS_IN_ONE(worst=values["worst"], **given)
    takes = TAKES if count == 1 else TAKE
    return UNFUSED(takes=takes, **given) if part == "unfused" else COSTS_IN(takes=takes, worst=values["worst"], **given)


def _describe_change(every: Iterable[Value]) -> str:
    """Return how much less or more the fused run spends."""
    saved = [one for one in every if isinstance(one, Quantity) and one.value]
    less, more = ([one for one in saved if (one.value > 0.0) == is_less] for is_less in (True, False))
    amounts = [[show_quantity(abs(one.value), one.unit) for one in group] for group in (less, more)]
    if less and more:
        return MIXED(first=amounts[1][0], second=amounts[0][0])
    return SAME_SIGN(amounts=amounts[0] or amounts[1], direction="less" if less else "more")


def _describe_bytes(moved: Change, traffic: Change) -> list[str]:
    """Return a line on the bytes that stay inside kernels, and on the change of off-chip traffic; empty if both are
    small.
    """
    saved, share, inside = traffic.before.value - traffic.after.value, abs(_find_share(traffic)), _find_share(moved)
    if inside < LEAST_SHARE and share < LEAST_SHARE:
        return []
    given = {"amount": show_quantity(abs(saved), "B"), "share": share if share >= LEAST_SHARE else None}
    change = SAME_BYTES if not saved else (FEWER_BYTES if saved > 0.0 else MORE_BYTES)(**given)
    return [BYTES(inside=inside if inside >= LEAST_SHARE else None, change=change)]


def describe_ranges(facts: Facts) -> str:
    """Return the ranges of energy and time of the fused run; empty without ranges."""
    values = facts.of(Entry)[0].values
    ends = [show_ends(one.value, one.unit, one.half_width) for one in (values[name] for name in facts.asked)]
    shown = [f"{NOUNS[name]} {text}" for name, text in zip(facts.asked, ends, strict=True) if text]
    return RANGES_OF(ranges=RANGES, spans=shown) if shown else ""
