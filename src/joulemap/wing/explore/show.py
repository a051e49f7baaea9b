"""Words for explorations: what the best designs gain over the unchanged chip, and how many designs are as good."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from joulemap.ask.fact import Choice, Entry, Facts, Quantity, Share
from joulemap.domain.metric import TIE_RATIO
from joulemap.show.choice import MOST_WORDS
from joulemap.show.present.cell import show_quantity
from joulemap.show.present.template import Template
from joulemap.show.word import Words
from joulemap.wing.explore.ask import ALIKE

STILL: Final = Template("at {design}, {objective} hardly depends on {parameters:or}")
EFFECT: Final = Template(
    "at {design}, {objective} changes by {changes:and}[; the power limit lowers the clock there to {clock:%} of the "
    "full clock]"
)
BEST_DESIGN: Final = Template("the design with the best {objective}")
THIS_DESIGN: Final = "this design"
CHANGE: Final = Template("{change} % for 1 % more {parameter}")
NOT_SURE: Final = "uncertainty unknown: the base chip does not run the models, or its error is not known"
SHARED: Final = (
    "designs based on one chip share most of their error, so differences smaller than these intervals can be "
    "significant"
)
VARIED: Final = Template("varied by default: {names:list}; choose with --vary units=16:1024:*2")
RULE: Final = Template("{text} ({basis})")
SAVED: Final = Template("Best {objective}: {design}.")
SAVED_MODE: Final = Template("Name it as {path}@{mode}.")
NONE_RUNS: Final = Template("{none} runs: {reasons}")
NONE_OF: Final = Template("none of {count:#} designs")
NO_DESIGN: Final = "no design"
REFUSAL: Final = Template("[{count:n design}: ]{reason}")
NONE_MEETS: Final = Template("{none} meets the limits; the nearest is {base} with {values}, whose {missed:and}")
MISSED_LIMIT: Final = Template("{label} of {value} is {excess:x} {option} {limit}")
LEAST_REGRET: Final = Template(
    "{hardware} has the least regret in {objective}: {regret_ratio:x} relative to each model's best chip on average, "
    "and {worst_ratio:x} at worst ({worst_model})"
)
BEST_OF_ALL: Final = Template("{hardware} {leads}{scope}[ ({chance:chance} confidence against {runner_up}{tie})]")
EVERY_MODEL: Final = " for every model"
TIE: Final = Template("[, statistically tied with {count:n chip}]")
LEADS: Final[Mapping[str, str]] = {
    "energy": "uses the least energy",
    "latency": "has the lowest latency",
    "throughput": "has the highest throughput",
}
"""Objective -> verb phrase for the chip that is best by it."""

LEADS_IN: Final = Template("is best in {objective}")
NO_CHIP: Final = "no chip runs all models"
SURE_WINNERS: Final = Template(
    "the best chip beats every rival with at least 80 % probability for {sure} of {known:n model}"
)
REGRET_NOTES: Final = (
    Template(
        "regret: geometric mean over models, by their shares, of the chip's value relative to the model's best chip; "
        "each at its best mode, precision, batch and runtime within the limits"
    ),
    Template(
        "probability: that the best chip beats the next; tied: chips among the next {rivals} that are better with more "
        "than 20 % probability"
    ),
)

WORDS: Final = Words(
    caveats={
        "oversize": Template(
            "{count:n design} of the front beyond the reticle limit of one die, {limit_mm2:plain} mm2: "
            "up to {most_mm2:plain} mm2"
        ),
        "beyond": Template(
            "beyond existing hardware: {name} {value} ({end} of any [{class} ]chip in the catalogue: {most}, {chip})"
        ),
        "missed_target": Template("no value gives {objective} {target} exactly; the nearest is {value}"),
    },
)

GAINS: Final = Template("{subject} {gains} than the unchanged chip[; {rest}].")
ONE: Final = "The best design has"
SEVERAL: Final = "The best designs have"
GAIN: Final = Template("{ratio:x} {direction} {noun}[ ({design})]")
LOWER, HIGHER = "lower", "higher"
NO_GAIN: Final = Template("No design improves on the unchanged chip[; {rest}].")
FRONT: Final = Template("{front:#} of {points:n design} are on the Pareto front")
MANY_TIED: Final = Template("{count:#} others are statistically tied on {noun:and}")
TIED: Final = Template("{band:#} of {points:n design} are statistically tied with it")
WHOLE: Final = Template("{rest} of {objectives:and}.")
ALONE: Final = Template("{subject} {values:and}.")
HAS: Final = Template("{design} has")
VALUE: Final = Template("{noun} {value}")
OBJECTIVES: Final[Mapping[str, str]] = {"edp": "EDP"}
"""Objective -> its name in a sentence, if that differs."""
MOST_ALIKE: Final = 0.5
"""Share of the other designs, statistically tied with the best, from which the first line says so."""
SHORT: Final = 4
"""Maximum words of a design among others in the first line."""
MOST_NAMED: Final = 3
"""Maximum objectives whose gains the first line states."""


def describe_answer(facts: Facts, higher: Collection[str]) -> str:
    """Return the gains of the best designs, or the size of the front; `higher` are objectives to maximize."""
    choices = facts.of(Choice)
    (sizes,) = (one.values for one in facts.of(Entry) if not one.runs)
    count = {name: round(value.value) for name, value in sizes.items()}
    if count["points"] == 1:
        values = [VALUE(noun=name_objective(one.metric), value=_show(one.value)) for one in choices[:MOST_NAMED]]
        return ALONE(subject=HAS(design=_name_design(facts, choices[0])), values=values)
    is_one = count["front"] == 1
    known = [one for one in choices if one.ratio is not None]
    rest = None if is_one and not count["band"] else TIED(**count) if is_one else FRONT(**count)
    if not known:
        names = [name_objective(one) for one in facts.asked]
        return WHOLE(rest=FRONT(**count), objectives=names)
    many = {one.metric: one.total for one in facts.of(Share) if one.level == ALIKE and one.share >= MOST_ALIKE}
    gained = [one for one in known if one.ratio is not None and one.ratio > TIE_RATIO]
    if not gained:
        return NO_GAIN(rest=rest)
    gained = gained[:MOST_NAMED]
    is_same = len({one.runs[0] for one in gained}) == 1
    designs = [_name_design(facts, one) for one in gained]
    is_named = not is_same and all(one.count(" ") < SHORT for one in designs)
    gains = [_describe_gain(one, higher, name if is_named else None) for one, name in zip(gained, designs, strict=True)]
    if tied := [one.metric for one in gained if one.metric in many]:
        nouns = [name_objective(one) for one in tied if many[one] == many[tied[0]]]
        rest = MANY_TIED(count=many[tied[0]], noun=nouns)
    word = " and " if is_one or is_same else " or "
    subject = HAS(design=designs[0]) if is_same else ONE if is_one else SEVERAL
    whole = GAINS(subject=subject, gains=word.join(gains), rest=rest)
    return whole if whole.count(" ") < MOST_WORDS else GAINS(subject=subject, gains=word.join(gains), rest=None)


def _name_design(facts: Facts, choice: Choice) -> str:
    """Return the chip of the best design with its numbers."""
    return facts.runs[choice.runs[0]].hardware


def name_objective(objective: str) -> str:
    """Return the name of an objective as it reads in a sentence."""
    return OBJECTIVES.get(objective, objective)


def _describe_gain(choice: Choice, higher: Collection[str], design: str | None) -> str:
    direction = HIGHER if choice.metric in higher else LOWER
    noun = name_objective(choice.metric)
    return GAIN(ratio=choice.ratio, direction=direction, noun=noun, design=design)


def _show(value: Quantity) -> str:
    return show_quantity(value.value, value.unit)
