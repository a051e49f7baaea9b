"""Machine that joulemap runs on: its chips and memory, the models that they run, speed and power."""

from __future__ import annotations

from typing import TYPE_CHECKING

from joulemap.system import Ask, Command, Wing, make_lookup

if TYPE_CHECKING:
    from joulemap.wing.here.generated.public import *
else:
    __getattr__, __dir__ = make_lookup(__name__, "joulemap.wing.here.generated.public")


def register() -> Wing:
    """Return the command and the question that this wing adds to the core."""
    return Wing(
        name="here",
        commands={
            "here": Command(
                "joulemap.wing.here.command", "machine", is_first=True, start={"This machine?": "joulemap here"}
            )
        },
        questions={"here": Ask("joulemap.wing.here.ask.here", is_shared=False)},
        parts={"words": "joulemap.wing.here.show.word:WORDS"},
        uses=("decoder", "llm", "place"),
    )
