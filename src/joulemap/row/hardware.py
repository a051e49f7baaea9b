"""Rows of the queries of `queries/hardware`, made from their headers by `make rows`."""

from __future__ import annotations

from joulemap.row import Row


class HardwareCompiler(Row, query="hardware.compiler"):
    """What the compiler of one hardware runs on it; one row, or none for hardware that runs every operator."""

    compiler: str
    """Its name."""
    cut: str
    """What it keeps of a model that it does not run whole: first (all up to the first operator that it does not
    run), stretch (one stretch of operators) or each (every operator that it runs).
    """
    operators: list[str]
    """kinds, operations, or operations of one kind as conv.conv2d."""
    host: str
    """Hardware that computes the rest where none is named; empty for none."""
    basis: str
    """How sure the list is."""
    source: str
    """Who says so."""


class ActionPrice(Row, query="hardware.energy"):
    """The energy reference table of one hardware; one row per action."""

    category: str
    """The architecture's own grouping."""
    component: str
    """What acts."""
    action: str
    """What it does."""
    part: str
    """compute, memory, control or static."""
    energy_per_action_j: float
    """J: of one count, at this process node."""
    per: str
    """What one count is."""
    low_j: float | None
    """J: lower end of the plausible range."""
    high_j: float | None
    """J: upper end of the plausible range."""
    basis: str
    """measured, published, derived, scaled or assumed."""
    source: str
    """document, measurement or arithmetic."""
    count_formula: str
    """How the count follows from an operator."""


class HardwareFact(Row, query="hardware.fact"):
    """Every number of one hardware with unit, basis and source; one row per number."""

    fact_index: int
    """Order in the description."""
    quantity: str
    """Dotted name."""
    value: float
    """In unit."""
    unit: str
    """SI unit; 1 for a count or ratio."""
    basis: str
    """measured, published, derived, scaled or assumed."""
    source: str
    """document, measurement or arithmetic."""
    note: str
    """What a reader must know."""


class HardwareLink(Row, query="hardware.link"):
    """Links of one hardware to devices of its kind and to its host; one row per link."""

    link_index: int
    """Order in the description."""
    link: str
    """nvlink, pcie, ici."""
    generation: str
    """As the vendor or standard counts; empty where there is but one."""
    connects: str
    """Device (others of its kind) or host."""
    topology: str
    """How devices are joined; empty for a host or where it is not known."""
    link_count: int
    """Links of the device, to one peer or to several."""
    lane_count: int | None
    """Lanes of one link, in one direction; null where it has none."""
    bandwidth_bytes_per_s: float
    """B/s: in one direction, all links together."""
    domain_size: int | None
    """Devices that the links can join, this one included; null where there is no such bound."""
    latency_s: float
    """s: from a device to the next: what a step of a collective costs."""
    energy_per_byte_j: float
    """J/B: of a byte that the device sends and one that it receives."""
    basis: str
    """Of the bandwidth: measured, published, derived, scaled, recalled or assumed."""
    source: str
    """Of the bandwidth."""


class ListedHardware(Row, query="hardware.list"):
    """Hardware targets of the catalogue, filtered; one row per hardware."""

    hardware: str
    """Catalogue id."""
    name: str
    """Name for people."""
    architecture: str
    """Architecture class."""
    deployment: str
    """Where it is used."""
    units_total_count: int
    """Units on the chip."""
    unit_name: str
    """What one unit is called."""
    precisions: str
    """What it runs."""
    memory_capacity_bytes: float
    """B: off-chip memory."""
    memory_bandwidth_bytes_per_s: float
    """B/s: off-chip memory."""
    tdp_w: float
    """W: thermal design power."""
    needs_host: str
    """The slot or port of a computer that it needs, whose power is not in tdp_w; empty for what works by itself."""
    power_modes: str
    """Named operating points beside the default."""
    price_purchase_usd: float | None
    """USD: purchase price; null where none is known."""
    price_cloud_usd_per_hour: float | None
    """USD/h: of one chip in a cloud; null where none is known."""
    fact_count: int
    """Numbers of its description."""
    recalled_fact_count: int
    """Those that are public but were not checked against their source."""
    assumed_fact_count: int
    """Those that are assumptions."""
    aliases: str
    """Other names, comma-separated."""
    is_projection: bool
    """Key numbers are projections or estimates."""
    projection: str
    """why; empty where they are published."""
    is_available: bool
    """It can be bought or rented, at a price that is no guess."""
    unavailable: str
    """Why not; empty where it can."""


