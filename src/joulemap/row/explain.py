"""Rows of the queries of `queries/explain`, made from their headers by `make rows`."""

from __future__ import annotations

from joulemap.row import Row


class CategoryDifference(Row, query="explain.category"):
    """What two runs spend by common category, energy or time or both, and what of each difference is more of it,
    what a higher price; one row per category of either; categories sum to the difference B minus A, exactly.
    """

    quantity: str
    category: str
    spent_a_exact: int
    spent_b_exact: int
    spent_a: float
    spent_b: float
    spent_unit: str
    difference_exact: int
    difference: float
    unit: str
    share_fraction: float | None
    by_count_exact: int
    by_price_exact: int
    by_presence_exact: int


class EdpTerm(Row, query="explain.edp"):
    """Why one run has a larger energy-delay product than another: an exact additive decomposition; one row per
    term; terms sum to twice the difference of E T, B minus A, exactly.
    """

    term: str
    place: str
    per: str
    part_count: int
    count_a: float
    count_b: float
    price_a: float | None
    price_b: float | None
    price_unit: str
    difference_exact: int
    difference: float
    unit: str
    share_fraction: float | None


class Effect(Row, query="explain.effect"):
    """What moved the energy from one run to another, by kind of cause: an exact additive decomposition; one row per
    effect, six in all; they sum to the difference B minus A, exactly.
    """

    effect: str
    difference_fj: int
    difference_j: float
    share_fraction: float | None
    action_count: int
    largest_action: str | None
    largest_difference_j: float | None


class EnergyTerm(Row, query="explain.energy"):
    """Why one run uses more energy than another: an exact additive decomposition; one row per term; terms sum to
    the difference B minus A, exactly.
    """

    term: str
    category_a: str | None
    category_b: str | None
    component: str
    action: str
    per: str
    part: str
    count_a: float
    count_b: float
    energy_per_action_a_j: float | None
    energy_per_action_b_j: float | None
    basis_a: str | None
    basis_b: str | None
    difference_fj: int
    difference_j: float
    share_fraction: float | None


class LatencyTerm(Row, query="explain.latency"):
    """Why one run takes longer than another: an exact additive decomposition over what bounds each subgraph; one
    row per term and resource; terms sum to the difference B minus A, exactly.
    """

    term: str
    place: str
    per: str
    part_count: int
    count_a: float
    count_b: float
    price_a: float | None
    price_b: float | None
    price_unit: str
    difference_exact: int
    difference: float
    unit: str
    share_fraction: float | None


class MemoryTerm(Row, query="explain.memory"):
    """Why one run keeps more bytes than another: an exact additive decomposition of its peak memory; one row per
    term that is not zero; terms sum to the difference B minus A, exactly.
    """

    term: str
    place: str
    per: str
    part_count: int
    count_a: float
    count_b: float
    price_a: float | None
    price_b: float | None
    price_unit: str
    difference_exact: int
    difference: float
    unit: str
    share_fraction: float | None


class PurposeDifference(Row, query="explain.purpose"):
    """Two runs' energy and time by what the work is for in a language model: weights, cache, attention, experts,
    logits, communication, host, static; one row per purpose that either run has; energies and times each sum to the
    difference B minus A, exactly.
    """

    purpose: str
    energy_a_fj: int
    energy_b_fj: int
    energy_difference_fj: int
    latency_a_fs: int
    latency_b_fs: int
    latency_difference_fs: int
    energy_a_j: float
    energy_b_j: float
    latency_a_s: float
    latency_b_s: float
    share_fraction: float | None


class RoleDifference(Row, query="explain.role"):
    """Two runs' energy by what actions are for, whatever their classes call them, and what of the difference their
    count and their price moved; one row per role that either run has; differences sum to B minus A, exactly.
    """

    role: str
    category: str
    way_a: str
    way_b: str
    actions_a: str
    actions_b: str
    count_a: float
    count_b: float
    price_a_j: float | None
    price_b_j: float | None
    energy_a_fj: int
    energy_b_fj: int
    difference_fj: int
    is_shared: bool
    by_count_fj: int
    by_price_fj: int
    energy_a_j: float
    energy_b_j: float
    difference_j: float
    share_fraction: float | None


class SubgraphDifference(Row, query="explain.subgraph"):
    """Two runs subgraph by subgraph, and what each adds to the difference; one row per subgraph of either, matched
    by name; energies, times and shares sum to the difference, exactly.
    """

    name: str
    fusion_pattern: str
    energy_a_fj: int
    energy_b_fj: int
    energy_difference_fj: int
    latency_a_fs: int
    latency_b_fs: int
    latency_difference_fs: int
    edp_difference_exact: int
    memory_a_bytes: float
    memory_b_bytes: float
    difference: float
    unit: str
    share_fraction: float | None
    bottleneck_a: str | None
    bottleneck_b: str | None
    largest_action: str | None
    largest_difference_j: float | None


class RunPair(Row, query="explain.total"):
    """The two runs of an explanation, or one subgraph of them: differences in energy, latency, energy x delay, peak
    memory; one row.
    """

    model: str
    hardware_a: str
    hardware_b: str
    energy_a_fj: int
    energy_b_fj: int
    difference_fj: int
    energy_a_j: float
    energy_b_j: float
    difference_j: float
    ratio: float
    latency_a_fs: int
    latency_b_fs: int
    latency_difference_fs: int
    latency_a_s: float
    latency_b_s: float
    latency_ratio: float | None
    edp_a_js: float
    edp_b_js: float
    edp_difference_exact: int
    edp_ratio: float | None
    memory_a_bytes: int
    memory_b_bytes: int
    memory_difference_bytes: int
    memory_ratio: float | None
    energy_probability: float | None
    latency_probability: float | None
    edp_probability: float | None
    architecture_a: str
    architecture_b: str
    batch: int
    precision: str
    runtime: str
    run_a: int
    run_b: int


class Traffic(Row, query="explain.traffic"):
    """Bytes that each memory of two runs carries; one row per memory action that is counted in bytes."""

    component: str
    action: str
    bytes_a: float | None
    bytes_b: float | None
    difference_bytes: float
    energy_a_j: float
    energy_b_j: float
    is_off_chip: bool
