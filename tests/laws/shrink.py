"""Shrink a violation to the smallest random networks that still break the law."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import attrs

from joulemap.system.errors import JoulemapError
from laws.court import Violation
from laws.network import Layer, Network
from laws.panel import ask
from laws.part import SIZES
from laws.question import Question
from laws.table import BY_NAME

TRIED: Final = 60
"""Maximum smaller questions that are tried for a violation."""


def shrink(violation: Violation) -> Violation:
    """Return the violation by the smallest networks that were found to break the law too.

    One whose law states no value, or without random networks, is returned as it is.
    """
    tried = 0
    is_smaller = bool(BY_NAME[violation.law].value) and len(violation.questions) == 2
    while is_smaller:
        is_smaller = False
        for questions in _list_smaller(violation.questions):
            tried += 1
            found = _measure(violation.law, questions)
            if found is not None:
                violation, is_smaller = found, True
                break
        if tried >= TRIED:
            break
    return violation


def _list_smaller(questions: tuple[Question, ...]) -> Iterator[tuple[Question, ...]]:
    """Yield the questions with a layer less in each network, then with a smaller size in each."""
    networks = [one.model for one in questions if isinstance(one.model, Network)]
    if len(networks) != len(questions) or len({len(one.layers) for one in networks}) != 1:
        return
    for at in range(len(networks[0].layers)) if len(networks[0].layers) > 1 else ():
        kept = [Network((*one.layers[:at], *one.layers[at + 1 :])) for one in networks]
        yield tuple(one.replace(model=model) for one, model in zip(questions, kept, strict=True))
    if networks[0] == networks[1]:
        for at, layer in enumerate(networks[0].layers):
            for smaller in _list_sizes(layer):
                model = Network((*networks[0].layers[:at], smaller, *networks[0].layers[at + 1 :]))
                yield tuple(one.replace(model=model) for one in questions)


def _list_sizes(layer: Layer) -> Iterator[Layer]:
    for index, (name, size) in enumerate(layer.sizes):
        if size > SIZES[name][0]:
            sizes = (*layer.sizes[:index], (name, SIZES[name][0]), *layer.sizes[index + 1 :])
            yield attrs.evolve(layer, sizes=sizes)


def _measure(name: str, questions: tuple[Question, ...]) -> Violation | None:
    """Return the violation of a law by two questions; None if they obey it or have no answer."""
    law = BY_NAME[name]
    try:
        left, right = (float(getattr(ask(one), law.value).ravel()[0]) for one in questions)
    except (JoulemapError, RuntimeError, ValueError, TypeError, IndexError):
        return None
    if not left > right * law.tolerance:
        return None
    return Violation(law=name, ratio=left / right, questions=questions, left=left, right=right)
