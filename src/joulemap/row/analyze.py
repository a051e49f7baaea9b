"""Rows of the queries of `queries/analyze`, made from their headers by `make rows`."""

from __future__ import annotations

from joulemap.row import Row


class ActionShare(Row, query="analyze.action"):
    """Where a run's energy goes, action by action: count x energy per action; one row per action; actions sum to
    their category and to the run, exactly.
    """

    category: str
    """The architecture's own."""
    common_category: str
    """compute, register, unit_memory, chip_memory, interconnect, off_chip_memory, communication, control, board or
    static.
    """
    component: str
    """What acts."""
    action: str
    """What it does."""
    part: str
    """compute, memory, control or static."""
    per: str
    """What one count is."""
    action_count: float
    """How often."""
    energy_per_action_j: float
    """J: price of one at the voltage of the run."""
    energy_fj: int
    """fJ: exact; the sum of lines that are each round(count x price)."""
    energy_j: float
    """J: energy."""
    share_fraction: float | None
    """Of its place; null where that takes nothing."""
    category_fraction: float | None
    """Of its category in its place."""
    basis: str
    """Where the price comes from: measured, published, derived, scaled, recalled or assumed."""
    source: str
    """document, measurement or arithmetic behind the price."""


class BottleneckShare(Row, query="analyze.bottleneck"):
    """What bounds a run: subgraphs, time and energy by bottleneck; one row per bottleneck, three in all; latencies
    and energies sum to the run, exactly.
    """

    bottleneck: str
    """compute, memory or launch."""
    subgraph_count: int
    """Subgraphs that it bounds."""
    latency_fs: int
    """fs: of the subgraphs that it bounds, exact."""
    latency_s: float
    """s: of the subgraphs that it bounds."""
    latency_fraction: float | None
    """Of the run's latency."""
    energy_fj: int
    """fJ: of the subgraphs that it bounds, exact."""
    energy_j: float
    """J: of the subgraphs that it bounds."""
    energy_fraction: float | None
    """Of the run's energy."""
    busy_s: float
    """s: its own time in all subgraphs; compute and memory overlap."""


class CategoryShare(Row, query="analyze.category"):
    """Where a run's energy goes, by category of its architecture; one row per category; categories sum to the run,
    exactly.
    """

    category: str
    """The architecture's own, or one that all share."""
    common_categories: str
    """Those of all architectures that its actions belong to, most energy first."""
    parts: str
    """Which of compute, memory, control and static its actions are."""
    kind_count: int
    """Different actions."""
    energy_fj: int
    """fJ: exact."""
    energy_j: float
    """J: energy."""
    share_fraction: float | None
    """Of its place: the run, subgraph or operator."""
    largest_action: str
    """component.action that takes most of it."""
    largest_action_fraction: float | None
    """How much of the category it takes."""


class EventCount(Row, query="analyze.event"):
    """What a run does, in events: instructions, cache lines with hits and misses, branches, warps, tokens, tiles,
    padding; one row per event; those that no operator causes are left out.
    """

    component: str
    """Where it happens."""
    event: str
    """What happens."""
    per: str
    """What one is: instruction, line, warp, token."""
    event_count: float
    """How often."""
    part_of: str
    """Event of the same component that it is a share of; empty for none."""
    share_fraction: float | None
    """Of that event; null for none."""
    energy_fj: int | None
    """fJ: of the actions that pay for it, which may pay for other events too, exact; null where none does."""
    energy_j: float | None
    """J: the same."""
    energy_per_event_j: float | None
    """J: energy over count; null where no action pays for it."""
    run_fraction: float | None
    """Of the energy of the run or of the subgraph."""
    meaning: str
    """In words."""
    formula: str
    """How the count follows from actions of the ledger, operator by operator, with the numbers of the hardware."""
    event_index: int
    """Order."""


