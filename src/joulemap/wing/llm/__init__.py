"""Language model serving: passes by name, engines, latency and cost per token."""

from __future__ import annotations

from joulemap.system.wing import Ask, Wing


def register() -> Wing:
    """Return the contributions of this wing to the core."""
    return Wing(
        name="llm",
        commands={"llm": "joulemap.wing.llm.command"},
        questions={
            "llm": Ask("joulemap.wing.llm.answer.answer", "SettingsKeywords", is_of_model=True),
            "contrast_phases": Ask("joulemap.wing.llm.phases", "SettingsKeywords"),
            "offload": Ask("joulemap.wing.llm.answer.offload", "SettingsKeywords", is_of_model=True),
        },
        tools={"llm": "llm"},
        figures={"frontier": ("joulemap.wing.llm.answer.answer", "llm")},
        parts={
            "models": "joulemap.wing.llm.name:NAMES",
            "dimensions": "joulemap.wing.llm.dimension:DIMENSIONS",
            "run_options": "joulemap.wing.llm.option:PassRunOptions",
            "scores": "joulemap.wing.llm.prediction:ensure_served",
            "contrasts": "joulemap.wing.llm.phases:PHASES",
            "report": "joulemap.wing.llm.report:SERVED",
        },
        queries=("llm",),
        uses=("place",),
    )
