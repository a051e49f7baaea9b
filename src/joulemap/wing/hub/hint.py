"""Hints in the error of a forward pass about the sizes, counts and types that its inputs should have.

error                                        next inputs
"doesn't match model (378…"                  images of that size
"Audio features … do not match, … 188"       that number of placeholders
"got [1, 128] X [588, 1152]"                 an input as wide as the layer that takes it
"normalized_shape=[768] … [1, 16000]"        an input as wide as the norm
"conv1d of [1, 128, 64] and [32, 1, 7]"      an input with that number of channels
"length 375 … broadcastable to [1, 128, …]"  as many ids as there are features
"expected predicate to be bool"              boolean masks
any error from inside a cache                no cache
"""

from __future__ import annotations

import math
import re
from typing import Final

import torch

from joulemap.system import ModelError
from joulemap.trace.cause import functions_of
from joulemap.wing.hub.modality import SAMPLES, Guess, Inputs, floats, is_integer_mask

_SIZES: Final = re.compile(r"doesn't match model \((\d+)")
_FEATURES_FOUND: Final = re.compile(
    r"(Image|Video|Audio) features and \w+ tokens do not match[,:] tokens: \d+, features:? (\d+)"
)
_INPUTS_FOUND: Final = re.compile(
    r"number of (image|video|audio) tokens is \D*\d+\D* while the number of \w+ given to the model is (\d+)"
)
_WIDTHS: Final = re.compile(r"got \[\d+, (\d+)\] X \[(\d+), \d+\]")
_NORMS: Final = re.compile(r"Given normalized_shape=\[(\d+)\].* of size torch\.Size\(\[([\d, ]+)\]\)")
_CHANNELS: Final = re.compile(r"conv[123]d of \[\d+, (\d+), [\d, ]+\] and \[\d+, (\d+), ")
_LENGTHS: Final = re.compile(
    r"dimension of length (\d+) at -2! .*torch\.Size\(\[\d+, \1, (\d+)\]\).* broadcastable to \[\d+, (\d+), \2\]"
)
_BOOLEANS: Final = re.compile(
    r"expected predicate to be bool|condition to be a boolean|supports? boolean masks|must be .*\bbool\b"
)
_CACHE: Final = re.compile(r"Cache\b[^.]*\.\w+$")


def find_image_size(error: ModelError) -> int:
    """Return the image size in pixels that an error asks for; 0 if it states none."""
    found = _SIZES.search(str(error))
    return int(found[1]) if found is not None else 0


def passed_a_cache(error: ModelError) -> bool:
    """Return whether a forward pass failed inside a KV cache."""
    cause = error.__cause__
    return cause is not None and any(_CACHE.search(code.co_qualname) for code in functions_of(cause))


def take_hint(guess: Guess, error: ModelError) -> bool:
    """Change the inputs of a guess according to an error about them; return whether it had a usable hint."""
    text = str(error)
    features = _FEATURES_FOUND.search(text) or _INPUTS_FOUND.search(text)
    if features is not None and features[1].lower() not in guess.counts:
        guess.counts[features[1].lower()] = int(features[2])
        return True
    if _BOOLEANS.search(text) and not guess.has_boolean_masks:
        guess.has_boolean_masks = True
        masks = {name: value for name, value in guess.made.items() if is_integer_mask(name, value)}
        guess.made.update((name, value.bool()) for name, value in masks.items() if name not in guess.given)
        return bool(masks)
    for change in (_widen, _as_normalized, _with_channels, _lengthen):
        changed = change(guess, text)
        if changed is not None:
            guess.made.update(changed)
            return True
    return False


def _widen(guess: Guess, error: str) -> Inputs | None:
    """Return name -> input for the one whose width a layer rejects, at the accepted width; None for another error."""
    found = _WIDTHS.search(error)
    if found is None:
        return None
    own, width = int(found[1]), int(found[2])
    for name, value in _activations(guess):
        if value.dim() < 2 or value.shape[-1] != own:
            continue
        if value.dim() != 4:
            return {name: floats(*value.shape[:-1], width)}
        batch, channels, rows, columns = value.shape
        patch = math.isqrt(width // channels)
        if 0 < patch <= min(rows, columns):
            return {name: floats(batch, (rows // patch) * (columns // patch), width)}
    return _in_proportion(guess, own, width)


def _in_proportion(guess: Guess, own: int, width: int) -> Inputs | None:
    """Return name -> input for one whose convolutions give too wide a sequence, shortened in proportion, or None."""
    for name, value in _activations(guess):
        if value.dim() == 3 and own % width == 0 and own % value.shape[-1] == 0 and own != width:
            narrowed, rest = divmod(value.shape[-1] * width, own)
            if narrowed and not rest:
                return {name: floats(*value.shape[:-1], narrowed)}
    return None


def _as_normalized(guess: Guess, error: str) -> Inputs | None:
    """Return name -> input for the one that a norm rejects, as wide as the norm; a waveform becomes a sequence."""
    found = _NORMS.search(error)
    for name, value in _activations(guess) if found is not None else ():
        if found is not None and ", ".join(map(str, value.shape)) == found[2]:
            sizes = value.shape[:-1] if value.dim() > 2 else (value.shape[0], guess.tokens())
            return {name: floats(*sizes, int(found[1]))}
    return None


def _with_channels(guess: Guess, error: str) -> Inputs | None:
    """Return name -> input for the input that a convolution rejects, with its number of channels; one channel means a
    waveform.
    """
    found = _CHANNELS.search(error)
    if found is None:
        return None
    own, channels = int(found[1]), int(found[2])
    for name, value in _activations(guess):
        if value.dim() > 2 and value.shape[1] == own != channels:
            sizes = value.shape[2:] if value.dim() > 3 or channels > 1 else (SAMPLES,)
            return {name: floats(value.shape[0], channels, *sizes)}
    return None


def _lengthen(guess: Guess, error: str) -> Inputs | None:
    """Return token ids as long as the features that the model adds to them; None for any other error."""
    found = _LENGTHS.search(error)
    ids = guess.made.get("input_ids")
    if found is None or ids is None or "input_ids" in guess.given or ids.shape[-1] != int(found[3]):
        return None
    return {"input_ids": ids[:, :1].expand(-1, int(found[1])).clone()}


def _activations(guess: Guess) -> list[tuple[str, torch.Tensor]]:
    """Return (name, tensor) of guessed floating-point inputs."""
    return [
        (name, value) for name, value in guess.made.items() if name not in guess.given and value.is_floating_point()
    ]
