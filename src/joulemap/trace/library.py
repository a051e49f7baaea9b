"""Models of torchvision, timm and transformers, built without weights: nothing is downloaded."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import torch

from joulemap.errors import ModelError, UnknownNameError, UsageError
from joulemap.trace.guest import first_line
from joulemap.trace.module import build_on_meta
from joulemap.trace.source import ModelRequest

TOKENS: Final = 128
"""Length of the sequence that a language model is traced with unless --input says otherwise, or its limit is lower."""

IMAGE: Final = 224
"""Size of an image where a configuration has none, because the model takes any."""

SAMPLES: Final = 16_000
"""Samples of raw audio: a second at the rate that speech models are trained at."""

QUANTIZED: Final = "quantized_"
QUANTIZED_NOTE: Final = "int8 modules cannot be built without data: operators and counts are those of the float model"


def build_torchvision(name: str, image_size: int = 224) -> torch.nn.Module:
    """Return a torchvision model without weights on the meta device; ModelError if it cannot be built."""
    from torchvision import models

    arguments: dict[str, Any] = {"weights": None}
    builder = models.get_model_builder(name)
    family = builder.__module__.rsplit(".", 1)[-1]
    if family in ("googlenet", "inception"):
        arguments["init_weights"] = False
    if family == "googlenet":
        arguments["aux_logits"] = False
    if family == "vision_transformer":
        arguments["image_size"] = image_size
    if "weights_backbone" in inspect.signature(builder).parameters:
        arguments["weights_backbone"] = None
    try:
        with build_on_meta():
            module: torch.nn.Module = builder(**arguments)
    except Exception:
        try:
            with torch.device("meta"):
                module = builder(**arguments)
        except Exception as error:
            raise ModelError(f"{name} could not be built: {type(error).__name__}: {error}") from error
    return module


_LOADS: Final = ("pretrained", "checkpoint_path", "pretrained_cfg", "pretrained_cfg_overlay")
"""Arguments of `timm.create_model` that only weights depend on."""


def build_timm(request: ModelRequest, arguments: Mapping[str, Any]) -> tuple[torch.nn.Module, Any]:
    """Return (module, its inputs) of timm, made with the arguments of `timm.create_model`; the image follows them.

    Raises UnknownNameError for a name that is not there, UsageError for an argument that the model does not take.
    """
    import timm

    if request.factory not in timm.list_models():
        raise UnknownNameError("timm model", request.factory, timm.list_models())
    for name in _LOADS:
        if arguments.get(name):
            raise UsageError(f"{request.model} is built without weights from elsewhere: leave out {name}")
    try:
        with build_on_meta():
            module: torch.nn.Module = timm.create_model(request.factory, **{"pretrained": False, **arguments})
    except TypeError as error:
        unknown = re.search(r"unexpected keyword argument\D*?'(\w+)'", str(error))
        if unknown and unknown[1] in arguments:
            raise UsageError(f"{request.model} takes no argument {unknown[1]}; {_takes(timm, request)}") from error
        raise ModelError(f"{request.model} could not be built: {first_line(error)}") from error
    except Exception as error:
        raise ModelError(f"{request.model} could not be built: {first_line(error)}") from error
    return module, (torch.empty((request.batch or 1, *_image_of(module, arguments)), device="meta"),)


def _takes(timm: Any, request: ModelRequest) -> str:
    """Return which arguments a timm model takes: those of its class, or of the one that it hands its own on to."""
    with build_on_meta():
        module = timm.create_model(request.factory, pretrained=False)
    for kind in type(module).__mro__:
        parameters = inspect.signature(kind.__init__).parameters.values()  # type: ignore[misc]
        names = [
            parameter.name
            for parameter in parameters
            if parameter.kind in (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
            and parameter.name not in ("self", "cfg")
        ]
        if names:
            return f"it takes: {', '.join(names)}"
    return "it takes none"


def _image_of(module: Any, arguments: Mapping[str, Any]) -> tuple[int, ...]:
    """Return channels, height and width of a timm model's image: of its configuration, or as it was made."""
    configuration = getattr(module, "pretrained_cfg", None) or module.default_cfg
    channels, *size = configuration["input_size"]
    wanted = arguments.get("img_size", arguments.get("input_size"))
    if isinstance(wanted, int):
        size = [wanted, wanted]
    elif wanted is not None:
        size = list(wanted)[-2:]
    return (arguments.get("in_chans", channels), *size)


