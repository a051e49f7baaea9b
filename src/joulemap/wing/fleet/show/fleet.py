"""Page of fleets: the best one with its headroom, runner-up and confidence, tables, figures, and what was left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from joulemap.ask import Caveat, Choice, Entry, Facts, Limit, Quantity, Refusal
from joulemap.domain import TIE_RATIO, Col, Column, Table
from joulemap.physics import spell_precision, split_precision
from joulemap.show import (
    MOST_WHY,
    Asked,
    Document,
    Figures,
    Page,
    Section,
    Template,
    Text,
    Title,
    compose_runs,
    derived,
    describe_refusal,
    fill_steps,
    find_column,
    fits,
    lay_columns,
    mark_projected,
    name_run,
    show_chance,
    show_plain,
    show_quantity,
    show_share,
    show_table,
)
from joulemap.show.refusal import ENCLOSED
from joulemap.show.run import find_conditions, repeat_boundary
from joulemap.show.title import bind
from joulemap.wing.fleet.ask.fleet import FleetAnswer
from joulemap.wing.fleet.capacity.cost import cut_seller
from joulemap.wing.fleet.capacity.rank import OBJECTIVES
from joulemap.wing.fleet.capacity.row import LATE, LIKELY as LIKELY_ENOUGH, NEAR, OK, WATCHED, FleetRow, first_of_each
from joulemap.wing.fleet.demand import MOST_CARRIED, Objective
from joulemap.wing.fleet.generated.row import LevelRow, MixedRow, QueueRow

OWNED: Final = (Column(name="hardware", type="VARCHAR", meaning="chip of the fleet"),)
"""Columns that the rows of some figures have in addition to their own."""

NEARLY: Final = 0.98
"""Share of the highest rate tried; a capacity above it is shown as a lower bound."""

WHOLE_RATE: Final = 10.0
"""Requests per second from which an integer rate is shown with all of its digits."""

SERVE: Final = Template("llm {model} {hardware} {precision}[ --devices {devices}] --batch 1 --rate {rate}/s")
EXPLAIN: Final = Template("explain {model} {hardware} {other} {precision} --runtime {runtime}")
COMPARE: Final = Template("compare {model} {hardware} {other} --precision {precisions} --runtime {runtime}")
EDP: Final = Template("edp {model} {hardware} {precision} --runtime {runtime}")
MISSED: Final = "Missed targets and limits"
SUBJECT: Final = "How many devices"
TITLE: Final = Template("{models:and}")
ABOUT: Final = Template(
    "[up to {peak}][{rate}], {targets:list}, {precisions:and}[, {runtimes:and}][, {engine}]{served}"
)
MODEL: Final = Template("{share:set %} {name}")
RATE: Final = Template("{rate} requests/s")
ONE_RATE: Final = "1 request/s"
TARGETS: Final[Mapping[str, Template]] = {
    "p99_s": Template("p99 within {target:s}"),
    "first_token_s": Template("p99 TTFT within {target:s}"),
    "between_s": Template("p99 TPOT within {target:s}"),
}

OWNED_AND: Final = Template("{owned_device_count} owned and {others} {way}")

MONTHLY: Final[Mapping[Objective, tuple[str, str]]] = {
    "cost": ("USD/month", "cost_per_month"),
    "energy": ("kWh/month", "kwh_per_month"),
    "carbon": ("CO2/month", "gco2_per_month"),
}
"""Objective -> heading of its column, and the field that the column shows."""
USED, SPARE = "used", "spare"
"""Parts of the capacity of a fleet, in the picture of its value."""
DEVICES: Final = Template("{device_count}[ ({low}\N{EN DASH}{high})]", is_number=True)
BATCH: Final = Template("{batch_mean:plain} of {batch}")
CAPACITY: Final = Template("{ratio:x}")
CAPACITY_OVER: Final = Template("over {ratio:plain}x")
UTILIZATION_UNDER: Final = Template("under {share:%}", is_number=True)
LEFT_OUT: Final = Template("Left out: {reasons}")
DELAYED_MEANS: Final = (
    "delayed: the first request of a batch waits for others, up to the delay limit, which saves energy"
)

OVERLOADED: Final = "overloaded"
DIVIDED: Final = Template("each server divides the model over {devices:n device}{experts}")
EXPERTS: Final = ", with whole experts on each"
UNDIVIDED: Final = Template("each {hardware} holds the whole model")
NEAR_DIVISION: Final = Template("servers of {devices:n device} come within {more:%} of it")
EQUAL_DIVISION: Final = Template("servers of {devices:n device} do equally well")
OWNED_ELSEWHERE: Final = Template("{names:and} (owned, but not among the compared hardware)")
UNPRICED: Final = Template("{names:few} from the ranking by cost, without a known {price}{other}")
PRICES: Final[Mapping[str, str]] = {"rented": "rent", "bought": "purchase price", "both": "price"}
PAY_BOTH: Final = " (--site pay=both takes rent or purchase price)"
PRICED: Final = Template("{name} at {price}")
OTHER_SELLER: Final = Template("{names:few} with prices of another kind of seller (--site seller)")
TOO_SLOW: Final = Template("{names:few}, too slow with any number of devices (--show details)")
OVER: Final = Template("{label} ({reason})[; {more:n other fleet} over a limit]")

NOTES: Final = (
    "devices: the fewest that meet the latency target at the highest rate, in whole nodes with --node; requests arrive "
    "at random (Poisson) and share one queue; ranges in brackets show the counts at both "
    "ends of the 80 % interval of predicted times; devices to be 80 % sure: the fewest that suffice with this "
    "probability",
    "a free device takes the waiting requests, up to one batch; with delayed batching it starts once the batch is full "
    "or the first request has waited for the delay limit",
    "power: all devices at the highest rate, idle ones included, at the boundary of the title; --max-power always "
    "counts hosts; kWh, cost and carbon also include cooling (PUE)",
    "cost: rent for a month of 730 hours, or the purchase price spread over the lifetime plus electricity and hosts; "
    "owned devices cost only electricity",
    "capacity: the highest rate that the fleet serves within the target, relative to the demanded rate; utilization: "
    "its inverse; time busy (--show details): share of time with a batch running, however small the batch",
)

VERBS: Final[Mapping[str, str]] = {"rented": "Rent", "bought": "Buy"}
"""Way of paying for all devices -> verb of the first line; a fleet with owned devices, or chosen by energy, is used."""
USE: Final = "Use"
MORE: Final[Mapping[str, Template]] = {
    "cost": Template("{rival} costs {ratio:x} as much[ ({chance} sure)]"),
    "energy": Template("{rival} uses {ratio:x} as much[ ({chance} sure)]"),
    "carbon": Template("{rival} emits {ratio:x} as much[ ({chance} sure)]"),
}
BEST: Final = Template("{verb} {fleet}: {value} per month for {target}[; {more}].")
TIED: Final = Template(
    "{verb} {fleet}: {value} per month for {target}; {rival} may do as well, so take the one at hand."
)
LIKELY: Final = Template(
    "{verb} {likely} for {all} per month to be {sure} sure; {count} for {value} would be {chance} sure"
    "[, and {rival} may do as well]."
)
UNLIKELY: Final = Template(
    "Measure {fleet} first: for {value} per month it meets {target} with {chance} probability, and no number is "
    "{sure} sure."
)
TOGETHER: Final = Template(
    "{verb} {fleet} {way}: {value} per month[, {saved:%} below one kind of server][ ({chance} sure)]."
)
WAYS: Final = ("together", "(prefill > decode)")
"""Ways in which two kinds of servers work together: each on whole requests, or each on a phase."""
PHASES: Final = " > "
"""Sign between the names of two kinds of servers that work on phases."""
NO_PRICE: Final = Template("No fleet within all limits has a known price; {fleet} draws {power}.")
NO_LIMITS: Final = Template("No fleet meets all limits; the nearest is {fleet}: its {reason}.")
DEVICES_OF: Final = Template("{count} {name}")
SERVERS_OF: Final = Template("{count:n server} of {name}")
HEADROOM: Final = Template(
    "{noun} is {value} of {target}[, and the load can grow {capacity:x}][; first to break: {limit}]"
)
EACH: Final = Template("{fleet} at {each} per device against {rival} at {other}")
NOUNS: Final[Mapping[str, str]] = {"p99_s": "p99", "first_token_s": "p99 TTFT", "between_s": "p99 TPOT"}
LIMITS: Final = {name: Template(f"{noun} within {{target}}") for name, noun in NOUNS.items()}
OTHER: Final[Mapping[str, Template]] = {
    "least_energy": Template("least energy: {fleet}, with {value} per month at the meter[, {ratio:x} less]"),
    "published": Template("in the checkpoint's own precision, {fleet} is best: {value} per month"),
}
"""Metric of a further choice -> its sentence."""
ONE_KIND: Final = Template("of one kind, {fleet} is best: {value} per month")
TWO_KINDS: Final = Template("{fleet} together would take {value} per month, a statistical tie")
MOST_SHOWN: Final = 15.0
"""Capacity from which a fleet is only known to carry more, as a multiple of the demanded rate."""


def describe_answer(facts: Facts) -> str:
    """Return the best fleet and its lead, or why there is none."""
    choices = [one for one in facts.of(Choice) if one.metric in MORE]
    if not choices:
        entry = facts.of(Entry)[0]
        fleet = _count(facts, entry.run)
        is_within = bool(facts.of(Limit))  # only a fleet within all limits has them; other refusals are about chips
        for one in () if is_within else facts.of(Refusal):
            return NO_LIMITS(fleet=fleet, reason=one.reason)
        power = entry.values["power"]
        return NO_PRICE(fleet=fleet, power=show_quantity(power.value, "W"))
    first = choices[0]
    fleet, chance = _count(facts, first.run), show_chance(first.probability)
    target = next((LIMITS[one.metric](target=_show(one.bound)) for one in facts.of(Limit)), "")
    given = {"verb": _find_verb(facts, first), "fleet": fleet, "value": _show(first.value), "target": target}
    if _is_together(facts, first.run):
        saved = None if first.ratio is None else 1.0 - 1.0 / first.ratio
        return TOGETHER(chance=chance, saved=saved, way=WAYS[PHASES in fleet], **given)
    is_alone = len(first.runs) < 2 or first.ratio is None
    rival = "" if is_alone else name_run(facts.runs[first.runs[1]])
    is_tied = len(first.close) > 1
    if unsure := _describe_unsure(facts, first, given, rival if is_tied else None):
        return unsure
    if is_tied:
        return TIED(rival=rival, **given)
    more = None if is_alone else MORE[first.metric](rival=rival, ratio=first.ratio, chance=chance)
    whole = BEST(more=more, **given)
    return whole if fits(whole) else BEST(more=None, **given)


def _find_verb(facts: Facts, choice: Choice) -> str:
    values = facts.find_values(choice.run)
    if choice.metric != "cost" or "owned" not in values or values["owned"].value:
        return USE
    return next((verb for way, verb in VERBS.items() if values.get(way) == values.get("cost")), USE)


def _describe_unsure(facts: Facts, choice: Choice, given: Mapping[str, str], rival: str | None) -> str:
    """Return the number of devices that is likely enough; empty if the fleet's own is, or if that is unknown."""
    key, value = choice.run, choice.value
    values = facts.find_values(key)
    enough, likely = values.get("enough"), values.get("likely_devices")
    if enough is None or (likely is not None and likely.value <= values["devices"].value):
        return ""
    chance, sure = show_chance(enough.value), show_chance(LIKELY_ENOUGH)
    if likely is None:
        return UNLIKELY(chance=chance, sure=sure, **given)
    each = round(values["devices_per_server"].value)
    more = likely.value / values["devices"].value
    return LIKELY(
        all=_show(Quantity(more * value.value, value.unit)),
        likely=_count(facts, key, round(likely.value)),
        sure=sure,
        count=round(values["devices"].value) // each,
        rival=rival,
        chance=chance,
        **given,
    )


