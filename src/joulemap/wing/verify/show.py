"""Words for verifications: how many measurements are inside their intervals, the median error, and a cause."""

from __future__ import annotations

import math
from statistics import median
from typing import Final

from joulemap.ask.fact import Caveat, Facts, Refusal, Score
from joulemap.present.cell import show_share
from joulemap.present.template import Template
from joulemap.show.caveat import describe_caveat
from joulemap.show.choice import MOST_WORDS
from joulemap.show.word import Words

WORDS: Final = Words(
    caveats={"cause": Template("possible cause: {change}"), "other_chip": Template("possible cause: {text}")},
)

INSIDE: Final = Template("{inside} of {judged} measurements are inside the 80 % intervals of their predictions")
BOTH_INSIDE: Final = "Both measurements are inside the 80 % intervals of their predictions"
ALL_INSIDE: Final = Template("All {judged} measurements are inside the 80 % intervals of their predictions")
ONE_INSIDE: Final = Template("1 of {judged} measurements is inside the 80 % interval of its prediction")
NEITHER_INSIDE: Final = "Neither measurement is inside the 80 % interval of its prediction"
NONE_INSIDE: Final = Template("None of the {judged} measurements is inside the 80 % interval of its prediction")
ONE_JUDGED: Final = {
    True: "The measurement is inside the 80 % interval of its prediction",
    False: "The measurement is outside the 80 % interval of its prediction",
}
PAIR: Final = 2
WHOLE: Final = Template("{inside} (median error {error})[; {cause}].")
LIKELIEST: Final = Template("most likely cause: {change}")
NOT_JUDGED: Final = "No measured quantity has an interval"
NOT_PREDICTED: Final = "No measurement is predicted"
UNSCORED: Final = Template("not scored: {reasons}")


def describe_answer(facts: Facts) -> str:
    """Return the measurements inside their intervals, the median error, and a short cause of the others."""
    return _conclude(facts)[0]


def _conclude(facts: Facts) -> tuple[str, bool]:
    """Return the first line, and whether it has room for the cause."""
    scores = facts.of(Score)
    judged = [one for one in scores if one.is_inside is not None]
    if not judged:
        return f"{NOT_JUDGED if scores else NOT_PREDICTED}.", False
    error = median(abs(math.log(one.measured.value / one.predicted.value)) for one in judged)
    given = {
        "inside": _count_inside(sum(bool(one.is_inside) for one in judged), len(judged)),
        "error": show_share(math.expm1(error)),
    }
    cause = describe_cause(facts)
    whole = WHOLE(cause=cause or None, **given)
    has_room = bool(cause) and whole.count(" ") < MOST_WORDS
    return whole if has_room else WHOLE(cause=None, **given), has_room


def describe_cause(facts: Facts) -> str:
    """Return the likeliest cause of measurements outside their intervals; empty without one."""
    for one in facts.of(Caveat):
        if one.values.get("standing") == "assumed":
            return LIKELIEST(change=one.values["change"])
        return describe_caveat(one, facts.runs)
    return ""


def list_reasons(facts: Facts) -> list[str]:
    """Return lines on a cause that the first line has no room for, and on what was not scored."""
    cause = "" if _conclude(facts)[1] else describe_cause(facts)
    found = [cause] if cause else []
    reasons = dict.fromkeys(one.reason for one in facts.of(Refusal))
    return [*found, *([UNSCORED(reasons="; ".join(reasons))] if reasons else [])]


def _count_inside(inside: int, judged: int) -> str:
    """Return a clause on how many measurements are inside their intervals."""
    if judged == 1:
        return ONE_JUDGED[inside == 1]
    if judged == PAIR and inside != 1:
        return BOTH_INSIDE if inside else NEITHER_INSIDE
    if inside == judged:
        return ALL_INSIDE(judged=judged)
    return (INSIDE if inside > 1 else ONE_INSIDE if inside else NONE_INSIDE)(inside=inside, judged=judged)
