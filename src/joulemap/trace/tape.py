"""The part of the record that stand-ins and higher-order operators see and write into."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import torch


class Step(Protocol):
    """An operator that was recorded."""

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
    """A tensor of the record."""

    tensor: torch.Tensor
    producer: int | None


class Tape(Protocol):
    """A record of operators that is being written."""

    has_left_torch: bool

    @property
    def calls(self) -> Sequence[Step]:
        """What was recorded so far."""

    def __enter__(self) -> Any:
        """Have what runs inside be recorded."""

    def __exit__(self, *error: Any) -> None:
        """Record no longer."""

    def add_call(
        self,
        func: Any,
        name: str,
        args: tuple[Any, ...],
        reads: Sequence[torch.Tensor],
        outputs: tuple[torch.Tensor, ...],
    ) -> None:
        """Record an operator as one of another name, which reads and gives dense tensors."""

    def move(self, value: Any) -> Any:
        """Return the twin without storage of a tensor with values; any other as it is."""

    def stand_for(self, tensor: torch.Tensor, other: torch.Tensor) -> None:
        """Take the memory of a tensor for that of another."""

    def name_of(self, tensor: torch.Tensor) -> str:
        """Return what a module calls the parameter or buffer whose memory a tensor has; empty for any other."""

    def note(self, name: str, assumption: str) -> None:
        """Tell an assumption about an operator of the module that runs now."""

    def known(self, tensor: torch.Tensor, name: str) -> torch.Tensor | None:
        """Return the values of a tensor without storage that the host asks for, None where they are not known."""

    def bring_back(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return an input without values in the place of a tensor that was made outside of torch."""

    def add_product(self, tensor: torch.Tensor) -> None:
        """Declare what the last operator gives besides its outputs, and need not write."""

    def on_trial(self) -> AbstractContextManager[Callable[[], Sequence[Step]]]:
        """Record what runs inside as if it had not run; what is given returns its operators so far."""
