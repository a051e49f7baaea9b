"""In-memory modules: a trace leaves them unchanged, and the content of their workload identifies them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final

import attrs
import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily

from joulemap.construct.model import trace_request
from joulemap.construct.source import ModelRequest
from joulemap.physics.record.workload import Workload
from joulemap.system.errors import UsageError
from joulemap.system.name import name_module
from joulemap.trace.argument import tensors_in

EXAMPLE: Final = "compare(module, torch.zeros(1, 3, 224, 224))"


def request_module(module: object, example_inputs: object) -> tuple[ModelRequest, Workload]:
    """Return (request, workload before fusion) for a module with example inputs.

    The inputs are a tensor, a tuple of arguments or a dictionary of keyword arguments; None to use
    `module.example_inputs`. Raises UsageError for an invalid module or invalid inputs, ModelError if the module cannot
    be traced.
    """
    own = _check_module(module)
    inputs = getattr(own, "example_inputs", None) if example_inputs is None else example_inputs
    _check_inputs(inputs)
    name = type(own).__name__
    request = ModelRequest(model=name, kind="module", batch=None, held=(own, inputs))
    workload = _trace(request)
    digest = digest_workload(workload)
    request = attrs.evolve(request, model=name_module(name, digest), content_digest=digest)
    return request, attrs.evolve(workload, key=request.key, model=request.model)


def request_batch(request: ModelRequest, batch: int) -> tuple[ModelRequest, Workload]:
    """Return (request, workload) for a module at another batch size than that of its example inputs.

    Raises ModelError if the inputs cannot have this batch size.
    """
    sized = attrs.evolve(request, batch=batch)
    workload = _trace(sized)
    sized = attrs.evolve(sized, content_digest=digest_workload(workload))
    return sized, attrs.evolve(workload, key=sized.key)


def _check_module(module: object) -> torch.nn.Module:
    if isinstance(module, torch.nn.Module):
        compiled = getattr(module, "_orig_mod", None)
        return compiled if isinstance(compiled, torch.nn.Module) else module
    name = getattr(module, "__name__", type(module).__name__)
    if isinstance(module, type) and issubclass(module, torch.nn.Module):
        raise UsageError(f"{name} is a class: pass an instance of it, {name}(...), with example inputs")
    if callable(module):
        raise UsageError(f"{name} is a function: pass the module that it returns, with example inputs")
    raise UsageError(f"the model is of type {name}, expected a name or an nn.Module with example inputs: {EXAMPLE}")


def _check_inputs(inputs: object) -> None:
    if inputs is None:
        raise UsageError(f"a module needs example inputs: {EXAMPLE}")
    if not isinstance(inputs, torch.Tensor | tuple | list | Mapping) and not tensors_in(inputs):
        raise UsageError(
            f"the example inputs are of type {type(inputs).__name__}, expected a tensor, a tuple of arguments, a "
            "dictionary of keyword arguments or one object that holds tensors"
        )


def _trace(request: ModelRequest) -> Workload:
    """Return the workload of a request, traced outside any fake-tensor mode of the caller."""
    with unset_fake_temporarily():
        return trace_request(request)


def digest_workload(workload: Workload) -> str:
    """Return sixteen hexadecimal digits that identify the content of a workload, without its key."""
    found: dict[str, Any] = {
        field.name: getattr(workload, field.name) for field in attrs.fields(Workload) if field.name != "key"
    }
    return hashlib.sha256(repr({**found, "model": workload.model.partition("#")[0]}).encode()).hexdigest()[:16]
