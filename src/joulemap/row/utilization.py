"""Rows of the queries of `queries/utilization`, made from their headers by `make rows`."""

from __future__ import annotations

from joulemap.row import Row


class UtilizationFlag(Row, query="utilization.flag"):
    """What is unhealthy about how runs use their hardware, and which subgraphs are the reason; one row per run and
    flag that it raises.
    """

    hardware: str
    """Catalogue id, with @MODE where the power mode is not the default."""
    flag: str
    """low_compute, high_bandwidth or idle_units."""
    value_fraction: float
    """Of the quantity that is flagged."""
    limit_fraction: float
    """What it is compared with."""
    cost: str
    """What the reason is counted in: time lost against the peak, bytes moved off chip, or unit-seconds idle."""
    bottleneck: str
    """What bounds the subgraphs that most of the cost is in: compute, memory or launch."""
    bottleneck_fraction: float | None
    """Of the cost that is in them."""
    subgraph_count: int
    """How many they are."""
    total_count: int
    """Subgraphs of the run."""
    subgraph_index: int
    """The subgraph with the largest cost; ties go to the first."""
    subgraph: str
    """Operator that leads it."""
    subgraph_fraction: float | None
    """Of the cost that is in it."""
    tile_count: float
    """Its tiles of work."""
    units_used_count: int
    """Its units with work in the fullest wave."""
    units_total_count: int
    """Units that have this precision."""
    unit_name: str
    """What one unit is called."""
    run_id: int
    """Number of the run."""


class Grade(Row, query="utilization.grade"):
    """The grades of a share of a peak, and where each begins; one row per grade."""

    grade_index: int
    """From 1, the best first."""
    grade: str
    """excellent, good, fair, poor or very poor."""
    least_fraction: float
    """Of the peak: what is as much or more has this grade, unless it has a better one."""


class Pairing(Row, query="utilization.pairing"):
    """Which hardware suits which size of model and batch: who wins most often among the stored runs; one row per
    class of FLOPs, precision, batch and goal.
    """

    least_flop_count: int
    """A class of model sizes begins here: 10^6, 10^7 ... operations of one inference, two per MAC; 0 for models
    without MACs.
    """
    precision: str
    batch: int
    """Samples in one input."""
    goal: str
    """energy: least energy per inference; latency: least latency; utilization: most of its peak."""
    hardware: str
    """Wins most contests; a contest is one model at one batch, precision and runtime on two or more hardware; ties
    go to the first name.
    """
    architecture: str
    """Its architecture class."""
    won_count: int
    """Contests that it wins."""
    entered_count: int
    """Contests that it takes part in."""
    contest_count: int
    """Contests in all."""
    model_count: int
    """Models among them."""
    hardware_count: int
    """Hardware that took part in one or more."""
    median_value: float
    """Of the goal's quantity where it wins, in unit."""
    unit: str
    """SI unit of median_value; 1 for a fraction of peak."""
    median_advantage_ratio: float | None
    """How many times better than the next where it wins."""
    median_utilization_fraction: float
    """Of its peak where it wins."""
    runner_up: str | None
    """Wins second most; null without one."""
    runner_up_won_count: int | None
    """Contests that the runner-up wins."""
    is_projection: bool
    """Key numbers of the hardware are projections or estimates."""


class PrecisionGain(Row, query="utilization.precision"):
    """What each precision of a hardware gains over fp32, or over the widest that it has without fp32; one row per
    evaluated run asked for.
    """

    model: str
    hardware: str
    """Catalogue id, with @MODE where the power mode is not the default."""
    batch: int
    """Samples in one input."""
    runtime: str
    """eager, graph, fused or engine."""
    precision: str
    """precision; bf16/int4 where weights of products are stored at another."""
    baseline_precision: str
    """What it is held against."""
    speedup_ratio: float
    """Inferences per second over those of the baseline."""
    energy_ratio: float
    """Energy per inference over that of the baseline: below 1 is less."""
    peak_ratio: float
    """Peak operations per second over that of the baseline."""
    memory_ratio: float
    """Weights and peak activations over those of the baseline."""
    compute_utilization_fraction: float
    """Operations computed over what the peak allows, in steady state."""
    latency_s: float
    """s: per batch."""
    energy_per_inference_j: float
    """J: energy over batch."""
    is_projection: bool
    """Key numbers of the hardware are projections or estimates."""
    run_id: int
    """Number of the run."""


class Remedy(Row, query="utilization.remedy"):
    """What would use the hardware of runs better: the best of other runs that differ in one thing, and what it
    gains; one row per evaluated run and thing that some evaluated other run differs in.
    """

    hardware: str
    """Catalogue id, with @MODE where the power mode is not the default."""
    compute_utilization_fraction: float
    """Operations computed over what the peak allows, in steady state."""
    bound: str
    """What bounds most of its time: compute, memory or launch; ties go to the first."""
    bound_time_fraction: float
    """Of the latency in subgraphs that it bounds."""
    remedy: str
    """Larger batch, lower precision, other runtime, lower power mode, fewer units (a chip of the class with fewer
    and a lower peak), more units, or another chip (of any class, capped no higher); chips share a deployment with
    it.
    """
    place: int | None
    """Its place among the remedies for what bounds the run; null for one that does not follow from it."""
    choice: str
    """The batch, precision, runtime or hardware with its power mode."""
    is_better: bool
    """gain_ratio reaches least_gain_ratio, and fewer units do not take more energy."""
    gain_ratio: float
    """throughput_ratio / energy_ratio: how many times less energy x time an inference takes."""
    throughput_ratio: float
    """Inferences per second over those of the run: above 1 is faster."""
    energy_ratio: float
    """Energy per inference over that of the run: below 1 is less."""
    latency_ratio: float
    """Latency of a batch over that of the run: above 1 is longer."""
    chosen_utilization_fraction: float
    """Compute utilization of the choice."""
    tried_count: int
    """Evaluated runs that it was chosen from."""
    is_projection: bool
    """Key numbers of the chosen hardware are projections or estimates."""
    chosen_run_id: int
    """Run of the choice."""
    run_id: int
    """Run to better."""


