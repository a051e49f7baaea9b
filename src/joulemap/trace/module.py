"""Trace of a module, which runs once on the meta device, to a workload."""

from __future__ import annotations

import contextlib
import copy
import io
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final, cast

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.nn.parameter import is_lazy

from joulemap.physics.record.workload import Workload, WorkloadKey
from joulemap.system.errors import ModelError
from joulemap.trace.argument import has_values, replace_tensors, tensors_in
from joulemap.trace.assemble import assemble
from joulemap.trace.cause import functions_of, wants_gradients
from joulemap.trace.failure import explain
from joulemap.trace.finding import find_idle, note_idle
from joulemap.trace.formula.pooling import CANDIDATES
from joulemap.trace.guest import refusing
from joulemap.trace.host import on_one_device
from joulemap.trace.inference import attention_as_in_inference, one_suppression_for_all_classes
from joulemap.trace.limit import limited_time
from joulemap.trace.literal import REPORTED, HostValues, ReportedDevice
from joulemap.trace.quantized import NOTE, find_quantized
from joulemap.trace.record import MOST_REAL, Recorder, Site
from joulemap.trace.tensor import dense_parts, is_sparse
from joulemap.trace.thread import following_threads
from joulemap.trace.way import LARGE, building, take

MOST_ANSWERS: Final = 8
"""Maximum data-dependent conditions of a model that are assumed True after a failed pass."""


@contextlib.contextmanager
def build_with_storage(limit_bytes: float | None = None) -> Iterator[None]:
    """Make `build_on_meta` allocate and initialize weights in this context, up to a memory limit."""
    with take("real", limit_bytes):
        yield


