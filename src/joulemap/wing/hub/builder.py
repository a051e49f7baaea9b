"""Modules of the models that this wing names, and of its networks in the catalogue. Imports torch on demand."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Final

from joulemap.construct import ModelRequest
from joulemap.construct.builder import MadeModule, ModelBuilder
from joulemap.construct.source import read_arguments
from joulemap.domain import ModelEntry
from joulemap.wing.hub.name import HUBS


class HubBuilder(ModelBuilder):
    """Builder of models of timm and transformers, of published models, and of networks that this wing defines."""

    def builds(self, request: ModelRequest) -> bool:
        """Return True for a model with a prefix of this wing, and for its networks."""
        from joulemap.wing.hub.network import NETWORKS
        from joulemap.wing.hub.published import load_published

        if request.kind == "block":
            return request.model in NETWORKS or request.model in load_published()
        return request.kind in HUBS

    def make(self, request: ModelRequest) -> MadeModule:
        """Return the module of a request; raises ModelError, UnknownNameError or UsageError."""
        from joulemap.wing.hub import timm, transformers
        from joulemap.wing.hub.guess import describe_inputs
        from joulemap.wing.hub.network import NETWORKS
        from joulemap.wing.hub.published import build_published

        if request.kind == "timm":
            module, own = timm.build_timm(request, read_arguments(request))
            return MadeModule(module=module, own=own)
        if request.kind == "hf":
            module, guesses, notes = transformers.build_transformers(request)
            return MadeModule(
                module=module,
                guesses=guesses,
                describe=lambda given: describe_inputs(module, given),
                notes=notes,
                is_sized=guesses is not None,
            )
        if request.model in NETWORKS:
            module, own = NETWORKS[request.model](request.model, read_arguments(request))
            return MadeModule(module=module, own=own)
        module, guesses, notes = build_published(request)
        return MadeModule(module=module, guesses=guesses, notes=notes, is_sized=True)

    def surround(self, request: ModelRequest) -> contextlib.AbstractContextManager[None]:
        """Return a context without network access, because nothing is downloaded."""
        from joulemap.wing.hub.offline import offline

        del request
        return offline()

    def list_models(self) -> Sequence[ModelEntry]:
        """Return the networks of this wing and the published models."""
        from joulemap.wing.hub.network import list_networks
        from joulemap.wing.hub.published import list_published

        return (*list_networks(), *list_published())


BUILDER: Final = HubBuilder()
