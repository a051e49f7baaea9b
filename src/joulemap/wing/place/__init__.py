"""Placement: boxes of several devices, and which part of a model runs on which of them."""

from __future__ import annotations

from joulemap.system.wing import Ask, Wing


def register() -> Wing:
    """Return what this wing adds to the core."""
    return Wing(
        name="place",
        commands={"place": "joulemap.wing.place.command"},
        questions={"place": Ask("joulemap.wing.place.answer.answer", "SettingsKeywords")},
        parts={
            "hardware": "joulemap.wing.place.kind:KIND",
            "report": "joulemap.wing.place.report:PLACED_PART",
            "report_options": "joulemap.wing.place.report:BoxOptions",
        },
        queries=("place",),
    )
