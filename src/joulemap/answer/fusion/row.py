"""Rows of what fusing saves: fused, separate, and the difference, which is below 0 where fusing costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from joulemap.answer.run import Amounts
from joulemap.domain.configuration import MERGING
from joulemap.record import frozen

if TYPE_CHECKING:
    from joulemap.answer.scope import Scope


@frozen
class _Saving(Amounts):
    """What a run or a part of it takes fused, and as kernels of their own."""

    kernel_count: int
    separate_kernel_count: int
    separate_energy_fj: int
    separate_energy_j: float
    saved_energy_fj: int
    saved_energy_j: float
    saved_energy_fraction: float | None
    """Of the separate energy."""
    separate_latency_fs: int
    separate_latency_s: float
    saved_latency_fs: int
    saved_latency_s: float
    saved_latency_fraction: float | None
    """Of the separate latency."""
    saved_edp_fraction: float | None
    """Of the run's separate energy-delay product."""
    dram_bytes: float
    separate_dram_bytes: float
    saved_dram_bytes: float
    saved_dram_fraction: float | None
    """Of the separate bytes off chip."""
    moved_bytes: float
    """Crossing kernel boundaries at any level."""
    separate_moved_bytes: float
    saved_moved_bytes: float
    saved_moved_fraction: float | None
    """Of the bytes that cross separately."""
    pass_bytes: float
    """Written and read again by passes that the runtime adds, in no other number of bytes but those off chip."""
    separate_pass_bytes: float
    bias_addition_count: int
    bias_element_count: int


@frozen
class FusionTotal(_Saving):
    """A run as a whole."""

    query: ClassVar[str] = "fusion.total"

    model: str
    hardware: str
    architecture: str
    batch: int
    precision: str
    runtime: str
    separate_runtime: str
    """How the operators run separately: `graph` or `eager`."""
    is_projection: bool
    run_id: int
    separate_run_id: int
    subgraph_count: int
    fused_subgraph_count: int
    """Subgraphs that take fewer kernels fused than separate."""
    operator_count: int
    folded_count: int
    """Operators that depend on no input, which run separately alone."""
    passed_count: int
    """Subgraphs whose fused kernel has a pass that the runtime adds."""
    biased_count: int
    """Convolutions and linear layers that add a bias as part of themselves."""
    clock_fraction: float
    separate_clock_fraction: float
    edp_js: float
    separate_edp_js: float
    saved_edp_js: float

    def title(self, scope: Scope) -> str:
        """Return model, hardware and configuration in a line."""
        merged = self.runtime if self.runtime in MERGING else "fused"
        return (
            f"{self.model} on {scope.mark(self.hardware)} ({self.architecture}), batch {self.batch}, {self.precision}, "
            f"{merged} against {self.separate_runtime}"
        )


@frozen
class _PartSaving(_Saving):
    """A part of a run: its shares of energy-delay products add up to those of the run."""

    fusion_pattern: str
    saved_energy_share_fraction: float | None
    """Of the energy that the run saves."""
    saved_latency_share_fraction: float | None
    """Of the latency that the run saves."""
    edp_share_js: float
    separate_edp_share_js: float
    saved_edp_share_js: float
    """Adds up to what the run saves, and is 0 where nothing changes: not the difference of the two shares, which also
    fall with the energy and latency of the run."""
    saved_edp_share_fraction: float | None
    """Of the energy-delay product that the run saves."""


@frozen
class FusionPattern(_PartSaving):
    """What fusing saves in all subgraphs of one fusion pattern."""

    query: ClassVar[str] = "fusion.pattern"

    subgraph_count: int
    operator_count: int
    biased_count: int


@frozen
class FusionSubgraph(_PartSaving):
    """What fusing saves in one subgraph."""

    query: ClassVar[str] = "fusion.subgraph"

    subgraph_index: int
    name: str
    operations: str
    """What its kernel does, in order, and where a bias is part of it."""
    operator_count: int
    biased_count: int


@frozen
class FusionOperator(_PartSaving):
    """What fusing saves of one operator; what its kernel writes is booked on its last member."""

    query: ClassVar[str] = "fusion.operator"

    operator_index: int
    subgraph_index: int
    name: str
    operation: str
    """With `with bias` where it adds one."""
    kind: str
    is_folded: bool
