"""Rows of the queries of `queries/compare`, made from their headers by `make rows`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from joulemap.row import Row

if TYPE_CHECKING:
    from joulemap.domain.metric import MetricName


class Placement(Row, query="compare.allocation"):
    """Where each subgraph of several runs is placed, how long it takes there and what bounds it; one row per
    evaluated run and subgraph.
    """

    hardware: str
    """Catalogue id, with @MODE where the power mode is not the default."""
    subgraph_index: int
    """Of the subgraph, in the order of first operators."""
    subgraph: str
    """Name of the operator that leads the subgraph."""
    fusion_pattern: str
    """Operations of the subgraph, in order."""
    latency_s: float
    """s: of its kernels; of an operator its share of its kernel's."""
    latency_fraction: float
    """Of the run's latency."""
    bottleneck: str
    """The largest of compute, memory and launch time of its subgraph."""
    compute_s: float
    """s: time of the units, padded tiles and partial waves included, of its subgraph."""
    memory_s: float
    """s: time of the slowest memory level, of its subgraph."""
    launch_s: float
    """s: fixed cost of the kernels of its subgraph."""
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
    compute_utilization_fraction: float | None
    """Operations computed over what the peak allows within its latency."""
    energy_j: float
    """J: energy, static energy included."""
    run_id: int
    """Number of the run."""


class RunFigure(Row, query="compare.detail"):
    """Several runs, each as a whole: energy by part, time, utilization, memory, what bounds its subgraphs; one row
    per run asked for, refused ones included.
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
    status: str
    """Ok or unsupported."""
    energy_fj: int | None
    """fJ: per batch, static energy included, exact."""
    energy_j: float | None
    """J: per batch, static energy included."""
    energy_per_inference_j: float | None
    """J: energy over batch."""
    compute_energy_j: float | None
    """J: of arithmetic and its registers."""
    memory_energy_j: float | None
    """J: of moving and keeping data."""
    control_energy_j: float | None
    """J: of deciding what happens next, and of what regulators lose."""
    static_energy_j: float | None
    """J: static power x the time from one batch to the next."""
    overhead_energy_j: float | None
    """J: architectural overhead: of what is neither arithmetic nor off-chip memory nor board nor static."""
    overhead_fraction: float | None
    """Part of the energy that is architectural overhead."""
    latency_s: float | None
    """s: per batch."""
    throughput_per_s: float | None
    """1/s: inferences per second."""
    average_power_w: float | None
    """W: energy over the time from one batch to the next."""
    edp_js: float | None
    """Js: energy x latency."""
    compute_utilization_fraction: float | None
    """Operations computed over what the peak allows, in steady state."""
    bandwidth_utilization_fraction: float | None
    """Attained over published off-chip bandwidth."""
    units_used_count: int | None
    """Units with work, mean over time, rounded up."""
    units_total_count: int | None
    """Units that have this precision."""
    unit_name: str
    """What one unit is called."""
    peak_memory_bytes: int | None
    """B: weights and peak activations."""
    activation_bytes: int | None
    """B: peak of live activations."""
    weight_bytes: int | None
    """B: parameters and buffers read, as they are stored."""
    memory_capacity_bytes: float
    """B: of the hardware's memory; a model that does not fit is refused."""
    compute_bound_count: int | None
    """Subgraphs that compute bounds."""
    memory_bound_count: int | None
    """Subgraphs that memory bounds."""
    launch_bound_count: int | None
    """Subgraphs that their launch bounds."""
    compute_time_fraction: float | None
    """Of the latency in subgraphs that compute bounds."""
    memory_time_fraction: float | None
    """Of the latency in subgraphs that memory bounds."""
    launch_time_fraction: float | None
    """Of the latency in subgraphs that their launch bounds."""
    clock_fraction: float | None
    """Of the full clock; below 1 where the power cap gives way."""
    clock_hz: float | None
    """Hz: the clock that is left, in steady state."""
    voltage_factor: float | None
    """What an action on the chip costs at that clock, relative to the highest voltage of the die."""
    uncapped_power_w: float | None
    """W: what the run would draw at its full clock: above the cap where that lowers the clock."""
    interval_s: float | None
    """s: from one batch to the next, in steady state: the latency where batches do not overlap."""
    throughput_limit: str | None
    """Latency where a batch starts after another has ended; cores, devices or pipeline stage that always have work;
    memory bandwidth; power cap.
    """
    is_projection: bool
    """Key numbers of the hardware are projections or estimates."""
    is_available: bool
    """It can be bought or rented, at a price that is no guess."""
    reason: str
    """Why it is unsupported."""
    run_id: int
    """Number of the run."""


