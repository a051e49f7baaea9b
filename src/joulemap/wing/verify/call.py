"""Timing of a module's calls in this process, module by module.

    call of the model ─► the forward of each module in it is timed as the program runs it
    own time of a module = its time - time of the modules that it calls; own times add up to the call
    backward of a module = time of the autograd nodes that its forward created, matched by sequence number

A wrapper replaces the `forward` of each module during recording. A forward hook would change the timed program: torch's
transformer layers leave their fast path when a hook is registered. A compiled module is timed as a whole, because a
wrapper inside it would cause a recompilation. Modules that are compiled, exported, captured in a CUDA graph or pickled
during recording bypass the wrapper.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from threading import get_ident
from typing import Any, Final

import attrs
import torch
from torch._C._autograd import _get_sequence_nr
from torch.nn.parameter import is_lazy
from torch.utils._pytree import tree_leaves

from joulemap.domain.settings import Device
from joulemap.system import UsageError, define, frozen
from joulemap.trace.argument import has_values, replace_tensors, tensors_in
from joulemap.trace.tensor import dtype_name

MOST_KEPT: Final = 200
"""Maximum calls per input signature that are timed by module; later calls are only counted."""

COMPILED: Final = "_compiled_call_impl"
"""Attribute in which `module.compile()` stores the compiled call."""

WRAPPED: Final = "_orig_mod"
"""Attribute in which `torch.compile(module)` stores the original module."""


@frozen(kw_only=True)
class TimedCall:
    """One timed call of the model."""

    kind: Hashable
    """Input signature; equal for calls with the same tensor shapes and dtypes, scalar and string arguments, mode and
    precision."""
    own_s: Mapping[str, float]
    """Module path -> seconds in the module, without the modules that it calls."""
    counts: Mapping[str, int]
    """Module path -> number of calls of the module."""
    backward_s: Mapping[str, float]
    """Module path -> seconds of the backward pass for the module's own operators; empty if no backward pass ran."""

    @property
    def latency_s(self) -> float:
        """Latency of the whole call."""
        return sum(self.own_s.values())


@frozen(kw_only=True)
class CallKind:
    """Inputs and state that all calls with one input signature have in common."""

    args: tuple[Any, ...]
    """Positional arguments of the first call; large tensors are stored without values."""
    keywords: Mapping[str, Any]
    """Keyword arguments of the first call, stored like `args`."""
    precision: str
    """Precision of GEMMs, such as `bf16`."""
    is_training: bool
    """True if the model was in training mode with gradients enabled."""


@define
class _Span:
    """Time span of a module call, as two timestamps of the device's clock."""

    path: str
    began: Any = None
    ended: Any = None
    inner: list[_Span] = attrs.field(factory=list)
    first: int = 0
    """Sequence number of the first autograd node that may belong to the call."""
    behind: int = 0
    """Sequence number that follows the last autograd node of the call."""
    gradients: list[_Span] = attrs.field(factory=list)
    """Spans of the backward nodes; filled only in the span of the whole model."""

    def find(self, number: int) -> str | None:
        """Return the path of the innermost module whose call created the autograd node `number`; None for a node of
        another call.
        """
        if not self.first <= number < self.behind:
            return None
        return next(filter(None, (one.find(number) for one in self.inner)), self.path)


class _Timed:
    """Replacement of a module's function that times its calls and otherwise acts like the function.

    Copies and pickles of the module hold the original function.
    """

    __wrapped__: Callable[..., Any]

    def __init__(self, function: Callable[..., Any], call: Callable[..., Any], before: Any) -> None:
        functools.update_wrapper(self, function)
        self._call = call
        self.before = before
        self.is_over = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        is_captured = torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()
        if self.is_over or torch.compiler.is_compiling() or is_captured:
            return self.__wrapped__(*args, **kwargs)
        return self._call(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__wrapped__, name)

    def __reduce__(self) -> Any:
        if inspect.ismethod(self.__wrapped__):
            return self.__wrapped__.__reduce__()
        return functools.partial, (self.__wrapped__,)


