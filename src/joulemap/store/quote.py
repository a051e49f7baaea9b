"""Names and texts as a statement writes them."""

from __future__ import annotations


def quote_name(name: str) -> str:
    """Return a name as an identifier of a statement."""
    return '"' + name.replace('"', '""') + '"'


def quote_text(text: str) -> str:
    """Return a text as a literal of a statement."""
    return "'" + text.replace("'", "''") + "'"
