"""Names of training steps: a model and its recipe, in brackets.

    train(resnet50)                                       one device, AdamW
    train(resnet50,optimizer=momentum,devices=8)          share of one of eight devices
    train(llama-3.1-8b(tokens=2048,logits=all),devices=8,zero=1,recompute=true)

A name has one canonical spelling, like the name of a single operator.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from joulemap.domain.operator.name import read_arguments
from joulemap.system.errors import UsageError
from joulemap.wing.train.training.recipe import ARGUMENTS, Recipe

EXAMPLE: Final = "train(resnet50,optimizer=momentum,devices=8)"

_CALL: Final = re.compile(r"\s*train\s*\((?P<inside>.*)\)\s*", re.DOTALL | re.IGNORECASE)


def read_step(name: str, given: Iterable[tuple[str, str]] = ()) -> tuple[str, Recipe]:
    """Return the model and the recipe of a name, with extra arguments merged; UsageError for an invalid name."""
    found = _CALL.fullmatch(name)
    parts = _split(found["inside"]) if found else []
    if not parts or not parts[0] or _CALL.fullmatch(parts[0]):
        raise UsageError(f"cannot read {name!r:.60}: write {EXAMPLE}")
    values = read_arguments("train", name, f"({','.join(parts[1:])})", ARGUMENTS, EXAMPLE, given)
    return parts[0], Recipe.of(values)


def _split(inside: str) -> list[str]:
    """Return the parts of a text between commas outside nested brackets."""
    parts, depth = [""], 0
    for letter in inside:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]
