"""What wings say of models that they know by name."""

from __future__ import annotations

from collections.abc import Sequence

from joulemap.plan.name import list_names


def count_in(model: str) -> str:
    """Return what a million evaluations of a model are a million of, e.g. inferences or output tokens."""
    return next(filter(None, (names.count_in(model) for names in list_names())), "inferences")


def describe_evaluation(models: Sequence[str], hardware: Sequence[str]) -> tuple[tuple[str, str] | None, str]:
    """Return (model, what one evaluation of it is) and what to ask instead, of the first that needs to be told."""
    found = (names.describe_evaluation(models, hardware) for names in list_names())
    return next((one for one in found if one[0]), (None, ""))


def describe_unread(models: Sequence[str]) -> list[str]:
    """Return what of the checkpoints of models is not counted."""
    return [line for names in list_names() for line in names.describe_unread(models)]


def describe_engine(model: str, batch: int, runs: Sequence[tuple[str, float, float]]) -> list[str]:
    """Return what software adds to a model that its ledger of devices lacks.

    `runs` have the name of a hardware, seconds of the model there, and watts that it draws while it waits.
    """
    return [line for names in list_names() for line in names.describe_engine(model, batch, runs)]
