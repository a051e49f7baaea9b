"""Build the module that a request names, and trace it."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from joulemap.domain.workload import Workload
from joulemap.errors import ModelError
from joulemap.trace.module import build_on_meta, trace_module
from joulemap.trace.source import ModelRequest


def trace_request(request: ModelRequest) -> Workload:
    """Return the workload of a request, not yet fused; ModelError says what failed."""
    if request.kind == "torchvision":
        module = build_torchvision(request.model, request.input_shape[-1])
        inputs: Sequence[Any] = (torch.empty(request.input_shape, device="meta"),)
    else:
        module, inputs = _build_from_file(request)
    return trace_module(module, inputs, key=request.key, model=request.model, batch=request.batch)


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
    if "segmentation" in builder.__module__:
        arguments["weights_backbone"] = None
    try:
        with build_on_meta():
            module: torch.nn.Module = builder(**arguments)
    except Exception as error:
        raise ModelError(f"{name} could not be built: {type(error).__name__}: {error}") from error
    return module


def _build_from_file(request: ModelRequest) -> tuple[torch.nn.Module, Sequence[Any]]:
    path = request.path
    assert path is not None
    specification = importlib.util.spec_from_file_location(f"joulemap_user_{request.content_digest}", path)
    if specification is None or specification.loader is None:
        raise ModelError(f"{path} cannot be imported")
    namespace = importlib.util.module_from_spec(specification)
    sys.path.insert(0, str(path.parent))
    try:
        with build_on_meta():
            specification.loader.exec_module(namespace)
            made = getattr(namespace, request.factory, None)
            if made is None:
                raise ModelError(f"{path} has no {request.factory}")
            if not isinstance(made, torch.nn.Module) and callable(made):
                made = made()
    except ModelError:
        raise
    except SyntaxError as error:
        raise ModelError(f"{path}, line {error.lineno}: {error.msg}") from error
    except Exception as error:
        raise ModelError(f"{path}{_line_in(path, error)}: {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove(str(path.parent))
    return _split(made, request)


def _split(made: Any, request: ModelRequest) -> tuple[torch.nn.Module, Sequence[Any]]:
    """Return (module, inputs) of what a factory made, with the batch that was asked for."""
    inputs: Any = None
    if isinstance(made, tuple) and len(made) == 2:
        made, inputs = made
    if not isinstance(made, torch.nn.Module):
        raise ModelError(
            f"{request.model} gave a {type(made).__name__}, expected an nn.Module or a pair (module, inputs)"
        )
    if request.input_shape:
        return made, (torch.empty(request.input_shape, device="meta"),)
    if inputs is None:
        inputs = getattr(made, "example_inputs", None)
    if inputs is None:
        raise ModelError(
            f"{request.model} brings no inputs: give --input 1,3,224,224, return (module, inputs), "
            "or set module.example_inputs"
        )
    if isinstance(inputs, torch.Tensor):
        inputs = (inputs,)
    return made, tuple(_with_batch(value, request.batch) for value in inputs)


def _with_batch(value: Any, batch: int) -> Any:
    if isinstance(value, torch.Tensor) and value.dim() > 0 and value.shape[0] != batch:
        return torch.empty((batch, *value.shape[1:]), dtype=value.dtype, device="meta")
    return value


def _line_in(path: Path, error: BaseException) -> str:
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename) == path]
    return f", line {lines[-1]}" if lines else ""
