"""Two ways to build a module: without weights (`meta`), or with them (`real`).

    META ──► REAL, within a limit of memory
     │        └ values: `.item()`, numpy, packed weights of int8 modules, `torch.jit.trace`
     └ tensors of `torch.empty`, and values computed from them, have shapes only; all else is as written

The second way is used if the first fails. Both ways replace an accelerator by the host, so the machine needs none.
`FakeTensorMode` is not a third way: kernels and copies that do not support its tensors write to invalid memory.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Final, Literal, TypeVar

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import _disable_current_modes

from joulemap.system.errors import ModelError
from joulemap.trace.guest import first_line
from joulemap.trace.memory import Meter, allowed_bytes, write_bytes

Made = TypeVar("Made")

Way = Literal["meta", "real"]

NOTES: Final[dict[Way, str]] = {"meta": "", "real": "built with its weights in memory, because without them it fails"}

LARGE: Final = 2**22
"""Maximum elements of a tensor that keeps its storage when its module is copied."""

MOST_MADE: Final = 2**20
"""Maximum elements of a tensor that is filled with values on META. A larger tensor has none: a forward pass reads no
value of it, though a constructor may.
"""

_MAKERS: Final = frozenset(
    {torch.zeros, torch.ones, torch.full, torch.rand, torch.randn, torch.randint, torch.eye, torch.normal}
)
_FILLS: Final = frozenset(
    getattr(torch.Tensor, f"{name}_")
    for name in ("uniform", "normal", "fill", "zero", "erfinv", "mul", "add", "clamp", "exponential", "random")
)
"""Functions that change only a tensor's values, of which initializers consist."""

_MOVES: Final = frozenset({torch.Tensor.to, torch.Tensor.cuda, torch.Tensor.cpu, torch.Tensor.xpu})
_SET_DATA: Final = torch.Tensor.data.__set__  # type: ignore[attr-defined]
_HOSTS: Final = ("cpu", "meta")

_way: ContextVar[Way] = ContextVar("way", default="meta")
_meter: ContextVar[Meter | None] = ContextVar("meter", default=None)


class _Tensors(TorchFunctionMode):
    """Mode that decides on which device tensors are made while a module is built."""

    def __init__(self, way: Way) -> None:
        super().__init__()
        self._way = way

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        if func == _SET_DATA and args[0].is_meta:  # torch refuses data of another device
            args = (args[0], args[1].to("meta"))
        if func in _MOVES:
            return _move(func, args, kwargs)
        if kwargs.get("device") is not None and _is_accelerator(kwargs["device"]):
            kwargs["device"] = "cpu"
        if self._way == "meta":
            if func in _FILLS and args[0].is_meta and not any(isinstance(value, torch.Tensor) for value in args[1:]):
                return args[0]
            if func is torch.empty:
                kwargs["device"] = "meta"
            elif func in _MAKERS:
                return _make(func, args, kwargs)
        made = func(*args, **kwargs)
        if func is torch.empty and self._way == "real":  # memory that stays unfilled may be slow to compute with
            made.zero_()
        return made


