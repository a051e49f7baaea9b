"""Language model serving: requests, batches and loads, latency and cost per token."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from joulemap.system import Ask, Command, Wing, make_lookup

if TYPE_CHECKING:
    from joulemap.wing.llm.generated.public import *
else:
    __getattr__, __dir__ = make_lookup(__name__, "joulemap.wing.llm.generated.public")

ENERGIES: Final = {
    "energy_per_token_j": "run_id",
    "output_token_j": "decode_run_id",
    "prompt_token_j": "prefill_run_id",
}
"""Field with the energy of a pass per token -> field of the same row with the pass's run id."""


def register() -> Wing:
    """Return the contributions of this wing to the core."""
    return Wing(
        name="llm",
        commands={
            "llm": Command(
                "joulemap.wing.llm.command",
                "language_models",
                is_first=True,
                start={"A language model?": "joulemap llm llama-3.1-8b l4 h100_sxm5 --batch 1"},
            )
        },
        questions={
            "llm": Ask("joulemap.wing.llm.ask.llm", "SettingsKeywords", is_of_model=True),
            "contrast_phases": Ask("joulemap.wing.llm.ask.phases", "SettingsKeywords"),
            "serve_users": Ask("joulemap.wing.llm.ask.users", "SettingsKeywords", is_of_model=True),
            "offload": Ask("joulemap.wing.llm.ask.offload", "SettingsKeywords", is_of_model=True),
        },
        tools={"llm": "llm"},
        figures={"frontier": ("joulemap.wing.llm.ask.llm", "llm")},
        parts={
            "error_groups": "joulemap.wing.llm.error_scale:GROUP",
            "measured": "joulemap.wing.llm.row:KIND",
            "energies": "joulemap.wing.llm:ENERGIES",
            "scores": "joulemap.wing.llm.prediction:ensure_served",
            "contrasts": "joulemap.wing.llm.ask.phases:PHASES",
            "words": "joulemap.wing.llm.show.word:WORDS",
            "report": "joulemap.wing.llm.report:SERVED",
            "audits": "joulemap.wing.llm.audit:find_faults",
        },
        queries=("llm",),
        top=(
            "joulemap.wing.llm.serving.surface:Passes",
            "joulemap.wing.llm.step:evaluate_steps",
            "joulemap.wing.llm.step:predict_step",
        ),
        public=(
            "joulemap.wing.llm.step:StepPredictor",
            "joulemap.wing.llm.step:StepPrediction",
            "joulemap.wing.llm.step:StepTable",
        ),
        uses=("decoder", "place"),
    )
