"""Interface of the recorder for stand-ins and higher-order operators."""

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
    """Record of operators that is being written."""

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
        """Record an operator under another name, which reads and returns dense tensors."""

    def move(self, value: Any) -> Any:
        """Return the twin without storage of a tensor with values; any other value unchanged."""

    def stand_for(self, tensor: torch.Tensor, other: torch.Tensor) -> None:
        """Treat `tensor` and `other` as the same memory."""

    def name_of(self, tensor: torch.Tensor) -> str:
        """Return the name of the parameter or buffer whose memory a tensor has; empty for any other tensor."""

    def note(self, name: str, assumption: str) -> None:
        """Note an assumption about an operator of the module that is running."""

    def known(self, tensor: torch.Tensor, name: str) -> torch.Tensor | None:
        """Return the values that the host reads from a tensor without storage; None if they are unknown."""

    def bring_back(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return an input without values in place of a tensor that was made outside torch."""

    def add_product(self, tensor: torch.Tensor) -> None:
        """Declare a result that the last operator computes but need not write."""

    def on_trial(self) -> AbstractContextManager[Callable[[], Sequence[Step]]]:
        """Record the operators of the enclosed code, then discard them; the yielded function returns those so far."""
