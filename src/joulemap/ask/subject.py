"""Split the words of a question into models and hardware."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from joulemap.catalog.sheet import load_models
from joulemap.domain.catalogue import find_model_name
from joulemap.domain.hardware_ref import HardwareRef
from joulemap.domain.operator.name import find_kind
from joulemap.plan.catalogue import known_hardware
from joulemap.plan.model_name import is_name, list_known
from joulemap.plan.selection import find_chip, is_hardware, refuse_scenario, split_hardware
from joulemap.system.errors import UnknownNameError
from joulemap.system.name import find_nearest


def list_hardware(words: Iterable[str]) -> tuple[str, ...]:
    """Return the hardware that words name, as `Settings.hardware` expects it; unknown words are returned unchanged."""
    every = list(words)
    return split_hardware(every, known_hardware([*every, " ".join(every)]))


def split_models(words: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the models and the hardware among words.

    A word is hardware if it names hardware and no model. An unknown word counts as a model; loading the model reports
    it later. If a model is among the words, raises UnknownNameError for a scenario, and for an unknown word that
    resembles a chip and no model.
    """
    models = tuple(word for word in words if _is_model(word))
    if len(models) == len(words):
        return models, ()
    others = [word for word in words if word not in models]
    known = known_hardware([*others, " ".join(others)])
    listed = list_hardware(others)
    hardware = tuple(word for word in listed if is_hardware(known, word))
    unknown = tuple(word for word in listed if word not in hardware)
    if unknown and models:
        names = [(name, *entry.aliases) for name, entry in load_models().items()]
        names += [(name,) for name in list_known()]
        for word in unknown:
            refuse_scenario(word)
            if not find_nearest(word, names):
                _refuse_like_hardware(word)
    return (*models, *unknown), hardware


def _is_model(word: str) -> bool:
    path = HardwareRef.read(word).label
    if path.endswith(".toml") or (os.path.isdir(path) and not is_name(word)):
        return False
    known = load_models()
    return (
        ":" in word
        or word.endswith((".py", ".pt2"))
        or bool(find_kind(word))
        or find_model_name(word, known) in known
        or is_name(word)
    )


def _refuse_like_hardware(word: str) -> None:
    """Raise UnknownNameError with a suggestion for a word that resembles the name of a chip."""
    try:
        find_chip(known_hardware([word]), word)
    except UnknownNameError as error:
        if error.near:
            raise