class HardwareNumber(Row, query="compare.geometry"):
    """What the hardware of several runs is made of: geometry, memory, power and its modes, peaks; one row per run
    and number of its hardware.
    """

    hardware: str
    """Catalogue id, with @MODE where the power mode is not the default."""
    section: str
    """geometry, memory, power or peak."""
    quantity: str
    """As in hardware_facts."""
    value: float
    """In unit."""
    unit: str
    """SI unit; 1 for a count or ratio."""
    basis: str
    """measured, published, derived, scaled or assumed."""
    unit_name: str
    """What one unit is called."""
    memory_type: str
    """off-chip memory."""
    fact_index: int
    """Order in the description."""
    run_id: int
    """Number of the run."""


class Insight(Row, query="compare.insight"):
    """What separates the runs: how much less energy the best takes than each other, and the category that explains
    most of it; one row per pair of the lowest-energy run with another.
    """

    best_hardware: str
    """Run with the lowest energy, per inference where batches differ, with its configuration where the runs differ
    in that.
    """
    other_hardware: str
    """Run that it is compared with, likewise."""
    energy_ratio: float
    """Energy of the other over that of the best."""
    latency_per_inference_ratio: float
    """Latency over batch of the other over that of the best: their latencies as they are where batches are alike."""
    difference_j: float
    """J: energy of the other minus that of the best; per batch, or per inference where batches differ."""
    common_category: str
    """The category of the ledger, as all architectures share it, that differs most."""
    category_difference_j: float
    """J: that category's difference."""
    category_share_fraction: float | None
    """category_difference_j over difference_j; above 1 where others go the other way."""
    best_power_w: float
    """W: average power of the best."""
    other_power_w: float
    """W: average power of the other."""


class ModelFigure(Row, query="compare.matrix"):
    """Several models on several hardware: figures, and who is best of either; one row per model and hardware asked
    for, refused ones included.
    """

    model: str
    batch: int
    """Samples in one input."""
    hardware: str
    """Catalogue id, with @MODE where the power mode is not the default."""
    architecture: str
    """Architecture class."""
    status: str
    """Ok or unsupported."""
    metric: str
    """What is compared."""
    value: float | None
    """Of the metric, in unit."""
    unit: str
    """Of the metric."""
    hardware_rank: int | None
    """Of this hardware for the model, 1 for the best; ties go to the first name."""
    hardware_ratio: float | None
    """How many times worse than the best of the model."""
    tied_count: int
    """Hardware with exactly the best for this model."""
    model_rank: int | None
    """Of this model on the hardware, 1 for the best; ties go to the first name."""
    model_ratio: float | None
    """How many times worse than the best on this hardware."""
    hardware_won_count: int
    """Models that this hardware is the first of, ties going to the first name."""
    model_count: int
    """Models that were asked for."""
    energy_j: float | None
    """J: per batch, static energy included."""
    latency_s: float | None
    """s: per batch."""
    throughput_per_s: float | None
    """1/s: inferences per second."""
    average_power_w: float | None
    """W: energy over the time from one batch to the next."""
    edp_js: float | None
    """Js: energy x latency."""
    peak_memory_bytes: int | None
    """B: weights and peak activations."""
    compute_utilization_fraction: float | None
    """Operations computed over what the peak allows, in steady state."""
    mac_count: int | None
    """multiply-accumulates of the batch."""
    ops_per_j: float | None
    """ops/J: attained operations per second and watt, two per MAC; 1e12 is one TOPS/W."""
    parameter_count: int
    """Elements of all parameters."""
    is_projection: bool
    """Key numbers of the hardware are projections or estimates."""
    is_available: bool
    """It can be bought or rented, at a price that is no guess."""
    reason: str
    """Why it is unsupported."""
    run_id: int
    """Number of the run."""
    workload_id: int
    """Number of the workload."""


