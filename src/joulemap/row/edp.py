"""Rows of the queries of `queries/edp`, made from their headers by `make rows`."""

from __future__ import annotations

from joulemap.row import Row


class EdpBound(Row, query="edp.bound"):
    """The most that removing one cost could take off a run's energy-delay product; one row per remedy."""

    remedy: str
    """roofline: every subgraph at its roofline; no_memory_wait: memory never slower than compute; full_units: no
    padding, no partly filled wave; no_launch: no fixed cost of kernels; no_static: no static power; no_control: no
    control energy.
    """
    saving_fraction: float
    """Of E T that would go; an upper bound."""
    edp_js: float
    """Js: what would remain."""
    latency_s: float
    """s: what would remain."""
    latency_saving_fraction: float
    """Of T that would go."""
    energy_j: float
    """J: what would remain; static energy falls with the latency, all other energy stays."""
    energy_saving_fraction: float
    """Of E that would go."""
    subgraph_count: int
    """Subgraphs that it touches."""
    total_count: int
    """Subgraphs that run."""


class EdpComparison(Row, query="edp.comparison"):
    """The same subgraph on several hardware: its share of each run's energy-delay product; one row per subgraph and
    run.
    """

    subgraph_index: int
    """Subgraph."""
    name: str
    """Operator that leads it."""
    fusion_pattern: str
    """Operations in order."""
    hardware: str
    """Catalogue id, with @MODE where the power mode is not the default."""
    rank: int
    """In its run, 1 for the largest share."""
    energy_j: float
    """J: E_i."""
    latency_s: float
    """s: t_i."""
    edp_js: float
    """Js: E_i t_i, its own energy x its own latency."""
    edp_share_js: float
    """Js: (E_i T + E t_i) / 2; adds up to E T of its run."""
    share_fraction: float
    """Of its run's energy-delay product."""
    least_ratio: float | None
    """edp_share_js over the least among the runs; 1 for the best."""
    is_best: bool
    """Has the least edp_share_js; ties go to the first name."""
    bottleneck: str
    """compute, memory or launch."""
    run_id: int
    """Number of the run."""


class EdpCut(Row, query="edp.cut"):
    """How few subgraphs, or operators, make up 50, 80, 90, 95 and 99 % of a run's energy-delay product; one row per
    level and cut.
    """

    level: str
    """What is counted: subgraph, or operator with the biases inside products."""
    cut_fraction: float
    """Of the energy-delay product that is asked for."""
    top_count: int
    """The fewest that reach it, largest shares first."""
    total_count: int
    """All there are."""
    reached_fraction: float
    """Of the energy-delay product that they make up; at least cut_fraction."""
    last: str
    """Name of the smallest of them."""


class EdpShare(Row, query="edp.distribution"):
    """How a run's energy-delay product spreads over its subgraphs, by part and cumulatively; one row per subgraph;
    shares sum to the run's energy-delay product.
    """

    rank: int
    """By that share in its run, 1 for the largest."""
    subgraph_index: int
    """Of the subgraph, in the order of first operators."""
    name: str
    """Of the operator: module path, with the operation where the module holds several; of a subgraph that of the
    operator that leads it.
    """
    fusion_pattern: str
    """Operations of the subgraph, in order."""
    operator_count: int
    """Operators of the subgraph that run."""
    energy_fj: int
    """fJ: exact."""
    energy_j: float
    """J: energy, static energy included."""
    latency_fs: int
    """fs: exact."""
    latency_s: float
    """s: of its kernels; of an operator its share of its kernel's."""
    edp_js: float
    """Js: E_i t_i, its own energy x its own latency; does not add up."""
    edp_share_js: float
    """Js: (E_i T + E t_i) / 2; adds up to E T."""
    share_fraction: float
    """(E_i / E + t_i / T) / 2: its share of the run's energy-delay product."""
    cumulative_fraction: float
    """Of this and all larger shares; 1 in the last row."""
    compute_share_fraction: float
    """The part of its share that arithmetic takes: half its energy over E, half its time over T; an operator's time
    is split as its subgraph's.
    """
    memory_share_fraction: float
    """The part that data movement takes."""
    control_share_fraction: float
    """The part that control takes; its time is the fixed cost of kernels."""
    static_share_fraction: float
    """The part that static energy takes; it has no time of its own."""
    halving_fraction: float
    """Of E T that goes if it takes half its energy and half its time."""
    bottleneck: str
    """The largest of compute, memory and launch time of its subgraph."""


