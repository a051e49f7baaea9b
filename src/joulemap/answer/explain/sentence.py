"""Sentences on the difference of two runs: each is made of terms, and is left out where they do not carry it."""

from __future__ import annotations

from typing import Final

from joulemap.answer.explain.pair import MetricTerm, PairAnswer
from joulemap.answer.run import overlaps
from joulemap.domain.doubt import TOLD_APART
from joulemap.domain.metric import METRIC
from joulemap.present.cell import show_chance, show_count, show_quantity, show_share, show_signed
from joulemap.row.explain import Effect

SMALL: Final = 0.01
"""Of the difference: what is smaller is not mentioned."""

LEADING: Final = 0.1
"""Of the difference: a subgraph that takes less of it does not lead."""

SHOWN_TERMS: Final = 4
"""Terms of a latency or edp that become sentences."""


def write_sentences(answer: PairAnswer) -> list[str]:
    """Return sentences that the numbers support: who needs less, the largest cause, what goes against it."""
    lines = [_compare(answer)]
    if answer.metric == "energy":
        lines += _effects(answer)
    elif answer.metric == "memory":
        lines += _memory(answer)
    else:
        lines += _terms(answer)
    return [*lines, *_leader(answer)]


def _compare(answer: PairAnswer) -> str:
    name_a, name_b = answer.names
    what = "time" if answer.metric == "latency" else METRIC[answer.metric].label
    difference, ratio, at = answer.difference_exact, answer.ratio, f"at batch {answer.total.batch}"
    if difference == 0:
        return f"{name_b} needs exactly as much {what} as {name_a} {at}"
    text = f"{name_b} needs {'less' if difference < 0 else 'more'} {what} than {name_a} {at}"
    return (text if ratio is None else f"{text}: {ratio:.3g}x") + _sure(answer)


def _sure(answer: PairAnswer) -> str:
    """Return how sure the direction of the difference is; empty where that is not known."""
    total = answer.total
    probability = {
        "energy": total.energy_probability,
        "latency": total.latency_probability,
        "edp": total.edp_probability,
    }.get(answer.metric)
    if probability is None:
        return ""
    if probability < TOLD_APART:
        return f"; the two cannot be told apart ({show_chance(probability)} for this direction)"
    return f" ({show_chance(probability)} sure)"


def _effects(answer: PairAnswer) -> list[str]:
    """Return the effects in the direction of the difference, then those against it, the largest first."""
    moved = [row for row in answer.effects if row.share_fraction is not None and abs(row.share_fraction) >= SMALL]
    moved.sort(key=lambda row: (-abs(row.difference_fj), row.effect))
    along = [row for row in moved if (row.share_fraction or 0.0) > 0.0]
    against = [row for row in moved if (row.share_fraction or 0.0) < 0.0]
    lines = []
    for index, row in enumerate(along):
        share = row.share_fraction or 0.0
        weight = f"{show_share(share)} of the difference"
        if index == 0 and len(along) > 1:
            weight = ("most of it, " if 0.5 < share <= 1.0 else "the largest cause, ") + weight
        lines.append(f"{_describe(row, answer)} ({show_signed(row.difference_j, 'J')}, {weight})")
    lines += [f"against that, {_describe(row, answer)} ({show_signed(row.difference_j, 'J')})" for row in against]
    return lines


def _describe(row: Effect, answer: PairAnswer) -> str:
    name_a, name_b = answer.names
    total = answer.total
    less = row.difference_fj < 0
    is_along = (row.largest_difference_j or 0.0) < 0.0 if less else (row.largest_difference_j or 0.0) > 0.0
    mostly = f", mostly {row.largest_action}" if is_along else ""
    many = show_count(row.action_count, "action")
    static = next((term for term in answer.terms if term.term == "static"), None)
    if row.effect == "time":
        drawn_a, drawn_b = (static.count_a, static.count_b) if static else (total.latency_a_s, total.latency_b_s)
        does = "takes"
        if overlaps(drawn_a, total.latency_a_s) or overlaps(drawn_b, total.latency_b_s):
            does = "starts a batch every"
        return (
            f"{name_b} {does} {show_quantity(drawn_b, 's')} against {show_quantity(drawn_a, 's')}, so static power is "
            f"drawn for {'less' if less else 'more'} time"
        )
    if row.effect == "static power":
        watts = ""
        if static is not None and static.energy_per_action_a_j is not None and static.energy_per_action_b_j is not None:
            power_a, power_b = static.energy_per_action_a_j, static.energy_per_action_b_j
            watts = f": {show_quantity(power_b, 'W')} against {show_quantity(power_a, 'W')}"
        return f"the static power of {name_b} is {'lower' if less else 'higher'}{watts}"
    if row.effect == "only in A":
        return f"{name_b} is spared {many} that only {name_a} has{mostly}"
    if row.effect == "only in B":
        return f"{name_b} alone has {many}{mostly}"
    if row.effect == "count":
        return f"actions that both have happen {'less' if less else 'more'} often on {name_b}, on balance{mostly}"
    return f"actions that both have cost {'less' if less else 'more'} each on {name_b}, on balance{mostly}"


