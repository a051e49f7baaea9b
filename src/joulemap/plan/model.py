"""Requested model: its request, and the sources of its workload."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Protocol

import attrs

from joulemap.catalog.digest import ZOO
from joulemap.catalog.sheet import load_shipped
from joulemap.construct.source import ModelRequest
from joulemap.store.workload import SHIPPED
from joulemap.system.record import frozen
from joulemap.system.resource import remember
from joulemap.trace.version import recorder_version, workload_version

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from joulemap.domain.catalogue import ShippedWorkload
    from joulemap.physics.record.workload import Workload
    from joulemap.plan.source import Talk
    from joulemap.plan.target import Modifier


@cache
def find_outdated() -> frozenset[str]:
    """Return the built-in models whose workloads were traced by other rules, or with other formulas of an operator that
    they contain.
    """
    return frozenset(remember("outdated workloads", lambda: {"models": _list_outdated()})["models"])


def _list_outdated() -> list[str]:
    """Return the models that `find_outdated` caches."""
    from joulemap.store.zoo import read_operators  # numpy, which a cached answer does without

    shipped, recorder = load_shipped(), recorder_version()
    if not any(entry.tracer_version.startswith(f"{recorder}-") for entry in shipped.values()):
        return sorted(shipped)
    operators = read_operators(ZOO)
    return sorted(
        name
        for name, entry in shipped.items()
        if name not in operators or entry.tracer_version != workload_version(operators[name])
    )


class Describer(Protocol):
    """Interface for workloads that are determined by their names."""

    def describe(self, model: Model, talk: Talk) -> Workload:
        """Return the workload of a model; UsageError for a workload that is too large."""
        ...


@frozen(kw_only=True)
class Model:
    """Model at one batch, with the sources of its workload."""

    request: ModelRequest
    retrace: bool
    """True to trace with the installed torch even where the package ships the workload."""
    may_run: bool = True
    """True if the code of a file may run, so that the model can be traced."""
    traced: Workload | None = attrs.field(default=None, eq=False, repr=False)
    """Workload that is already traced, such as the workload of a PyTorch module in this program; None otherwise."""
    base: Model | None = None
    """Model whose workload this model's is derived from, as for a training step; None otherwise."""
    dimensions: Mapping[str, str] = attrs.field(factory=dict, eq=False)
    """Dimension that a wing declares -> value for this model; defaults are omitted."""
    modifiers: Callable[[Mapping[str, str]], tuple[Modifier, ...]] | None = attrs.field(
        default=None, eq=False, repr=False
    )
    """Function of a point, dimension of the run such as the precision -> value, to the changes of a chip for runs of
    this model, such as those of the engine that a pass names; None for a model that changes no chip.
    """
    names: Describer | None = attrs.field(default=None, eq=False, repr=False)
    """Wing that describes the model's workload; None for a model of the core."""

    @property
    def shipped(self) -> ShippedWorkload | None:
        """Shipped entry of exactly this workload; None if there is none or `retrace` is set."""
        entry = load_shipped().get(self.request.model)
        if self.retrace or not self.request.is_default or entry is None or entry.model in find_outdated():
            return None
        return entry if entry.ships(self.request.batch) else None

    @property
    def is_traced(self) -> bool:
        """True if an unstored workload needs a trace: it is neither shipped nor determined by its name."""
        if self.base is not None:
            return self.base.is_traced
        return not self.request.is_closed and self.shipped is None

    @property
    def workload_keys(self) -> tuple[str, ...]:
        """Possible keys of the model's stored workload, preferred first: traced here, then shipped."""
        own, entry = self.request.key, self.shipped
        if entry is None:
            return (own.digest,)
        theirs = attrs.evolve(
            self.request.make_key(formulas=""),
            torch_version=entry.torch_version,
            torchvision_version=entry.torchvision_version,
            tracer_version=entry.tracer_version,
        )
        return own.digest, f"{SHIPPED}{theirs.digest}"