class OperatorShare(Row, query="analyze.operator"):
    """A run operator by operator: energy by part, latency, share, and what fusing it saves; one row per operator;
    energies and latencies sum to the run, exactly.
    """

    operator_index: int
    """Execution order."""
    subgraph_index: int
    """Of the subgraph, in the order of first operators."""
    name: str
    """Of the operator: module path, with the operation where the module holds several; of a subgraph that of the
    operator that leads it.
    """
    operation: str
    """Of the operator, or of that which leads the subgraph: conv2d, linear, add."""
    kind: str
    """What it is to a mapping model."""
    mac_count: int
    """multiply-accumulates."""
    energy_fj: int
    """fJ: exact."""
    energy_j: float
    """J: energy, static energy included."""
    compute_energy_j: float
    """J: of arithmetic and its registers."""
    memory_energy_j: float
    """J: of moving and keeping data."""
    control_energy_j: float
    """J: of deciding what happens next, and of what regulators lose."""
    static_energy_j: float
    """J: static power x the time from one batch to the next."""
    share_fraction: float
    """Of the run's energy."""
    latency_fs: int
    """fs: exact."""
    latency_s: float
    """s: of its kernels; of an operator its share of its kernel's."""
    latency_fraction: float
    """Of the run's latency."""
    edp_share_js: float
    """Js: (E_i T + E t_i) / 2; adds up to E T."""
    edp_share_fraction: float
    """(E_i / E + t_i / T) / 2: its share of the run's energy-delay product."""
    is_fused: bool
    """Shares its kernel with other operators."""
    separate_energy_j: float
    """J: as a kernel of its own, static energy included."""
    separate_latency_s: float
    """s: as a kernel of its own."""
    saved_energy_j: float | None
    """J: what fusing it saves: separate minus own; null where it is not fused."""
    saved_latency_s: float | None
    """s: what fusing it saves: separate minus own; null where it is not fused."""
    dram_bytes: float
    """B: read and written off chip."""
    pass_bytes: float
    """B: read and written again by passes that the runtime adds, and by kernels that move more than their operands."""
    bias_addition_count: int
    """Additions of its bias; 0 without one."""
    bias_element_count: int
    """Elements of its bias."""


class SubgraphRoof(Row, query="analyze.roofline"):
    """The subgraphs of a run under the roof of its hardware: operations per byte off chip, and operations per
    second; one row per subgraph.
    """

    subgraph_index: int
    """Of the subgraph, in the order of first operators."""
    name: str
    """Of the operator: module path, with the operation where the module holds several; of a subgraph that of the
    operator that leads it.
    """
    kind: str
    """Of the operator, or of that which leads the subgraph: conv2d, linear, add."""
    fusion_pattern: str
    """Operations of the subgraph, in order."""
    energy_j: float
    """J: energy, static energy included."""
    latency_s: float
    """s: of its kernels; of an operator its share of its kernel's."""
    latency_fraction: float
    """Of the run's latency."""
    bottleneck: str
    """The largest of compute, memory and launch time of its subgraph."""
    dram_bytes: float
    """B: read and written off chip."""
    dram_intensity_ops_per_byte: float | None
    """ops/B: operations computed over bytes moved off chip; null where there are no bytes."""
    attained_ops_per_s: float
    """ops/s: operations computed, two per MAC, over its latency; 0 where it has no MAC."""
    peak_ops_per_s: float
    """ops/s: dense peak of the hardware at the precision of the run."""
    memory_bandwidth_bytes_per_s: float
    """B/s: of the off-chip memory, as published."""
    ridge_ops_per_byte: float
    """ops/B: peak over off-chip bandwidth: the intensity from which the peak, not the memory, is the roof."""
    roofline_ops_per_s: float
    """ops/s: its roof: the lesser of the peak and intensity x bandwidth."""
    roofline_fraction: float | None
    """Attained over its roof; null where it has no MAC."""


class SubgraphShare(Row, query="analyze.subgraph"):
    """A run subgraph by subgraph: energy by part, latency, bottleneck, allocation; one row per subgraph; energies
    and latencies sum to the run, exactly.
    """

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
    kernel_count: int
    """Kernels launched; of an operator 1 where it leads a kernel, else 0."""
    mac_count: int
    """multiply-accumulates."""
    energy_fj: int
    """fJ: exact."""
    energy_j: float
    """J: energy, static energy included."""
    compute_energy_j: float
    """J: of arithmetic and its registers."""
    memory_energy_j: float
    """J: of moving and keeping data."""
    control_energy_j: float
    """J: of deciding what happens next, and of what regulators lose."""
    static_energy_j: float
    """J: static power x the time from one batch to the next."""
    share_fraction: float
    """Of the run's energy."""
    latency_fs: int
    """fs: exact."""
    latency_s: float
    """s: of its kernels; of an operator its share of its kernel's."""
    latency_fraction: float
    """Of the run's latency."""
    edp_share_js: float
    """Js: (E_i T + E t_i) / 2; adds up to E T."""
    edp_share_fraction: float
    """(E_i / E + t_i / T) / 2: its share of the run's energy-delay product."""
    bottleneck: str
    """The largest of compute, memory and launch time of its subgraph."""
    compute_s: float
    """s: time of the units, padded tiles and partial waves included, of its subgraph."""
    memory_s: float
    """s: time of the slowest memory level, of its subgraph."""
    launch_s: float
    """s: fixed cost of the kernels of its subgraph."""
    dram_bytes: float
    """B: read and written off chip."""
    units_used_count: int
    """Of those, with work in the fullest wave of its subgraph."""
    units_total_count: int
    """Of those, that there are at this precision."""
    unit_name: str
    """What one of the units is called that do the work of its subgraph: of the hardware, or others that take what
    these leave.
    """
    tile_count: float
    """Tiles of work."""
    wave_count: float
    """Rounds of tiles over the units."""
    wave_fill_fraction: float | None
    """Tiles over waves x units; null without tiles."""
    executed_mac_count: float
    """MAC slots of its tiles, padding included."""
    padding_fraction: float | None
    """Part of those slots without a MAC."""
    compute_utilization_fraction: float | None
    """Operations computed over what the peak allows within its latency."""
    bandwidth_utilization_fraction: float | None
    """Attained over published off-chip bandwidth, within its latency."""
    pass_bytes: float
    """B: read and written again by passes that the runtime adds, and by kernels that move more than their operands."""


