"""Values that a forward pass on meta reads on the host: its input numbers and results read back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import torch
from torch.overrides import TorchFunctionMode

from joulemap.trace.host import is_asked_by_nested
from joulemap.trace.record import Recorder
from joulemap.trace.told import Told

_MAKERS: Final = (torch.tensor, torch.as_tensor, torch.asarray)
_TOLIST: Final = torch.Tensor.tolist
_ASSIGN: Final = torch.Tensor.__setitem__


class HostValues(TorchFunctionMode):
    """Mode that keeps the values of tensors made from Python numbers, although they are moved to the
    activations' device.

    A list that is read from an input is reported to the recorder, because later tensors may depend on it.
    """

    def __init__(self, recorder: Recorder, told: Told | None = None) -> None:
        super().__init__()
        self.recorder = recorder
        self.told = told or Told()

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        answer = self.told.answer(func, args)
        if answer is not NotImplemented:
            return answer
        args, kwargs = self.told.place(func, args, kwargs or {})
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
