"""Rows of the queries of `queries/explain`, made from their headers by `make rows`."""

from __future__ import annotations

from joulemap.row import Row


class CategoryDifference(Row, query="explain.category"):
    """What two runs spend by common category, energy or time or both, and what of each difference is more of it,
    what a higher price; one row per category of either; categories sum to the difference B minus A, exactly.
    """

    quantity: str
    """Energy or time."""
    category: str
    """Of energy: compute, register, on_chip_memory, interconnect, off_chip_memory, communication, control, board or
    static; of time: compute, memory or launch.
    """
    spent_a_exact: int
    """On A, fJ of energy or fs of time, exact."""
    spent_b_exact: int
    """On B, exact."""
    spent_a: float
    """On A, in spent_unit."""
    spent_b: float
    """On B."""
    spent_unit: str
    """J or s."""
    difference_exact: int
    """What it makes of the difference B minus A, in fJ, fs, or twice in fJ fs, exact."""
    difference: float
    """What it makes of the difference, in unit."""
    unit: str
    """J, s or Js."""
    share_fraction: float | None
    """Of the whole difference; negative where it goes the other way."""
    by_count_exact: int
    """Of difference_exact, what more or less of it moved; of static power, a longer or shorter time."""
    by_price_exact: int
    """Of difference_exact, what a higher or lower price of one moved; of static power, more or fewer watts."""
    by_presence_exact: int
    """Of difference_exact, what only one of them has: roles without a counterpart, subgraphs that it bounds on one
    side alone.
    """


class EdpTerm(Row, query="explain.edp"):
    """Why one run has a larger energy-delay product than another: an exact additive decomposition; one row per
    term; terms sum to twice the difference of E T, B minus A, exactly.
    """

    term: str
    """As of explain.energy with energy, and of explain.latency with latency, e.g. energy: count."""
    place: str
    """component.action, or launch, compute or memory time."""
    per: str
    """What one count is."""
    part_count: int
    """1, or subgraphs of a time."""
    count_a: float
    """How many on A."""
    count_b: float
    """How many on B."""
    price_a: float | None
    """Energy or time of one on A; null without a count."""
    price_b: float | None
    """Energy or time of one on B; null without a count."""
    price_unit: str
    """Of the prices."""
    difference_exact: int
    """This term of B minus A, twice, in fJ fs, exact: an energy term x (T of A + T of B), a time term x (E of A + E
    of B).
    """
    difference: float
    """This term of B minus A, in unit."""
    unit: str
    """SI unit of difference."""
    share_fraction: float | None
    """Of the whole difference; negative where it goes the other way."""


class Effect(Row, query="explain.effect"):
    """What moved the energy from one run to another, by kind of cause: an exact additive decomposition; one row per
    effect, six in all; they sum to the difference B minus A, exactly.
    """

    effect: str
    """Only in A, only in B, count and price (of actions that both have), time (static power for a longer or shorter
    time), static power (at its price).
    """
    difference_fj: int
    """fJ: this effect of B minus A, exact."""
    difference_j: float
    """J: this effect of B minus A."""
    share_fraction: float | None
    """Of the whole difference; negative where it goes the other way."""
    action_count: int
    """Actions that it moved."""
    largest_action: str | None
    """component.action that it moved most; null where it moved none."""
    largest_difference_j: float | None
    """J: what it moved that one."""


class EnergyTerm(Row, query="explain.energy"):
    """Why one run uses more energy than another: an exact additive decomposition; one row per term; terms sum to
    the difference B minus A, exactly.
    """

    term: str
    """Only in A, only in B, count (same action, different count), price (same action, different price), or static."""
    category_a: str | None
    """The action's category on A; null if A does not have it."""
    category_b: str | None
    """The action's category on B; null if B does not have it."""
    component: str
    """What acts."""
    action: str
    """What it does."""
    per: str
    """What one count is."""
    part: str
    """compute, memory, control or static."""
    count_a: float
    """How often on A."""
    count_b: float
    """How often on B."""
    energy_per_action_a_j: float | None
    """J: price on A, at the voltage of its run."""
    energy_per_action_b_j: float | None
    """J: price on B, at the voltage of its run."""
    basis_a: str | None
    """Where the price on A comes from."""
    basis_b: str | None
    """Where the price on B comes from."""
    difference_fj: int
    """fJ: this term of B minus A."""
    difference_j: float
    """J: this term of B minus A."""
    share_fraction: float | None
    """Of the whole difference; negative where it goes the other way."""


