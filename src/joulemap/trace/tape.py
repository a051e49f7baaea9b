"""Interface of the recorder that stand-ins and higher-order operators use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import torch


class Step(Protocol):
    """Recorded operator."""

    name: str
    aten: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    outputs: tuple[torch.Tensor, ...]
    is_view: bool
    module_path: str
    reads: tuple[int, ...]
    score_operations: int


class SeenTensor(Protocol):
    """Recorded tensor."""

    tensor: torch.Tensor
    producer: int | None


class Tape(Protocol):
    """Recorder of operators during a forward pass."""

    has_left_torch: bool

    @property
    def calls(self) -> Sequence[Step]:
        """Operators recorded so far."""

    def __enter__(self) -> Any:
        """Start to record."""

    def __exit__(self, *error: Any) -> None:
        """Stop recording."""

    def add_call(
        self,
        func: Any,
        name: str,
        args: tuple[Any, ...],
        reads: Sequence[torch.Tensor],
        outputs: tuple[torch.Tensor, ...],
    ) -> None:
        """Record a call under another operator name, with these dense tensors as its reads and outputs."""

    def move(self, value: Any) -> Any:
        """Return the meta twin of a tensor with values; any other value unchanged."""

    def stand_for(self, tensor: torch.Tensor, other: torch.Tensor) -> None:
        """Treat `tensor` and `other` as the same memory."""

    def name_of(self, tensor: torch.Tensor) -> str:
        """Return the name of the parameter or buffer that owns a tensor's memory; empty for any other tensor."""

    def note(self, name: str, assumption: str) -> None:
        """Add a note on an assumption about operator `name` in the module that is running."""

    def known(self, tensor: torch.Tensor, name: str) -> torch.Tensor | None:
        """Return the values that the host reads from a tensor without storage; None if they are unknown."""

    def bring_back(self, tensor: torch.Tensor) -> torch.Tensor:
        """Record a tensor made outside torch as a model input, and return its copy without storage."""

    def add_product(self, tensor: torch.Tensor) -> None:
        """Record a tensor that the last call computes besides its outputs, like a sum that a kernel need not write."""

    def on_trial(self) -> AbstractContextManager[Callable[[], Sequence[Step]]]:
        """Record the calls of this context and discard them afterwards. The yielded function returns the calls recorded
        so far.
        """