def list_reasons(facts: Facts) -> list[str]:
    """Return lines on headroom, on the devices of both fleets, on a tied fleet of two kinds, and on energy."""
    lines = (_describe_headroom, _describe_each, _describe_second, _describe_others)
    return [text for one in lines for text in one(facts)][:MOST_WHY]


def _describe_headroom(facts: Facts) -> Iterator[str]:
    taken = {one.run for one in facts.of(Choice)[:1]}
    for one in facts.of(Limit)[:1]:
        if one.value is None or taken - {one.run}:
            continue
        capacity = facts.find_values(one.run).get("capacity")
        breaks = (each for each in facts.of(Caveat) if each.kind == "breaks" and one.run in each.runs)
        yield HEADROOM(
            noun=NOUNS[one.metric],
            value=_show(one.value),
            target=_show(one.bound),
            capacity=capacity.value if capacity is not None and capacity.value < MOST_SHOWN else None,
            limit=next((each.values["limits"] for each in breaks), None),
        )


def _describe_each(facts: Facts) -> Iterator[str]:
    """Yield the number of devices of the best fleet and of its rival, and the share of a device in their value."""
    for one in facts.of(Choice)[:1]:
        known = [facts.find_values(key) for key in one.runs]
        if len(known) > 1 and all({"devices", one.metric} <= {*values} for values in known):
            pairs = ((values[one.metric], values["devices"].value) for values in known)
            shown = [_show(Quantity(value.value / count, value.unit)) for value, count in pairs]
            fleet, rival = (_count(facts, key) for key in one.runs)
            yield EACH(fleet=fleet, each=shown[0], rival=rival, other=shown[1])