class ModelMix(Row, query="compare.mix"):
    """What the model of several runs is made of, by kind of operator; one row per workload of the runs asked for
    and kind of its operators, views apart.
    """

    model: str
    kind: str
    """What an operator is to a mapping model: conv, depthwise_conv, linear, matmul, pool."""
    subgraph_count: int
    """Subgraphs with an operator of the kind."""
    operator_count: int
    """Operators of the kind."""
    operator_fraction: float
    """Of all operators."""
    mac_count: int
    """multiply-accumulates of the batch."""
    mac_fraction: float | None
    """Of all MACs; null where there are none."""
    all_subgraph_count: int
    """Subgraphs of the workload, those of views apart."""
    all_operator_count: int
    """Operators of the workload, views apart."""
    all_mac_count: int
    """multiply-accumulates of the workload."""
    workload_id: int
    """Number of the workload."""


class Contender(Row, query="compare.part"):
    """Each subgraph or operator on each hardware, and who runs it at the least cost; one row per part of a workload
    and run.
    """

    model: str
    part_index: int
    """subgraph_index or operator_index."""
    name: str
    """Of the operator, or of that which leads the subgraph."""
    kind: str
    """Operation of the operator, or of that which leads the subgraph: conv2d, linear, add."""
    fusion_pattern: str
    """Operations of its subgraph in order."""
    hardware: str
    """Catalogue id, with @MODE where the power mode is not the default."""
    metric: str
    """What is compared."""
    value: float
    """Of the metric, in unit."""
    unit: str
    """J, s, Js or B."""
    rank: int
    """1 for the least; ties go to the first name."""
    ratio: float | None
    """Value over the least; 1 for the least, null where that is 0 and this is not."""
    winner: str
    """Hardware with the least."""
    is_winner: bool
    """This is it."""
    tied_count: int
    """Hardware with exactly the least; 1 for a winner of its own."""
    energy_j: float
    """J: static energy included."""
    latency_s: float
    """s: of its kernels, or its share of its kernel."""
    edp_share_js: float
    """Js: (E_i T + E t_i) / 2; adds up to E T of the run: metric edp."""
    memory_bytes: float
    """B: read and written off chip: metric memory; an operator's share by what crosses its kernel where the ledger
    has no dram.
    """
    bottleneck: str
    """What bounds its subgraph: compute, memory or launch."""
    units_used_count: int
    """Units with work in the fullest wave of its subgraph."""
    unit_name: str
    """What one of those is called."""
    is_available: bool
    """The hardware can be bought or rented, at a price that is no guess."""
    run_id: int
    """Number of the run."""
    workload_id: int
    """Number of the workload."""


class PairChance(Row, query="compare.probability"):
    """Each of these runs against each other of its model: how probable it is that it is better; one row per metric
    and ordered pair of evaluated runs.
    """

    metric: str
    """What is compared."""
    label: str
    """hardware, precision, batch and runtime."""
    other_label: str
    """Of the other run."""
    value: float
    """In the metric's unit."""
    other_value: float
    """Of the other run."""
    better_ratio: float
    """How many times better than the other it is predicted to be; below 1 where it is worse."""
    half_width: float
    """Of the 80 % interval of that ratio's natural logarithm."""
    probability_better: float
    """That it is better, by what the errors of the two have in common."""
    is_told_apart: bool
    """One of the two is better with a probability of 0.8 or more."""
    run_id: int
    """Number of the run."""
    other_run_id: int
    """Number of the other."""