@contextlib.contextmanager
def build_on_meta() -> Iterator[None]:
    """Build modules in this context without allocating their weights, unless an outer context sets another way."""
    with building(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _to_meta(value: Any) -> Any:
    """Return a copy without storage of a tensor or fake tensor; any other value unchanged."""
    if isinstance(value, FakeTensor):
        return torch.empty_strided(value.size(), value.stride(), dtype=value.dtype, device="meta")
    return value.to("meta") if isinstance(value, torch.Tensor) else value


def _weight(value: torch.Tensor) -> torch.Tensor:
    """Return a weight without storage; a sparse weight keeps its storage."""
    return value if is_sparse(value) else cast(torch.Tensor, _to_meta(value))


def _as_input(value: torch.Tensor) -> torch.Tensor:
    """Return an input for a trace. Sparse tensors and small integer or boolean tensors keep their values; others lose
    storage.
    """
    if is_sparse(value):
        return value.detach()
    return value.detach().to("cpu").clone() if has_values(value) else _to_meta(value)


def _as_it_is(value: torch.Tensor) -> torch.Tensor:
    is_small = not value.is_meta and not is_sparse(value) and value.numel() <= MOST_REAL
    return value.detach().clone() if is_small else _as_input(value)


def _copy_on_meta(
    module: torch.nn.Module, replaced: Sequence[tuple[torch.nn.Module, torch.nn.Module]] = ()
) -> torch.nn.Module:
    """Return a copy of a module whose tensors have no storage, without allocating its weights a second time.

    `replaced` has pairs (part of the module, replacement in the copy).
    """
    memo: dict[int, Any] = {
        id(parameter): torch.nn.Parameter(_weight(parameter.detach()), requires_grad=parameter.requires_grad)
        for parameter in module.parameters()
    }
    memo.update((id(buffer), _as_input(buffer)) for buffer in module.buffers())
    memo.update((id(part), as_float) for part, as_float in replaced)
    with _copying_any_tensor(), warnings.catch_warnings(action="ignore"):
        return _without_storage(copy.deepcopy(module, memo))


def _scripts_on_meta(module: torch.nn.Module) -> Iterator[tuple[torch.nn.Module, torch.nn.Module]]:
    """Yield (module, copy without storage) for the outermost TorchScript modules, whose code is not Python."""
    if isinstance(module, torch.jit.ScriptModule):
        file = io.BytesIO()
        torch.jit.save(module, file)
        file.seek(0)
        yield module, torch.jit.load(file, map_location="meta")
        return
    for child in module.children():
        yield from _scripts_on_meta(child)


@contextlib.contextmanager
def _copying_any_tensor() -> Iterator[None]:
    """Allow `deepcopy` of every tensor in this context, also of tensors computed from weights. Copies of large tensors
    have no storage.
    """
    usual = torch.Tensor.__deepcopy__

    def copied(tensor: torch.Tensor, memo: dict[int, Any]) -> Any:
        if id(tensor) in memo:
            return memo[id(tensor)]
        if isinstance(tensor, FakeTensor) or (tensor.numel() > LARGE and tensor.layout == torch.strided):
            made = _to_meta(tensor.detach())
        elif tensor.is_leaf and tensor.layout == torch.strided:
            return usual(tensor, memo)  # type: ignore[no-untyped-call]
        else:
            made = tensor.detach().clone()
        memo[id(tensor)] = made
        return made

    torch.Tensor.__deepcopy__ = copied  # type: ignore[method-assign]
    try:
        yield
    finally:
        torch.Tensor.__deepcopy__ = usual  # type: ignore[method-assign]


def _without_storage(module: torch.nn.Module) -> torch.nn.Module:
    """Return the module with its tensors on meta, except small integers, which may be sizes."""
    tensors = (*module.parameters(), *module.buffers())
    if all(tensor.is_meta or has_values(tensor) for tensor in tensors):  # tensors of TorchScript cannot be replaced
        return module
    module._apply(lambda tensor: tensor if has_values(tensor) else _weight(tensor))
    return module


def _run(
    module: torch.nn.Module,
    make_inputs: Callable[[], tuple[Any, Any]],
    model: str,
    candidates: int = CANDIDATES,
) -> tuple[Recorder, tuple[Any, Any], Any]:
    """Return (recorder, inputs, result) of a forward pass. Raise ModelError if it fails.

    A failed pass is run again in four cases:

    - It wants gradients, which inference mode does not have.
    - A data-dependent condition was assumed False, and the error follows from that.
    - It computes with a mask or a count that a stand-in replaced.
    - It asked for its device, and another device has not been tried.

    If passes fail on all devices, the error of the pass that recorded most calls is raised.
    """
    answered: set[Site] = set()
    settled: set[int] = set()
    mode: Callable[[], contextlib.AbstractContextManager[Any]] = torch.inference_mode
    devices = iter(REPORTED)
    reported = ReportedDevice(next(devices))
    refusals: list[tuple[int, ModelError]] = []
    while True:
        recorder, inputs = Recorder(module, answered, settled, candidates), make_inputs()
        try:
            return recorder, inputs, _run_once(recorder, module, inputs, model, mode, reported)
        except ModelError as refusal:
            cause = refusal.__cause__
            if not isinstance(cause, Exception):
                raise
            may_answer = len(answered) < MOST_ANSWERS
            if may_answer and mode is torch.inference_mode and wants_gradients(cause):
                mode = torch.no_grad
            elif may_answer and recorder.asked is not None and recorder.asked[0] in functions_of(cause):
                answered.add(recorder.asked)
            elif may_answer and not settled and recorder.origins:
                settled |= recorder.origins
            else:
                refusals.append((len(recorder.calls), refusal))
                device = next(devices, None) if reported.was_asked else None
                if device is None:
                    furthest = max(refusals, key=itemgetter(0))[1]
                    raise furthest from furthest.__cause__
                reported, answered, settled = ReportedDevice(device), set(), set()


def _run_once(
    recorder: Recorder,
    module: torch.nn.Module,
    inputs: tuple[Any, Any],
    model: str,
    mode: Callable[[], contextlib.AbstractContextManager[Any]],
    reported: ReportedDevice,
) -> Any:
    for leaf in tensors_in(inputs):
        for part in dense_parts(leaf):
            recorder.add_input(part)
    positional, named = inputs
    host = HostValues(recorder, reported)

    @contextlib.contextmanager
    def modes() -> Iterator[None]:
        with mode(), host:
            yield

    with (
        refusing(lambda error: f"{model}: the forward pass failed: {explain(error, recorder)}"),
        warnings.catch_warnings(),
        mode(),
        one_suppression_for_all_classes(),
        attention_as_in_inference(),
        on_one_device(recorder),
        recorder.paths(),
        limited_time(model),
        following_threads(recorder, modes, model),
        recorder,
        host,
    ):
        warnings.simplefilter("ignore")
        return module(*positional, **named)


def _refuse_empty(model: str, recorder: Recorder, inputs: Any, outputs: Sequence[torch.Tensor]) -> None:
    """Raise ModelError, with the reason, if a forward pass computes nothing from its inputs."""
    worked = [call for call in recorder.calls if not call.is_view]
    if any(call.depends_on_input for call in worked):
        return
    given = tensors_in(inputs)
    bases = {recorder.tensors[recorder.find(tensor)].base for tensor in outputs}
    if not given:
        reason = "it was given no tensor as an input"
    elif not outputs:
        reason = "it gives back no tensor"
    elif any(recorder.tensors[base].role == "input" for base in bases):
        reason = "it gives back its input" + (", as another view of it" if recorder.calls else "")
    elif not worked:
        reason = "it gives back its weights or constants as they are"
    else:
        reason = f"its {len(worked)} operator{'s' if len(worked) > 1 else ''} read weights and constants alone"
    raise ModelError(f"{model}: nothing that the forward pass computes depends on an input: {reason}")


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
    candidates: int = CANDIDATES,
) -> Workload:
    """Return the workload of `module(*args, **kwargs)` in inference, before fusion.

    A copy without weights runs on the meta device; with `may_change`, the module itself may run. With `keeps_values`,
    small inputs keep their values until an operator combines them with weights, because some models look for empty
    images. At most `candidates` boxes that data selects are assumed to reach a non-maximum suppression. Raises
    ModelError, with the path of the last module reached, if the forward pass fails.
    """
    module, has_packed = _prepare(module, model, may_change=may_change)
    as_traced = _as_it_is if keeps_values else _as_input
    recorder, inputs, result = _run(
        module, lambda: replace_tensors((tuple(args), dict(kwargs or {})), as_traced), model, candidates
    )
    outputs = [part for leaf in tensors_in(result) for part in dense_parts(leaf)]
    _refuse_empty(model, recorder, inputs, outputs)
    read = {one.name for one in recorder.tensors if one.role == "parameter" and one.producer is None}
    idle = find_idle(module, recorder.ran, read)
    findings = (*recorder.findings, *idle)
    return assemble(
        recorder,
        outputs,
        key=key,
        model=model,
        batch=batch,
        parameter_count=sum(parameter.numel() for parameter in module.parameters()),
        notes=(*((NOTE,) if has_packed else ()), *recorder.notes, *note_idle(findings)),
        findings=findings,
    )


def run_module(
    module: torch.nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any], *, model: str, may_change: bool
) -> Any:
    """Return the result of `module(*args, **kwargs)`, run as in `trace_module`, and raise the same errors."""
    module, _ = _prepare(module, model, may_change=may_change)
    return _run(module, lambda: replace_tensors((tuple(args), dict(kwargs)), _as_input), model)[2]


def _prepare(module: torch.nn.Module, model: str, *, may_change: bool) -> tuple[torch.nn.Module, bool]:
    """Return (module without storage in inference mode, whether it has quantized parts)."""
    lazy = [name for name, parameter in module.named_parameters() if is_lazy(parameter)]
    if lazy:
        raise ModelError(
            f"{model}: the parameter {lazy[0]} has no shape yet: run the lazy module once before it is handed over"
        )
    packed = tuple(find_quantized(module))
    scripted = tuple(_scripts_on_meta(module))
    if may_change and not packed and not scripted and all(parameter.is_meta for parameter in module.parameters()):
        module = _without_storage(module)
    else:
        module = _copy_on_meta(module, (*packed, *scripted))
    with contextlib.suppress(NotImplementedError):  # raised by an exported module
        module = module.eval()
    return module, bool(packed)
