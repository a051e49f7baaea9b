"""Fleets: number and kind of chips that serve a request rate within a latency target, and their cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from joulemap.system import Ask, Command, Wing, make_lookup

if TYPE_CHECKING:
    from joulemap.wing.fleet.generated.public import *
else:
    __getattr__, __dir__ = make_lookup(__name__, "joulemap.wing.fleet.generated.public")

ENERGIES: Final = {"energy_per_request_j": "run_id"}
"""Field with the energy of a served request -> field of the same row with the run id."""


def register() -> Wing:
    """Return the commands, questions, report parts and queries that this wing adds to the core."""
    return Wing(
        name="fleet",
        commands={"fleet": Command("joulemap.wing.fleet.command", "language_models")},
        questions={"fleet": Ask("joulemap.wing.fleet.ask.fleet", "SettingsKeywords")},
        tools={"fleet": "fleet"},
        parts={
            "energies": "joulemap.wing.fleet:ENERGIES",
            "words": "joulemap.wing.fleet.show.word:WORDS",
            "report": "joulemap.wing.fleet.report:FLEET",
            "report_options": "joulemap.wing.fleet.option:ReportDemandOptions",
        },
        queries=("fleet",),
        uses=("decoder", "llm"),
    )
