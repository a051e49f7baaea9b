"""Placement of a model's subgraphs on boxes of several devices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from joulemap.system import Ask, Command, Wing, make_lookup

if TYPE_CHECKING:
    from joulemap.wing.place.generated.public import *
else:
    __getattr__, __dir__ = make_lookup(__name__, "joulemap.wing.place.generated.public")


def register() -> Wing:
    """Return the commands, questions and report parts that this wing adds to the core."""
    return Wing(
        name="place",
        commands={"place": Command("joulemap.wing.place.place_command", "design")},
        questions={
            "place": Ask("joulemap.wing.place.ask.place", "SettingsKeywords"),
            "box_list": Ask("joulemap.wing.place.ask.box", is_shared=False),
            "box": Ask("joulemap.wing.place.ask.box", is_shared=False),
        },
        parts={
            "hardware": "joulemap.wing.place.kind:KIND",
            "words": "joulemap.wing.place.show.word:WORDS",
            "report": "joulemap.wing.place.report:PLACED_PART",
            "report_options": "joulemap.wing.place.report:BoxOptions",
        },
        queries=("place",),
    )
