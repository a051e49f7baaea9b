"""Rows of the queries of `queries/architectures`, made from their headers by `make rows`."""

from __future__ import annotations

from joulemap.row import Row


class ArchitectureAction(Row, query="architectures.action"):
    """What one MAC takes on each architecture, action by action: count for a MAC x energy per action; one row per
    evaluated run and action; those of a run sum to its energy, exactly.
    """

    architecture: str
    """Architecture class."""
    hardware: str
    """Catalogue id, with @MODE where the power mode is not the default."""
    rank: int
    """1 for the action with most energy in its place."""
    category_rank: int
    """1 for the action with most energy of its common category in its place."""
    common_category: str
    """compute, register, unit_memory, chip_memory, interconnect, off_chip_memory, communication, control, board or
    static.
    """
    category: str
    """The architecture's own."""
    component: str
    """What acts."""
    action: str
    """What it does."""
    per: str
    """What one count is."""
    action_count: float
    """How often."""
    count_per_mac: float | None
    """How often for one MAC of the model; null without MACs."""
    energy_per_action_j: float
    """J: price of one at the voltage of the run."""
    energy_fj: int
    """fJ: exact; the sum of lines that are each round(count x price)."""
    energy_j: float
    """J: energy."""
    energy_per_mac_j: float | None
    """J: for one MAC of the model; null without MACs."""
    share_fraction: float | None
    """Of its place; null where that takes nothing."""
    basis: str
    """Where the price comes from: measured, published, derived, scaled, recalled or assumed."""
    source: str
    """document, measurement or arithmetic behind the price."""
    run_id: int
    """Number of the run."""


class ArchitectureCategory(Row, query="architectures.category"):
    """Energy by the categories that all architectures share, of the run and of one MAC, and which is architectural
    overhead; one row per evaluated run and common category, all nine of them; those of a run sum to its energy,
    exactly.
    """

    architecture: str
    """Architecture class."""
    hardware: str
    """Catalogue id, with @MODE where the power mode is not the default."""
    category_index: int
    """From the arithmetic outwards: compute, register, unit_memory, chip_memory, interconnect, off_chip_memory,
    communication (where any run has it), control, board, static.
    """
    common_category: str
    """Which of those."""
    is_overhead: bool
    """What the architecture adds to the work itself: neither arithmetic nor off-chip memory nor board nor static."""
    categories: str
    """What the architecture calls it, most energy first; empty where it has no such action."""
    kind_count: int
    """Different actions."""
    energy_fj: int
    """fJ: per batch, exact."""
    energy_j: float
    """J: per batch."""
    energy_per_mac_j: float | None
    """J: for one MAC of the model; null without MACs."""
    share_fraction: float | None
    """Of the energy."""
    run_id: int
    """Number of the run."""


class ArchitectureSummary(Row, query="architectures.summary"):
    """What each architecture spends a model's joules on: energy by common category, of the run and of one MAC, and
    what a MAC takes; one row per run asked for, refused ones included with null figures.
    """

    architecture: str
    """Architecture class."""
    hardware: str
    """Catalogue id, with @MODE where the power mode is not the default."""
    status: str
    """Ok or unsupported."""
    model: str
    batch: int
    """Samples in one input."""
    precision: str
    """precision; bf16/int4 where weights of products are stored at another."""
    runtime: str
    """eager, graph, fused or engine."""
    latency_s: float | None
    """s: per batch."""
    energy_fj: int | None
    """fJ: per batch, static energy included, exact."""
    energy_j: float | None
    """J: per batch, static energy included."""
    mac_count: int | None
    """multiply-accumulates of the batch."""
    energy_per_mac_j: float | None
    """J: of one MAC with all that happens around it; null without MACs."""
    dynamic_per_mac_j: float | None
    """J: the same without static energy."""
    compute_fj: int | None
    """fJ: arithmetic, of MACs and of all other operations, exact."""
    register_fj: int | None
    """fJ: registers, exact."""
    on_chip_memory_fj: int | None
    """fJ: caches and scratchpads, of a unit or of the chip, exact."""
    interconnect_fj: int | None
    """fJ: wires and switches between units and memories, links between devices, exact."""
    off_chip_memory_fj: int | None
    """fJ: off-chip memory and its controller, exact."""
    control_fj: int | None
    """fJ: instructions, tokens, configuration, scheduling, exact."""
    board_fj: int | None
    """fJ: voltage regulators, and what the power limit says beyond all prices, exact."""
    static_fj: int | None
    """fJ: static power x the time from one batch to the next, exact."""
    compute_fraction: float | None
    """Of the energy."""
    register_fraction: float | None
    """Of the energy."""
    on_chip_memory_fraction: float | None
    """Of the energy."""
    interconnect_fraction: float | None
    """Of the energy."""
    off_chip_memory_fraction: float | None
    """Of the energy."""
    control_fraction: float | None
    """Of the energy."""
    board_fraction: float | None
    """Of the energy."""
    static_fraction: float | None
    """Of the energy."""
    compute_per_mac_j: float | None
    """J: for one MAC of the model."""
    register_per_mac_j: float | None
    """J: for one MAC of the model."""
    on_chip_memory_per_mac_j: float | None
    """J: for one MAC of the model."""
    interconnect_per_mac_j: float | None
    """J: for one MAC of the model."""
    off_chip_memory_per_mac_j: float | None
    """J: for one MAC of the model."""
    control_per_mac_j: float | None
    """J: for one MAC of the model."""
    board_per_mac_j: float | None
    """J: for one MAC of the model."""
    static_per_mac_j: float | None
    """J: for one MAC of the model."""
    overhead_fj: int | None
    """fJ: architectural overhead, exact: neither arithmetic nor off-chip memory nor board nor static."""
    overhead_fraction: float | None
    """Part of the energy that is architectural overhead."""
    overhead_ratio: float | None
    """Architectural overhead over the energy of arithmetic."""
    order_name: str | None
    """What tells a unit what to do: an instruction, a token, a read of a configuration."""
    order_count: float | None
    """How many of those."""
    macs_per_order: float | None
    """MACs for each of them; null where there is none."""
    unit_memory_bytes_per_mac: float | None
    """B: read and written in memories of one unit."""
    chip_memory_bytes_per_mac: float | None
    """B: read and written in memories that all units share."""
    off_chip_bytes_per_mac: float | None
    """B: read and written off chip."""
    compute_utilization_fraction: float | None
    """Operations computed over what the peak allows, in steady state."""
    compute_time_fraction: float | None
    """Of the latency in subgraphs that compute bounds."""
    memory_time_fraction: float | None
    """Of the latency in subgraphs that memory bounds."""
    launch_time_fraction: float | None
    """Of the latency in subgraphs that their launch bounds."""
    units_used_count: int | None
    """Units with work, mean over time, rounded up."""
    units_total_count: int | None
    """Units that have this precision."""
    unit_name: str
    """What one unit is called."""
    static_power_w: float
    """W: drawn whatever is computed."""
    average_power_w: float | None
    """W: energy over the time from one batch to the next."""
    process_node_nm: float | None
    """nm: of the chip."""
    clock_fraction: float | None
    """Of the full clock; below 1 where the power cap gives way."""
    assumed_energy_fraction: float | None
    """Part of the energy whose price per action is an assumption."""
    recalled_energy_fraction: float | None
    """Part of the energy whose price per action is a public number not checked against its source."""
    is_projection: bool
    """Key numbers of the hardware are projections or estimates."""
    is_available: bool
    """It can be bought or rented, at a price that is no guess."""
    reason: str
    """Why it is unsupported."""
    run_id: int
    """Number of the run."""
