"""The workload of a module, which runs once on the meta device."""

from __future__ import annotations

import contextlib
import copy
import io
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Final

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.nn.parameter import is_lazy
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves, tree_map

from joulemap.domain.key import WorkloadKey
from joulemap.domain.workload import Workload
from joulemap.errors import ModelError
from joulemap.trace.assemble import assemble
from joulemap.trace.failure import explain, functions_of, wants_gradients
from joulemap.trace.guest import refusing
from joulemap.trace.host import on_one_device
from joulemap.trace.inference import attention_as_in_inference, one_suppression_for_all_classes
from joulemap.trace.limit import limited_time
from joulemap.trace.record import Recorder, Site
from joulemap.trace.tensor import dense_parts

MOST_ANSWERS: Final = 8
"""Questions about data that are answered True at most."""


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


def _copy_on_meta(module: torch.nn.Module) -> torch.nn.Module:
    """Return a copy of the module whose tensors have no storage, without allocating its weights a second time."""
    memo: dict[int, Any] = {}
    for child in module.modules():
        if isinstance(child, torch.jit.ScriptModule) and id(child) not in memo:
            memo[id(child)] = _script_on_meta(child)
    if id(module) in memo:
        script: torch.nn.Module = memo[id(module)]
        return script
    memo.update(
        (id(parameter), torch.nn.Parameter(_to_meta(parameter.detach()), requires_grad=parameter.requires_grad))
        for parameter in module.parameters()
    )
    memo.update((id(buffer), _to_meta(buffer)) for buffer in module.buffers())
    memo.update((id(tensor), tensor.detach()) for tensor in _uncopyable(module) if id(tensor) not in memo)
    made = copy.deepcopy(module, memo)
    return made if _is_on_meta(made) else made.to("meta")


def _uncopyable(module: torch.nn.Module) -> Iterator[torch.Tensor]:
    """Yield tensors that are attributes and refuse to be copied: computed and sparse ones."""
    for child in module.modules():
        for leaf in tree_leaves(dict(vars(child))):
            if isinstance(leaf, torch.Tensor) and (leaf.layout != torch.strided or not leaf.is_leaf):
                yield leaf


def _is_on_meta(module: torch.nn.Module) -> bool:
    return all(tensor.is_meta for tensor in (*module.parameters(), *module.buffers()))


def _script_on_meta(module: torch.jit.ScriptModule) -> torch.nn.Module:
    """Return a copy of a TorchScript module without storage: its parameters are no Python objects that could move."""
    if _is_on_meta(module):
        return module
    buffer = io.BytesIO()
    torch.jit.save(module, buffer)
    buffer.seek(0)
    loaded: torch.nn.Module = torch.jit.load(buffer, map_location="meta")
    return loaded


def _run(module: torch.nn.Module, inputs: tuple[Any, Any], model: str) -> tuple[Recorder, Any]:
    """Return the record of a forward pass and what it gives; ModelError where it fails.

    A pass is run again where a question about data was answered False and this ended in an error, or where it wants
    gradients, which inference mode has none of.
    """
    answered: set[Site] = set()
    mode: Callable[[], contextlib.AbstractContextManager[Any]] = torch.inference_mode
    while True:
        recorder = Recorder(module, answered)
        try:
            return recorder, _run_once(recorder, module, inputs, model, mode)
        except ModelError as refusal:
            cause = refusal.__cause__
            if not isinstance(cause, Exception) or len(answered) >= MOST_ANSWERS:
                raise
            if mode is torch.inference_mode and wants_gradients(cause):
                mode = torch.no_grad
            elif recorder.asked is not None and recorder.asked[0] in functions_of(cause):
                answered.add(recorder.asked)
            else:
                raise


def _run_once(
    recorder: Recorder,
    module: torch.nn.Module,
    inputs: tuple[Any, Any],
    model: str,
    mode: Callable[[], contextlib.AbstractContextManager[Any]],
) -> Any:
    for leaf in tree_leaves(inputs):
        if isinstance(leaf, torch.Tensor):
            for part in dense_parts(leaf):
                recorder.add_input(part)
    positional, named = inputs
    with (
        refusing(lambda error: f"{model}: the forward pass failed: {explain(error, recorder)}"),
        warnings.catch_warnings(),
        mode(),
        one_suppression_for_all_classes(),
        attention_as_in_inference(),
        on_one_device(recorder),
        recorder.paths(),
        limited_time(),
        recorder,
    ):
        warnings.simplefilter("ignore")
        return module(*positional, **named)


def trace_module(
    module: torch.nn.Module,
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    *,
    key: WorkloadKey,
    model: str,
    batch: int,
    may_change: bool = False,
) -> Workload:
    """Return the workload of `module(*args, **kwargs)` in inference, not yet fused.

    The module is not changed, unless it `may_change`: a copy without weights runs on the meta device. Raises
    ModelError, naming the module path that was reached, where the forward pass fails.
    """
    lazy = [name for name, parameter in module.named_parameters() if is_lazy(parameter)]
    if lazy:
        raise ModelError(
            f"{model}: the parameter {lazy[0]} has no shape yet: run the lazy module once before it is handed over"
        )
    if may_change and all(parameter.is_meta for parameter in module.parameters()):
        module = (module if _is_on_meta(module) else module.to("meta")).eval()
    else:
        module = _copy_on_meta(module).eval()
    recorder, result = _run(module, tree_map(_to_meta, (tuple(args), dict(kwargs or {}))), model)
    outputs = [part for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor) for part in dense_parts(leaf)]
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
