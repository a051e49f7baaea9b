"""What the failure of a forward pass says of its inputs: sizes, counts and kinds of values that it wants instead.

what an error says                           what is given next
"doesn't match model (378…"                  images of that size
"Audio features … do not match, … 188"       so many placeholders
"got [1, 128] X [588, 1152]"                 one input as wide as the layer that takes it
"expected predicate to be bool"              masks of booleans
nothing, but it passed through a cache       no cache
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Final

import torch

from joulemap.errors import ModelError
from joulemap.trace.failure import functions_of
from joulemap.trace.modality import Guess, Inputs, floats, is_integer_mask
from joulemap.trace.source import InputSpec

_SIZES: Final = re.compile(r"doesn't match model \((\d+)")
_FEATURES_FOUND: Final = re.compile(
    r"(Image|Video|Audio) features and \w+ tokens do not match, tokens: \d+, features: (\d+)"
)
_WIDTHS: Final = re.compile(r"got \[\d+, (\d+)\] X \[(\d+), \d+\]")
_BOOLEANS: Final = re.compile(
    r"expected predicate to be bool|condition to be a boolean|supports? boolean masks|must be .*\bbool\b"
)
_CACHE: Final = re.compile(r"Cache\b[^.]*\.\w+$")


def find_image_size(error: ModelError) -> int:
    """Return the size of the images that a model wants, 0 where an error does not tell."""
    found = _SIZES.search(str(error))
    return int(found[1]) if found is not None else 0


def passed_a_cache(error: ModelError) -> bool:
    """Whether a forward pass failed inside a cache of keys and values."""
    cause = error.__cause__
    return cause is not None and any(_CACHE.search(code.co_qualname) for code in functions_of(cause))


def take_hint(guess: Guess, error: ModelError) -> bool:
    """Change a guess to what an error says of its inputs; whether it says anything new."""
    text = str(error)
    features = _FEATURES_FOUND.search(text)
    if features is not None and features[1].lower() not in guess.counts:
        guess.counts[features[1].lower()] = int(features[2])
        return True
    if _BOOLEANS.search(text) and not guess.has_boolean_masks:
        guess.has_boolean_masks = True
        masks = {name: value for name, value in guess.made.items() if is_integer_mask(name, value)}
        guess.made.update((name, value.bool()) for name, value in masks.items() if name not in guess.given)
        return bool(masks)
    widened = _widen(guess.made, text, guess.given)
    if widened is not None:
        guess.made.update(widened)
    return widened is not None


def _widen(inputs: Inputs, error: str, given: Mapping[str, InputSpec]) -> dict[str, torch.Tensor] | None:
    """Return the input whose width an error says that a layer does not take, widened; None for any other."""
    found = _WIDTHS.search(error)
    if found is None:
        return None
    own, width = int(found[1]), int(found[2])
    for name, value in inputs.items():
        if name in given or not value.is_floating_point() or value.dim() < 2 or value.shape[-1] != own:
            continue
        if value.dim() != 4:
            return {name: floats(*value.shape[:-1], width)}
        batch, channels, rows, columns = value.shape
        patch = math.isqrt(width // channels)
        if 0 < patch <= min(rows, columns):
            return {name: floats(batch, (rows // patch) * (columns // patch), width)}
    return None
