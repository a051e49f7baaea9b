"""Remarks of a trace, as they are stored: names of operators without a formula, and assumptions."""

from __future__ import annotations

from joulemap.domain.workload import APPENDED


def name_uncounted(text: str) -> str:
    """Return the name of an uncounted operator as its library spells it: `space::attend` for `space.attend.default`."""
    return "::".join(text.split(".")[:2])


def split_appended(text: str) -> tuple[str, bool]:
    """Return an assumption without its end `APPENDED`, and True if it had this end."""
    assumption = text.removesuffix(APPENDED)
    return assumption, assumption != text
