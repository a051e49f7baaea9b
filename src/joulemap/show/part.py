"""Words on runs divided into parts: the largest part of each run, its modules, and the ranges of its values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from joulemap.ask.fact import Entry, Facts, Share, Subject
from joulemap.domain.table import first_of_each
from joulemap.show.caveat import tell_ranges
from joulemap.show.choice import finish
from joulemap.show.present.category import name_category
from joulemap.show.present.cell import show_ends, show_quantity
from joulemap.show.present.template import Template
from joulemap.show.run_name import name_first

MODULES: Final = Template("{name} uses {energy}[ ({share:%} in {module})] and takes {latency} per batch")
PART: Final = Template("On {name}, {largest} is the largest {by} of {subject}: {share:%} of the energy")
PARTS: Final = Template("The largest {by} of {subject} is {groups:and}")
GROUP: Final = Template("{largest} on {names:and}")
CHIP: Final = Template("{name} ({share:%})")
OTHERS: Final = Template("{count} others")
MOST_CHIPS: Final = 4
"""Maximum chips in a first line."""

SPAN: Final = Template("{metric} {ends}")


def describe_modules(facts: Facts) -> str:
    """Return the first line on the modules of a run: its values, and the module with the most energy of its own."""
    entry, first = facts.of(Entry)[0], facts.of(Share)[:1]
    return (
        MODULES(
            name=name_first(facts.runs, entry),
            energy=show_quantity(entry.values["energy"].value, "J"),
            latency=show_quantity(entry.values["latency"].value, "s"),
            module=first[0].name if first else "",
            share=first[0].share if first else None,
        )
        + "."
    )


def describe_ranges(facts: Facts) -> str:
    """Return the ends of the 80 % intervals of the first run; empty without intervals or for runs on several chips."""
    entries = facts.of(Entry)
    if len({facts.runs[one.run].hardware for one in entries}) != 1:
        return ""
    known = {name: one for name, one in entries[0].values.items() if one.half_width}
    spans = [SPAN(metric=name, ends=show_ends(one.value, one.unit, one.half_width)) for name, one in known.items()]
    return tell_ranges(spans)


def describe_parts(facts: Facts, by: str, subject: str) -> str:
    """Return the first line on a division: the largest category or action of each chip; `subject` is what is divided.

    Chips with the same largest part are named together.
    """
    firsts = first_of_each(facts.of(Share), lambda one: one.run)
    if len(firsts) == 1:
        (first,) = firsts.values()
        name = name_first(facts.runs, first)
        return PART(name=name, largest=name_category(first.name), by=by, subject=subject, share=first.share) + "."
    listed = list(firsts.values())
    groups = (_group(listed, facts.runs, most) for most in range(MOST_CHIPS, 0, -1))
    return finish([PARTS(by=by, subject=subject, groups=one) for one in groups])


def _group(firsts: Sequence[Share], runs: Mapping[int, Subject], most: int) -> list[str]:
    """Return one text per largest part with the names of at most `most` chips in all."""
    named: dict[str, list[str]] = {}
    for one in firsts[:most]:
        chip = CHIP(name=name_first(runs, one), share=one.share)
        named.setdefault(name_category(one.name), []).append(chip)
    rest = [OTHERS(count=len(firsts) - most)] if len(firsts) > most else []
    groups = [GROUP(largest=largest, names=names) for largest, names in named.items()]
    return [*groups, *rest] if rest else groups
