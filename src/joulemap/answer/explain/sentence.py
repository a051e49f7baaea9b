"""Sentences on the difference of two runs; each is built from rows and omitted without them."""

from __future__ import annotations

from typing import Final

from joulemap.answer.assumed import describe_assumed_gap
from joulemap.answer.engine import describe_engine
from joulemap.answer.explain.pair import TOLD, PairAnswer, find_role
from joulemap.answer.run import overlaps
from joulemap.domain.doubt import TOLD_APART
from joulemap.domain.metric import METRIC
from joulemap.domain.role import ROLES
from joulemap.domain.table import Table
from joulemap.present.cell import join_names, show_chance, show_quantity, show_share, show_signed
from joulemap.row.explain import CategoryDifference, RoleDifference, SubgraphDifference

SMALL: Final = 0.02
"""Share of the difference below which a cause is not mentioned."""

LEADING: Final = 0.1
"""Share of the difference below which a subgraph does not stand out."""

MOST: Final = 3
"""Maximum sentences."""

SI: Final = {"B": "byte", "J": "joule", "s": "second"}
"""SI unit -> its word; the units of other roles are words."""

FACTOR: Final = 1.2
"""Ratio above which a difference is stated as a factor, below as a share."""

CONSEQUENCE: Final = "regulator"
"""Role whose energy only follows from that of the others."""

DOERS: Final = {"compute": "computing", "memory": "waiting for memory", "launch": "the fixed time of kernels"}
"""Bound of time -> its activity."""

PRESENT: Final = "bounds more parts of the model there"


def say_headline(answer: PairAnswer) -> str:
    """Return the headline: the hardware that needs less, by how much, and the confidence."""
    name_a, name_b = answer.names
    what = "time" if answer.metric == "latency" else METRIC[answer.metric].label
    at = " for its batch" if answer.are_runs else f" at batch {answer.total.batch}"
    (value_a, value_b) = answer.values
    if answer.difference_exact == 0:
        return f"{name_b} needs exactly as much {what} as {name_a}{at}"
    (less, least), (more, most) = sorted(((name_a, value_a), (name_b, value_b)), key=lambda one: one[1])
    by = say_factor(least, most)
    sure = "" if answer.probability is None else f" ({show_chance(answer.probability)} sure)"
    if answer.probability is not None and answer.probability < TOLD_APART:
        sure = ": the two are tied"
    where = f" for {answer.subgraph}" if answer.subgraph else ""
    gap = _describe_assumed_gap(answer)
    return f"{less} needs {by}less {what} than {more}{where}{at}{sure}{f'; {gap}' if gap else ''}"


def _describe_assumed_gap(answer: PairAnswer) -> str:
    """Return the assumed share of a difference of energies; empty for other metrics and for parts of a run."""
    assumed = answer.scope.assumed
    ids = [run_id for run_id in answer.scope.run_ids if run_id in assumed]
    if answer.metric != "energy" or answer.subgraph or len(ids) < 2:
        return ""
    return describe_assumed_gap(assumed[ids[0]], assumed[ids[-1]])


def say_host(answer: PairAnswer) -> list[str]:
    """Return the overhead of a language model's engine on both runs, which their ledgers do not include."""
    static = next((row for row in answer.purposes if row.purpose == "static"), None)
    if static is None or answer.subgraph:
        return []
    total = answer.total
    times, costs = (total.latency_a_s, total.latency_b_s), (static.energy_a_j, static.energy_b_j)
    runs = [(name, time, cost / time) for name, time, cost in zip(answer.names, times, costs, strict=True)]
    return describe_engine(total.model, total.batch, runs)


def say_factor(least: float, most: float) -> str:
    """Return the factor or share by which one value is less than another, to precede `less`."""
    if not least:
        return ""
    ratio = most / least
    return f"{ratio:.3g}x " if ratio >= FACTOR else f"{show_share(1.0 - least / most)} "


