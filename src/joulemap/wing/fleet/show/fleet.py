"""Words for fleets: the decision, its headroom, and alternatives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from joulemap.ask.fact import Choice, Entry, Facts, Limit, Quantity, Refusal
from joulemap.domain.metric import TIE_RATIO
from joulemap.show.choice import MOST_WHY, MOST_WORDS
from joulemap.show.present.cell import show_chance, show_plain, show_quantity, show_share
from joulemap.show.present.template import Template
from joulemap.show.run_name import name_run
from joulemap.wing.fleet.capacity.likely import LIKELY as LIKELY_ENOUGH

LEAST: Final[Mapping[str, tuple[str, str]]] = {
    "cost": ("costs least", "cost least"),
    "energy": ("uses the least energy", "use the least energy"),
    "carbon": ("emits the least CO2", "emit the least CO2"),
}
"""Objective -> verb of one device or server, and of several."""
MORE: Final[Mapping[str, Template]] = {
    "cost": Template("{rival} costs {ratio:x} as much"),
    "energy": Template("{rival} uses {ratio:x} as much"),
    "carbon": Template("{rival} emits {ratio:x} as much"),
}
BEST: Final = Template("{fleet} {least}: {value} per month[ ({chance} sure)][; {more}].")
TIED: Final = Template("{fleet} {least}: {value} per month, statistically tied with {rival}.")
LIKELY: Final = Template(
    "Plan {likely} to be {sure} sure; {count} {least} at {value} per month ({chance} sure)[, tied with {rival}]."
)
UNLIKELY: Final = Template("{fleet} {least}: {value} per month, {chance} sure to suffice; no number is {sure} sure.")
TOGETHER: Final = Template(
    "{fleet} {way} {least}: {value} per month[, {saved:%} below one kind of server][ ({chance} sure)]."
)
WAYS: Final = ("together", "(prefill > decode)")
"""Ways in which two kinds of servers work together: each on whole requests, or each on a phase."""
PHASES: Final = " > "
"""Sign between the names of two kinds of servers that work on phases."""
NO_PRICE: Final = Template("No fleet within all limits has a known price; {fleet} draws {power}.")
NO_LIMITS: Final = Template("No fleet meets all limits; the nearest is {fleet}: its {reason}.")
DEVICES_OF: Final = Template("{count} {name}")
SERVERS_OF: Final = Template("{count:n server} of {name}")
HEADROOM: Final = Template("{noun} is {value}, {share} of the {target} target[; {utilization} of the capacity is used]")
NOUNS: Final[Mapping[str, str]] = {"p99_s": "p99", "first_token_s": "p99 TTFT", "between_s": "p99 TPOT"}
OTHER: Final[Mapping[str, Template]] = {
    "least_energy": Template("{fleet} uses the least energy: {value} per month at the meter[, {ratio:x} less]"),
    "published": Template("in the checkpoint's own precision, {fleet} is best: {value} per month"),
}
"""Metric of a further choice -> its sentence."""
ONE_KIND: Final = Template("of one kind, {fleet} {least}: {value} per month")
TWO_KINDS: Final = Template("{fleet} together would take {value} per month, a statistical tie")
MOST_SHOWN: Final = 15.0
"""Capacity from which a fleet is only known to carry more, as a multiple of the demanded rate."""


def describe_answer(facts: Facts) -> str:
    """Return the best fleet and its lead, or why there is none."""
    choices = [one for one in facts.of(Choice) if one.metric in LEAST]
    if not choices:
        entry = facts.of(Entry)[0]
        fleet = _count(facts, entry.runs[0])
        is_within = bool(facts.of(Limit))  # only a fleet within all limits has them; other refusals are about chips
        for one in () if is_within else facts.of(Refusal):
            return NO_LIMITS(fleet=fleet, reason=one.reason)
        power = entry.values["power"]
        return NO_PRICE(fleet=fleet, power=show_quantity(power.value, "W"))
    first = choices[0]
    fleet, chance = _count(facts, first.runs[0]), show_chance(first.probability)
    given = {"fleet": fleet, "least": _say_least(facts, first), "value": _show(first.value)}
    if _is_together(facts, first.runs[0]):
        saved = None if first.ratio is None else 1.0 - 1.0 / first.ratio
        return TOGETHER(chance=chance, saved=saved, way=WAYS[PHASES in fleet], **given)
    is_alone = len(first.runs) < 2 or first.ratio is None
    rival = "" if is_alone else name_run(facts.runs[first.runs[1]])
    is_tied = not is_alone and (bool(first.tied) or (first.ratio or 0.0) <= TIE_RATIO)
    if unsure := _describe_unsure(facts, first.runs[0], given, rival if is_tied else None):
        return unsure
    if is_alone or first.ratio is None:
        return BEST(chance=None, more=None, **given)
    if is_tied:
        return TIED(rival=rival, **given)
    more = MORE[first.metric](rival=rival, ratio=first.ratio)
    whole = BEST(chance=chance, more=more, **given)
    return whole if whole.count(" ") < MOST_WORDS else BEST(chance=chance, more=None, **given)


def _describe_unsure(facts: Facts, key: int, given: Mapping[str, str], rival: str | None) -> str:
    """Return the number of devices that is likely enough; empty if the fleet's own is, or if that is unknown."""
    values = _find_values(facts, key)
    enough, likely = values.get("enough"), values.get("likely_devices")
    if enough is None or (likely is not None and likely.value <= values["devices"].value):
        return ""
    chance, sure = show_chance(enough.value), show_chance(LIKELY_ENOUGH)
    if likely is None:
        return UNLIKELY(chance=chance, sure=sure, **given)
    each = round(values["devices_per_server"].value)
    return LIKELY(
        likely=_count(facts, key, round(likely.value)),
        sure=sure,
        count=round(values["devices"].value) // each,
        least=given["least"],
        value=given["value"],
        rival=rival,
        chance=chance,
    )


