"""Questions about a model by its name, answered by whichever optional extension knows the name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from joulemap.plan.model_name import find_names, list_names

INFERENCE: Final = "inference"
"""Noun of one evaluation of a model, unless an extension has another noun."""


def count_in(model: str) -> str:
    """Return the noun of one evaluation of a model, to which a plural adds an s: inference or output token."""
    return find_names(model).count_in(model) or INFERENCE


def describe_evaluation(models: Sequence[str], hardware: Sequence[str]) -> tuple[tuple[str, str] | None, str]:
    """Return a model whose evaluation needs an explanation, as (model, noun), and a suggestion of another question.

    Only the first such model is returned; None and an empty text if there is none.
    """
    descriptions = (names.describe_evaluation(models, hardware) for names in list_names())
    return next((one for one in descriptions if one[0]), (None, ""))


def describe_unread(models: Sequence[str]) -> list[str]:
    """Return one sentence per checkpoint part that predictions do not count."""
    return [line for names in list_names() for line in names.describe_unread(models)]
