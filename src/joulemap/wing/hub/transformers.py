"""Models of transformers, built from their configuration without weights: nothing is downloaded."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Mapping
from typing import Any, Final

import torch

from joulemap.construct import Guesses, InputSpec, ModelRequest, read_setting
from joulemap.system import ModelError, UnknownNameError, UsageError
from joulemap.trace.module import build_on_meta
from joulemap.trace.packed.convert import SETTING, store_weights
from joulemap.wing.hub.configuration import check_sizes, read_checkpoint_files
from joulemap.wing.hub.guess import guess_inputs
from joulemap.wing.hub.modality import find_setting, is_configuration
from joulemap.wing.hub.offline import describe_error, find_request

HEADS: Final = ("Model", "Encoder", "Decoder", "Backbone")
"""Suffixes of class names that are models, in addition to names with `For`."""

TEXT_WIDTH: Final = "text_hidden_size"
"""Setting with the width of the text embeddings with which a part's features are merged."""

FEATURE_WIDTHS: Final = ("out_hidden_size", "output_dim")
"""Settings of an image or audio part that state the width of its output features."""

IMAGE_TOKENS: Final = "mm_tokens_per_image"
"""Setting with the number of tokens to which the patches of an image are pooled; it is a square number."""

MOST_PARTS: Final = 2_000
"""Maximum layers, blocks or experts that a setting may request."""

_PARTS: Final = re.compile(r"(^|_)(layers?|blocks?|experts|depths?|stages)$")
"""Pattern of settings that state how often a part is repeated."""

_PRETRAINED: Final = "use_pretrained_backbone"
"""Setting that makes a model download weights, which a trace does not need."""

_DTYPES: Final = ("dtype", "torch_dtype")
"""Settings with the dtype of stored weights. They are ignored: a trace uses fp32, and the user requests a precision."""

UNDECLARED: Final[Mapping[str, tuple[str, ...]]] = {
    "DebertaV2Config": ("norm_rel_ebd", "position_buckets", "share_att_key"),
}
"""Configuration class -> settings that its model reads although the class does not declare them."""


def build_transformers(request: ModelRequest) -> tuple[torch.nn.Module, Guesses | None, tuple[str, ...]]:
    """Return (module, its possible inputs, notes). The inputs are None if the request gives all of them by position.

    Raises UnknownNameError for an unknown name or setting, ModelError for a model that the library cannot build.
    """
    import transformers

    values = _read_file(request)
    head = _find_head(transformers, request, values)
    kind = _find_configuration(transformers, request, values, head)
    changes = _nest(request.arguments)
    _check_settings(values or {}, request.model)
    _check_settings(changes, request.model)
    source = str(request.path or request.model)
    values, quantization = _take_quantization(values, changes, source)
    try:
        configuration = configure(kind, values, changes, request.model)
        notes = _fit_parts(configuration, changes) if values is None else ()
        with build_on_meta():
            make = head._from_config if head is not None else _find_maker(transformers, request, configuration)
            module: torch.nn.Module = make(configuration)
        notes += store_weights(module, quantization, source)
    except (ModelError, UnknownNameError, UsageError):
        raise
    except Exception as error:
        if asked := find_request(error):
            raise ModelError(
                f"{request.model} needs {asked}, but joulemap downloads nothing: give a complete configuration"
            ) from error
        raise ModelError(f"{request.model} could not be built: {describe_error(deepest(error))}") from error
    if request.sizes is not None or any(not spec.name for spec in request.inputs):
        return module, None, notes
    given: Mapping[str, InputSpec] = {spec.name: spec for spec in request.inputs}
    own = getattr(module, "config", None)
    settings = own if is_configuration(own) else configuration
    return module, guess_inputs(module, settings, request.batch or 1, given, request.model), notes


def _find_maker(transformers: Any, request: ModelRequest, configuration: Any) -> Any:
    """Return the function that builds a model from a configuration; the model has logits if the request is for
    decoding.
    """
    decodes = request.sizes is not None and type(configuration) in transformers.MODEL_FOR_CAUSAL_LM_MAPPING
    return (transformers.AutoModelForCausalLM if decodes else transformers.AutoModel).from_config


def deepest(error: BaseException) -> BaseException:
    """Return the root cause of an error. Libraries with late imports hide it behind an error about a missing name."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def _read_file(request: ModelRequest) -> dict[str, Any] | None:
    """Return the settings in the request's configuration file; None if the request names none."""
    if request.path is None:
        return None
    values = read_checkpoint_files(request.path, str(request.path))
    check_sizes(values, str(request.path))
    return _without_dtypes(values)


