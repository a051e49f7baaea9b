"""A model that is asked for: its request, and where its workload may come from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import attrs

from joulemap.catalog.sheet import load_shipped
from joulemap.store.workload import SHIPPED
from joulemap.system.record import frozen
from joulemap.trace.source import OWN_FORMULAS, ModelRequest
from joulemap.trace.version import tracer_version

if TYPE_CHECKING:
    from joulemap.domain.catalogue import ShippedWorkload
    from joulemap.domain.workload import Workload
    from joulemap.plan.source import Talk


class Describer(Protocol):
    """Maker of workloads that follow from names."""

    def describe(self, model: Model, talk: Talk) -> Workload:
        """Return the workload of a model; UsageError for one too large."""
        ...


@frozen(kw_only=True)
class Model:
    """A model at one batch, and where its workload may come from."""

    request: ModelRequest
    retrace: bool
    """Whether to trace with the installed torch even where the package ships the workload."""
    may_run: bool = True
    """Whether a file of code may be run to trace it."""
    traced: Workload | None = attrs.field(default=None, eq=False, repr=False)
    """Of a module of this program, by which it is known."""
    base: Model | None = None
    """Model from whose workload this one's follows, as that of a training step does; None for most."""
    names: Describer | None = attrs.field(default=None, eq=False, repr=False)
    """Names of the wing that describes its workload; None for a model of the core."""

    @property
    def shipped(self) -> ShippedWorkload | None:
        """What ships of exactly this workload, unless it is to be traced anew."""
        entry = load_shipped().get(self.request.model)
        if self.retrace or not self.request.is_default or entry is None or entry.tracer_version != tracer_version():
            return None
        return entry if self.request.batch == 1 or entry.is_affine else None

    @property
    def is_traced(self) -> bool:
        """Whether its workload must be traced where it is not stored: it neither ships nor follows from its name."""
        if self.base is not None:
            return self.base.is_traced
        return not self.request.is_closed and self.shipped is None

    @property
    def workload_keys(self) -> tuple[str, ...]:
        """Keys that its workload may be stored under, the preferred one first: traced here, or shipped."""
        own, entry = self.request.key, self.shipped
        if entry is None:
            return (own.digest,)
        theirs = attrs.evolve(
            own,
            source=own.source.partition(OWN_FORMULAS)[0],
            torch_version=entry.torch_version,
            torchvision_version=entry.torchvision_version,
        )
        return own.digest, f"{SHIPPED}{theirs.digest}"
