"""Words for explorations: what the best designs gain over the unchanged chip, and how many designs are as good."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from joulemap.ask.fact import Choice, Entry, Facts, Quantity
from joulemap.domain.doubt import TIE_RATIO
from joulemap.present.cell import show_quantity
from joulemap.present.template import Template
from joulemap.show.choice import MOST_WORDS
from joulemap.show.word import Words

WORDS: Final = Words(
    caveats={
        "oversize": Template("{count:n design} of the front beyond the reticle limit of one die"),
        "beyond": Template("{text}"),
    },
)

GAINS: Final = Template("{subject} {gains} than the unchanged chip[; {rest}].")
ONE: Final = "The best design has"
SEVERAL: Final = "The best designs have"
GAIN: Final = Template("{ratio:x} {direction} {noun}")
LOWER, HIGHER = "lower", "higher"
NO_GAIN: Final = Template("No design improves on the unchanged chip[; {rest}].")
FRONT: Final = Template("{front:#} of {points:n design} are on the Pareto front")
TIED: Final = Template("{band:#} of {points:n design} are statistically tied with it")
WHOLE: Final = Template("{rest} of {objectives:and}.")
ALONE: Final = Template("This design: {values:and}.")
VALUE: Final = Template("{noun} {value}")
OBJECTIVES: Final[Mapping[str, str]] = {"edp": "EDP"}
"""Objective -> its name in a sentence, if that differs."""
MOST_NAMED: Final = 3
"""Maximum objectives whose gains the first line states."""


def describe_answer(facts: Facts, higher: Collection[str]) -> str:
    """Return the gains of the best designs, or the size of the front; `higher` are objectives to maximize."""
    choices = facts.of(Choice)
    (sizes,) = (one.values for one in facts.of(Entry) if not one.runs)
    count = {name: round(value.value) for name, value in sizes.items()}
    if count["points"] == 1:
        values = [VALUE(noun=name_objective(one.metric), value=_show(one.value)) for one in choices[:MOST_NAMED]]
        return ALONE(values=values)
    is_one = count["front"] == 1
    known = [one for one in choices if one.ratio is not None]
    rest = None if is_one and not count["band"] else TIED(**count) if is_one else FRONT(**count)
    if not known:
        names = [name_objective(one) for one in facts.asked]
        return WHOLE(rest=FRONT(**count), objectives=names)
    gained = [one for one in known if one.ratio is not None and one.ratio > TIE_RATIO]
    gains = [_describe_gain(one, higher) for one in gained[:MOST_NAMED]]
    if not gains:
        return NO_GAIN(rest=rest)
    word = " and " if is_one else " or "
    subject = ONE if is_one else SEVERAL
    whole = GAINS(subject=subject, gains=word.join(gains), rest=rest)
    return whole if whole.count(" ") < MOST_WORDS else GAINS(subject=subject, gains=word.join(gains), rest=None)


def name_objective(objective: str) -> str:
    """Return the name of an objective as it reads in a sentence."""
    return OBJECTIVES.get(objective, objective)


def _describe_gain(choice: Choice, higher: Collection[str]) -> str:
    direction = HIGHER if choice.metric in higher else LOWER
    return GAIN(ratio=choice.ratio, direction=direction, noun=name_objective(choice.metric))


def _show(value: Quantity) -> str:
    return show_quantity(value.value, value.unit)