def _terms(answer: PairAnswer) -> list[str]:
    """Return the largest terms of a latency or edp as sentences."""
    lines = []
    if answer.metric == "edp":
        for half, what in (("energy: ", "different energy"), ("latency: ", "different time")):
            terms = [term for term in answer.metric_terms or () if term.term.startswith(half)]
            share = sum(term.share_fraction or 0.0 for term in terms)
            if abs(share) >= SMALL:
                moved = show_signed(sum(term.difference for term in terms), "Js")
                lines.append(f"{what} makes {moved} of it ({show_share(share)})")
    shown = [term for term in answer.metric_terms or () if abs(term.share_fraction or 0.0) >= SMALL]
    return lines + [
        f"{_tell(term, answer)} ({show_signed(term.difference, term.unit)})" for term in shown[:SHOWN_TERMS]
    ]


def _tell(term: MetricTerm, answer: PairAnswer) -> str:
    name_a, name_b = answer.names
    kind = term.term.rpartition(": ")[2]
    less = term.difference < 0.0
    is_time = not term.term.startswith("energy: ")
    if kind in ("only in A", "only in B"):
        one, other = (name_a, name_b) if kind == "only in A" else (name_b, name_a)
        if is_time:
            many = show_count(term.part_count, "subgraph")
            return f"{many} spend{'s' if term.part_count == 1 else ''} time on {term.place} on {one}, not on {other}"
        return f"{term.place} is there on {one} alone"
    if kind == "static":
        return f"static energy is {'less' if less else 'more'} on {name_b}"
    if kind == "count":
        return f"{term.place}: {'fewer' if less else 'more'} counts of a {term.per} on {name_b}, on balance"
    if term.price_a is not None and term.price_b is not None and (term.price_b < term.price_a) == less:
        price_a, price_b = (show_quantity(price, term.price_unit) for price in (term.price_a, term.price_b))
        return f"{term.place}: a {term.per} takes {price_b} on {name_b}, {price_a} on {name_a}"
    return f"{term.place}: a {term.per} takes {'less' if less else 'more'} on {name_b}, on balance"


def _memory(answer: PairAnswer) -> list[str]:
    """Return what is kept and what is moved off chip."""
    name_a, name_b = answer.names
    lines = [
        f"{term.place} take {show_signed(term.difference, 'B')} by {term.term}" for term in answer.metric_terms or ()
    ]
    off_chip = [row for row in answer.traffic or () if row.is_off_chip]
    if off_chip:
        bytes_a, bytes_b = sum(row.bytes_a or 0.0 for row in off_chip), sum(row.bytes_b or 0.0 for row in off_chip)
        lines.append(
            f"off chip, {name_a} moves {show_quantity(bytes_a, 'B')} and {name_b} {show_quantity(bytes_b, 'B')}"
        )
    return lines


def _leader(answer: PairAnswer) -> list[str]:
    """Return the subgraph that takes most of the difference, if it stands out."""
    if answer.metric == "memory" or not answer.subgraphs:
        return []
    if answer.subgraph:
        own = next(row for row in answer.subgraphs if row.name == answer.subgraph)
        share = "nothing" if own.share_fraction is None else show_share(own.share_fraction)
        return [f"this subgraph makes {share} of the difference of the runs"]
    first = answer.subgraphs[0]
    if first.share_fraction is None or first.share_fraction < LEADING or len(answer.subgraphs) == 1:
        return []
    share = show_share(first.share_fraction)
    alike = sum(row.difference == first.difference for row in answer.subgraphs) - 1
    others = f" and {alike} more alike differ most: {share} each" if alike else f" differs most: {share}"
    return [f"of {len(answer.subgraphs)} subgraphs, {first.name} ({first.fusion_pattern}){others}"]
