"""Rows of a run's energy-delay product."""

from __future__ import annotations

from typing import ClassVar

from joulemap.answer.run import Amounts, RunRow
from joulemap.record import frozen


@frozen
class EdpTotal(RunRow):
    """A run's energy-delay product by part."""

    query: ClassVar[str] = "edp.total"

    own_edp_js: float
    """Sum over the subgraphs of own energy x own latency: less than `edp_js`, which is no such sum."""
    own_edp_fraction: float
    compute_share_fraction: float
    memory_share_fraction: float
    control_share_fraction: float
    static_share_fraction: float
    static_energy_fraction: float
    alone_count: int
    alone_share_fraction: float
    separate_energy_j: float
    separate_latency_s: float
    separate_edp_js: float
    """Of all operators as kernels of their own, without host launches."""
    clock_fraction: float


@frozen
class _Share(Amounts):
    rank: int
    subgraph_index: int
    name: str
    fusion_pattern: str
    edp_js: float
    edp_share_js: float
    share_fraction: float
    cumulative_fraction: float
    compute_share_fraction: float
    memory_share_fraction: float
    control_share_fraction: float
    static_share_fraction: float
    halving_fraction: float
    bottleneck: str


@frozen
class EdpShare(_Share):
    """One subgraph's share of a run's energy-delay product."""

    query: ClassVar[str] = "edp.distribution"

    operator_count: int


@frozen
class EdpOperatorShare(_Share):
    """One operator's share of a run's energy-delay product."""

    query: ClassVar[str] = "edp.operator"

    operator_index: int
    operation: str
    kind: str
    is_fused: bool


@frozen
class EdpCut:
    """The fewest subgraphs, or operators, that make up a fraction of the energy-delay product."""

    query: ClassVar[str] = "edp.cut"

    level: str
    cut_fraction: float
    top_count: int
    total_count: int
    reached_fraction: float
    last: str


@frozen
class EdpPattern(Amounts):
    """One fusion pattern's share of a run's energy-delay product."""

    query: ClassVar[str] = "edp.pattern"

    rank: int
    fusion_pattern: str
    subgraph_count: int
    operator_count: int
    edp_share_js: float
    share_fraction: float
    cumulative_fraction: float
    mac_fraction: float | None
    bottleneck: str
    bottleneck_fraction: float


@frozen
class EdpBound:
    """The most that removing one cost could take off the energy-delay product."""

    query: ClassVar[str] = "edp.bound"

    remedy: str
    saving_fraction: float
    """An upper bound."""
    edp_js: float
    latency_s: float
    latency_saving_fraction: float
    energy_j: float
    energy_saving_fraction: float
    subgraph_count: int
    total_count: int


@frozen
class EdpComparison:
    """One subgraph on one of several hardware."""

    query: ClassVar[str] = "edp.comparison"

    subgraph_index: int
    name: str
    fusion_pattern: str
    hardware: str
    rank: int
    energy_j: float
    latency_s: float
    edp_js: float
    edp_share_js: float
    share_fraction: float
    least_ratio: float | None
    is_best: bool
    bottleneck: str
    run_id: int