def list_reasons(facts: Facts) -> list[str]:
    """Return lines on the headroom of the best fleet, a tied fleet of two kinds, and the least energy."""
    return [*_describe_headroom(facts), *_describe_second(facts), *_describe_others(facts)][:MOST_WHY]


def _describe_headroom(facts: Facts) -> Iterator[str]:
    for one in facts.of(Limit)[:1]:
        if one.value is None:
            continue
        values = _find_values(facts, one.runs[0])
        used, capacity = values.get("utilization"), values.get("capacity")
        is_known = used is not None and (capacity is None or capacity.value < MOST_SHOWN)
        yield HEADROOM(
            noun=NOUNS[one.metric],
            value=_show(one.value),
            share=show_share(one.value.value / one.bound.value),
            target=_show(one.bound),
            utilization=show_share(used.value) if used is not None and is_known else None,
        )


def _describe_second(facts: Facts) -> Iterator[str]:
    for one in facts.of(Choice)[1:]:
        if one.metric not in LEAST:
            continue
        if _is_together(facts, one.runs[0]):
            yield TWO_KINDS(fleet=_count(facts, one.runs[0]), value=_show(one.value))
        else:
            given = {"fleet": _count(facts, one.runs[0]), "least": _say_least(facts, one), "value": _show(one.value)}
            yield ONE_KIND(**given)


def _describe_others(facts: Facts) -> Iterator[str]:
    for one in facts.of(Choice):
        if one.metric in OTHER:
            yield OTHER[one.metric](fleet=_count(facts, one.runs[0]), value=_show(one.value), ratio=one.ratio)


def _find_values(facts: Facts, key: int) -> Mapping[str, Quantity]:
    quantities: Mapping[str, Quantity] = next((one.values for one in facts.of(Entry) if one.runs[0] == key), {})
    return quantities


def _is_together(facts: Facts, key: int) -> bool:
    """Return whether a fleet has several kinds of servers."""
    return "devices_per_server" not in _find_values(facts, key)


def _count(facts: Facts, key: int, number: int | None = None) -> str:
    """Return a fleet's name with a number of devices, by default its own, or of servers if a server has several."""
    values, name = _find_values(facts, key), name_run(facts.runs[key])
    if "devices" not in values or "devices_per_server" not in values:
        return name
    devices, each = number or round(values["devices"].value), round(values["devices_per_server"].value)
    return SERVERS_OF(count=devices // each, name=name) if each > 1 else DEVICES_OF(count=devices, name=name)


def _say_least(facts: Facts, choice: Choice) -> str:
    values = _find_values(facts, choice.runs[0])
    each = values["devices_per_server"].value if "devices_per_server" in values else 0.0
    return LEAST[choice.metric][0 if values["devices"].value == each else 1]


def _show(value: Quantity) -> str:
    return f"{show_plain(value.value)} USD" if value.unit == "USD" else show_quantity(value.value, value.unit)