class RankedHardware(Row, query="compare.ranking"):
    """Hardware ranked by what matters where it is deployed; one row per run asked for, refused ones included."""

    rank: int | None
    """1 for the best; ties go to the first name; null for a refused run."""
    hardware: str
    """Catalogue id, with @MODE where the power mode is not the default."""
    architecture: str
    """Architecture class."""
    microarchitecture: str
    """The vendor's name of the design."""
    power_mode: str
    """Operating point; default for that of its plain name."""
    deployment: list[str]
    """Where it is used."""
    status: str
    """Ok or unsupported."""
    sort: str
    """What it is ranked by."""
    best_ratio: float | None
    """How many times worse than the best; 1 for the best."""
    latency_s: float | None
    """s: per batch."""
    throughput_per_s: float | None
    """1/s: inferences per second."""
    average_power_w: float | None
    """W: energy over the time from one batch to the next."""
    inferences_per_j: float | None
    """1/J: inferences per second and watt, which is per joule: efficiency."""
    energy_per_inference_j: float | None
    """J: energy over batch."""
    tdp_w: float
    """W: the power cap."""
    compute_utilization_fraction: float | None
    """Operations computed over what the peak allows, in steady state."""
    units_used_count: int | None
    """Units with work, mean over time, rounded up."""
    units_total_count: int | None
    """Units that have this precision."""
    unit_name: str
    """What one unit is called."""
    batch: int
    """Samples in one input."""
    precision: str
    """precision; bf16/int4 where weights of products are stored at another."""
    runtime: str
    """eager, graph, fused or engine."""
    model: str
    is_projection: bool
    """Key numbers of the hardware are projections or estimates."""
    is_available: bool
    """It can be bought or rented, at a price that is no guess."""
    reason: str
    """Why it is unsupported."""
    run_id: int
    """Number of the run."""


class Recommendation(Row, query="compare.recommendation"):
    """The best run for energy, latency, throughput, memory and energy x delay, of all and of some of them, and the
    best that can be had; one row per choice and goal.
    """

    is_among: bool
    """It is chosen from among_ids alone."""
    goal: MetricName
    """A metric: energy, latency, throughput, memory or edp, each of a batch; where batches differ
    energy_per_inference and edp_per_inference beside the others.
    """
    hardware: str
    """The winner, with its configuration where the runs differ in that; ties go to the first name."""
    value: float
    """Of the goal's quantity, in unit."""
    unit: str
    """SI unit of value."""
    advantage_ratio: float | None
    """How many times better than the runner-up; null without one."""
    runner_up: str | None
    """Second best; null without one."""
    tied_count: int
    """Runs that are exactly as good, the winner included."""
    probability_best: float | None
    """That the winner is the best of all these runs; null for memory, which has no interval."""
    probability_ahead: float | None
    """That it is better than the runner-up; null without one and for memory."""
    rivals: list[str]
    """Runs that cannot be told apart from the winner: better than it with a probability above 0.2."""
    ranked_ids: list[int]
    """All these runs, the best first."""
    probabilities: list[float]
    """That each of them, in that order, is the best; empty for memory."""
    is_projection: bool
    """Key numbers of the winner are projections or estimates."""
    is_available: bool
    """The winner can be bought or rented, at a price that is no guess."""
    available_hardware: str | None
    """The best that can; null without one."""
    available_value: float | None
    """Its value, in unit."""


