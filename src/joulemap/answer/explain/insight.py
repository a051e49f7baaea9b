"""Choose and fill the sentences on the difference of two runs; a sentence without data is omitted."""

from __future__ import annotations

from typing import Final, Literal

from joulemap.answer.assumed import describe_assumed_gap
from joulemap.answer.engine import describe_engine
from joulemap.answer.explain import text
from joulemap.answer.explain.pair import LEAST_CAUSE, PairAnswer, find_role
from joulemap.answer.run import overlaps
from joulemap.domain.metric import METRIC
from joulemap.domain.role import ROLES
from joulemap.domain.table import Table
from joulemap.present.cell import show_interval, show_quantity, show_share
from joulemap.row.explain import CategoryDifference, RoleDifference, RunPair, SubgraphDifference

SMALL: Final = 0.02
"""Share of the difference below which a cause is not mentioned."""

LEADING: Final = 0.1
"""Minimum share of the difference at which an insight names a subgraph."""

MOST: Final = 3
"""Maximum sentences on the causes of a difference."""

FACTOR: Final = 1.2
"""Ratio above which a difference is stated as a factor; below, as a percentage."""

RESIDUAL: Final = "busy_"
"""Prefix of the names of roles that hold unattributed energy."""

MAC: Final = "MAC"
"""Unit of the role that counts multiply-accumulates."""

FEWEST_PASSES: Final = 1.5
"""Minimum counted MACs per MAC of the model for which the text names several passes, as of a TPU at fp32."""

CONSEQUENCE: Final = "regulator"
"""Role whose energy is a fixed share of the other roles' energy; no sentence names it as a cause."""


def describe_difference(answer: PairAnswer) -> str:
    """Return the headline: the hardware that needs less, the ratio, the confidence, and the assumed share."""
    given = {
        "verb": text.VERBS[answer.metric],
        "quantity": text.QUANTITIES.get(answer.metric, METRIC[answer.metric].label),
        "where": text.OF_RUN if answer.are_runs else text.AT_BATCH(answer.total),
    }
    unit, (name_a, name_b) = METRIC[answer.metric].unit, answer.names
    if answer.difference_exact == 0:
        names = (text.TWICE if name_a == name_b else text.BOTH)(a=name_a, b=name_b)
        values = {"names": names[0].upper() + names[1:] if name_a == name_b else names, "part": answer.subgraph}
        value = show_quantity(answer.values[0], unit)
        return text.EQUAL(**{**given, "verb": text.PLURAL_VERBS[answer.metric]}, **values, value=value)
    (less, least), (more, most) = sorted(zip(answer.names, answer.values, strict=True), key=lambda one: one[1])
    tied = text.TIED if answer.is_tied else ""
    return text.HEADLINE(
        less=less,
        more=more,
        by=_show_factor(least, most),
        least=show_quantity(least, unit),
        most=show_quantity(most, unit),
        part=answer.subgraph,
        doubt="" if answer.probability is None else text.DOUBT(sure=answer.probability, tied=tied),
        gap=describe_gap(answer),
        **given,
    )


def _show_factor(least: float, most: float) -> str:
    """Return how much smaller one value is than another, as a factor or a percentage; empty if they are equal."""
    if not least:
        return ""
    return f"{most / least:.3g}x" if most / least >= FACTOR else show_share(1.0 - least / most)


def describe_gap(answer: PairAnswer) -> str:
    """Return the assumed share of a difference of energies; empty for other metrics and for parts of a run."""
    assumed = answer.scope.assumed
    ids = [run_id for run_id in answer.scope.run_ids if run_id in assumed]
    if answer.metric != "energy" or answer.subgraph or len(ids) < 2:
        return ""
    return describe_assumed_gap(assumed[ids[0]], assumed[ids[-1]])


def describe_host(answer: PairAnswer) -> list[str]:
    """Return sentences on the host overhead of serving software, which the ledgers of both runs exclude."""
    static = next((row for row in answer.purposes if row.purpose == "static"), None)
    if static is None or answer.subgraph:
        return []
    total = answer.total
    times, costs = (total.latency_a_s, total.latency_b_s), (static.energy_a_j, static.energy_b_j)
    runs = [(name, time, cost / time) for name, time, cost in zip(answer.names, times, costs, strict=True)]
    return describe_engine(total.model, total.batch, runs)


def describe_confidence(answer: PairAnswer) -> str:
    """Return the 80 % intervals of both values; also name the calibrated chip if the other is not calibrated."""
    names, total = answer.names, answer.total
    doubts = [answer.scope.doubts.get(one, {}) for one in (total.hardware_a, total.hardware_b)]
    widths = [found[answer.metric][0] for found in doubts if answer.metric in found]
    found = []
    if len(widths) == len(names) == len(set(names)) and not (answer.subgraph or answer.are_runs):
        ends = zip(names, answer.values, widths, strict=True)
        shown = [(name, show_interval(value, METRIC[answer.metric].unit, width)) for name, value, width in ends]
        found.append(text.SPREAD(spans=[text.SPAN(name=name, value=value) for name, value in shown]))
    elif answer.metric != "memory" and not answer.subgraph:
        found += filter(None, [answer.scope.describe_spread()])
    found += _describe_half_calibrated(answer)
    return "; ".join(found)


