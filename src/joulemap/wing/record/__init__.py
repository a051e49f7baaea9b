"""Records: dated files of predictions, and their scores against results that were published later."""

from __future__ import annotations

from typing import TYPE_CHECKING

from joulemap.system import Command, Wing, make_lookup

if TYPE_CHECKING:
    from joulemap.wing.record.generated.public import *
else:
    __getattr__, __dir__ = make_lookup(__name__, "joulemap.wing.record.generated.public")


def register() -> Wing:
    """Return the commands that this wing adds to the core."""
    return Wing(
        name="record",
        commands={
            "record": Command("joulemap.wing.record.command", "data", is_advanced=True),
            "share": Command("joulemap.wing.record.share_command", "machine", is_advanced=True),
        },
        uses=("llm", "train", "verify"),
    )