def _remove(own: dict[str, Any], name: str, timed: _Timed) -> None:
    """Restore the function that a wrapper replaced.

    If other code has wrapped the wrapper since, the wrapper stays in place but stops timing.
    """
    timed.is_over = True
    if own.get(name) is not timed:
        return
    before: Any = timed
    while isinstance(before, _Timed) and before.is_over:
        before = before.before
    del own[name]
    if before is not None:
        own[name] = before


class CallRecorder:
    """Recorder that times the calls of a model, module by module."""

    def __init__(self, module: torch.nn.Module) -> None:
        self.is_compiled = _is_compiled(module)
        self.kinds: dict[Hashable, CallKind] = {}
        self.counts: Counter[Hashable] = Counter()
        """Input signature -> number of completed calls."""
        self.window_s = 0.0
        """Duration of the recording."""
        self._model = module
        self._spans: list[tuple[Hashable, _Span]] = []
        self._open: dict[int, list[_Span]] = defaultdict(list)
        weights = [*module.parameters(), *module.buffers()]
        self._place = next((one.device for one in weights if one.is_cuda), None)
        self.device: Device = "cuda" if self._place else "cpu"
        self._precision = _find_common(weights)

    @property
    def paths(self) -> tuple[str, ...]:
        """Paths of all modules, in the order in which the model lists them."""
        return tuple(path for path, _ in getattr(self._model, WRAPPED, self._model).named_modules())

    @contextlib.contextmanager
    def record(self) -> Iterator[None]:
        """Time all calls until the context ends, then restore the modules."""
        placed: list[tuple[dict[str, Any], str, _Timed]] = []
        began = time.perf_counter()
        try:
            for path, module in _list_modules(self._model, "", set()):
                name = COMPILED if getattr(module, COMPILED, None) is not None else "forward"
                own, function = vars(module), getattr(module, name)
                timed = _Timed(function, self._time(function, path, is_model=module is self._model), own.get(name))
                placed.append((own, name, timed))
                own[name] = timed
            yield
        finally:
            for own, name, timed in placed:
                _remove(own, name, timed)
            if self.device == "cuda":
                torch.cuda.synchronize(self._place)
            self.window_s = time.perf_counter() - began

    def list_calls(self) -> tuple[TimedCall, ...]:
        """Return the recorded calls in call order."""
        return tuple(self._sum_up(kind, span) for kind, span in self._spans)

    def _time(self, function: Callable[..., Any], path: str, *, is_model: bool) -> Callable[..., Any]:
        def timed(*args: Any, **kwargs: Any) -> Any:
            open_spans = self._open[get_ident()]
            if not open_spans and not is_model:
                return function(*args, **kwargs)
            kind = None if open_spans else self._find_kind(args, kwargs)
            span = _Span(path, first=_get_sequence_nr())
            if open_spans:
                open_spans[-1].inner.append(span)
            open_spans.append(span)
            span.began = self._stamp()
            try:
                result = function(*args, **kwargs)
                span.behind = _get_sequence_nr()
                if kind is not None:
                    self.counts[kind] += 1
                    if self.counts[kind] <= MOST_KEPT:
                        self._spans.append((kind, span))
                        self._follow(span, result)
                return result
            finally:
                span.ended = self._stamp()
                open_spans.pop()

        return timed

    def _follow(self, span: _Span, result: Any) -> None:
        """Register timing hooks on each autograd node that a call of the model created."""
        waiting, met = [one.grad_fn for one in tensors_in(result)], set[Any]()
        while waiting:
            node = waiting.pop()
            path = None if node is None or node in met else span.find(node._sequence_nr())
            if node is None or path is None:
                continue
            met.add(node)
            waiting += [one for one, _ in node.next_functions]
            self._time_node(node, path, span.gradients)

    def _time_node(self, node: torch.autograd.graph.Node, path: str, spans: list[_Span]) -> None:
        begun: list[Any] = []

        def begin(_upstream: Any) -> None:
            begun.append(self._stamp())

        def end(_gradients: Any, _upstream: Any) -> None:
            if begun:
                spans.append(_Span(path, began=begun.pop(), ended=self._stamp()))

        node.register_prehook(begin)
        node.register_hook(end)

    def _find_kind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Hashable:
        """Return the input signature of a call. The first call with a signature is kept as its example."""
        tensors = tensors_in((args, kwargs))
        precision = self._precision or _find_common(tensors) or "fp32"
        if torch.is_autocast_enabled(self.device):
            precision = dtype_name(torch.get_autocast_dtype(self.device))
        is_training = self._model.training and torch.is_grad_enabled()
        shapes = tuple((tuple(one.shape), one.dtype) for one in tensors)
        plain = tuple(leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, int | float | str))
        kind = (shapes, plain, precision, is_training)
        if kind not in self.kinds:
            kept, named = replace_tensors((args, kwargs), _keep)
            self.kinds[kind] = CallKind(args=kept, keywords=named, precision=precision, is_training=is_training)
        return kind

    def _stamp(self) -> Any:
        if self.device == "cpu":
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record(torch.cuda.current_stream(self._place))  # the model's device need not be the current one
        return event

    def _sum_up(self, kind: Hashable, span: _Span) -> TimedCall:
        own: dict[str, float] = defaultdict(float)
        counts: Counter[str] = Counter()
        waiting = [span]
        while waiting:
            one = waiting.pop()
            own[one.path] += self._between(one) - sum(map(self._between, one.inner))
            counts[one.path] += 1
            waiting += one.inner
        backward: dict[str, float] = defaultdict(float)
        for one in span.gradients:
            backward[one.path] += self._between(one)
        return TimedCall(kind=kind, own_s=dict(own), counts=counts, backward_s=dict(backward))

    def _between(self, span: _Span) -> float:
        """Return the duration of a span in seconds."""
        if self.device == "cpu":
            return float(span.ended - span.began)
        return float(span.began.elapsed_time(span.ended)) * 1e-3


