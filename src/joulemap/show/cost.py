"""Words for costs: the cheapest chip, the other way of paying, and the break-even."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from joulemap.ask.fact import Caveat, Choice, Facts, Quantity, Turn
from joulemap.domain.metric import TIE_RATIO
from joulemap.show.caveat import describe_caveat
from joulemap.show.choice import MOST_TIED, NOT_SOLD
from joulemap.show.present.cell import show_chance, show_quantity
from joulemap.show.present.template import Template
from joulemap.show.recommend import show_life
from joulemap.show.run_name import join_names, name_all, name_run

CHEAPEST: Final = Template(
    "{name} is cheapest{way} at {cost} per million {unit}[, {ratio:x} less than {rival}][, within 0.5 % of {equal}]"
    "[ ({chance} sure)]"
)
TIED: Final = Template(
    "{name} is statistically tied with {tied} as cheapest{last}, at {cost} per million {unit}"
    "[ ({chance} likely cheapest)]"
)
UNDECIDED: Final = Template(
    "{name} and {count} others are statistically tied as cheapest{last}, from {cost} per million {unit}"
)
SAME: Final = Template("{names} cost the same{last}: {cost} per million {unit}")
ONLY: Final = Template("{name} costs {cost} per million {unit}{last}")
NO_PRICE: Final = Template("No {price} is known for any of these chips.")

TO: Final[Mapping[str, str]] = {"rented": " to rent", "bought": " to buy"}
IF: Final[Mapping[str, str]] = {"rented": ", if rented,", "bought": ", if bought,"}
LAST: Final[Mapping[str, str]] = {"rented": ", if rented", "bought": ", if bought"}
"""Way of paying -> its words: where one way is compared, and where both are, within a clause and at its end."""

COSTLIER: Final = Template("{way} {name} costs {value}, {ratio:x} as much as {other_way} {other}")
CHEAPER: Final = Template("{way} {name} costs {value}, {ratio:x} less than {other_way} {other}")
OTHER_ONLY: Final = Template("{way} {name} costs {value} (`--pay {way}`)")
BEYOND: Final = Template("{name}, which cannot be bought, would cost {ratio:x} less")

EVEN: Final[Mapping[str, Template]] = {
    "same": Template("{above} and {below} cost the same at any volume"),
    "never": Template("{below} is cheaper than {above} at any volume"),
    "within": Template("break-even at {volume} {unit}[ ({time} of one chip)]: {below} is cheaper below, {above} above"),
    "beyond": Template(
        "{below} is cheaper than {above} at any volume: the break-even at {volume} {unit} is beyond the {life} of one "
        "{worn}'s lifetime"
    ),
    "worn": Template(
        "{below} is cheaper than {above} up to {life} {unit}, the lifetime of one {worn}; the break-even at {volume} "
        "is beyond it"
    ),
}
"""Case of a break-even -> its sentence."""

LOST: Final = ("elsewhere", "unoffered")
"""Kinds of caveats on hardware that a missing price leaves out."""


def describe_answer(facts: Facts, unit: str, *, way: str, is_only_way: bool, price: str) -> str:
    """Return the first line: the cheapest chip, by how much and how surely.

    `unit` is the plural of the unit of work, `way` the way of paying of the cheapest chip, `is_only_way` is False if
    both ways are compared, and `price` is the noun of a price that all chips may lack.
    """
    choices = facts.of(Choice)
    if not choices:
        return NO_PRICE(price=price)
    choice, runs = choices[0], facts.runs
    given = {
        "name": name_run(runs[choice.runs[0]]),
        "way": (TO if is_only_way else IF)[way],
        "last": (TO if is_only_way else LAST)[way],
        "cost": show_quantity(choice.value.value, choice.value.unit),
        "unit": unit,
        "chance": show_chance(choice.probability),
    }
    end = "." if runs[choice.runs[0]].is_available else f"{NOT_SOLD}."
    if len(choice.runs) < 2 or choice.ratio is None:
        return ONLY(**given) + end
    if len(choice.tied) > MOST_TIED:
        return UNDECIDED(count=len(choice.tied), **given) + end
    if choice.equal:
        return SAME(names=join_names(name_all(runs, choice.equal)), **given) + end
    if choice.tied:
        return TIED(tied=join_names(name_all(runs, choice.tied)), **given) + end
    rival, is_equal = name_run(runs[choice.runs[1]]), choice.ratio < TIE_RATIO
    ratio = None if is_equal else choice.ratio
    given["chance"] = show_chance(choice.lead_probability)
    return CHEAPEST(ratio=ratio, rival=rival, equal=rival if is_equal else None, **given) + end


def list_reasons(facts: Facts, unit: str) -> list[str]:
    """Return lines on why: the other way of paying, the break-even, and named hardware that is left out."""
    is_named = any(one.is_named for one in facts.runs.values())
    lost = [describe_caveat(one, facts.runs) for one in facts.of(Caveat) if one.kind in LOST and is_named]
    beyond = describe_beyond(facts) if is_named else []
    return [*lost, *_describe_ways(facts), *describe_break_even(facts, unit), *beyond]


def _describe_ways(facts: Facts) -> list[str]:
    """Return a line on the cheapest chip in the other way of paying."""
    lines = []
    for one in facts.of(Turn):
        if one.axis != "pay" or one.value is None:
            continue
        names = name_all(facts.runs, one.runs[:1]) + name_all(facts.runs, one.runs[1:])
        given = {"way": one.after, "name": names[0], "value": show_quantity(one.value.value, one.value.unit)}
        if one.ratio is None:
            lines.append(OTHER_ONLY(**given))
        else:
            is_less = one.ratio >= 1.0
            ratio = one.ratio if is_less else 1.0 / one.ratio
            lines.append((CHEAPER if is_less else COSTLIER)(ratio=ratio, other_way=one.before, other=names[1], **given))
    return lines


def describe_break_even(facts: Facts, unit: str) -> list[str]:
    """Return a line on the volume from which another option is cheaper; empty without a break-even."""
    lines = []
    for one in facts.of(Turn):
        if one.axis != "inferences":
            continue
        values = one.values
        above, below = (
            f"{values[way]} {name_run(facts.runs[run_id])}"
            for way, run_id in zip(("way", "other_way"), one.runs, strict=True)
        )
        worn, time = values.get("worn"), values.get("time")
        lines.append(
            EVEN[str(values["case"])](
                above=above,
                below=below,
                unit=unit,
                volume=_show_count(one.after),
                time=show_life(time) if isinstance(time, Quantity) else None,
                life=_show_count(values.get("life")),
                worn=name_run(facts.runs[worn]) if isinstance(worn, int) else "",
            )
        )
    return lines


def _show_count(value: object) -> str:
    return show_quantity(value, "").strip() if isinstance(value, float) else ""


def describe_beyond(facts: Facts) -> list[str]:
    """Return a line on unavailable hardware that would be cheaper; empty without any."""
    beyond = [one for one in facts.of(Choice)[1:] if one.ratio]
    return [BEYOND(name=name_run(facts.runs[one.runs[0]]), ratio=one.ratio) for one in beyond]