class UtilizationSpread(Row, query="compare.spread"):
    """Compute utilization of each run: its mean, its least and most with what is responsible, and what bounds it;
    one row per evaluated run.
    """

    hardware: str
    """Catalogue id, with @MODE where the power mode is not the default."""
    mean_utilization_fraction: float | None
    """Operations computed over what the peak allows within the latency of a batch: the mean of its subgraphs over
    time.
    """
    min_utilization_fraction: float | None
    """Of the subgraph with MACs that attains least; null without one."""
    min_kind: str | None
    """Operation that leads it; ties go to the first subgraph."""
    min_name: str | None
    """The operator that leads it."""
    max_utilization_fraction: float | None
    """Of the subgraph with MACs that attains most."""
    max_kind: str | None
    """Operation that leads it; ties go to the first subgraph."""
    max_name: str | None
    """The operator that leads it."""
    idle_kind: str | None
    """Kind of subgraph without MACs that takes most time; null without one."""
    idle_time_fraction: float | None
    """Of the latency in subgraphs without MACs."""
    subgraph_count: int
    """Subgraphs that run."""
    compute_bound_count: int
    """Subgraphs that compute bounds."""
    memory_bound_count: int
    """Subgraphs that memory bounds."""
    launch_bound_count: int
    """Subgraphs that their launch bounds."""
    compute_time_fraction: float | None
    """Of the latency in subgraphs that compute bounds."""
    memory_time_fraction: float | None
    """Of the latency in subgraphs that memory bounds."""
    launch_time_fraction: float | None
    """Of the latency in subgraphs that their launch bounds."""
    run_id: int
    """Number of the run."""


class Strength(Row, query="compare.strength"):
    """What each of several runs is good and bad at, against the median of them and against its own peak; one row
    per evaluated run and aspect.
    """

    hardware: str
    """Catalogue id, with @MODE where the power mode is not the default."""
    aspect: str
    """energy_per_inference, latency and power against the median; utilization of the peak; idle: units without
    work; launch and memory: time that they bound.
    """
    verdict: str
    """strength, weakness or even."""
    value: float
    """In unit."""
    unit: str
    """J, s, W, or 1 for a fraction."""
    median_value: float
    """Of all evaluated runs asked for."""
    median_ratio: float | None
    """Median over value: above 1 is less than the median; null for an aspect that is held against itself."""
    grade: str | None
    """Of utilization; null for other aspects."""
    unit_name: str
    """What one unit is called."""
    run_count: int
    """Evaluated runs that the median is of."""
    run_id: int
    """Number of the run."""


