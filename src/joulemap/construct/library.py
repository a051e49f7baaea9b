"""Models of torchvision, built without weights: nothing is downloaded."""

from __future__ import annotations

import inspect
from typing import Any, Final

import torch

from joulemap.system.errors import ModelError
from joulemap.trace.module import build_on_meta

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