class RunTotal(Row, query="analyze.total"):
    """One run as a whole: energy by part, time, utilization, power cap, memory, allocation; one row."""

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
    """fJ: per batch, static energy included, exact."""
    energy_j: float
    """J: per batch, static energy included."""
    compute_energy_j: float
    """J: of arithmetic and its registers."""
    memory_energy_j: float
    """J: of moving and keeping data."""
    control_energy_j: float
    """J: of deciding what happens next, and of what regulators lose."""
    static_energy_j: float
    """J: static power x the time from one batch to the next."""
    overhead_energy_j: float
    """J: architectural overhead: of what is neither arithmetic nor off-chip memory nor board nor static."""
    overhead_fraction: float | None
    """Part of the energy that is architectural overhead."""
    energy_per_inference_j: float
    """J: energy over batch."""
    assumed_energy_fraction: float | None
    """Part of the energy whose price per action is an assumption."""
    recalled_energy_fraction: float | None
    """Part of the energy whose price per action is a public number not checked against its source."""
    latency_fs: int
    """fs: per batch, exact."""
    latency_s: float
    """s: per batch."""
    throughput_per_s: float
    """1/s: inferences per second."""
    edp_js: float
    """Js: energy x latency."""
    average_power_w: float
    """W: energy over the time from one batch to the next."""
    static_power_w: float
    """W: drawn whatever is computed."""
    tdp_w: float
    """W: the power cap."""
    clock_fraction: float
    """Of the full clock; below 1 where the power cap gives way."""
    clock_hz: float
    """Hz: the clock that is left, in steady state."""
    voltage_factor: float
    """What an action on the chip costs at that clock, relative to the highest voltage of the die."""
    uncapped_power_w: float
    """W: what the run would draw at its full clock: above the cap where that lowers the clock."""
    interval_s: float
    """s: from one batch to the next, in steady state: the latency where batches do not overlap."""
    throughput_limit: str
    """Latency where a batch starts after another has ended; cores, devices or pipeline stage that always have work;
    memory bandwidth; power cap.
    """
    mac_count: int
    """multiply-accumulates of the batch."""
    attained_ops_per_s: float
    """ops/s: two per MAC, over the time from one batch to the next."""
    peak_ops_per_s: float
    """ops/s: dense peak at this precision and power mode."""
    compute_utilization_fraction: float
    """Operations computed over what the peak allows, in steady state."""
    dram_bytes: float
    """B: read and written off chip."""
    pass_bytes: float
    """B: read and written again by passes that the runtime adds and by kernels that move more than their operands,
    at any level.
    """
    memory_bandwidth_bytes_per_s: float
    """B/s: of the off-chip memory, as published."""
    bandwidth_utilization_fraction: float
    """Attained over published off-chip bandwidth."""
    peak_memory_bytes: int
    """B: weights and peak activations."""
    weight_bytes: int
    """B: parameters and buffers read, as they are stored."""
    activation_bytes: int
    """B: peak of live activations."""
    memory_capacity_bytes: float
    """B: of the hardware's memory; a model that does not fit is refused."""
    memory_fraction: float
    """Peak memory over capacity."""
    unit_name: str
    """What one unit is called."""
    units_used_count: int
    """Units with work, mean over time, rounded up."""
    units_total_count: int
    """Units that have this precision."""
    tile_count: float
    """Tiles of all subgraphs."""
    wave_count: float
    """Rounds of tiles over the units, of all subgraphs."""
    wave_fill_fraction: float | None
    """Tiles over waves x units; null where nothing has a tile."""
    executed_mac_count: float | None
    """MAC slots of the tiles, padding included."""
    padding_fraction: float | None
    """Part of those slots without a MAC."""
    subgraph_count: int
    """Subgraphs that run."""
    operator_count: int
    """Operators that run."""
    kernel_count: int
    """Kernels launched."""
    run_id: int
    """Number of the run."""
