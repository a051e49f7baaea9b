"""Device that a model is told it runs on; no device that computes is called meta.

    x.device, x.is_cuda, x.get_device()                 asked by a model's code: the device that it is told
    zeros(…, device=x.device), y.to(x.device)           made and kept where activations are in the trace

A pass is told of a GPU first, because most code for a single device is for a GPU. If that pass asks and fails, the next
one is told of a CPU, for which code leaves out kernels that no trace can run. torch's own code gets the true device.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

import torch

from joulemap.trace.host import CPU, META, is_ours

TOLD: Final = ("cuda:0", "cpu:0")
"""Devices that a model is told of, one per pass; the index makes them differ from any device that it names itself."""

_QUESTIONS: Final[dict[Any, str]] = {
    torch.Tensor.device.__get__: "device",
    torch.Tensor.is_cuda.__get__: "is_cuda",  # type: ignore[attr-defined]
    torch.Tensor.is_cpu.__get__: "is_cpu",  # type: ignore[attr-defined]
    torch.Tensor.is_meta.__get__: "is_meta",  # type: ignore[attr-defined]
    torch.Tensor.get_device: "get_device",
}


class Told:
    """Device that a model is told of in one pass."""

    def __init__(self, device: str = TOLD[0]) -> None:
        self.was_asked = False
        self._name = device
        self._device = torch.device(device)
        self._host = torch.device(device)
        """Device of tensors whose values the trace has: equal to `_device`, but another object."""

    def answer(self, func: Any, args: Sequence[Any]) -> Any:
        """Return the answer to a function that asks for the device of a tensor; NotImplemented for any other."""
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
        """Return arguments in which the told device is replaced by the device of the trace."""
        if not self.was_asked or func is torch.device:
            return args, dict(kwargs)
        return [*map(self._place, args)], {name: self._place(value) for name, value in kwargs.items()}

    def _place(self, value: Any) -> Any:
        if value is self._host:
            return CPU
        return META if isinstance(value, torch.device | str) and value in (self._device, self._name) else value
