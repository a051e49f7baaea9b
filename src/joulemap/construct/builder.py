"""Modules that wings build for the models that they name. Imports no torch."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.construct.source import KINDS, ModelRequest
from joulemap.domain.catalogue import ModelEntry
from joulemap.system.errors import ModelError
from joulemap.system.wing import find_parts

if TYPE_CHECKING:
    import torch

PORT: Final = "builders"
"""Port at which wings register what builds their models."""

Guesses = Generator[tuple[Mapping[str, Any], tuple[str, ...]], ModelError | None, None]
"""Generator of possible keyword arguments of a model, with notes. The caller sends the error that each one caused to
get the next.
"""


@attrs.frozen(kw_only=True)
class MadeModule:
    """Module of a request, with what is known of its inputs."""

    module: torch.nn.Module
    own: Any = None
    """Example inputs that come with the module; None without any."""
    guesses: Guesses | None = None
    """Possible inputs, which contain those of the request; None if they are not guessed."""
    describe: Callable[[Mapping[str, Any]], str] | None = None
    """Function that describes given inputs and those that the module takes. If there is one, further guesses are tried
    after a failed forward pass.
    """
    notes: tuple[str, ...] = ()
    """Differences between the module and the one that was requested."""
    is_sized: bool = False
    """True if the module's own inputs already have the requested sizes."""
    sizes: Mapping[str, tuple[int | None, ...]] = {}
    """Input name -> sizes accepted by an exported program; None for a dynamic dimension."""


class ModelBuilder:
    """Builder of the models of one wing, which registers an instance of a subclass at `builders`."""

    def builds(self, request: ModelRequest) -> bool:
        """Return True if this wing builds the module of a request that the core does not build."""
        raise NotImplementedError(request.model)

    def make(self, request: ModelRequest) -> MadeModule:
        """Return the module of a request; raises ModelError, UnknownNameError or UsageError."""
        raise NotImplementedError(request.model)

    def surround(self, request: ModelRequest) -> contextlib.AbstractContextManager[None]:
        """Return the context in which a model of the wing's own kind is built and run, inside `hosting`."""
        del request
        return contextlib.nullcontext()

    def list_models(self) -> Sequence[ModelEntry]:
        """Return the models that are built for names of the catalogue, for `make models`."""
        return ()


@cache
def list_builders() -> tuple[ModelBuilder, ...]:
    """Return the builders of all wings."""
    return tuple(find_parts(PORT))


def find_builder(request: ModelRequest) -> ModelBuilder:
    """Return the wing's builder of a request; ModelError if no installed wing builds it."""
    found = next((one for one in list_builders() if one.builds(request)), None)
    if found is None:
        raise ModelError(f"{request.model} is built by a wing that is not installed")
    return found


def surrounding(request: ModelRequest) -> contextlib.AbstractContextManager[None]:
    """Return the context in which the model of a request is built and run, inside `hosting`."""
    return contextlib.nullcontext() if request.kind in KINDS else find_builder(request).surround(request)
