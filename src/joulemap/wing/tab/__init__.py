"""Static page on which predictions are computed in a browser, by the Python of this package."""

from __future__ import annotations

from joulemap.system import Command, Wing


def register() -> Wing:
    """Return the command that this wing adds to the core."""
    return Wing(
        name="tab",
        commands={"page": Command("joulemap.wing.tab.page_command", group="understand", is_advanced=True)},
        uses=("decoder", "llm"),
    )
