"""Verification: a measurement of one's own beside the prediction, from files of other tools or timed in a program."""

from __future__ import annotations

from joulemap.system.wing import Ask, Wing


def register() -> Wing:
    """Return what this wing adds to the core."""
    return Wing(
        name="verify",
        commands={"verify": "joulemap.wing.verify.command"},
        questions={
            "verify": Ask("joulemap.wing.verify.answer.answer"),
            "watch": Ask("joulemap.wing.verify.watch", "RunKeywords"),
        },
        tools={"verify": "verify"},
        uses=("llm", "train"),
    )