class Utilization(Row, query="utilization.summary"):
    """How much of each hardware a run uses: arithmetic, bandwidth, units, and where it stands on the roofline; one
    row per run asked for, refused ones included.
    """

    model: str
    batch: int
    """Samples in one input."""
    precision: str
    """precision; bf16/int4 where weights of products are stored at another."""
    runtime: str
    """eager, graph, fused or engine."""
    hardware: str
    """Catalogue id, with @MODE where the power mode is not the default."""
    architecture: str
    """Architecture class."""
    status: str
    """Ok or unsupported."""
    flop_count: int | None
    """Operations of one inference, two per MAC."""
    least_flop_count: int | None
    """The class of model sizes that it is in begins here, as in `utilization.pairing`."""
    attained_ops_per_s: float | None
    """ops/s: two per MAC, over the time from one batch to the next."""
    peak_ops_per_s: float | None
    """ops/s: dense peak at this precision and power mode."""
    compute_utilization_fraction: float | None
    """Operations computed over what the peak allows, in steady state."""
    compute_grade: str | None
    """compute_utilization_fraction in a word: excellent, good, fair, poor or very poor."""
    attained_bytes_per_s: float | None
    """B/s: bytes moved off chip over the time from one batch to the next."""
    memory_bandwidth_bytes_per_s: float | None
    """B/s: of the off-chip memory, as published."""
    bandwidth_utilization_fraction: float | None
    """Attained over published off-chip bandwidth."""
    sustained_bandwidth_fraction: float | None
    """Attained over the off-chip bandwidth that its class sustains, published x dram_efficiency: what is flagged."""
    arithmetic_intensity_ops_per_byte: float | None
    """ops/B: operations over bytes that cross kernel boundaries, on chip or off."""
    dram_intensity_ops_per_byte: float | None
    """ops/B: operations over bytes moved off chip; null where there are none."""
    ridge_ops_per_byte: float | None
    """ops/B: peak over off-chip bandwidth: the intensity from which the peak, not the memory, is the roof."""
    ridge_ratio: float | None
    """dram_intensity_ops_per_byte over the ridge point."""
    roof: str | None
    """Memory below the ridge point, else compute."""
    roofline_ops_per_s: float | None
    """ops/s: the roof: the lesser of the peak and intensity x bandwidth."""
    roofline_fraction: float | None
    """Attained over the roof."""
    roofline_grade: str | None
    """roofline_fraction in a word."""
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
    idle_units_fraction: float | None
    """1 - mean over time of the units with work over all."""
    average_power_w: float | None
    """W: energy over the time from one batch to the next."""
    tdp_w: float
    """W: the power cap."""
    ops_per_j: float | None
    """ops/J: attained operations per second and watt, two per MAC; 1e12 is one TOPS/W."""
    peak_ops_per_j: float | None
    """ops/J: peak over the power cap."""
    clock_fraction: float | None
    """Of the full clock; below 1 where the power cap gives way."""
    flags: list[str]
    """low_compute, high_bandwidth, idle_units: `utilization.flag` has the reasons."""
    is_projection: bool
    """Key numbers of the hardware are projections or estimates."""
    is_available: bool
    """It can be bought or rented, at a price that is no guess."""
    reason: str
    """Why it is unsupported."""
    run_id: int
    """Number of the run."""


class BatchZone(Row, query="utilization.zone"):
    """The batches at which a hardware is used well: utilization and inferences per joule near the best of a series;
    one row per model, hardware, precision and runtime of the runs asked for.
    """

    model: str
    hardware: str
    """Catalogue id, with @MODE where the power mode is not the default."""
    precision: str
    runtime: str
    """eager, graph, fused or engine."""
    batches: list[int]
    """Batches that were tried, refused ones included."""
    zone_batches: list[int]
    """Those in the zone; empty where none has both."""
    best_batch: int | None
    """The one with the most utilization x inferences per joule; ties go to the smallest; null where every batch was
    refused.
    """
    best_utilization_fraction: float | None
    """The most compute utilization of any batch."""
    utilization_batch: int | None
    """The batch that has it; ties go to the smallest."""
    least_energy_per_inference_j: float | None
    """J: of any batch."""
    energy_batch: int | None
    """The batch that has it; ties go to the smallest."""
    latency_s: float | None
    """s: of a batch at best_batch."""
    peak_memory_bytes: int | None
    """B: weights and peak activations at best_batch."""
    refused_batch: int | None
    """The smallest batch that was refused; null where none was."""
    refusal: str | None
    """Why."""
    run_id: int | None
    """Run at best_batch."""