def check_watched(module: object) -> torch.nn.Module:
    """Return `module` if it is a torch module; raise UsageError otherwise."""
    if not isinstance(module, torch.nn.Module):
        what = module.__name__ if isinstance(module, type) else type(module).__name__
        raise UsageError(f"watch takes an nn.Module, found a {what}")
    return module


def _is_compiled(module: torch.nn.Module) -> bool:
    return hasattr(module, WRAPPED) or getattr(module, COMPILED, None) is not None


def _list_modules(module: torch.nn.Module, path: str, met: set[int]) -> Iterator[tuple[str, torch.nn.Module]]:
    """Yield each module once, under its first path; modules inside a compiled module are omitted."""
    met.add(id(module))
    yield path, module
    if not _is_compiled(module):
        for name, child in module.named_children():
            if id(child) not in met:
                yield from _list_modules(child, f"{path}.{name}" if path else name, met)


def _keep(tensor: torch.Tensor) -> torch.Tensor:
    """Return the copy of a tensor that is kept in an example: with values if a trace needs them, else on the meta
    device.
    """
    if has_values(tensor):
        return tensor.detach().clone()
    return torch.empty_like(tensor, device="meta", requires_grad=False) if tensor.layout == torch.strided else tensor


def bind(module: torch.nn.Module, kind: CallKind) -> tuple[Any, ...] | dict[str, Any]:
    """Return the example arguments of a call, either all as a tuple or all as keywords; UsageError if neither is
    possible.
    """
    args, kwargs = kind.args, kind.keywords
    if not kwargs or not args:
        return dict(kwargs) if kwargs else tuple(args)
    bound = inspect.signature(getattr(module, WRAPPED, module).forward).bind(*args, **kwargs)
    if not bound.kwargs:
        return bound.args
    taken = bound.signature.parameters.values()
    if any(one.kind in (one.VAR_POSITIONAL, one.POSITIONAL_ONLY) and one.name in bound.arguments for one in taken):
        raise UsageError(
            f"{type(module).__name__} is called with positional and keyword arguments: pass all by keyword"
        )
    named = dict(bound.arguments)
    more = next((one.name for one in taken if one.kind is one.VAR_KEYWORD), "")
    return {**named, **named.pop(more, {})}


def _find_common(tensors: Sequence[torch.Tensor]) -> str:
    """Return the dtype with the most floating-point elements in these tensors; empty if there are none."""
    counts: Counter[torch.dtype] = Counter()
    for one in tensors:
        if not is_lazy(one) and one.is_floating_point():
            counts[one.dtype] += one.numel()
    return dtype_name(counts.most_common(1)[0][0]) if counts else ""
