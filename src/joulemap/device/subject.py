"""Model with real weights and inputs, on a device and at a precision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import torch

from joulemap.hub.build import BuiltModel, build_request
from joulemap.system.errors import ModelError, UsageError
from joulemap.system.record import frozen
from joulemap.trace.argument import replace_tensors
from joulemap.trace.guest import first_line
from joulemap.trace.module import build_with_storage
from joulemap.trace.source import ModelRequest
from joulemap.trace.tensor import DTYPES

SEED: Final = 0

PRECISIONS: Final = ("fp32", "bf16", "fp16")
"""Precisions of weights and floating-point inputs that can be measured."""


@frozen(kw_only=True)
class Subject:
    """Callable model with its inputs."""

    module: Any
    positional: Sequence[Any]
    named: Mapping[str, Any]
    batch: int

    def call(self) -> Any:
        """Run the model once."""
        return self.module(*self.positional, **self.named)


def prepare(request: ModelRequest, precision: str, device: torch.device) -> Subject:
    """Build the model of a request; its constructors initialize the weights from a fixed seed.

    Floating-point inputs are uniform in 0 to 1. Integer inputs that the model does not bring are 0, boolean ones true.
    Raises ModelError if the model cannot be built or has no weights. Call it inside `hosting`.
    """
    if precision not in PRECISIONS:
        raise UsageError(f"cannot measure at {precision}: expected one of {', '.join(PRECISIONS)}")
    torch.manual_seed(SEED)
    with build_with_storage(request.build_memory_bytes):
        built = build_request(request)
    if built.notes:
        raise ModelError(f"{request.model} cannot be measured: {built.notes[0]}")
    _refuse_missing_weights(request, built)
    dtype = DTYPES[precision]
    try:
        module = built.module.to(device=device, dtype=dtype)
        if request.kind != "exported":  # an exported module refuses eval(): it was exported for inference
            module = module.eval()
        positional, named = replace_tensors(
            (tuple(built.positional), dict(built.named)), lambda value: _fill(value, dtype, device)
        )
    except Exception as error:
        raise ModelError(f"{request.model} cannot be moved to {device} at {precision}: {first_line(error)}") from error
    return Subject(module=module, positional=positional, named=named, batch=built.batch)


def _refuse_missing_weights(request: ModelRequest, built: BuiltModel) -> None:
    tensors = [*built.module.named_parameters(), *built.module.named_buffers()]
    missing = [name for name, tensor in tensors if tensor.is_meta]
    if missing:
        raise ModelError(
            f"{request.model} has no storage for {missing[0]}, so it cannot run: build it on a device other than meta"
        )


def _fill(value: torch.Tensor, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """Return an input with storage on a device."""
    if value.is_floating_point():
        return torch.rand(value.shape, dtype=torch.float32).to(device=device, dtype=dtype)
    if not value.is_meta:
        return value.to(device)
    if value.dtype == torch.bool:
        return torch.ones(value.shape, dtype=torch.bool, device=device)
    return torch.zeros(value.shape, dtype=value.dtype, device=device)