def _without_dtypes(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings without the dtypes of stored weights, and with downloads of pretrained weights turned off."""
    return {
        name: _without_dtypes(value) if isinstance(value, Mapping) else name != _PRETRAINED and value
        for name, value in values.items()
        if name not in _DTYPES
    }


def _check_settings(values: Any, model: str, name: str = "") -> None:
    """Raise ModelError for more layers than a trace can finish, or for code that must be downloaded.

    This check runs before anything is built.
    """
    if isinstance(values, Mapping):
        for key, value in values.items():
            _check_settings(value, model, str(key))
    elif isinstance(values, list) and _PARTS.search(name):
        for value in values:
            _check_settings(value, model, name)
    elif isinstance(values, int) and values > MOST_PARTS and _PARTS.search(name):
        raise ModelError(f"{model}: {name} is {values:,}, expected at most {MOST_PARTS:,}: a trace runs each of them")
    elif isinstance(values, str) and "/" in values and name.endswith("implementation"):
        raise ModelError(f"{model} needs code of a hub, {values}, but joulemap downloads nothing: leave {name} out")


def _take_quantization(
    values: dict[str, Any] | None, changes: dict[str, Any], name: str
) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """Return (settings without quantization, quantization or None), and remove quantization from `changes`.

    Changes by the user override the file's quantization.
    """
    found: Any = None
    if values is not None:
        text = values.get("text_config")
        nested = text.get(SETTING) if isinstance(text, Mapping) else None
        found = values.get(SETTING) or nested
        values = {name: value for name, value in values.items() if name != SETTING}
        if nested is not None and isinstance(text, Mapping):
            values["text_config"] = {name: value for name, value in text.items() if name != SETTING}
    if SETTING in changes:
        changed = changes.pop(SETTING)
        if changed is not None and not isinstance(changed, dict):
            raise UsageError(f"{SETTING} is {changed!r}, expected nested settings such as {SETTING}.bits=4, or null")
        found = None if changed is None else _merge(found, changed)
    if found is not None and not isinstance(found, dict):
        raise ModelError(f"{name}: {SETTING} is {found!r}, expected an object of settings")
    return values, found


def _merge(values: Any, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with changes applied; nested settings are merged recursively."""
    merged = dict(values) if isinstance(values, Mapping) else {}
    for name, value in changes.items():
        merged[name] = _merge(merged.get(name), value) if isinstance(value, Mapping) else value
    return merged


def _find_head(transformers: Any, request: ModelRequest, values: Mapping[str, Any] | None) -> Any:
    """Return the model class named by the request or the configuration file; None to let AutoModel choose."""
    name = request.factory
    if not name:
        architectures = (values or {}).get("architectures") or ()
        return next((found for entry in architectures if (found := _find(transformers, str(entry))) is not None), None)
    if name.endswith("Config") or not ("For" in name or name.endswith(HEADS)):
        return None
    found = _find(transformers, name)
    return found if isinstance(found, type) and hasattr(found, "_from_config") else None


def _find(transformers: Any, name: str) -> Any:
    if name not in dir(transformers):
        return None
    try:
        return getattr(transformers, name)
    except Exception as error:
        raise ModelError(f"{name} could not be imported: {describe_error(deepest(error))}") from error


def _find_configuration(transformers: Any, request: ModelRequest, values: Mapping[str, Any] | None, head: Any) -> Any:
    """Return the configuration class of a model. Raise UnknownNameError for an unknown name."""
    kind = (values or {}).get("model_type")
    if head is not None:
        found = head.config_class
    elif request.factory:
        found = _find_named(transformers, request.factory)
    else:
        types = transformers.CONFIG_MAPPING
        if kind not in types:
            raise ModelError(
                f"{request.path} has the model_type {kind!r}, which this version of transformers does not know: name "
                "the model, as hf:NAME --config FILE"
            )
        found = types[kind]
    own = getattr(found, "model_type", "")
    if kind and own and kind != own and request.factory:
        raise ModelError(f"{request.path} is of the model_type {kind}, {request.model} of {own}")
    return found


def _find_named(transformers: Any, factory: str) -> Any:
    """Return the class of a configuration by its name or `model_type`; UnknownNameError for an unknown name."""
    known = {entry.removesuffix("Config"): entry for entry in dir(transformers) if entry.endswith("Config")}
    name = factory.removesuffix("Config")
    if name in known:
        return _find(transformers, known[name])
    if factory in transformers.CONFIG_MAPPING:
        return transformers.CONFIG_MAPPING[factory]
    heads = [entry for entry in dir(transformers) if "For" in entry or entry.endswith(HEADS)]
    is_head = "For" in factory or factory.endswith(HEADS)
    raise UnknownNameError(
        "transformers model" if is_head else "transformers configuration", factory, heads if is_head else list(known)
    )


def _nest(arguments: tuple[tuple[str, str], ...]) -> dict[str, Any]:
    """Return settings as nested dictionaries: `text_config.num_hidden_layers` is a key of `text_config`."""
    tree: dict[str, Any] = {}
    for name, text in arguments:
        *parts, last = name.split(".")
        place = tree
        for part in parts:
            place = place.setdefault(part, {})
            if not isinstance(place, dict):
                raise UsageError(f"--model-arg {name}={text}: {part} is also set as a whole")
        place[last] = read_setting(text)
    return tree


def configure(kind: Any, values: Mapping[str, Any] | None, changes: Mapping[str, Any], name: str) -> Any:
    """Return a configuration object from `values`, or the defaults of `kind` without them, with nested changes applied.

    Settings that the constructor derives are derived from the changed values. Raises UnknownNameError for an unknown
    setting, ModelError for one that does not take effect.
    """
    if not changes:
        return kind() if values is None else kind.from_dict(dict(values))
    usual = kind() if values is None else kind.from_dict(dict(values))
    merged = dict(values or {})
    for setting, value in changes.items():
        _check_setting(kind, usual, setting, name)
        part: Any = getattr(usual, setting, None)
        if isinstance(value, dict) and is_configuration(part):
            own = dict(merged[setting]) if isinstance(merged.get(setting), Mapping) else part.to_diff_dict()
            own.pop("transformers_version", None)
            changed = configure(type(part), own, value, f"{name}: {setting}")
            merged[setting] = changed.to_dict()
        elif isinstance(value, dict) and isinstance(part, Mapping):
            merged[setting] = {**part, **value}
        elif isinstance(value, dict) and part is not None and not isinstance(part, Mapping):
            raise UsageError(f"{name}: {setting} is the value {part!r}, which has no nested settings")
        else:
            merged[setting] = value
    made = kind.from_dict(merged) if values is not None else kind(**merged)
    for setting, value in changes.items():
        found = getattr(made, setting, None)
        if (
            isinstance(value, bool | int | float | str)
            and isinstance(found, bool | int | float | str)
            and found != value
        ):
            raise ModelError(f"{name}: {setting}={value} has no effect: the configuration makes it {found}")
    return made


def _fit_parts(configuration: Any, changes: Mapping[str, Any]) -> tuple[str, ...]:
    """Adjust the image and audio parts of a default configuration so that they fit its text part; return notes on
    changes.

    Features get the width of the text. An image gets whole squares of the patches that are pooled to one token.
    Settings requested by the user are not adjusted.
    """
    notes = []

    def fit(whole: Any, part: str, name: str, value: int, reason: str) -> None:
        place = getattr(whole, part, None)
        own = getattr(place, name, None)
        if isinstance(own, int) and own != value and not _is_changed(changes, part, name):
            setattr(place, name, value)
            notes.append(f"{part}.{name} is assumed to be {value}, {reason}: its default {own} does not fit")

    width = find_setting(getattr(configuration, "text_config", None), "text", "hidden_size")
    if isinstance(width, int):
        for part in [name for name in vars(configuration) if name.endswith("_config")]:
            place = getattr(configuration, part)
            fit(configuration, part, TEXT_WIDTH, width, "as wide as the text")
            name = next((name for name in FEATURE_WIDTHS if hasattr(place, name)), "hidden_size")
            if part in ("vision_config", "audio_config") and (name != "hidden_size" or hasattr(place, "embed_dim")):
                fit(configuration, part, name, width, "as wide as the text")
    for whole in (configuration, *(value for value in vars(configuration).values() if is_configuration(value))):
        vision = getattr(whole, "vision_config", None)
        patch, size = getattr(vision, "patch_size", None), getattr(vision, "image_size", None)
        patches = getattr(whole, "pixel_shuffle_factor", None) or math.isqrt(getattr(whole, IMAGE_TOKENS, None) or 0)
        if isinstance(patch, int) and isinstance(size, int) and patches:
            square = patches * patch
            reason = f"whole squares of {patches} x {patches} patches"
            fit(whole, "vision_config", "image_size", -(-size // square) * square, reason)
    return tuple(notes)


def _is_changed(changes: Any, part: str, name: str) -> bool:
    """Return whether the user set this setting of a part, at any nesting depth."""
    if not isinstance(changes, Mapping):
        return False
    own = changes.get(part)
    return (isinstance(own, Mapping) and name in own) or any(
        _is_changed(value, part, name) for value in changes.values()
    )


def _check_setting(kind: Any, usual: Any, setting: str, name: str) -> None:
    known = {entry for entry in vars(usual) if not entry.startswith("_")}
    known |= {entry for entry in inspect.signature(kind).parameters if entry not in ("args", "kwargs")}
    known |= set(getattr(kind, "attribute_map", {})) | set(UNDECLARED.get(kind.__name__, ()))
    if setting not in known and not isinstance(getattr(type(usual), setting, None), property):
        raise UnknownNameError(f"setting of {name}", setting, sorted(known))
