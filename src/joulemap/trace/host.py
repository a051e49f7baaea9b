"""Forward pass as if it ran on one device: no transfers, and a note on each value that leaves torch.

x.to("cpu"), x.cuda(), torch.zeros(…, device="cuda")    no transfer: the device is that of the trace
x.tolist(), f"{x:.3f}"                                  zeros of the same shape
x.numpy()                                               an array of zeros; a tensor made from numpy is an input
torch.compile(f)                                        f
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, Final
from unittest.mock import patch

import torch

from joulemap.system.errors import ModelError
from joulemap.trace.inference import some_number
from joulemap.trace.tape import Tape

_NESTED: Final = str(Path(torch.nested.__file__).parent)
"""Folder of `torch.nested`, whose code reads the values of offsets."""

_OURS: Final = (str(Path(torch.__file__).parent), str(Path(__file__).parents[1]))
"""Folders whose code is not part of a model: those of torch and of this package."""

MOST: Final = 2**27
"""Maximum elements of a tensor that a model may convert to Python or numpy; the converted values are zeros."""

LIST_NOTE: Final = "numbers read from data are assumed to be 0, 1.0 or False"
ARRAY_NOTE: Final = "an array is assumed to hold zeros; what numpy computes is not counted"

CAPABILITY: Final = (9, 0)
"""CUDA compute capability reported to a model, regardless of this machine. It is one that all of torch's own kernels
support.
"""

Wrapped = Callable[..., Any]


class _Generator(torch.Generator):
    """Random number generator on the trace's device, whatever device the model requests."""

    def __new__(cls, *_device: Any, **_named: Any) -> _Generator:
        return super().__new__(cls)


META: Final = torch.device("meta")
CPU: Final = torch.device("cpu")


@contextlib.contextmanager
def on_one_device(tape: Tape) -> Iterator[None]:
    """Give stand-ins to a model that reads data of tensors without storage, and hide all devices except the trace's."""
    with META:
        torch.empty(0)  # torch lists its tensor factories when a device is first used, so before they are replaced
    before = torch._C._only_lift_cpu_tensors()
    torch._C._set_only_lift_cpu_tensors(True)
    try:
        with contextlib.ExitStack() as stack:
            for place, name, replacement in _replacements(tape):
                stack.enter_context(patch.object(place, name, replacement))
            if "torch._dynamo" in sys.modules:
                stack.enter_context(torch.compiler.set_stance("force_eager"))
            if "torch.nn.attention.flex_attention" in sys.modules:
                from joulemap.trace.branch import flex_attention_on_meta

                stack.enter_context(flex_attention_on_meta())
            yield
    finally:
        torch._C._set_only_lift_cpu_tensors(before)


def stay(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of an operator with every device replaced by the trace's.

    The device is meta if the first tensor argument has no storage, and the CPU otherwise, whatever the model requests.
    """
    named = kwargs.get("device")
    if named is None and not any(isinstance(one, torch.device) for one in args):
        return args, kwargs
    first = next((one for one in args if isinstance(one, torch.Tensor)), None)
    here = META if first is not None and first.is_meta else CPU

    def move(value: Any) -> Any:
        return here if isinstance(value, torch.device) and value.type != "meta" else value

    return tuple(map(move, args)), {name: move(value) for name, value in kwargs.items()}


def is_ours(frame: FrameType) -> bool:
    """Return whether a frame runs code of torch or of this package rather than the model's code."""
    return frame.f_code.co_filename.startswith(_OURS)


def is_asked_by_nested() -> bool:
    """Return whether torch's code for nested tensors is making a tensor."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_ours(frame):
        if frame.f_code.co_filename.startswith(_NESTED):
            return True
        frame = frame.f_back
    return False


def _replacements(tape: Tape) -> Iterator[tuple[Any, str, Wrapped]]:
    tensor = torch.Tensor
    tolist: Wrapped = tensor.tolist
    numpy: Wrapped = tensor.numpy
    array: Wrapped = tensor.__array__
    text: Wrapped = tensor.__format__

    def give_list(self: torch.Tensor) -> Any:
        if not self.is_meta:
            return tolist(self)
        if (known := tape.known(self, "tolist")) is not None:
            return tolist(known)
        _check_size(self, "tolist()")
        tape.note("tolist", LIST_NOTE)
        return tolist(torch.full(self.shape, some_number(self), dtype=self.dtype, device="cpu"))

    def give_array(self: torch.Tensor, **named: Any) -> Any:
        if not self.is_meta:
            return numpy(self, **named)
        if (known := tape.known(self, "numpy")) is not None:
            return numpy(known)
        _check_size(self, "numpy()")
        tape.note("numpy", ARRAY_NOTE)
        tape.has_left_torch = True
        return numpy(torch.zeros(self.shape, dtype=self.dtype, device="cpu"))

    def give_as_array(self: torch.Tensor, *args: Any, **named: Any) -> Any:
        if not self.is_meta:
            return array(self, *args, **named)
        given = give_array(self)
        return given.astype(args[0], copy=False) if args and args[0] is not None else given

    def give_text(self: torch.Tensor, form: str) -> str:
        if not self.is_meta or self.dim():
            return str(text(self, form))
        if (known := tape.known(self, "format")) is not None:
            return str(text(known, form))
        return format(some_number(self), form) if form else str(text(self, form))

    def come_back(usual: Wrapped) -> Wrapped:
        def make(data: Any, *args: Any, **named: Any) -> Any:
            made = usual(data, *args, **named)
            is_array = type(data).__module__ == "numpy"
            return tape.bring_back(made) if tape.has_left_torch and is_array else made

        return make

    yield tensor, "tolist", give_list
    yield tensor, "numpy", give_array
    yield tensor, "__array__", give_as_array
    yield tensor, "__format__", give_text
    for name in ("from_numpy", "as_tensor", "asarray", "tensor"):
        yield torch, name, come_back(getattr(torch, name))
    yield torch, "compile", _as_it_is
    yield torch, "Generator", _Generator
    yield torch, "set_autocast_enabled", _do_nothing  # a run has its own precision
    yield torch.cuda, "get_device_capability", lambda *_: CAPABILITY
    if not torch.cuda.is_available():
        for name in ("_lazy_init", "synchronize", "empty_cache", "set_device"):
            yield torch.cuda, name, _do_nothing
        for name in ("current_device", "_exchange_device", "_maybe_exchange_device"):
            yield torch.cuda, name, lambda *_: 0


def _check_size(tensor: torch.Tensor, call: str) -> None:
    if tensor.numel() > MOST:
        raise ModelError(
            f"{call} of {'x'.join(map(str, tensor.shape))} numbers in the forward pass: arithmetic outside of torch is "
            "not counted, compute with torch there"
        )


def _as_it_is(model: Any = None, **_options: Any) -> Any:
    return model if model is not None else lambda function: function


def _do_nothing(*_args: Any, **_named: Any) -> None:
    return None
