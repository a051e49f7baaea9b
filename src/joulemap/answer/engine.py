"""Descriptions that wings provide for models that they know by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from joulemap.plan.name import list_names

INFERENCES: Final = "inferences"
"""Plural noun of one evaluation of a model that no wing knows."""

FRAMES: Final = "frames"
"""Evaluations of a pipeline with a frame rate, whose frame may need several inferences."""


def count_in(model: str) -> str:
    """Return the plural noun of one evaluation of a model, e.g. inferences or output tokens."""
    return next(filter(None, (names.count_in(model) for names in list_names())), INFERENCES)


def find_checkpoint(model: str) -> str:
    """Return the name of a model in its publisher's hub; empty if unknown."""
    return next(filter(None, (names.find_checkpoint(model) for names in list_names())), "")


def describe_evaluation(models: Sequence[str], hardware: Sequence[str]) -> tuple[tuple[str, str] | None, str]:
    """Return (model, noun of one evaluation) and an alternative question, for the first model that needs them."""
    found = (names.describe_evaluation(models, hardware) for names in list_names())
    return next((one for one in found if one[0]), (None, ""))


def describe_unread(models: Sequence[str]) -> list[str]:
    """Return the parts of models' checkpoints that are not counted."""
    return [line for names in list_names() for line in names.describe_unread(models)]


def describe_engine(model: str, batch: int, runs: Sequence[tuple[str, float, float]]) -> list[str]:
    """Return the overhead of serving software, which the ledger of devices does not include.

    `runs` hold a chip's name, the seconds of the model on that chip, and the watts that the chip draws while it waits.
    """
    return [line for names in list_names() for line in names.describe_engine(model, batch, runs)]