def _describe_half_calibrated(answer: PairAnswer) -> list[str]:
    """Return a sentence if exactly one of the two runs uses a calibration: which one, and whose calibration."""
    total, without = answer.total, answer.scope.uncalibrated_runs
    sides = [*zip(answer.names, (total.run_a, total.run_b), strict=True)]
    lacking = [name for name, run_id in sides if run_id in without]
    calibrated = [name for name, run_id in sides if run_id not in without]
    if not (lacking and calibrated and answer.scope.calibrations) or answer.metric == "memory":
        return []
    row = answer.scope.calibrations[0]
    donor = row.hardware if row.inheritors else None
    return [text.HALF_CALIBRATED(calibrated=calibrated[0], donor=donor, names=lacking)]


def list_insights(answer: PairAnswer) -> list[str]:
    """Return at most three sentences: the largest causes, and the largest cause in the opposite direction."""
    if answer.metric == "memory":
        return _describe_traffic(answer)
    found = [(row.share_fraction or 0.0, line) for row in answer.categories if (line := _describe(row, answer))]
    found.sort(key=lambda one: -one[0])
    lines = (
        [_describe_shares(answer)] if answer.metric == "edp" and answer.difference_exact and not answer.is_tied else []
    )
    along = [line for share, line in found if share >= SMALL]
    against = [f"{text.AGAINST}{line}" for share, line in found[:-2:-1] if share <= -LEADING]
    lines += along[: MOST - len(lines) - len(against)]
    return [*lines, *against, *_describe_leader(answer)][:MOST]


def _describe_shares(answer: PairAnswer) -> str:
    """Return how much energy and time each contribute to a difference in energy x delay."""
    sums = {
        name: sum(row.difference_exact for row in answer.categories if row.quantity == name)
        for name in ("energy", "time")
    }
    whole = sum(sums.values())
    shares = {name: float(one / whole) for name, one in sums.items()}
    against = [name for name, share in shares.items() if share < 0.0]
    if not against:
        return text.SHARES(**shares)
    (along,) = shares.keys() - against
    return text.OPPOSED(along=along, against=against[0])


def _describe(row: CategoryDifference, answer: PairAnswer) -> str:
    """Return a sentence on the difference of a category. An energy category is explained by its largest role.

    Empty if this role is only a consequence of other roles.
    """
    if row.quantity == "time":
        return _describe_time(row, answer)
    sign = 1 if row.difference_exact > 0 else -1
    roles = [role for role in answer.roles if role.category == row.category]
    leading = max(roles, key=lambda role: sign * role.difference_fj)
    return "" if leading.role == CONSEQUENCE else _describe_role(leading, answer)


def _describe_role(row: RoleDifference, answer: PairAnswer) -> str:
    """Return the energies of a role in both runs, with the count or energy per action that explains the difference."""
    is_more, periods = row.difference_fj > 0, _name_periods(row, answer)
    name_a, name_b = answer.names
    sides = [
        (name_a, row.energy_a_j, row.way_a, _describe_cost(row, answer.total, "a", periods[0])),
        (name_b, row.energy_b_j, row.way_b, _describe_cost(row, answer.total, "b", periods[1])),
    ]
    (more, energy, way, detail), (less, other, other_way, beside) = sides[::-1] if is_more else sides
    given = {"noun": find_role(row).noun, "take": "takes" if row.role == "static" else "take", "energy": energy}
    if not row.is_shared:
        rest = sum(  # energy of the devices of a box, which have their own names
            one.energy_a_j if is_more else one.energy_b_j
            for one in answer.roles
            if one.category == row.category and one.role not in ROLES
        )
        none = text.NO_RESIDUAL if row.role.startswith(RESIDUAL) else text.NONE
        return text.ONE_SIDE(more=more, way=way, less=less, none="" if rest else none, rest=rest or None, **given)
    sentence = text.SAME_WAY if way == other_way else text.OTHER_WAY
    return sentence(
        more=more, way=way, detail=detail, less=less, other=other, other_way=other_way, beside=beside, **given
    )


def _name_periods(row: RoleDifference, answer: PairAnswer) -> tuple[str, str]:
    """Return the names of the period of static power in A and in B; both empty if no batches overlap."""
    total = answer.total
    overlapping = overlaps(row.count_a, total.latency_a_s), overlaps(row.count_b, total.latency_b_s)
    if not any(overlapping):
        return "", ""
    on_a, on_b = (text.BETWEEN if one else text.ALONE for one in overlapping)
    return on_a, on_b


