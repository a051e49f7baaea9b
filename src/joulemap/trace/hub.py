"""Models of timm and transformers, built from their configuration: nothing is downloaded."""

from __future__ import annotations

from typing import Any

import torch

from joulemap.errors import ModelError, UnknownNameError
from joulemap.trace.module import build_on_meta
from joulemap.trace.source import ModelRequest

TOKENS = 128
"""Length of the sequence that a language model is traced with unless --input says otherwise."""


def build(request: ModelRequest) -> tuple[torch.nn.Module, Any]:
    """Return (module, inputs); UnknownNameError for a name that the package does not have."""
    return (_build_timm if request.kind == "timm" else _build_transformers)(request)


def _build_timm(request: ModelRequest) -> tuple[torch.nn.Module, Any]:
    import timm

    if request.factory not in timm.list_models():
        raise UnknownNameError("timm model", request.factory, timm.list_models())
    try:
        with build_on_meta():
            module: torch.nn.Module = timm.create_model(request.factory, pretrained=False)
    except Exception as error:
        raise ModelError(f"{request.model} could not be built: {type(error).__name__}: {error}") from error
    settings: Any = module.default_cfg
    return module, (torch.empty((request.batch or 1, *settings["input_size"]), device="meta"),)


def _build_transformers(request: ModelRequest) -> tuple[torch.nn.Module, Any]:
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
    size = getattr(configuration, "image_size", None)
    if size is not None:
        channels = getattr(configuration, "num_channels", 3)
        return module, {"pixel_values": torch.empty((request.batch or 1, channels, size, size), device="meta")}
    ids = torch.empty((request.batch or 1, TOKENS), dtype=torch.int64, device="meta")
    if getattr(configuration, "is_encoder_decoder", False):
        return module, {"input_ids": ids, "decoder_input_ids": ids}
    return module, {"input_ids": ids}