def say_sure(answer: PairAnswer) -> str:
    """Return the confidence in the direction, and whether only one side is calibrated."""
    (value_a, value_b), names = answer.values, answer.names
    lesser = names[value_b < value_a]
    told = [] if answer.probability is None else [f"{show_chance(answer.probability)} that {lesser} needs less"]
    if answer.scope.calibrations and answer.scope.uncalibrated:
        told.append(f"{join_names(answer.scope.uncalibrated)} is not calibrated by measurements, the other is")
    return "; ".join(told)


def say_insights(answer: PairAnswer) -> list[str]:
    """Return at most three sentences: the largest causes, and the largest cause in the opposite direction."""
    if answer.metric == "memory":
        return _memory(answer)[:MOST]
    told = [(row.share_fraction or 0.0, text) for row in answer.categories if (text := _tell(row, answer))]
    told.sort(key=lambda one: -one[0])
    lines = _halves(answer) if answer.metric == "edp" and answer.difference_exact else []
    along = [text for share, text in told if share >= SMALL]
    against = [f"against that, {text}" for share, text in told[:-2:-1] if share <= -LEADING]
    lines += along[: MOST - len(lines) - len(against)]
    return [*lines, *against, *_leader(answer)][:MOST]


def _halves(answer: PairAnswer) -> list[str]:
    """Return the shares of energy and of time in a difference of energy x delay."""
    shares = {
        name: sum(row.share_fraction or 0.0 for row in answer.categories if row.quantity == name)
        for name in ("energy", "time")
    }
    against = [name for name, share in shares.items() if share < 0.0]
    if against:
        (along,) = shares.keys() - against
        return [f"{along} decides the difference, {against[0]} counteracts it"]
    energy, time = map(show_share, shares.values())
    return [f"energy accounts for {energy} of the difference, time for {time}"]


def _tell(row: CategoryDifference, answer: PairAnswer) -> str:
    """Return a sentence on a category, for energy by its largest role; empty if that only follows from others."""
    if row.quantity == "time":
        return _tell_time(row, answer)
    sign = 1 if row.difference_exact > 0 else -1
    roles = [role for role in answer.roles if role.category == row.category]
    leading = max(roles, key=lambda role: sign * role.difference_fj)
    return "" if leading.role == CONSEQUENCE else _tell_role(leading, answer)


def _tell_role(row: RoleDifference, answer: PairAnswer) -> str:
    """Return the cost of a role on both sides, with the count or price that makes the difference."""
    sides = list(zip(answer.names, _sides(row, answer), strict=True))
    (more, (most, way, told)), (less, (least, other, beside)) = sides[::-1] if row.difference_fj > 0 else sides
    noun = find_role(row).noun
    cost = "costs" if row.role == "static" else "cost"
    if not row.is_shared:
        beside_j = sum(  # energy of the devices of a box, which have names of their own
            one.energy_a_j if row.difference_fj > 0 else one.energy_b_j
            for one in answer.roles
            if one.category == row.category and one.role not in ROLES
        )
        rest = f", {less} {show_quantity(beside_j, 'J')}" if beside_j else f"; {less} does without"
        return f"{noun} {cost} {more} {most}{way and f': they {way}'}{rest}"
    if way == other:
        return f"{noun} {cost} {more} {most}{told}, {less} {least}{beside}"
    return f"{noun} {cost} {more} {most}: they {way}{told}; in {less} they {other}{beside}, for {least}"


def _sides(row: RoleDifference, answer: PairAnswer) -> list[tuple[str, str, str]]:
    """Return for A and B the energy of a role, its mechanism, and the count and price that differ."""
    unit = find_role(row).unit
    has_count, has_price = (abs(one) >= TOLD * abs(row.difference_fj) for one in (row.by_count_fj, row.by_price_fj))
    latencies = (answer.total.latency_a_s, answer.total.latency_b_s)
    found = []
    for energy, way, count, price, latency in (
        (row.energy_a_j, row.way_a, row.count_a, row.price_a_j, latencies[0]),
        (row.energy_b_j, row.way_b, row.count_b, row.price_b_j, latencies[1]),
    ):
        amount = show_quantity(count, unit) if unit in SI else f"{show_quantity(count, '')} {unit}s"
        if row.role == "static":
            until = " until the next batch" if overlaps(count, latency) else ""
            told = f" ({show_quantity(price, 'W')} for {amount}{until})"
        elif price is None or not (has_count or has_price):
            told = ""
        else:
            is_power = unit == "s"
            cost = show_quantity(price, "W" if is_power else "J")
            each = cost if is_power else f"{cost} per {SI.get(unit, unit)}"
            told = f" ({each})" if not has_count else f" ({amount} at {each})" if has_price else f" ({amount})"
        found.append((show_quantity(energy, "J"), way, told))
    return found