class RidgePoint(Row, query="hardware.ridge"):
    """Roofline of one hardware: peak and ridge point per precision; one row per precision."""

    precision_index: int
    """Order in the description."""
    precision: str
    """fp32, bf16, int8."""
    peak_ops_per_s: float
    """ops/s: dense peak; one MAC is two operations."""
    units_count: int
    """Units that have this precision."""
    operations_per_clock: float
    """Of one unit."""
    clock_hz: float
    """Hz: clock that the peak is quoted at."""
    ridge_ops_per_byte: float
    """Arithmetic intensity above which the peak, not the memory, limits."""
    peak_ops_per_j: float
    """ops/J: peak over thermal design power."""
    basis: str
    """Where the peak comes from."""
    explanation: str
    """Why units x operations x clock is not the peak, where it is not."""


class Probe(Row, query="hardware.sanity"):
    """Probes from the top down: what a large matrix product and a stream copy draw, against the power cap and what
    was measured; one row per run asked for, refused ones included.
    """

    hardware: str
    """Catalogue id, with @MODE where the power mode is not the default."""
    architecture: str
    """Architecture class."""
    model: str
    """matrix_product or stream_copy."""
    precision: str
    status: str
    """ok, anchored, measured, low, high, or unsupported: a product should draw 0.6 to 1.0 of the cap, a copy 0.75
    to 1.25 of its measured power; anchored where it does so because the power limit says it, measured where its
    prices are those at which a load draws what was measured.
    """
    average_power_w: float | None
    """W: energy over the time from one batch to the next."""
    tdp_w: float
    """W: thermal design power of the mode."""
    power_ratio: float | None
    """Average power over the cap."""
    uncapped_ratio: float | None
    """The same without the cap, at the full clock."""
    clock_fraction: float | None
    """Of the full clock; below 1 where the power cap gives way."""
    attained_ops_per_s: float | None
    """ops/s: of the product; null for a copy."""
    attained_bytes_per_s: float | None
    """B/s: off-chip, read and written."""
    compute_utilization_fraction: float | None
    """Operations computed over what the peak allows, in steady state."""
    bandwidth_utilization_fraction: float | None
    """Attained over published bandwidth."""
    static_share_fraction: float | None
    """Static energy over all energy."""
    unattributed_share_fraction: float | None
    """Energy that the power limit says, over all energy."""
    measured_power_w: float | None
    """W: mean of the measurements of this configuration; null without one."""
    measured_ratio: float | None
    """Predicted over measured power."""
    peak_ops_per_s: float | None
    """ops/s: dense peak."""
    is_projection: bool
    """Key numbers of the hardware are projections or estimates."""
    reason: str
    """Why it is not ok, or what the cap did."""
    run_id: int
    """Number of the run."""


class HardwareSummary(Row, query="hardware.summary"):
    """What one hardware is: class, names, operating points, and what is uncertain about it; one row."""

    hardware: str
    """Catalogue id."""
    name: str
    """Name for people."""
    vendor: str
    """Who makes it."""
    architecture: str
    """Architecture class."""
    microarchitecture: str
    """The vendor's name of the design."""
    deployment: list[str]
    """Where it is used."""
    units_total_count: int
    """Units on the chip."""
    unit_name: str
    """What one unit is called."""
    memory_type: str
    """off-chip memory."""
    tdp_w: float
    """W: thermal design power."""
    static_power_w: float
    """W: drawn while running, whatever is computed."""
    needs_host: str
    """The slot or port of a computer that it needs, whose power is not in its own; empty for what works by itself."""
    aliases: list[str]
    """Other names."""
    power_modes: list[str]
    """Operating points beside the default."""
    fact_count: int
    """Numbers of its description."""
    recalled_fact_count: int
    """Those that are public but were not checked against their source."""
    assumed_fact_count: int
    """Those that are assumptions."""
    action_count: int
    """Actions of its energy reference table, without those that the power limit says."""
    recalled_action_count: int
    """Those whose price is recalled."""
    assumed_action_count: int
    """Those whose price is an assumption."""
    projection: str
    """Why its key numbers are projections or estimates; empty where they are published."""
    unavailable: str
    """Why it can be neither bought nor rented, or only at a price that is a guess; empty where it can."""
    doubts: list[str]
    """What the sources disagree about."""
    hardware_digest: str
    """Of its description."""
