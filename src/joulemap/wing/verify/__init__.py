"""Verification of predictions by a user's own measurements, from files of other tools or timed in a program."""

from __future__ import annotations

from joulemap.system.wing import Ask, Command, Wing


def register() -> Wing:
    """Return the commands, questions and tools that this wing adds to the core."""
    return Wing(
        name="verify",
        commands={"verify": Command("joulemap.wing.verify.command", "machine")},
        questions={
            "verify": Ask("joulemap.wing.verify.answer.answer"),
            "watch": Ask("joulemap.wing.verify.watch", "RunKeywords"),
        },
        tools={"verify": "verify"},
        parts={"words": "joulemap.wing.verify.show:WORDS"},
        uses=("llm", "train"),
    )
