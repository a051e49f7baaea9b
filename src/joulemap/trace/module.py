"""The workload of a module, which runs once on the meta device."""

from __future__ import annotations

import contextlib
import copy
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.nn.parameter import is_lazy
from torch.overrides import TorchFunctionMode

from joulemap.domain.key import WorkloadKey
from joulemap.domain.workload import Workload
from joulemap.errors import ModelError
from joulemap.trace.argument import has_values, replace_tensors, tensors_in
from joulemap.trace.assemble import assemble
from joulemap.trace.guest import describe_place, first_line, refusing
from joulemap.trace.inference import attention_as_in_inference, one_suppression_for_all_classes
from joulemap.trace.literal import HostValues
from joulemap.trace.record import MOST_REAL, Recorder


class _EmptyOnMeta(TorchFunctionMode):
    """Sends uninitialised storage to meta while a module is built, so that no weight is allocated.

    Only `torch.empty`: constructors that compute with small tensors (a linspace of drop rates, say) still can.
    """

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        if func is torch.empty and kwargs.get("device") is None:
            kwargs["device"] = "meta"
        return func(*args, **kwargs)


class _EmptyAsZeros(TorchFunctionMode):
    """Clears uninitialised storage, so that what no constructor fills holds no numbers that are slow to compute."""

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        made = func(*args, **(kwargs or {}))
        return made.zero_() if func is torch.empty and not made.is_meta else made


_with_storage: ContextVar[bool] = ContextVar("with_storage", default=False)


@contextlib.contextmanager
def build_with_storage() -> Iterator[None]:
    """Have `build_on_meta` inside allocate weights and initialise them as their constructors do."""
    token = _with_storage.set(True)
    try:
        yield
    finally:
        _with_storage.reset(token)


@contextlib.contextmanager
def build_on_meta() -> Iterator[None]:
    """Build modules inside without allocating their weights, unless `build_with_storage` is around."""
    with _EmptyAsZeros() if _with_storage.get() else _EmptyOnMeta(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _to_meta(value: Any) -> Any:
    """Return a tensor without storage in the place of one, also of one that only pretends to have some."""
    if isinstance(value, FakeTensor):
        return torch.empty_strided(value.size(), value.stride(), dtype=value.dtype, device="meta")
    return value.to("meta") if isinstance(value, torch.Tensor) else value


def _as_input(value: torch.Tensor) -> torch.Tensor:
    """Return an input as it is traced: small integers and booleans with their values, all other without storage."""
    return value.detach().to("cpu").clone() if has_values(value) else _to_meta(value)


def _as_it_is(value: torch.Tensor) -> torch.Tensor:
    return value.detach().clone() if not value.is_meta and value.numel() <= MOST_REAL else _to_meta(value)


def _copy_on_meta(module: torch.nn.Module) -> torch.nn.Module:
    """Return a copy of the module whose tensors have no storage, without allocating its weights a second time."""
    memo: dict[int, Any] = {
        id(parameter): torch.nn.Parameter(_to_meta(parameter.detach()), requires_grad=parameter.requires_grad)
        for parameter in module.parameters()
    }
    memo.update((id(buffer), _as_input(buffer)) for buffer in module.buffers())
    return _without_storage(copy.deepcopy(module, memo))


def _without_storage(module: torch.nn.Module) -> torch.nn.Module:
    """Return the module with its tensors on meta, but for small whole numbers: sizes that it computes with."""
    module._apply(lambda tensor: tensor if has_values(tensor) else tensor.to("meta"))
    return module


def _explain(error: BaseException, recorder: Recorder) -> str:
    where = recorder.calls[-1].module_path if recorder.calls else ""
    reason = first_line(error)
    if "meta" in reason and ("item" in reason or "data-dependent" in reason or "nonzero" in reason):
        reason = f"control flow depends on data ({reason})"
    return reason + (f" (after {where})" if where else "") + describe_place(error)


def trace_module(
    module: torch.nn.Module,
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    *,
    key: WorkloadKey,
    model: str,
    batch: int,
    may_change: bool = False,
    keeps_values: bool = False,
) -> Workload:
    """Return the workload of `module(*args, **kwargs)` in inference, not yet fused.

    With `keeps_values` activations keep theirs too, until they meet weights: some models look for empty images.

    The module is not changed, unless it `may_change`: a copy without weights runs on the meta device. Raises
    ModelError, naming the module path that was reached, where the forward pass fails.
    """
    lazy = [name for name, parameter in module.named_parameters() if is_lazy(parameter)]
    if lazy:
        raise ModelError(
            f"{model}: the parameter {lazy[0]} has no shape yet: run the lazy module once before it is handed over"
        )
    if may_change and all(parameter.is_meta for parameter in module.parameters()):
        module = _without_storage(module).eval()
    else:
        module = _copy_on_meta(module).eval()
    inputs = replace_tensors((tuple(args), dict(kwargs or {})), _as_it_is if keeps_values else _as_input)
    recorder = Recorder(module)
    for leaf in tensors_in(inputs):
        recorder.add_input(leaf)
    positional, named = inputs
    with (
        refusing(lambda error: f"{model}: the forward pass failed: {_explain(error, recorder)}"),
        warnings.catch_warnings(),
        torch.inference_mode(),
        one_suppression_for_all_classes(),
        attention_as_in_inference(),
        recorder.paths(),
        recorder,
        HostValues(recorder),
    ):
        warnings.simplefilter("ignore")
        result = module(*positional, **named)
    outputs = tensors_in(result)
    if not recorder.calls:
        raise ModelError(f"{model}: the forward pass ran no operator")
    return assemble(
        recorder,
        outputs,
        key=key,
        model=model,
        batch=batch,
        parameter_count=sum(parameter.numel() for parameter in module.parameters()),
        notes=tuple(recorder.notes),
    )
