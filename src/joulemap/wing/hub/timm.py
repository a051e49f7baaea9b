"""Models of timm, built without weights: nothing is downloaded."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from typing import Any, Final

import torch

from joulemap.construct import ModelRequest
from joulemap.system import ModelError, UnknownNameError, UsageError
from joulemap.trace.module import build_on_meta
from joulemap.wing.hub.offline import describe_error

_LOADS: Final = ("pretrained", "checkpoint_path", "pretrained_cfg", "pretrained_cfg_overlay")
"""Arguments of `timm.create_model` that affect only weights."""


def build_timm(request: ModelRequest, arguments: Mapping[str, Any]) -> tuple[torch.nn.Module, Any]:
    """Return (module, inputs) of a timm model built with these arguments of `timm.create_model`.

    The input image has the size and channels of the arguments, else of the model's configuration. Raises
    UnknownNameError for an unknown model, UsageError for an argument that the model does not take.
    """
    import timm

    if request.factory not in timm.list_models():
        raise UnknownNameError("timm model", request.factory, timm.list_models())
    for name in _LOADS:
        if arguments.get(name):
            raise UsageError(f"{request.model} is built without downloaded weights: leave out {name}")
    try:
        with build_on_meta():
            module: torch.nn.Module = timm.create_model(request.factory, **{"pretrained": False, **arguments})
    except TypeError as error:
        unknown = re.search(r"unexpected keyword argument\D*?'(\w+)'", str(error))
        if unknown and unknown[1] in arguments:
            raise UsageError(f"{request.model} takes no argument {unknown[1]}; {_takes(timm, request)}") from error
        raise ModelError(f"{request.model} could not be built: {describe_error(error)}") from error
    except Exception as error:
        raise ModelError(f"{request.model} could not be built: {describe_error(error)}") from error
    return module, (torch.empty((request.batch or 1, *_image_of(module, arguments)), device="meta"),)


def _takes(timm: Any, request: ModelRequest) -> str:
    """Return text that lists the arguments of a timm model, found in the constructor of its class or nearest base class
    with any.
    """
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
    """Return (channels, height, width) of a timm model's image, from `arguments` or else the model's configuration."""
    configuration = getattr(module, "pretrained_cfg", None) or module.default_cfg
    channels, *size = configuration["input_size"]
    wanted = arguments.get("img_size", arguments.get("input_size"))
    if isinstance(wanted, int):
        size = [wanted, wanted]
    elif wanted is not None:
        size = list(wanted)[-2:]
    return (arguments.get("in_chans", channels), *size)
