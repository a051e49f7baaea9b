"""Questions about a model by its name, answered by whichever optional extension knows the name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from joulemap.plan.model_name import list_names

INFERENCE: Final = "inference"
"""Noun of one evaluation of a model, unless an extension has another noun."""


def count_in(model: str) -> str:
    """Return the noun of one evaluation of a model, to which a plural adds an s: inference or output token."""
    return next(filter(None, (names.count_in(model) for names in list_names())), INFERENCE)


def find_checkpoint(model: str) -> str:
    """Return the name of a model in its publisher's hub; empty if unknown."""
    return next(filter(None, (names.find_checkpoint(model) for names in list_names())), "")


def find_phase(model: str) -> str:
    """Return the part of a request that a model is, as the commands of tools call it; empty for any other model."""
    return next(filter(None, (names.find_phase(model) for names in list_names())), "")


def describe_evaluation(models: Sequence[str], hardware: Sequence[str]) -> tuple[tuple[str, str] | None, str]:
    """Return a model whose evaluation needs an explanation, as (model, noun), and a suggestion of another question.

    Only the first such model is returned; None and an empty text if there is none.
    """
    descriptions = (names.describe_evaluation(models, hardware) for names in list_names())
    return next((one for one in descriptions if one[0]), (None, ""))


def describe_unread(models: Sequence[str]) -> list[str]:
    """Return one sentence per checkpoint part that predictions do not count."""
    return [line for names in list_names() for line in names.describe_unread(models)]
