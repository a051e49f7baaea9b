"""What taking a run's energy-delay product apart hands out."""

from __future__ import annotations

import attrs


@attrs.frozen
class EdpTotal:
    """The row of `edp.total`: a run's energy-delay product by part. Energy and latency are per batch."""

    model: str
    hardware: str
    architecture: str
    batch: int
    precision: str
    runtime: str
    is_projection: bool
    energy_fj: int
    energy_j: float
    latency_fs: int
    latency_s: float
    edp_js: float
    own_edp_js: float
    """Sum over the subgraphs of own energy x own latency: less than `edp_js`, which is no such sum."""
    own_edp_fraction: float
    compute_share_fraction: float
    memory_share_fraction: float
    control_share_fraction: float
    static_share_fraction: float
    static_energy_fraction: float
    subgraph_count: int
    operator_count: int
    alone_count: int
    alone_share_fraction: float
    separate_energy_j: float
    separate_latency_s: float
    separate_edp_js: float
    """Of all operators as kernels of their own, without host launches."""
    clock_fraction: float
    run_id: int


@attrs.frozen
class EdpShare:
    """A row of `edp.distribution`: one subgraph's share of a run's energy-delay product."""

    rank: int
    subgraph_index: int
    name: str
    fusion_pattern: str
    operator_count: int
    energy_fj: int
    energy_j: float
    latency_fs: int
    latency_s: float
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


@attrs.frozen
class EdpOperatorShare:
    """A row of `edp.operator`: one operator's share of a run's energy-delay product."""

    rank: int
    operator_index: int
    subgraph_index: int
    name: str
    operation: str
    kind: str
    fusion_pattern: str
    is_fused: bool
    energy_fj: int
    energy_j: float
    latency_fs: int
    latency_s: float
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


@attrs.frozen
class EdpCut:
    """A row of `edp.cut`: the fewest subgraphs, or operators, that make up a fraction of the energy-delay product."""

    level: str
    cut_fraction: float
    top_count: int
    total_count: int
    reached_fraction: float
    last: str


@attrs.frozen
class EdpPattern:
    """A row of `edp.pattern`: one fusion pattern's share of a run's energy-delay product."""

    rank: int
    fusion_pattern: str
    subgraph_count: int
    operator_count: int
    energy_fj: int
    energy_j: float
    latency_fs: int
    latency_s: float
    edp_share_js: float
    share_fraction: float
    cumulative_fraction: float
    mac_fraction: float | None
    bottleneck: str
    bottleneck_fraction: float


@attrs.frozen
class EdpBound:
    """A row of `edp.bound`: the most that removing one cost could take off the energy-delay product."""

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


@attrs.frozen
class EdpComparison:
    """A row of `edp.comparison`: one subgraph on one of several hardware."""

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