def _tell_time(row: CategoryDifference, answer: PairAnswer) -> str:
    """Return the time of a category on both sides, with work and rate if the same parts are bound by it."""
    kinds = ("latency: count", "latency: price", "count", "price")  # terms of the bounds that both share
    terms = (one for one in answer.metric_terms or () if one.place == row.category and one.term in kinds)
    term = next(terms, None)
    spent_each = (row.spent_a, row.spent_b)
    is_told = term is not None and abs(row.by_presence_exact) < TOLD * abs(row.difference_exact)
    sides = [
        (name, show_quantity(spent, "s") if spent else "none")
        for name, spent in zip(answer.names, spent_each, strict=True)
    ]
    paces = ["", ""]
    if term is not None and is_told:
        pairs = ((term.count_a, term.price_a), (term.count_b, term.price_b))
        paces = [_pace(term.per, count, price) for count, price in pairs]
    (more, longest, pace), (less, least, other) = sorted(
        ((*side, told) for side, told in zip(sides, paces, strict=True)),
        key=lambda one: (one[0] == answer.names[0]) == (row.difference_exact > 0),
    )
    cause = "" if is_told or least == "none" else f": it {PRESENT}"
    return f"{DOERS[row.category]} takes {more} {longest}{pace}, {less} {least}{other}{cause}"


def _pace(per: str, count: float, price: float | None) -> str:
    """Return an amount of work with its rate, or with the time per kernel."""
    if not price:
        return ""
    if per == "kernel":
        return f" ({count:,.0f} kernels at {show_quantity(price, 's')} each)"
    unit, noun = ("B", "") if per == "B" else ("", f" {per}s")
    return f" ({show_quantity(count, unit)}{noun} at {show_quantity(1.0 / price, unit)}/s)"


def _memory(answer: PairAnswer) -> list[str]:
    """Return sentences on peak memory and off-chip traffic."""
    name_a, name_b = answer.names
    words = {"count": "by how much there is", "price": "by the bytes of each"}
    lines = [
        f"{term.place} take {show_signed(term.difference, 'B')} on {name_b}, {words[term.term]}"
        for term in answer.metric_terms or ()
    ]
    off_chip = [row for row in answer.traffic or () if row.is_off_chip]
    if off_chip:
        bytes_a, bytes_b = sum(row.bytes_a or 0.0 for row in off_chip), sum(row.bytes_b or 0.0 for row in off_chip)
        lines.append(
            f"off chip, {name_a} moves {show_quantity(bytes_a, 'B')} and {name_b} {show_quantity(bytes_b, 'B')}"
        )
    return lines


def leads(rows: Table[SubgraphDifference]) -> bool:
    """Return whether the subgraph with the largest difference stands out."""
    return len(rows) > 1 and (rows[0].share_fraction or 0.0) >= LEADING


def _leader(answer: PairAnswer) -> list[str]:
    """Return the subgraph with the largest difference, if it stands out."""
    if answer.metric == "memory" or not answer.subgraphs:
        return []
    if answer.subgraph:
        own = next(row for row in answer.subgraphs if row.name == answer.subgraph)
        share = "nothing" if own.share_fraction is None else show_share(own.share_fraction)
        return [f"this subgraph makes {share} of the difference of the runs"]
    if not leads(answer.subgraphs):
        return []
    first = answer.subgraphs[0]
    share = show_share(first.share_fraction)
    alike = sum(row.difference == first.difference for row in answer.subgraphs) - 1
    others = f" and {alike} more alike differ most: {share} each" if alike else f" differs most: {share}"
    return [f"of {len(answer.subgraphs)} subgraphs, {first.name} ({first.fusion_pattern}){others}"]
