"""Training steps of a model: optimizer, gradient checkpointing and data-parallel devices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from joulemap.system import Ask, Command, Wing, make_lookup

if TYPE_CHECKING:
    from joulemap.wing.train.generated.public import *
else:
    __getattr__, __dir__ = make_lookup(__name__, "joulemap.wing.train.generated.public")

ENERGIES: Final = {"sample_j": "run_id"}
"""Field with the energy of a training sample -> field of the same row with the run id."""


def register() -> Wing:
    """Return the commands, questions and names that this wing adds to the core."""
    return Wing(
        name="train",
        commands={"train": Command("joulemap.wing.train.train_command", "choose")},
        questions={
            "train": Ask("joulemap.wing.train.ask.train", "SettingsKeywords", is_of_model=True),
            "published_training": Ask("joulemap.wing.train.published"),
        },
        figures={"training": ("joulemap.wing.train.ask.train", "train")},
        parts={
            "error_groups": "joulemap.wing.train.error_scale:GROUP",
            "models": "joulemap.wing.train.step_name:NAMES",
            "words": "joulemap.wing.train.show.word:WORDS",
            "energies": "joulemap.wing.train:ENERGIES",
        },
        queries=("train",),
        uses=("decoder", "place"),
    )