def _make(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Return the tensor that a factory function makes, without storage if it is large."""
    sizes = args[0] if args and isinstance(args[0], tuple | list) else args
    if sizes and all(type(size) is int for size in sizes) and math.prod(sizes) <= MOST_MADE:
        return func(*args, **kwargs)
    try:
        shape = func(*args, **{**kwargs, "device": "meta"})
    except Exception:
        return func(*args, **kwargs)
    is_plain = shape.numel() > MOST_MADE and kwargs.get("out") is None
    return shape if is_plain else func(*args, **kwargs)


def _is_accelerator(device: Any) -> bool:
    return isinstance(device, int) or torch.device(device).type not in _HOSTS


def _move(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Return a tensor converted as the program requests, but never on an accelerator; a tensor on meta stays there."""
    tensor, *rest = args
    if func is not torch.Tensor.to:
        return tensor if tensor.is_meta or tensor.device.type == "cpu" else tensor.to("cpu")
    options = {name: value for name, value in kwargs.items() if name not in ("copy", "non_blocking", "memory_format")}
    try:
        device, dtype, _, layout = torch._C._nn._parse_to(*rest, **options)
    except (TypeError, RuntimeError):
        return func(*args, **kwargs)
    if device is not None and _is_accelerator(device):
        device = torch.device("cpu")
    keep = {name: kwargs[name] for name in ("copy", "memory_format") if kwargs.get(name) is not None}
    if layout is not None:
        keep["memory_format"] = layout
    place = None if tensor.is_meta else device
    wanted = {name: value for name, value in (("device", place), ("dtype", dtype)) if value is not None}
    return tensor.to(**wanted, **keep) if wanted or keep else tensor


@contextlib.contextmanager
def take(way: Way, limit_bytes: float | None = None) -> Iterator[Meter]:
    """Build the modules of this context in one way; without a limit, they may take half of the free memory."""
    meter = Meter(allowed_bytes(limit_bytes))
    tokens = _way.set(way), _meter.set(meter)
    try:
        yield meter
    finally:
        _way.reset(tokens[0])
        _meter.reset(tokens[1])


@contextlib.contextmanager
def _jit_without_modes() -> Iterator[None]:
    """Run `torch.jit.trace` outside dispatch modes in this context, because it identifies weights by object."""
    usual = torch.jit.trace

    def trace(*args: Any, **kwargs: Any) -> Any:
        with _disable_current_modes():
            return usual(*args, **kwargs)  # type: ignore[no-untyped-call]

    torch.jit.trace = trace
    try:
        yield
    finally:
        torch.jit.trace = usual


@contextlib.contextmanager
def building() -> Iterator[None]:
    """Build the modules of this context in the current way: without weights, unless `take` sets another."""
    with _jit_without_modes(), _meter.get() or Meter(math.inf), _Tensors(_way.get()):
        yield


def construct(make: Callable[[], Made], model: str, limit_bytes: float | None) -> tuple[Made, Way]:
    """Return (result of `make`, way used). Weights are allocated only if building without them fails.

    Raises ModelError if both ways fail, with the message of the second, or if the model needs more memory than allowed.
    """
    if _way.get() == "real":
        return _within(make, model, limit_bytes, ""), "real"
    with take("meta", limit_bytes) as meter:
        try:
            return make(), "meta"
        except ModelError as error:
            if not meter.needed_bytes and not _may_need_values(error):
                raise
            cause = error.__cause__
    why = f"; without weights: {first_line(cause)}" if cause is not None and not meter.needed_bytes else ""
    with take("real", limit_bytes):
        return _within(make, model, limit_bytes, why), "real"


def _within(make: Callable[[], Made], model: str, limit_bytes: float | None, why: str) -> Made:
    """Return the result of `make` with weights. Raise ModelError with the memory needed if it exceeds the limit."""
    meter = _meter.get()
    try:
        return make()
    except ModelError as error:
        if meter is None or not meter.needed_bytes:
            raise
        source = "half of what is free" if limit_bytes is None else "--build-memory"
        more = write_bytes(1.25 * meter.needed_bytes).replace(" ", "")
        raise ModelError(
            f"{model} needs {write_bytes(meter.needed_bytes)} or more to be built, above the limit of "
            f"{write_bytes(meter.limit_bytes)} ({source.removeprefix('--')}){why}; "
            f"JOULEMAP_BUILD_MEMORY={more} would allow that"
        ) from error


def _may_need_values(error: ModelError) -> bool:
    """Return whether a failed build may succeed with real weights: the model's code failed, but not for a missing
    module or name.
    """
    cause = error.__cause__
    if not isinstance(cause, Exception) or isinstance(cause, ImportError | SyntaxError | NameError):
        return False
    return not (isinstance(cause, TypeError | AttributeError) and "NoneType" in str(cause))