class Comparison(Row, query="compare.summary"):
    """Energy, latency, memory and utilization of each run, with ratios to a baseline; one row per run asked for,
    refused ones included.
    """

    model: str
    batch: int
    """Samples in one input."""
    hardware: str
    """Catalogue id, with @MODE where the power mode is not the default."""
    label: str
    """hardware, in words with precision, batch and runtime where the runs differ in one."""
    architecture: str
    """Architecture class."""
    precision: str
    """precision; bf16/int4 where weights of products are stored at another."""
    runtime: str
    """eager, graph, fused or engine."""
    status: str
    """Ok or unsupported."""
    energy_j: float | None
    """J: per batch, static energy included."""
    energy_per_inference_j: float | None
    """J: energy over batch."""
    latency_s: float | None
    """s: per batch."""
    throughput_per_s: float | None
    """1/s: inferences per second."""
    average_power_w: float | None
    """W: energy over the time from one batch to the next."""
    edp_js: float | None
    """Js: energy x latency."""
    peak_memory_bytes: int | None
    """B: weights and peak activations."""
    compute_utilization_fraction: float | None
    """Operations computed over what the peak allows, in steady state."""
    bandwidth_utilization_fraction: float | None
    """Attained over published off-chip bandwidth."""
    units_used_count: int | None
    """Units with work, mean over time, rounded up."""
    units_total_count: int | None
    """Units that have this precision."""
    unit_name: str
    """What one unit is called."""
    overhead_energy_j: float | None
    """J: architectural overhead: of what is neither arithmetic nor off-chip memory nor board nor static."""
    overhead_fraction: float | None
    """Part of the energy that is architectural overhead."""
    energy_ratio: float | None
    """Energy per inference over the baseline's."""
    latency_ratio: float | None
    """Latency of a batch over the baseline's."""
    baseline_hardware: str | None
    """What the ratios are relative to, with its configuration where the runs differ in that."""
    clock_fraction: float | None
    """Of the full clock; below 1 where the power cap gives way."""
    clock_hz: float | None
    """Hz: the clock that is left, in steady state."""
    voltage_factor: float | None
    """What an action on the chip costs at that clock, relative to the highest voltage of the die."""
    uncapped_power_w: float | None
    """W: what the run would draw at its full clock: above the cap where that lowers the clock."""
    interval_s: float | None
    """s: from one batch to the next, in steady state: the latency where batches do not overlap."""
    placement: str
    """Of a box: how the model is placed and the devices with a part; empty for a chip."""
    throughput_limit: str | None
    """Latency where a batch starts after another has ended; cores, devices or pipeline stage that always have work;
    memory bandwidth; power cap.
    """
    assumed_energy_fraction: float | None
    """Part of the energy whose price per action is an assumption."""
    recalled_energy_fraction: float | None
    """Part of the energy whose price per action is a public number not checked against its source."""
    unattributed_energy_fraction: float | None
    """Part of the energy that no circuit explains: what the power limit says of busy units and memories beyond all
    other prices.
    """
    energy_low_j: float | None
    """J: of energy_j: below it one time in ten."""
    energy_high_j: float | None
    """J: above it one time in ten."""
    energy_half_width: float | None
    """Of that interval, of the natural logarithm."""
    energy_doubt: str | None
    """What the interval of the energy follows from."""
    latency_low_s: float | None
    """s: of latency_s: below it one time in ten."""
    latency_high_s: float | None
    """s: above it one time in ten."""
    latency_half_width: float | None
    """Of that interval, of the natural logarithm."""
    latency_doubt: str | None
    """What the interval of the latency follows from."""
    is_projection: bool
    """Key numbers of the hardware are projections or estimates."""
    is_available: bool
    """It can be bought or rented, at a price that is no guess."""
    reason: str
    """Why it is unsupported."""
    run_id: int
    """Number of the run."""


class EnergyBranch(Row, query="compare.tree"):
    """Where the energy of several runs goes: categories of their architectures and the actions in them; one row per
    run, category and action; the rows of a run sum to its energy, exactly.
    """

    model: str
    hardware: str
    """Catalogue id, with @MODE where the power mode is not the default."""
    category: str
    """The architecture's own."""
    category_energy_fj: int
    """fJ: of its category in its place, exact."""
    category_energy_j: float
    """J: of its category in its place."""
    category_fraction: float | None
    """Of its place that its category takes."""
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
    energy_fj: int
    """fJ: exact; the sum of lines that are each round(count x price)."""
    energy_j: float
    """J: energy."""
    share_fraction: float | None
    """Of its place; null where that takes nothing."""
    category_share_fraction: float | None
    """Of its category in its place."""
    run_id: int
    """Number of the run."""


class Victory(Row, query="compare.victory"):
    """Which kinds of subgraph or operator each hardware runs at the least cost; one row per workload, hardware and
    kind that the workload has.
    """

    model: str
    hardware: str
    """Catalogue id, with @MODE where the power mode is not the default."""
    kind: str
    """Operation of the operator, or of that which leads the subgraph."""
    part_count: int
    """Parts of this kind."""
    won_count: int
    """Of which it alone has the least."""
    tied_count: int
    """Of which it has the least together with others."""
    won_fraction: float
    """won_count over part_count."""
    verdict: str
    """all, most (more than half), some or none of this kind are won."""
    hardware_won_count: int
    """Parts of any kind that it alone has at the least."""
    hardware_tied_count: int
    """Parts of any kind that it shares the least of."""
    all_part_count: int
    """Parts of the workload."""
    workload_id: int
    """Number of the workload."""
