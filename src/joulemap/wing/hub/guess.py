"""Inputs that a transformers model may take: the likeliest, and others if it rejects them.

signature, main_input_name, input_modalities ──► names ──► rules ──► inputs
get_image_features … run once without values ──► number of placeholders among the ids
sizes in an error ──► the next inputs
"""

from __future__ import annotations

import contextlib
import difflib
import inspect
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import attrs
import torch

from joulemap.construct import Guesses, InputSpec
from joulemap.system import ModelError
from joulemap.trace.argument import tensors_in
from joulemap.trace.literal import HostValues
from joulemap.trace.record import Recorder
from joulemap.wing.hub.hint import find_image_size, passed_a_cache, take_hint
from joulemap.wing.hub.modality import (
    ALONE,
    RULES,
    WORDS,
    Guess,
    Inputs,
    find_placeholder,
    find_setting,
    find_word,
    make_input,
    parameters_of,
    zeros,
)

USE_CACHE: Final = "use_cache"
"""Argument of a forward pass that states whether it returns a KV cache for the next token."""

NO_CACHE_NOTE: Final = "use_cache is assumed to be false: with a cache the forward pass fails"


def wanted_names(module: Any, configuration: Any) -> list[str]:
    """Return the names of the inputs that a model needs, in the order of its forward pass."""
    parameters = parameters_of(module)
    modalities = _modalities(module)
    main = getattr(module, "main_input_name", ())
    wanted = {main} if isinstance(main, str) else set(main)
    wanted |= {name for name, parameter in parameters.items() if parameter.default is inspect.Parameter.empty}
    has_images = getattr(configuration, "vision_config", configuration) is not None
    if modalities & {"image", "video"} and has_images:
        wanted.add("pixel_values")
        if "pixel_values" not in parameters:
            wanted.update(("pixel_values_videos", "image_pixel_values"))
    if "audio" in modalities and getattr(configuration, "audio_config", configuration) is not None:
        wanted.update(("input_features", "input_values", "audio_input_features"))
    if getattr(configuration, "is_encoder_decoder", False) and "decoder_input_ids" in parameters:
        wanted.add("decoder_input_ids")
    elif "text" in modalities:
        wanted.add("input_ids")
    if "decoder_input_values" in parameters:
        wanted.add("decoder_input_values")
    if wanted & {"pixel_values", "pixel_values_videos"}:
        wanted.update(_WITH_IMAGES)
        if "pixel_values" in parameters:
            wanted.discard("pixel_values_videos" if main != "pixel_values_videos" else "")
    if wanted & {"input_features", "audio_input_features"}:
        wanted.update(_WITH_AUDIO)
    if "inputs_embeds" in wanted and "input_ids" in parameters:
        wanted.discard("inputs_embeds")
    if "token_index" in wanted or "inputs" in wanted:
        wanted.add("input_ids")
    return [name for name in parameters if name in wanted]


_WITH_IMAGES: Final = (
    "image_grid_thw",
    "grid_thw",
    "mm_token_type_ids",
    "moe_mm_token_type_ids",
    "spatial_shapes",
    "image_embeds_position_mask",
    "aspect_ratio_ids",
    "aspect_ratio_mask",
    "image_token_pooling",
    "image_grids",
)
_WITH_AUDIO: Final = ("input_features_mask", "feature_attention_mask", "audio_feature_lengths")
"""Inputs with the mask or the length of the audio in another input."""


def _modalities(module: Any) -> set[str]:
    found = getattr(module, "input_modalities", ())
    return {found} if isinstance(found, str) else set(found or ())


def _name_placeholders(configuration: Any) -> None:
    """Set each placeholder id that a configuration leaves open to one of the last ids of the vocabulary."""
    most = find_setting(configuration, "text", "vocab_size")
    for back, kind in enumerate(_FEATURES, 1):
        for name in (f"{kind}_token_id", f"{kind}_token_index"):
            if isinstance(most, int) and name in vars(configuration) and getattr(configuration, name) is None:
                setattr(configuration, name, most - back)


_FEATURES: Final = {
    "image": ("pixel_values", "get_image_features"),
    "video": ("pixel_values_videos", "get_video_features"),
    "audio": ("input_features", "get_audio_features"),
}
"""Modality -> (its input, method that computes its features). A model needs one placeholder id per feature."""


