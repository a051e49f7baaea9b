"""Words for what has no result: the line below a table, and notes. Reasons are grouped and shortened by their codes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from joulemap.ask.fact import BOUNDARY, BUDGET, CALIBRATION, PORT, Refusal
from joulemap.domain.table import group
from joulemap.show.present.cell import show_count
from joulemap.show.present.template import Template
from joulemap.system.name import PROJECTED

MOST_REASONS: Final = 2
"""Maximum distinct reasons in a line; of more, one is an example."""

MOST_NOTES: Final = 4
"""Maximum notes on refused runs; more are counted."""

MOST_NAMED: Final = 3
"""Maximum chips that a line or a note names: without a result, beyond a power budget, or without a known energy at a
boundary.
"""

NAMES_HARDWARE: Final = frozenset({"precision", "memory", "compiler", "no_host", "left_nothing", "range"})
"""Codes of reasons whose sentence begins with the hardware."""

SHORT: Final = {"precision": Template("{hardware} has no {precision}")}
"""Code of a reason -> its sentence in a list, without the alternatives of each chip."""

ENCLOSED: Final = {"precision": Template("{hardware} has no {precision} (it has {supported:list})")}
"""Code of a reason -> its sentence in a list that separates reasons by semicolons."""

LEFT_OUT: Final = Template("Left out: {reasons}")
REFUSED: Final = Template("{count:n unsupported configuration}[ of {chips:n chip}] ({example}{reasons})")
BEYOND: Final = Template("1 chip without a power mode within {budget} ({first})")
REFUSED_COUNT: Final = Template("{count:n unsupported configuration}[ of {names:list}]")
BEYOND_COUNT: Final = Template("{count:n chip} above {budget}")
REASON: Final = Template("{hardware}: {reason}")

NOTE: Final = Template("left out: {reason}")
MORE: Final = Template("hardware is left out for {count:n more reason}: --format json")
NO_MODE: Final = Template("left out, because no power mode is within the budget: {names:list}[ and {more:n more chip}]")
NAMED: Final = Template("{hardware} ({reason})")
EXCLUDED: Final = {
    BOUNDARY: Template("left out, because their energy at the wall is not known: {names:list} ({reason})"),
    PORT: Template("left out, because they do not fit the host: {names:list} ({reason})"),
}
"""Code of hardware that is left out -> note on those with one reason."""


def describe_refusal(one: Refusal, forms: dict[str, Template] | None = None) -> str:
    """Return the sentence on a reason, by `forms` if they have its code; unavailable hardware is marked."""
    form = (forms or {}).get(one.code)
    text = one.reason if form is None else form(**one.values)
    return _mark(text, one) if one.code in NAMES_HARDWARE else text


def list_beyond(refusals: Iterable[Refusal]) -> list[Refusal]:
    """Return the hardware that a power budget excludes."""
    return [one for one in refusals if one.code == BUDGET]


def list_miscalibrated(refusals: Iterable[Refusal]) -> list[str]:
    """Return the reasons of hardware whose calibration does not fit."""
    return [REASON(hardware=_name(one), reason=one.reason) for one in refusals if one.code == CALIBRATION]


def describe_unsupported(refusals: Sequence[Refusal]) -> str:
    """Return the count of unsupported configurations, with the reasons or an example; empty if there is none."""
    refused = [one for one in refusals if one.runs]
    if not refused:
        return ""
    count = sum(len(one.runs) for one in refused)
    chips = len({chip for one in refused for chip in one.hardware})
    has_all = len(refused) <= MOST_REASONS
    shown = refused if has_all else refused[:1]
    return REFUSED(
        count=count,
        chips=chips if 0 < chips < count else None,
        example="" if has_all else "for example, ",
        reasons="; ".join(describe_refusal(one, SHORT if len(shown) > 1 else None) for one in shown),
    )


def count_left_out(refusals: Sequence[Refusal], budget: str = "") -> str:
    """Return a line with the counts of what was left out, for an answer whose notes have the reasons; few reasons are
    stated, and few chips are named. It is empty if nothing was left out.
    """
    refused, beyond = [one for one in refusals if one.runs], list_beyond(refusals)
    if len(refused) + len(beyond) <= MOST_REASONS and len(beyond) <= 1:
        parts = [describe_unsupported(refusals), *list_miscalibrated(refusals)]
        parts += [BEYOND(budget=budget, first=REASON(hardware=_name(one), reason=one.reason)) for one in beyond]
    else:
        chips = list(dict.fromkeys(_mark(chip, one) for one in refused for chip in one.hardware))
        count = sum(len(one.runs) for one in refused)
        parts = [REFUSED_COUNT(count=count, names=chips if len(chips) <= MOST_NAMED else [])] if refused else []
        parts += list_miscalibrated(refusals)
        parts += [BEYOND_COUNT(count=len(beyond), budget=budget)] if beyond else []
    told = "; ".join(filter(None, parts))
    return LEFT_OUT(reasons=told) if told else ""


def list_refusal_notes(refusals: Sequence[Refusal]) -> list[str]:
    """Return the first refusals of runs as notes, and a count of the others."""
    refused = [one for one in refusals if one.runs or not one.hardware]
    notes = [NOTE(reason=describe_refusal(one)) for one in refused[:MOST_NOTES]]
    return notes + [MORE(count=len(refused) - MOST_NOTES)] * (len(refused) > MOST_NOTES)


def list_excluded_notes(refusals: Sequence[Refusal]) -> list[str]:
    """Return a note on the chips that a power budget excludes, and one per reason on those without the boundary."""
    chips = {one.hardware: one for one in reversed(list_beyond(refusals))}  # a chip with several modes is listed once
    beyond = [NAMED(hardware=_name(one), reason=one.reason) for one in reversed(chips.values())]
    more = len(beyond) - MOST_NAMED
    notes = [NO_MODE(names=beyond[:MOST_NAMED], more=more if more > 0 else None)] if beyond else []
    reasons = group((one for one in refusals if one.code in EXCLUDED), lambda one: (one.code, one.reason))
    return [
        *notes,
        *(EXCLUDED[code](names=_cut([*map(_name, own)]), reason=why) for (code, why), own in reasons.items()),
    ]


def _name(one: Refusal) -> str:
    """Return the name of hardware that was left out, with its power mode."""
    return _mark(str(one.values["hardware"]), one)


def _mark(name: str, one: Refusal) -> str:
    return name if one.is_available else f"{PROJECTED}{name}"


def _cut(names: Sequence[str]) -> list[str]:
    rest = len(names) - MOST_NAMED
    return [*names[:MOST_NAMED], show_count(rest, "more chip", "more chips")] if rest > 1 else list(names)