class LatencyTerm(Row, query="explain.latency"):
    """Why one run takes longer than another: an exact additive decomposition over what bounds each subgraph; one
    row per term and resource; terms sum to the difference B minus A, exactly.
    """

    term: str
    """Only in A or only in B (the resource bounds the subgraph on one side alone), count (more or less work), price
    (faster or slower work).
    """
    place: str
    """launch: fixed cost of kernels; compute or memory: the rest of each subgraph, whichever takes longer."""
    per: str
    """What one count is."""
    part_count: int
    """subgraphs, matched by name."""
    count_a: float
    """How many on A."""
    count_b: float
    """How many on B."""
    price_a: float | None
    """Time of one on A; null without a count."""
    price_b: float | None
    """Time of one on B; null without a count."""
    price_unit: str
    """Of the prices."""
    difference_exact: int
    """This term of B minus A, in fs, exact."""
    difference: float
    """This term of B minus A, in unit."""
    unit: str
    """SI unit of difference."""
    share_fraction: float | None
    """Of the whole difference; negative where it goes the other way."""


class MemoryTerm(Row, query="explain.memory"):
    """Why one run keeps more bytes than another: an exact additive decomposition of its peak memory; one row per
    term that is not zero; terms sum to the difference B minus A, exactly.
    """

    term: str
    """Count (more or fewer elements) or price (bytes of each)."""
    place: str
    """weights, or activations at their peak."""
    per: str
    """What one count is."""
    part_count: int
    """1."""
    count_a: float
    """How many on A."""
    count_b: float
    """How many on B."""
    price_a: float | None
    """Bytes of one on A; null without a count."""
    price_b: float | None
    """Bytes of one on B; null without a count."""
    price_unit: str
    """Of the prices."""
    difference_exact: int
    """This term of B minus A, in B, exact."""
    difference: float
    """This term of B minus A, in unit."""
    unit: str
    """SI unit of difference."""
    share_fraction: float | None
    """Of the whole difference; negative where it goes the other way."""


class PurposeDifference(Row, query="explain.purpose"):
    """Two runs' energy and time by what the work is for in a language model: weights, cache, attention, experts,
    logits, communication, host, static; one row per purpose that either run has; energies and times each sum to the
    difference B minus A, exactly.
    """

    purpose: str
    """weights: products with weights; logits: the last of them, over the vocabulary; experts: products of a
    mixture; cache: keys and values read from and appended to off-chip memory; attention: the rest of it;
    communication: between devices; host: starts of kernels, in eager by the host; static: static power; rest:
    norms, activations, embeddings and the like.
    """
    energy_a_fj: int
    """fJ: on A, exact."""
    energy_b_fj: int
    """fJ: on B, exact."""
    energy_difference_fj: int
    """fJ: B minus A, exact."""
    latency_a_fs: int
    """fs: on A, exact; 0 of static power, which takes none."""
    latency_b_fs: int
    """fs: on B, exact."""
    latency_difference_fs: int
    """fs: B minus A, exact."""
    energy_a_j: float
    """J: on A."""
    energy_b_j: float
    """J: on B."""
    latency_a_s: float
    """s: on A: of kernels whose work is for it; of those of attention, what its memory takes is for the cache."""
    latency_b_s: float
    """s: on B."""
    share_fraction: float | None
    """Of the metric's whole difference; negative where it goes the other way."""


class RoleDifference(Row, query="explain.role"):
    """Two runs' energy by what actions are for, whatever their classes call them, and what of the difference their
    count and their price moved; one row per role that either run has; differences sum to B minus A, exactly.
    """

    role: str
    """mac, operand, memory_read, instruction ...; component.action of an action that no role is known of."""
    category: str
    """That it belongs to: compute, register, on_chip_memory, interconnect, off_chip_memory, communication, control,
    board or static.
    """
    way_a: str
    """How the class of A does it; empty where it does as all do."""
    way_b: str
    """How the class of B does it."""
    actions_a: str
    """Actions of A that have the role, most energy first; empty where it has none."""
    actions_b: str
    """Actions of B that have the role."""
    count_a: float
    """How much of it is done on A, in the role's unit: operations that operands serve, bytes of on-chip memory that
    cross the chip.
    """
    count_b: float
    """How much of it is done on B."""
    price_a_j: float | None
    """J: of one on A, all its actions together; null without a count."""
    price_b_j: float | None
    """J: of one on B."""
    energy_a_fj: int
    """fJ: on A, exact."""
    energy_b_fj: int
    """fJ: on B, exact."""
    difference_fj: int
    """fJ: B minus A, exact."""
    is_shared: bool
    """Both have actions of the role."""
    by_count_fj: int
    """fJ: what of the difference the count moved, at the mean of both prices; 0 where one has none; of static
    power, the time.
    """
    by_price_fj: int
    """fJ: what of the difference the price moved: the rest; 0 where one has none; of static power, the watts."""
    energy_a_j: float
    """J: on A."""
    energy_b_j: float
    """J: on B."""
    difference_j: float
    """J: B minus A."""
    share_fraction: float | None
    """Of the whole difference; negative where it goes the other way."""


