"""Rows of the queries of `queries/edp`, made from their headers by `make rows`."""

from __future__ import annotations

from joulemap.row import Row


class EdpBound(Row, query="edp.bound"):
    """The most that removing one cost could take off a run's energy-delay product; one row per remedy."""

    remedy: str
    saving_fraction: float
    edp_js: float
    latency_s: float
    latency_saving_fraction: float
    energy_j: float
    energy_saving_fraction: float
    subgraph_count: int
    total_count: int


class EdpComparison(Row, query="edp.comparison"):
    """The same subgraph on several hardware: its share of each run's energy-delay product; one row per subgraph and
    run.
    """

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


class EdpCut(Row, query="edp.cut"):
    """How few subgraphs, or operators, make up 50, 80, 90, 95 and 99 % of a run's energy-delay product; one row per
    level and cut.
    """

    level: str
    cut_fraction: float
    top_count: int
    total_count: int
    reached_fraction: float
    last: str


class EdpShare(Row, query="edp.distribution"):
    """How a run's energy-delay product spreads over its subgraphs, by part and cumulatively; one row per subgraph;
    shares sum to the run's energy-delay product.
    """

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


class EdpOperatorShare(Row, query="edp.operator"):
    """How a run's energy-delay product spreads over its operators, and the biases inside them, by part and
    cumulatively; one row per operator, and one for the bias that a product adds as part of itself; shares sum to
    the run's energy-delay product.
    """

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


class EdpPattern(Row, query="edp.pattern"):
    """How a run's energy-delay product spreads over its fusion patterns; one row per fusion pattern; shares sum to
    the run's energy-delay product.
    """

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


class EdpTotal(Row, query="edp.total"):
    """A run's energy-delay product by part, and what is left of it where its subgraphs' own products are added; one
    row.
    """

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
    clock_fraction: float
    run_id: int