def build_transformers(request: ModelRequest) -> tuple[torch.nn.Module, Any]:
    """Return (module, inputs or None where the request has its own); UnknownNameError for a name that is not there."""
    import transformers

    name = request.factory if request.factory.endswith("Config") else f"{request.factory}Config"
    known = [entry for entry in dir(transformers) if entry.endswith("Config")]
    if name not in known:
        raise UnknownNameError("transformers configuration", name, known)
    try:
        configuration = getattr(transformers, name)()
        with build_on_meta():
            module: torch.nn.Module = transformers.AutoModel.from_config(configuration)
    except Exception as error:
        raise ModelError(f"{request.model} could not be built: {type(error).__name__}: {error}") from error
    if request.inputs:
        return module, None
    return module, _inputs_of(module, configuration, request)


def _inputs_of(module: Any, configuration: Any, request: ModelRequest) -> dict[str, torch.Tensor]:
    """Return the inputs that a transformers model asks for; ModelError names those whose sizes are not known.

    Their names are its `main_input_name` and what its `input_modalities` add; its `dummy_inputs` are those of a
    language model, whatever it is. Sizes are those of its configuration or of the part that reads them.
    """
    accepted = list(inspect.signature(module.forward).parameters)
    wanted = _wanted(module, configuration, accepted)
    sizes = {name: _sizes(name, configuration) for name in accepted if name in wanted}
    unknown = [name for name, size in sizes.items() if size is None]
    if unknown or not sizes:
        raise ModelError(
            f"{request.model} takes {', '.join(unknown) or 'inputs'}, of sizes that its configuration does not tell: "
            f"give each of {', '.join(sizes) or ', '.join(accepted)} as --input NAME=sizes[:dtype], batch first"
        )
    batch = request.batch or 1
    return {
        name: torch.empty((batch, *size), dtype=torch.int64 if name in _TOKENS else torch.float32, device="meta")
        for name, size in sizes.items()
        if size is not None
    }


_TOKENS: Final = ("input_ids", "decoder_input_ids")


def _wanted(module: Any, configuration: Any, accepted: Sequence[str]) -> set[str]:
    """Return the names of the inputs of a model."""
    found = getattr(module, "input_modalities", ())
    modalities = {found} if isinstance(found, str) else set(found or ())
    wanted = {str(module.main_input_name)}
    if modalities & {"image", "video"}:
        wanted.add("pixel_values")
    if "audio" in modalities:
        wanted.update(name for name in ("input_features", "input_values") if name in accepted)
    if getattr(configuration, "is_encoder_decoder", False) and "decoder_input_ids" in accepted:
        wanted.add("decoder_input_ids")
    elif "text" in modalities:
        wanted.add("input_ids")
    return wanted


def _sizes(name: str, configuration: Any) -> tuple[int, ...] | None:
    """Return the sizes of an input without its batch, or None where the configuration does not tell."""
    if name in _TOKENS:
        most = _setting(configuration, "max_position_embeddings", "text_config")
        return (min(TOKENS, most) if isinstance(most, int) and most > 0 else TOKENS,)
    if name == "pixel_values":
        size = _setting(configuration, "image_size", "vision_config", "image_config") or IMAGE
        channels = _setting(configuration, "num_channels", "vision_config", "image_config") or 3
        frames = _setting(configuration, "num_frames", "vision_config")
        image = (channels, *(size if isinstance(size, list | tuple) else (size, size)))
        return (frames, *image) if isinstance(frames, int) else image
    bins = _setting(configuration, "num_mel_bins", "audio_config")
    if name == "input_values":
        frames = _setting(configuration, "max_length", "audio_config")
        return (frames, bins) if isinstance(frames, int) and isinstance(bins, int) else (SAMPLES,)
    positions = _setting(configuration, "max_source_positions", "audio_config")
    if name == "input_features" and isinstance(bins, int) and isinstance(positions, int):
        return (bins, 2 * positions)
    return None


def _setting(configuration: Any, name: str, *parts: str) -> Any:
    """Return a setting of a configuration, or of the first of its parts that has it; None where there is none."""
    for place in (configuration, *(getattr(configuration, part, None) for part in parts)):
        found = getattr(place, name, None)
        if found is not None:
            return found
    return None


def describe_inputs(module: torch.nn.Module, given: Mapping[str, torch.Tensor]) -> str:
    """Return what a model was given and what it takes, for the message of a forward pass that failed."""
    taken = [
        name
        for name, parameter in inspect.signature(module.forward).parameters.items()
        if parameter.kind is not inspect.Parameter.VAR_KEYWORD
    ]
    shown = ", ".join(f"{name}={'x'.join(map(str, value.shape))}" for name, value in given.items()) or "nothing by name"
    return f"given {shown}; its --input NAME=sizes[:dtype] may name {', '.join(taken)}"
