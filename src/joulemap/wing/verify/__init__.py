"""Verification of predictions by a user's own measurements, from files of other tools or timed in a program."""

from __future__ import annotations

from typing import TYPE_CHECKING

from joulemap.system import Ask, Command, Wing, make_lookup

if TYPE_CHECKING:
    from joulemap.wing.verify.generated.public import *
else:
    __getattr__, __dir__ = make_lookup(__name__, "joulemap.wing.verify.generated.public")


def register() -> Wing:
    """Return the commands, questions and tools that this wing adds to the core."""
    return Wing(
        name="verify",
        commands={"verify": Command("joulemap.wing.verify.verify_command", "machine")},
        questions={
            "verify": Ask("joulemap.wing.verify.ask.verify"),
            "watch": Ask("joulemap.wing.verify.ask.watch", "RunKeywords"),
        },
        tools={"verify": "verify"},
        parts={"words": "joulemap.wing.verify.show.word:WORDS"},
        uses=("decoder", "llm", "train"),
    )
