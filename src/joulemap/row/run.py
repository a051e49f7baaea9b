"""Rows of the queries of `queries/run`, made from their headers by `make rows`."""

from __future__ import annotations

from joulemap.row import Row


class Allocation(Row, query="run.allocation"):
    """Where each subgraph of one run is placed, how long it takes and what bounds it; one row per subgraph that
    runs; latencies sum to the run, exactly.
    """

    subgraph_index: int
    """Of the subgraph, in the order of first operators."""
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
    kernel_count: int
    """Kernels launched; of an operator 1 where it leads a kernel, else 0."""
    latency_fs: int
    """fs: exact."""
    latency_s: float
    """s: of its kernels; of an operator its share of its kernel's."""
    compute_s: float
    """s: time of the units, padded tiles and partial waves included, of its subgraph."""
    memory_s: float
    """s: time of the slowest memory level, of its subgraph."""
    launch_s: float
    """s: fixed cost of the kernels of its subgraph."""
    bottleneck: str
    """The largest of compute, memory and launch time of its subgraph."""
    dram_bytes: float
    """B: read and written off chip."""
    moved_bytes: float
    """B: across the borders of its kernels; of an operator its part of it."""
    pass_bytes: float
    """B: read and written again by passes that the runtime adds, and by kernels that move more than their operands."""
    compute_utilization_fraction: float | None
    """Operations computed over what the peak allows within its latency."""
    bandwidth_utilization_fraction: float | None
    """Attained over published off-chip bandwidth, within its latency."""


class Constant(Row, query="run.constant"):
    """Constants of the hardware in which two runs differ, and what each price moved: exactly its part of the
    difference; one row per constant that differs or that only one side has.
    """

    constant: str
    """Quantity of hardware_facts, energy.COMPONENT.ACTION of the energy reference table, or voltage_factor, that of
    the run.
    """
    value_a: float | None
    """On A, in unit; null where A has none."""
    value_b: float | None
    """On B, in unit; null where B has none."""
    unit: str
    """SI unit."""
    ratio: float | None
    """B over A."""
    moved_fj: int | None
    """fJ: of an energy per action that both have: its price term, exact, of the voltage factor: those of all
    energies that do not differ in the table; together the effects price and static power of explain.effect; null
    for other constants, whose effect is in the counts and the time.
    """
    moved_j: float | None
    """J: the same."""
    basis_a: str | None
    """Where it comes from on A."""
    basis_b: str | None
    """Where it comes from on B."""
    source_a: str | None
    """document, measurement or arithmetic on A."""
    source_b: str | None
    """document, measurement or arithmetic on B."""


class Fallback(Row, query="run.fallback"):
    """What of runs a host computes because the chip's compiler does not run it, or leaves it; one row per run and
    operation that the host computes.
    """

    run_id: int
    """Run."""
    configured_hardware: str
    """chip, with its power mode."""
    compiler: str
    """That of the chip."""
    cut: str
    """What it keeps of a model that it does not run whole: first, stretch or each."""
    helper: str
    """Hardware that computes the operation, with its power mode."""
    operation: str
    """conv2d, gelu."""
    is_compiled: bool
    """The compiler runs it elsewhere; here its cut leaves it to the host."""
    operator_count: int
    """Operators of it that the host computes."""
    latency_s: float
    """s: of these."""
    latency_fraction: float
    """Of the run's latency, 0 to 1."""
    energy_fraction: float
    """Of the run's energy, 0 to 1: with the leakage meanwhile."""
    first_operator_index: int
    """The first of them in the model."""


class LedgerLine(Row, query="run.ledger"):
    """The ledger of one run: every line with its count and the energy of one; one row per operator and action;
    lines sum to operators, subgraphs and the run, exactly.
    """

    subgraph_index: int
    """Subgraph of the operator."""
    operator_index: int
    """Execution order."""
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
    """fJ: exact: round(count x price)."""
    energy_j: float
    """J: energy."""
    is_overhead: bool
    """Neither arithmetic nor off-chip memory nor board nor static."""
    basis: str
    """Where the price comes from: measured, published, derived, scaled, recalled or assumed."""
    source: str
    """document, measurement or arithmetic behind the price."""


class Setting(Row, query="run.setting"):
    """Settings, versions and digests in which two runs differ; one row per setting that differs."""

    setting_index: int
    """Fixed order."""
    setting: str
    """What differs."""
    value_a: str
    """On A."""
    value_b: str
    """On B."""