def _describe_second(facts: Facts) -> Iterator[str]:
    for one in facts.of(Choice)[1:]:
        if one.metric not in MORE:
            continue
        if _is_together(facts, one.run):
            yield TWO_KINDS(fleet=_count(facts, one.run), value=_show(one.value))
        else:
            yield ONE_KIND(fleet=_count(facts, one.run), value=_show(one.value))


def _describe_others(facts: Facts) -> Iterator[str]:
    for one in facts.of(Choice):
        if one.metric in OTHER and (one.ratio is None or one.ratio > NEAR):
            yield OTHER[one.metric](fleet=_count(facts, one.run), value=_show(one.value), ratio=one.ratio)


def _is_together(facts: Facts, key: int) -> bool:
    """Return whether a fleet has several kinds of servers."""
    return "devices_per_server" not in facts.find_values(key)


def _count(facts: Facts, key: int, number: int | None = None) -> str:
    """Return a fleet's name with a number of devices, by default its own, or of servers if a server has several."""
    values, name = facts.find_values(key), name_run(facts.runs[key])
    if "devices" not in values or "devices_per_server" not in values:
        return name
    devices, each = number or round(values["devices"].value), round(values["devices_per_server"].value)
    return SERVERS_OF(count=devices // each, name=name) if each > 1 else DEVICES_OF(count=devices, name=name)


def _show(value: Quantity) -> str:
    return f"{show_plain(value.value)} USD" if value.unit == "USD" else show_quantity(value.value, value.unit)


def title_fleets(answer: FleetAnswer) -> Title:
    """Return the models, the demand and its targets as a title."""
    served = ""
    if answer.serving is not None:
        from joulemap.wing.llm.serve import describe_served

        served = describe_served(answer.serving)
    models = [
        name if len(answer.shares) == 1 else MODEL(name=name, share=share) for name, share in answer.shares.items()
    ]
    rate = _show_rate(answer)
    targets = {name: getattr(answer.demand, name) for name in TARGETS}
    about = Title(
        form=ABOUT,
        values={
            "peak": rate if len(answer.levels) > 1 else "",
            "rate": "" if len(answer.levels) > 1 else rate,
            "targets": [TARGETS[name](target=value) for name, value in targets.items() if value is not None],
            "precisions": answer.scope.labels,
            "runtimes": () if answer.engine else answer.scope.runtimes,
            "engine": answer.engine,
            "served": served,
        },
    )
    return Title(form=TITLE, values={"models": models}, about=about)


def _show_rate(answer: FleetAnswer) -> str:
    peak = answer.demand.peak_per_s
    is_whole = peak >= WHOLE_RATE and peak == round(peak)
    return ONE_RATE if peak == 1.0 else RATE(rate=f"{peak:,.0f}" if is_whole else f"{peak:,.3g}")


def list_left_out(answer: FleetAnswer) -> Iterator[str]:
    """Yield notes on hardware that was not compared or cannot serve the demand, with the reasons."""
    mark = partial(mark_projected, projected=answer.projected)
    if answer.scope.settings.hardware or answer.serving is not None:
        kept_chips = {row.chip for row in answer.rows}  # in another precision
        lost = (one for one in answer.scope.refused_runs if not kept_chips.issuperset(one.hardware))
        yield from (describe_refusal(one, ENCLOSED) for one in lost)
    late = [row for row in answer.rows if row.status == LATE]
    over = [row for row in answer.rows if row.status not in (OK, LATE)]
    kept = {row.hardware for row in answer.rows if row.status != LATE}
    if missed := [name for name in dict.fromkeys(row.hardware for row in late) if name not in kept]:
        yield TOO_SLOW(names=list(map(mark, missed)))
    if not answer.ok:
        over = over[1:]  # the first is the headline
    if over:
        yield OVER(over[0], label=mark(over[0].label), more=len(over) - 1 or None)
    if answer.demand.objective == "cost":
        without = (row.hardware for row in answer.ok if row.cost_per_month is None and not row.unlike_price_text)
        if unpriced := list(dict.fromkeys(without)):
            other = "" if answer.pay == "both" else PAY_BOTH
            names = list(map(mark, unpriced))
            yield UNPRICED(names=names, price=PRICES[answer.pay], other=other)
        if unlike := {mark(row.chip): row.unlike_price_text for row in answer.ok if row.unlike_price_text}:
            priced = [PRICED(name=name, price=cut_seller(price)) for name, price in unlike.items()]
            yield OTHER_SELLER(names=priced)
    if unused := sorted(set(answer.demand.owned) - {row.chip for row in answer.rows}):
        yield OWNED_ELSEWHERE(names=unused)


def describe_division(answer: FleetAnswer) -> list[str]:
    """Return a sentence on the devices per server of the best fleet, and on another number with similar results."""
    best = next(iter(answer.ok), None)
    if best is None or not answer.demand.is_of_tokens or answer.joined:  # the headline names another fleet
        return []
    column, _ = OBJECTIVES[answer.demand.objective]
    value = getattr(best, column)
    near = [
        (getattr(row, column) / value, row.server_device_count)
        for row in answer.ok
        if (row.hardware, row.precision) == (best.hardware, best.precision)
        and row.server_device_count != best.server_device_count
        and value
        and getattr(row, column) is not None
    ]
    ratio, devices = min(near, default=(2.0 * NEAR, 0))
    division = UNDIVIDED if best.server_device_count == 1 else DIVIDED
    experts = EXPERTS if best.expert_device_count > 1 else ""
    sentence = division(best, devices=best.server_device_count, experts=experts)
    if ratio <= NEAR:
        near_by = NEAR_DIVISION if ratio > TIE_RATIO else EQUAL_DIVISION
        return [f"{sentence}; {near_by(devices=devices, more=ratio - 1.0)}"]
    return [sentence] if best.server_device_count > 1 else []


def format_capacity(row: FleetRow) -> str:
    """Return the capacity as a multiple of the highest rate, or as a lower bound; empty if it is unknown."""
    if row.carried_ratio is None:
        return ""
    if row.carried_ratio > NEARLY * MOST_CARRIED:
        return CAPACITY_OVER(ratio=MOST_CARRIED)
    return CAPACITY(ratio=row.carried_ratio)


def format_utilization(row: FleetRow) -> str:
    """Return the utilization at the highest rate as text; an upper bound if the capacity is only known to be large."""
    if row.carried_ratio is not None and row.carried_ratio > NEARLY * MOST_CARRIED:
        return UTILIZATION_UNDER(share=1.0 / (NEARLY * MOST_CARRIED))
    return show_share(row.utilization_fraction)


def _format_payment(row: FleetRow) -> str:
    """Return the payment of a fleet, such as `rented` or `4 owned and 3 rented`; empty without a price."""
    if row.way in ("", "owned") or not row.owned_device_count:
        return row.way
    return OWNED_AND(row, others=(row.device_count or 0) - row.owned_device_count)


def _format_devices(row: FleetRow) -> str:
    low, high = row.device_low_count, row.device_high_count
    return DEVICES(row, low=None if low == high else low, high=high)


def draw(answer: FleetAnswer) -> Figures:
    """Return figures of the values of fleets, of their queues at several rates, and of utilization at each rate of
    the day.
    """
    from joulemap.show import make_figure

    best, subject = first_of_each(answer.ok), bind(title_fleets(answer), find_conditions(answer.scope))
    if not best:
        return ()
    drawn = [make_figure("fleet", answer.rows.with_rows(best), subject, describe_answer(answer.facts))]
    for quantity in dict.fromkeys(row.quantity for row in answer.queue):
        queue = answer.queue.with_rows(row for row in answer.queue if row.quantity == quantity)
        drawn.append(make_figure("queue", _own(answer, queue), f"{subject}: {quantity}"))
    labels = [row.label for row in best[:WATCHED]]
    rates = tuple(row for row in answer.at_rates if row.label in labels)
    if len({row.rate_per_s for row in rates}) > 1:
        drawn.append(make_figure("day", _own(answer, answer.at_rates.with_rows(rates)), subject))
    return tuple(drawn)


def _own(answer: FleetAnswer, rows: Table[QueueRow] | Table[LevelRow]) -> Table[tuple[Any, ...]]:
    """Return rows of fleets with the chip of each fleet as an additional column."""
    chips = {row.label: row.hardware for row in answer.rows}
    return rows.with_columns(OWNED, ((chips.get(row.label),) for row in rows))


def show_fleets(answer: FleetAnswer, limit: int) -> list[Section]:
    """Return the section of the best fleet of each chip, with lines on delayed batching and on what was left out."""
    left_out = "; ".join(list_left_out(answer))
    below = [Text(LEFT_OUT(reasons=left_out))] if left_out else []
    if not answer.best:
        return [Section("", below, is_tight=True)] if answer.rows else []
    if any(row.wait_s for row in answer.best):
        below.insert(0, Text(DELAYED_MEANS))
    of, is_of_tokens = FleetRow, answer.demand.is_of_tokens
    first, *rest = sorted(MONTHLY, key=lambda objective: objective != answer.demand.objective)
    heading, field = MONTHLY[first]
    others = (find_column(of, MONTHLY[one][1]).headed(MONTHLY[one][0]) for one in rest)
    latencies = (
        (of.first_token_p99_s.if_any.kept, of.between_p99_s.if_any.kept) if is_of_tokens else (of.p99_latency_s.kept,)
    )
    wait: Col[FleetRow] = derived("delay limit", lambda row: show_quantity(row.wait_s or None, "s"))
    price: Col[FleetRow] = derived("price", lambda row: row.price_text)
    columns = (
        of.label,
        of.device_count.headed("devices").by(_format_devices).ranking.kept,
        find_column(of, field).headed(heading).ranking.kept,
        *latencies,
        of.utilization_fraction.by(format_utilization).if_any.kept,
        of.power_w.kept,
        of.batch_mean.headed("mean batch").by(BATCH).kept,
        wait.if_any,
        of.enough_fraction.if_any,
        of.carried_ratio.by(format_capacity),
        of.energy_per_request_j,
        *others,
        of.way.by(_format_payment),
        price.if_any,
    )
    grid = lay_columns(answer, answer.best, columns, limit=limit, noun="chips")
    parts: dict[str, list[float | None]] = {USED: [], SPARE: []}
    for row in answer.best.rows[: len(grid.rows)]:
        value, used = getattr(row, field), row.utilization_fraction
        used = 1.0 if used is None else used
        for name, share in ((USED, used), (SPARE, 1.0 - used)):
            parts[name].append(None if value is None else value * share)
    return [Section("", (grid.with_stack(parts, heading), *below), is_tight=True)]


def list_details(answer: FleetAnswer, limit: int) -> Iterator[Section]:
    """Yield the tables of power and cost, of queues, of the rates of a day, and of missed targets."""
    of, queue = FleetRow, QueueRow
    costs = (
        of.label,
        of.device_count.headed("devices").by(_format_devices).kept,
        of.likely_device_count.if_any.kept,
        of.rented_per_month.kept,
        of.bought_per_month.kept,
        of.gco2_per_month,
        of.kwh_per_month,
        of.power_w.headed("maximum power").kept,
        of.mean_power_w,
        of.idle_power_w.kept,
        of.busy_fraction,
        of.fails_first,
    )
    yield from show_table(answer, "Power and cost", answer.costed, costs, limit=limit)
    rates = (
        queue.label,
        queue.quantity.if_varied,
        queue.rate_per_s.kept,
        queue.load_ratio,
        queue.p50_s.by(partial(_show_time, "p50_s")),
        queue.p99_s.by(partial(_show_time, "p99_s")).kept,
        queue.promise_s,
        queue.power_w,
    )
    yield from show_table(answer, "Latency and power at other rates", answer.queue, rates)
    yield from show_table(answer, "Fleet at each rate", answer.watched_rates, LevelRow.table)
    yield from show_mixtures(answer, limit) if not answer.joined else ()
    yield from show_table(answer, MISSED, answer.missed, (of.label, of.reason.kept), limit=limit)


def show_mixtures(answer: FleetAnswer, limit: int) -> list[Section]:
    """Return the section of fleets of several kinds."""
    return show_table(answer, "Several kinds of servers", answer.mixtures, MixedRow.table, limit=limit)


def _show_time(field: str, row: QueueRow) -> str:
    value = getattr(row, field)
    return OVERLOADED if value is None else show_quantity(value, "s")


def list_steps(answer: FleetAnswer, repeated: Sequence[str]) -> list[list[str]]:
    """Return the follow-up command: on a language model, on two chips, at one precision or at two, or on one."""
    if not answer.ok:
        return []
    best, rows, is_served = answer.ok[0], answer.best.rows[:2], answer.demand.is_of_tokens
    is_alike = len({row.precision for row in rows}) == 1
    step = SERVE if is_served else EDP if len(rows) < 2 else EXPLAIN if is_alike else COMPARE
    repeating = [row.hardware for row in rows[: 1 if is_served else None]]
    devices = best.server_device_count
    return fill_steps(
        [step],
        None,
        repeat_boundary(answer.scope, repeating, repeated),
        model=next(iter(answer.shares)),
        hardware=answer.scope.spell(rows[0].hardware),
        other=answer.scope.spell(rows[-1].hardware),
        precision=spell_precision(best.precision),
        precisions=",".join(split_precision(row.precision)[0] for row in rows),
        devices=devices if devices > 1 else None,
        rate=f"{answer.find_server_rate(best):.3g}",
        runtime=best.runtime,
    )


def draw_answer(answer: FleetAnswer, asked: Asked) -> Document:
    """Return the document of fleets, those of several kinds below the others if one of them is the best."""
    most = asked.most(12)
    return compose_runs(
        answer,
        answer.facts,
        [*show_fleets(answer, most), *(show_mixtures(answer, most) if answer.joined else ())],
        answer.rows,
        title=title_fleets(answer),
        headline=describe_answer(answer.facts),
        reasons=list_reasons(answer.facts)[:MOST_WHY],
        details=list_details(answer, most),
        notes=[*describe_division(answer), *NOTES],
        steps=list_steps(answer, asked.repeated),
    )


PAGES: Final = {FleetAnswer: Page[FleetAnswer](draw=draw_answer, draw_figures=draw)}
