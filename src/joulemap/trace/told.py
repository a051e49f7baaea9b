"""The device that a model is told it runs on: none that computes is called meta.

    x.device, x.is_cuda, x.get_device()                 asked by a model's code: the device that it is told
    zeros(…, device=x.device), y.to(x.device)           made, and stay, where activations are in the trace

A pass is told of a GPU first, as most code for one device alone is for that one, and of a CPU where it fails on that
and has asked: kernels that no trace can run are left out there. torch's own code is told the truth.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

import torch

from joulemap.trace.host import CPU, META, is_ours

TOLD: Final = ("cuda:0", "cpu:0")
"""Devices that a model is told of, one pass after the other; with an index, so that they are none that it names."""

_QUESTIONS: Final[dict[Any, str]] = {
    torch.Tensor.device.__get__: "device",
    torch.Tensor.is_cuda.__get__: "is_cuda",  # type: ignore[attr-defined]
    torch.Tensor.is_cpu.__get__: "is_cpu",  # type: ignore[attr-defined]
    torch.Tensor.is_meta.__get__: "is_meta",  # type: ignore[attr-defined]
    torch.Tensor.get_device: "get_device",
}


class Told:
    """What a model is told of the device in one pass."""

    def __init__(self, device: str = TOLD[0]) -> None:
        self.was_asked = False
        self._name = device
        self._device = torch.device(device)
        self._host = torch.device(device)
        """Equal to that, and another object: that of tensors whose values the trace has."""

    def answer(self, func: Any, args: Sequence[Any]) -> Any:
        """Return what a function that asks for the device of a tensor is told; NotImplemented for any other."""
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
        """Return arguments with the device that the model was told of as the one that a tensor has in the trace."""
        if not self.was_asked or func is torch.device:
            return args, dict(kwargs)
        return [*map(self._place, args)], {name: self._place(value) for name, value in kwargs.items()}

    def _place(self, value: Any) -> Any:
        if value is self._host:
            return CPU
        return META if isinstance(value, torch.device | str) and value in (self._device, self._name) else value