def _fill_placeholders(guess: Guess) -> None:
    """Insert one placeholder id per image, video or audio feature into the ids. Raise ModelError if they do not fit."""
    ids = guess.made.get("input_ids")
    if ids is None:
        return
    needed = 0
    row: list[int] = []
    for kind, (name, method) in _FEATURES.items():
        token = find_placeholder(guess, kind)
        if kind == "audio" and name not in guess.made:
            name = "input_values"
        if token is None or name not in guess.made:
            continue
        count = guess.counts.get(kind) or _count_features(guess, method)
        needed += count // guess.batch
        row += [token] * (count // guess.batch)
    if not row:
        return
    length = ids.shape[1] if "input_ids" in guess.given else max(ids.shape[1], len(row) + WORDS)
    if length < len(row):
        raise ModelError(
            f"input_ids has {length} tokens, but images, video and sound take {len(row)}: "
            f"give --input input_ids={guess.batch},{len(row) + WORDS} or more, or smaller images, video or sound"
        )
    words = [find_word(guess)] * (length - len(row))
    guess.made["input_ids"] = torch.tensor([words[:1] + row + words[1:]] * guess.batch)


def _text_width(guess: Guess) -> int:
    """Return the elements per embedded token, from the embedding layer or the configuration."""
    with contextlib.suppress(Exception):
        return int(guess.module.get_input_embeddings().weight.shape[-1])
    return guess.number("text", "hidden_size", "d_model")


@contextlib.contextmanager
def _running(module: Any) -> Iterator[None]:
    """Run code under the conditions of a trace, in inference mode with a recorder."""
    recorder = Recorder(module)
    with warnings.catch_warnings(), torch.inference_mode(), recorder, HostValues(recorder):
        yield


def _count_features(guess: Guess, method: str) -> int:
    """Return how many features a method computes from the images or sounds of a guess; 0 if unknown."""
    make = getattr(guess.module, method, None) or getattr(getattr(guess.module, "model", None), method, None)
    if make is None:
        return 0
    taken = inspect.signature(make).parameters
    arguments = {name: value for name, value in guess.made.items() if name in taken and name != "input_ids"}
    extra = {name: make_input(guess, name) for name in taken if name in _NEEDED_BY_FEATURES and name not in arguments}
    found = None
    for more in ({}, {name: value for name, value in extra.items() if value is not None}):
        with contextlib.suppress(Exception), _running(guess.module):
            warnings.simplefilter("ignore")
            found = make(**arguments, **more)
        if found is not None:
            guess.made.update((name, value) for name, value in more.items() if name in guess.accepted)
            break
    if found is None:
        return 0
    pooled = getattr(found, "pooler_output", None)
    if pooled is None:
        pooled = getattr(found, "last_hidden_state", None)
    if pooled is None:
        pooled = found[0] if isinstance(found, tuple) and found and isinstance(found[0], list | tuple) else found
    width = _text_width(guess)
    values = sum(tensor.numel() for tensor in tensors_in(pooled))
    if width and values % width == 0:
        return values // width
    return sum(math.prod(tensor.shape[:-1]) for tensor in tensors_in(pooled))


_NEEDED_BY_FEATURES: Final = ("image_sizes", "image_grid_thw", "pixel_attention_mask", "pixel_mask", "spatial_shapes",
    "input_features_mask", "feature_attention_mask", "target_sizes", "attention_mask", "image_merge_sizes",
    "padding_mask")  # fmt: skip


def _follow(guess: Guess) -> None:
    """Insert placeholders into the ids, then adjust the inputs whose length is that of the ids."""
    _fill_placeholders(guess)
    for entry in ("mm_token_type_ids", "moe_mm_token_type_ids", "attention_mask", "token_type_ids", "bbox"):
        ids = guess.made.get("input_ids")
        if entry not in guess.made or ids is None or entry in guess.given:
            continue
        made = zeros(*ids.shape, 4) if entry == "bbox" else make_input(guess, entry)
        if made is not None:
            guess.made[entry] = made


def _complete(guess: Guess, names: Sequence[str], name: str) -> Inputs:
    """Return inputs for the listed names. Raise ModelError, with the names, if sizes of a needed one are unknown."""
    order = [*RULES]
    for entry in sorted(names, key=lambda entry: order.index(entry) if entry in order else len(order)):
        made = make_input(guess, entry)
        if made is not None:
            guess.made[entry] = made
    _follow(guess)
    required = {
        entry
        for entry, parameter in parameters_of(guess.module).items()
        if parameter.default is inspect.Parameter.empty
    }
    main = getattr(guess.module, "main_input_name", "")
    missing = [entry for entry in names if entry not in guess.made and (entry in required or entry == main)]
    objects = {entry: kind for entry in missing if (kind := _kind_of_object(guess.module, entry))}
    if objects:
        listed = " and ".join(f"{entry}, a {kind}" for entry, kind in objects.items())
        raise ModelError(
            f"{name} takes {listed}, which --input cannot give: create the model and its inputs in your own file, "
            "and name it as path/to/file.py:NAME"
        )
    if not names and not guess.accepted:
        raise ModelError(
            f"{name} has a forward pass without named inputs: call the intended part in a module of your own file, "
            "and name it as path/to/file.py:NAME"
        )
    if missing or not guess.made:
        raise ModelError(
            f"{name} takes {', '.join(missing) or 'inputs'}, of sizes that its configuration does not state: "
            f"give each of {', '.join(names or guess.accepted)} as --input NAME=sizes[:dtype], batch first"
        )
    return {entry: guess.made[entry] for entry in guess.accepted if entry in guess.made}


def _kind_of_object(module: Any, name: str) -> str:
    """Return the name of the class that a forward pass annotates an input with; empty for tensors or without one."""
    kind = parameters_of(module)[name].annotation
    if not isinstance(kind, type) or kind is inspect.Parameter.empty or kind.__module__ == "builtins":
        return ""
    return "" if kind.__name__.endswith("Tensor") else kind.__name__


def guess_inputs(module: Any, configuration: Any, batch: int, given: Mapping[str, InputSpec], name: str) -> Guesses:
    """Yield possible inputs of a model, the likeliest first. Raise ModelError if the configuration lacks a needed size.

    Inputs given by the user are part of each guess. The caller sends the error of a failed guess to get the next one.
    The next guess follows a hint in that error, adds further masks, sizes and boxes that the forward pass takes, or has
    several or larger images per sample.
    """
    _name_placeholders(configuration)
    wanted = wanted_names(module, configuration)
    accepted = parameters_of(module)
    unknown = [entry for entry in given if entry not in accepted]
    if unknown and accepted:
        near = difflib.get_close_matches(unknown[0], accepted, n=2)
        hint = f"; did you mean {' or '.join(near)}?" if near else f"; it takes {', '.join(accepted)}"
        raise ModelError(f"{name} takes no input {unknown[0]}{hint}")
    names = [entry for entry in accepted if entry in wanted or entry in given]
    more = [entry for entry in accepted if entry in names or (entry in RULES and entry not in ALONE)]
    if "pixel_values_videos" in accepted and "pixel_values" not in accepted and "pixel_values_videos" not in more:
        more.append("pixel_values_videos")
    tries: Sequence[tuple[list[str], bool, int]] = (
        (names, False, 1),
        (more, False, 1),
        (names, True, 1),
        (more, True, 1),
        (names, False, 2),
        (names, True, 2),
        (names, False, 4),
    )
    tries = tuple(one for index, one in enumerate(tries) if one not in tries[:index])
    for index, (entries, is_turned, scale) in enumerate(tries):
        guess = Guess(
            module=module, configuration=configuration, batch=batch, given=given, is_turned=is_turned, scale=scale
        )
        try:
            inputs = _complete(guess, entries, name)
        except ModelError:
            if not index:
                raise
            continue
        error = yield inputs, ()
        size = find_image_size(error) if error is not None and not guess.size else 0
        if size:
            sized = attrs.evolve(guess, size=size, made={})
            with contextlib.suppress(ModelError):
                inputs = _complete(sized, entries, name)
                guess = sized
                error = yield inputs, ()
        while error is not None and take_hint(guess, error):
            with contextlib.suppress(ModelError):
                _follow(guess)
            inputs = {entry: guess.made[entry] for entry in accepted if entry in guess.made}
            error = yield inputs, ()
        if error is not None and USE_CACHE in accepted and passed_a_cache(error):
            error = yield {**inputs, USE_CACHE: False}, (NO_CACHE_NOTE,)


def describe_inputs(module: torch.nn.Module, given: Mapping[str, Any]) -> str:
    """Return text with the given inputs and the accepted names, for the error message of a failed forward pass."""
    shown = ", ".join(f"{name}={'x'.join(map(str, value.shape))}" for name, value in given.items()) or "nothing by name"
    return f"given {shown}; its --input NAME=sizes[:dtype] may name {', '.join(parameters_of(module))}"
