"""Placement of a model's subgraphs on boxes of several devices."""

from __future__ import annotations

from joulemap.system.wing import Ask, Command, Wing


def register() -> Wing:
    """Return the commands, questions and report parts that this wing adds to the core."""
    return Wing(
        name="place",
        commands={"place": Command("joulemap.wing.place.command", "design")},
        questions={
            "place": Ask("joulemap.wing.place.answer.answer", "SettingsKeywords"),
            "box_list": Ask("joulemap.wing.place.listing", is_shared=False),
            "box": Ask("joulemap.wing.place.listing", is_shared=False),
        },
        parts={
            "hardware": "joulemap.wing.place.kind:KIND",
            "words": "joulemap.wing.place.show:WORDS",
            "report": "joulemap.wing.place.report:PLACED_PART",
            "report_options": "joulemap.wing.place.report:BoxOptions",
        },
        queries=("place",),
    )