class SubgraphDifference(Row, query="explain.subgraph"):
    """Two runs subgraph by subgraph, and what each adds to the difference; one row per subgraph of either, matched
    by name; energies, times and shares sum to the difference, exactly.
    """

    name: str
    """Operator that leads it."""
    fusion_pattern: str
    """Operations in order."""
    energy_a_fj: int
    """fJ: on A, exact; 0 where A has no such subgraph."""
    energy_b_fj: int
    """fJ: on B, exact; 0 where B has no such subgraph."""
    energy_difference_fj: int
    """fJ: B minus A, exact."""
    latency_a_fs: int
    """fs: on A, exact."""
    latency_b_fs: int
    """fs: on B, exact."""
    latency_difference_fs: int
    """fs: B minus A, exact."""
    edp_difference_exact: int
    """Twice its part of the difference of E T, in fJ fs, exact: its energy difference x (T of A + T of B) + its
    time difference x (E of A + E of B).
    """
    memory_a_bytes: float
    """B: moved off chip on A."""
    memory_b_bytes: float
    """B: moved off chip on B."""
    difference: float
    """Of the metric, B minus A, in unit."""
    unit: str
    """J, s, Js or B."""
    share_fraction: float | None
    """Of the metric's whole difference."""
    bottleneck_a: str | None
    """What bounds it on A."""
    bottleneck_b: str | None
    """What bounds it on B."""
    largest_action: str | None
    """component.action whose energy differs most; null where none does."""
    largest_difference_j: float | None
    """J: B minus A of its energy."""


class RunPair(Row, query="explain.total"):
    """The two runs of an explanation, or one subgraph of them: differences in energy, latency, energy x delay, peak
    memory; one row.
    """

    model: str
    """Model of A."""
    hardware_a: str
    """Hardware of A."""
    hardware_b: str
    """Hardware of B."""
    energy_a_fj: int
    """fJ: energy of A, exact."""
    energy_b_fj: int
    """fJ: energy of B, exact."""
    difference_fj: int
    """fJ: B minus A, exact."""
    energy_a_j: float
    """J: energy of A."""
    energy_b_j: float
    """J: energy of B."""
    difference_j: float
    """J: B minus A."""
    ratio: float
    """Energy of B over that of A."""
    latency_a_fs: int
    """fs: latency of A, exact."""
    latency_b_fs: int
    """fs: latency of B, exact."""
    latency_difference_fs: int
    """fs: B minus A, exact."""
    latency_a_s: float
    """s: latency of A."""
    latency_b_s: float
    """s: latency of B."""
    latency_ratio: float | None
    """Latency of B over that of A."""
    edp_a_js: float
    """Js: energy x latency of A."""
    edp_b_js: float
    """Js: energy x latency of B."""
    edp_difference_exact: int
    """Twice the difference B minus A, in fJ fs, exact."""
    edp_ratio: float | None
    """Energy x latency of B over that of A."""
    memory_a_bytes: int
    """B: peak memory of A, all of the run: weights and activations."""
    memory_b_bytes: int
    """B: peak memory of B."""
    memory_difference_bytes: int
    """B: B minus A, exact."""
    memory_ratio: float | None
    """Peak memory of B over that of A."""
    energy_probability: float | None
    """That the run predicted to need less energy per inference does; null of a subgraph, and of runs at different
    batches.
    """
    latency_probability: float | None
    """That the run predicted to have less latency does; null of a subgraph, and of runs at different batches."""
    edp_probability: float | None
    """That the run predicted to have less energy x delay per inference does; null of a subgraph, and of runs at
    different batches.
    """
    architecture_a: str
    """Architecture class of A."""
    architecture_b: str
    """Architecture class of B."""
    batch: int
    """Samples in one input of A."""
    precision: str
    """Precision of A; bf16/int4 where weights of products are stored at another."""
    runtime: str
    """eager, graph, fused or engine, of A."""
    run_a: int
    """Number of run A."""
    run_b: int
    """Number of run B."""


class Traffic(Row, query="explain.traffic"):
    """Bytes that each memory of two runs carries; one row per memory action that is counted in bytes."""

    component: str
    """What acts."""
    action: str
    """What it does."""
    bytes_a: float | None
    """B: on A; null where A has no such action."""
    bytes_b: float | None
    """B: on B; null where B has no such action."""
    difference_bytes: float
    """B: B minus A."""
    energy_a_j: float
    """J: that it costs on A."""
    energy_b_j: float
    """J: that it costs on B."""
    is_off_chip: bool
    """Reads or writes dram."""