def list_overlaps(answer: PairAnswer) -> list[str]:
    """Return a sentence for each run whose batches overlap, with its interval and its latency."""
    total = answer.total
    (name_a, name_b), static = answer.names, [row for row in answer.roles if row.role == "static"]
    sides = [(name_a, row.count_a, total.latency_a_s) for row in static]
    sides += [(name_b, row.count_b, total.latency_b_s) for row in static]
    return [
        text.OVERLAPPING(name=name, interval=interval, latency=latency)
        for name, interval, latency in sides
        if overlaps(interval, latency)
    ]


def _describe_cost(row: RoleDifference, total: RunPair, side: Literal["a", "b"], period: str) -> str:
    """Return the count of a role and its energy per action in one run; omit either if its effect is small."""
    unit = find_role(row).unit
    count = float(getattr(row, f"count_{side}"))
    price: float | None = getattr(row, f"price_{side}_j")
    has_count, has_price = (
        abs(one) >= LEAST_CAUSE * abs(row.difference_fj) for one in (row.by_count_fj, row.by_price_fj)
    )
    if row.role == "static":
        return text.POWER(price=price, count=count, period=period)
    if price is None or not (has_count or has_price):
        return ""
    amount = show_quantity(count, unit) if unit in text.SI_WORDS else text.AMOUNT(count=count, unit=unit)
    if unit == MAC:
        passes = count / (getattr(total, f"mac_count_{side}") or count or 1.0)
        precision = {action.partition(".")[2].removesuffix("_mac") for action in _list_actions(row, side)}
        if passes >= FEWEST_PASSES:
            amount = text.PASSES(count=count, precision=min(precision) if len(precision) == 1 else "", passes=passes)
    each = text.EACH(price=price, unit=text.SI_WORDS.get(unit, unit)) if unit != "s" else show_quantity(price, "W")
    return each if not has_count else text.AT(amount=amount, each=each) if has_price else amount


def _list_actions(row: RoleDifference, side: Literal["a", "b"]) -> list[str]:
    """Return the actions of a role in run A or B."""
    return str(getattr(row, f"actions_{side}") or "").split(", ")


def _describe_time(row: CategoryDifference, answer: PairAnswer) -> str:
    """Return the time of a category in both runs, with the amount of work and the mean rate."""
    is_shared = abs(row.by_presence_exact) < LEAST_CAUSE * abs(row.difference_exact)
    works = ((row.work_a, row.spent_a), (row.work_b, row.spent_b))
    units = answer.units if row.category == "compute" else ("", "")
    paces = [_describe_pace(row.category, *work, on) for work, on in zip(works, units, strict=True)]
    sides = list(zip(answer.names, (row.spent_a, row.spent_b), paces, strict=True))
    (more, longest, pace), (less, least, other) = sides[::-1] if row.difference_exact > 0 else sides
    return text.TIME(
        activity=text.ACTIVITIES[row.category],
        more=more,
        longest=longest,
        pace=pace,
        less=less,
        least=show_quantity(least, "s") if least else text.NO_TIME,
        other=other,
        bound="" if is_shared or not least else more,
    )


def _describe_pace(category: str, count: float | None, spent_s: float, units: str) -> str:
    """Return an amount of work with its mean rate, or with the time per kernel; empty without work."""
    if not count or not spent_s:
        return ""
    return text.PACES[category](count=count, price=spent_s / count, rate=count / spent_s, units=units)


def _describe_traffic(answer: PairAnswer) -> list[str]:
    """Return a sentence on the bytes that each run moves off chip."""
    off_chip = [row for row in answer.traffic or () if row.is_off_chip]
    sums = {name: sum(getattr(row, name) or 0.0 for row in off_chip) for name in ("bytes_a", "bytes_b")}
    template = text.SAME_TRAFFIC if sums["bytes_a"] == sums["bytes_b"] else text.TRAFFIC
    return [template(a=answer.names[0], b=answer.names[1], **sums)] if off_chip else []


def leads(rows: Table[SubgraphDifference]) -> bool:
    """Return whether the largest subgraph accounts for at least a tenth of the difference."""
    return len(rows) > 1 and (rows[0].share_fraction or 0.0) >= LEADING


def _describe_leader(answer: PairAnswer) -> list[str]:
    """Return a sentence on the subgraph with the largest difference, if it accounts for at least a tenth.

    For an explained subgraph, return its share of the difference of the runs.
    """
    if answer.metric == "memory" or not answer.subgraphs or answer.is_tied:
        return []
    if answer.subgraph:
        share = next(row.share_fraction for row in answer.subgraphs if row.name == answer.subgraph)
        template = text.OWN_OFFSET if share is not None and share < 0.0 else text.OWN_SHARE
        return [template(share=show_share(abs(share)) if share else text.NOTHING)]
    if not leads(answer.subgraphs):
        return []
    first = answer.subgraphs[0]
    alike = sum(row.difference == first.difference for row in answer.subgraphs) - 1
    verb, each = (text.CONTRIBUTE, text.EACH_ONE) if alike else (text.CONTRIBUTES, "")
    return [text.LEADER(first, alike=alike or None, total=len(answer.subgraphs), verb=verb, each=each)]
