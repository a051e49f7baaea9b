"""Values that a model's code reads during a forward pass on meta: devices, its input numbers, and results."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

import torch
from torch.overrides import TorchFunctionMode

from joulemap.trace.host import CPU, META, is_asked_by_nested, is_ours
from joulemap.trace.record import Recorder

REPORTED: Final = ("cuda:0", "cpu:0")
"""Devices reported to a model, one per pass; the index distinguishes them from devices that the model names itself."""

_QUESTIONS: Final[dict[Any, str]] = {
    torch.Tensor.device.__get__: "device",
    torch.Tensor.is_cuda.__get__: "is_cuda",  # type: ignore[attr-defined]
    torch.Tensor.is_cpu.__get__: "is_cpu",  # type: ignore[attr-defined]
    torch.Tensor.is_meta.__get__: "is_meta",  # type: ignore[attr-defined]
    torch.Tensor.get_device: "get_device",
}


class ReportedDevice:
    """Device that is reported to a model in one pass, because models have no code for `meta`.

        x.device, x.is_cuda, x.get_device()             a model's code reads: the reported device
        zeros(…, device=x.device), y.to(x.device)       made and kept where activations are in the trace

    The first pass reports a GPU, because most device-specific code is for GPUs. If code asks for the device and the
    pass fails, the next pass reports a CPU, for which code avoids kernels that cannot be traced. torch's own code gets
    the true device.
    """

    def __init__(self, device: str = REPORTED[0]) -> None:
        self.was_asked = False
        self._name = device
        self._device = torch.device(device)
        self._host = torch.device(device)
        """Device of tensors whose values the trace has: equal to `_device`, but another object."""

    def answer(self, func: Any, args: Sequence[Any]) -> Any:
        """Return the reported device or device property that a function asks for; NotImplemented for any other
        function.
        """
        question = _QUESTIONS.get(func)
        if question is None or is_ours(sys._getframe(2)):
            return NotImplemented
        self.was_asked = True
        if question == "device":
            with torch._C.DisableTorchFunction():
                return self._device if args[0].is_meta else self._host
        kind = self._device.type
        if question == "get_device":
            return 0 if kind == "cuda" else -1
        return question == f"is_{kind}"

    def place(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Sequence[Any], dict[str, Any]]:
        """Return arguments with the reported device replaced by the device of the trace."""
        if not self.was_asked or func is torch.device:
            return args, dict(kwargs)
        return [*map(self._place, args)], {name: self._place(value) for name, value in kwargs.items()}

    def _place(self, value: Any) -> Any:
        if value is self._host:
            return CPU
        return META if isinstance(value, torch.device | str) and value in (self._device, self._name) else value


_MAKERS: Final = (torch.tensor, torch.as_tensor, torch.asarray)
_TOLIST: Final = torch.Tensor.tolist
_ASSIGN: Final = torch.Tensor.__setitem__


class HostValues(TorchFunctionMode):
    """Mode that keeps the values of tensors made from Python numbers, although the tensors move to the activations'
    device.

    When a model reads a list from an input, the recorder is told, because later tensors may depend on the list.
    """

    def __init__(self, recorder: Recorder, reported: ReportedDevice | None = None) -> None:
        super().__init__()
        self.recorder = recorder
        self.reported = reported or ReportedDevice()

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        answer = self.reported.answer(func, args)
        if answer is not NotImplemented:
            return answer
        args, kwargs = self.reported.place(func, args, kwargs or {})
        if (
            func in (*_MAKERS, torch.tensor, torch.as_tensor, torch.asarray)
            and _is_meta(kwargs.get("device"))
            and not is_asked_by_nested()
            and not isinstance(args[0] if args else None, torch.Tensor)
        ):
            kwargs["device"] = "cpu"
        elif func is torch.Tensor.new_tensor and args[0].is_meta and len(args) > 1:
            kwargs = {"dtype": args[0].dtype, **kwargs, "device": "cpu"}
            if not isinstance(args[1], torch.Tensor):
                return torch.tensor(*args[1:], **kwargs)
        elif func is _ASSIGN and args[0].is_meta and isinstance(args[2], bool | int | float | complex):
            # PyTorch keeps the number on the host for a GPU, which runs `fill_`. For meta, 2.14 makes a tensor of it
            # and traces a copy that no GPU runs. Source: torch/csrc/autograd/python_variable_indexing.cpp.
            args = (*args[:2], torch.tensor(args[2], dtype=args[0].dtype, device="cpu"))
        elif func in (_TOLIST, torch.Tensor.tolist):
            self.recorder.read(args[0])
        return func(*args, **kwargs)


def _is_meta(device: Any) -> bool:
    return device is not None and torch.device(device).type == "meta"