class EdpOperatorShare(Row, query="edp.operator"):
    """How a run's energy-delay product spreads over its operators, and the biases inside them, by part and
    cumulatively; one row per operator, and one for the bias that a product adds as part of itself; shares sum to
    the run's energy-delay product.
    """

    rank: int
    """By that share in its run, 1 for the largest."""
    operator_index: int
    """Execution order."""
    subgraph_index: int
    """Of the subgraph, in the order of first operators."""
    name: str
    """Of the operator; of a bias that of its product with .bias behind it."""
    operation: str
    """conv2d, relu, add ...; bias."""
    kind: str
    """What it is to a mapping model: conv, linear, elementwise ...; bias."""
    fusion_pattern: str
    """Operations of the subgraph, in order."""
    is_fused: bool
    """Shares its kernel with other operators."""
    energy_fj: int
    """fJ: exact; of a bias its additions at their price, which its product has not."""
    energy_j: float
    """J: energy, static energy included."""
    latency_fs: int
    """fs: exact; of a bias 0, for its time is its product's."""
    latency_s: float
    """s: of its kernels; of an operator its share of its kernel's."""
    edp_js: float
    """Js: E_i t_i, its own energy x its own latency; does not add up."""
    edp_share_js: float
    """Js: (E_i T + E t_i) / 2; adds up to E T."""
    share_fraction: float
    """edp_share_js over E T."""
    cumulative_fraction: float
    """Of this and all larger shares; 1 in the last row."""
    compute_share_fraction: float
    """The part of its share that arithmetic takes: half its energy over E, half its time over T; an operator's time
    is split as its subgraph's.
    """
    memory_share_fraction: float
    """The part that data movement takes."""
    control_share_fraction: float
    """The part that control takes; its time is the fixed cost of kernels."""
    static_share_fraction: float
    """The part that static energy takes; it has no time of its own."""
    halving_fraction: float
    """Of E T that goes if it takes half its energy and half its time."""
    bottleneck: str
    """The largest of compute, memory and launch time of its subgraph."""


class EdpPattern(Row, query="edp.pattern"):
    """How a run's energy-delay product spreads over its fusion patterns; one row per fusion pattern; shares sum to
    the run's energy-delay product.
    """

    rank: int
    """1 for the largest share."""
    fusion_pattern: str
    """Operations in order."""
    subgraph_count: int
    """Subgraphs of this pattern."""
    operator_count: int
    """Operators that run in them."""
    energy_fj: int
    """fJ: exact."""
    energy_j: float
    """J: energy."""
    latency_fs: int
    """fs: exact."""
    latency_s: float
    """s: latency."""
    edp_share_js: float
    """Js: (E_i T + E t_i) / 2; adds up to E T."""
    share_fraction: float
    """Of the run's energy-delay product."""
    cumulative_fraction: float
    """Of this and all larger shares; 1 in the last row."""
    mac_fraction: float | None
    """Of the run's MACs."""
    bottleneck: str
    """What bounds most of their time."""
    bottleneck_fraction: float
    """How much of their time it bounds."""


class EdpTotal(Row, query="edp.total"):
    """A run's energy-delay product by part, and what is left of it where its subgraphs' own products are added; one
    row.
    """

    model: str
    hardware: str
    """Catalogue id, with @MODE where the power mode is not the default."""
    architecture: str
    """Architecture class."""
    batch: int
    """Samples in one input."""
    precision: str
    """precision; bf16/int4 where weights of products are stored at another."""
    runtime: str
    """eager, graph, fused or engine."""
    is_projection: bool
    """Key numbers of the hardware are projections or estimates."""
    energy_fj: int
    """fJ: E, exact."""
    energy_j: float
    """J: E, per batch."""
    latency_fs: int
    """fs: T, exact."""
    latency_s: float
    """s: T, per batch."""
    edp_js: float
    """Js: E T."""
    own_edp_js: float
    """Js: sum of E_i t_i over the subgraphs: less than E T, which is no sum of them."""
    own_edp_fraction: float
    """Of E T."""
    compute_share_fraction: float
    """Of E T that arithmetic takes: half its energy over E, half its time over T."""
    memory_share_fraction: float
    """Of E T that data movement takes."""
    control_share_fraction: float
    """Of E T that control takes; its time is the fixed cost of kernels."""
    static_share_fraction: float
    """Of E T that static energy takes; the four add up to 1."""
    static_energy_fraction: float
    """Of E that is static power x the time from one batch to the next."""
    subgraph_count: int
    """Subgraphs that run."""
    operator_count: int
    """Operators that run."""
    alone_count: int
    """Subgraphs of one operator."""
    alone_share_fraction: float
    """Of E T that they take."""
    separate_energy_j: float
    """J: of all operators as kernels of their own, without host launches."""
    separate_latency_s: float
    """s: of all operators as kernels of their own, without host launches."""
    separate_edp_js: float
    """Js: product of the two."""
    clock_fraction: float
    """Of the full clock; below 1 where the power cap gives way."""
    run_id: int
    """Number of the run."""
