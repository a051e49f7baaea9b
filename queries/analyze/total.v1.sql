/*
name = "analyze.total"
record = "RunTotal"
version = 1
schema = 1
summary = "One run as a whole: energy by part, time, utilization, power cap, memory, allocation"
grain = "one row"
order = ["the only row"]
[parameters]
run_id = { type = "INTEGER", meaning = "run, as `run.list` shows it" }
[columns]
model = { type = "VARCHAR", meaning = "model" }
hardware = { type = "VARCHAR", meaning = "catalogue id, with @MODE where the power mode is not the default" }
architecture = { type = "VARCHAR", meaning = "architecture class" }
batch = { type = "INTEGER", meaning = "samples in one input" }
precision = { type = "VARCHAR", meaning = "of activations and products; bf16/int4 where weights of products are stored at another" }
runtime = { type = "VARCHAR", meaning = "eager, graph or fused" }
is_projection = { type = "BOOLEAN", meaning = "key numbers of the hardware are projections" }
energy_fj = { type = "HUGEINT", unit = "fJ", meaning = "per batch, static energy included, exact" }
energy_j = { type = "DOUBLE", unit = "J", meaning = "per batch, static energy included" }
compute_energy_j = { type = "DOUBLE", unit = "J", meaning = "of arithmetic and its registers" }
memory_energy_j = { type = "DOUBLE", unit = "J", meaning = "of moving and keeping data" }
control_energy_j = { type = "DOUBLE", unit = "J", meaning = "of deciding what happens next, and of what regulators lose" }
static_energy_j = { type = "DOUBLE", unit = "J", meaning = "drawn whatever is computed" }
overhead_energy_j = { type = "DOUBLE", unit = "J", meaning = "architectural overhead: of what is neither arithmetic nor off-chip memory nor board nor static" }
overhead_fraction = { type = "DOUBLE", null = true, meaning = "part of the energy that is architectural overhead" }
energy_per_inference_j = { type = "DOUBLE", unit = "J", meaning = "energy over batch" }
assumed_energy_fraction = { type = "DOUBLE", null = true, meaning = "part of the energy whose price per action is an assumption" }
recalled_energy_fraction = { type = "DOUBLE", null = true, meaning = "part of the energy whose price per action is a public number not checked against its source" }
latency_fs = { type = "HUGEINT", unit = "fs", meaning = "per batch, exact" }
latency_s = { type = "DOUBLE", unit = "s", meaning = "per batch" }
throughput_per_s = { type = "DOUBLE", unit = "1/s", meaning = "inferences per second" }
edp_js = { type = "DOUBLE", unit = "Js", meaning = "energy x latency" }
average_power_w = { type = "DOUBLE", unit = "W", meaning = "energy over the time from one batch to the next" }
static_power_w = { type = "DOUBLE", unit = "W", meaning = "drawn whatever is computed" }
tdp_w = { type = "DOUBLE", unit = "W", meaning = "the power cap" }
clock_fraction = { type = "DOUBLE", meaning = "of the full clock; below 1 where the power cap gives way" }
clock_hz = { type = "DOUBLE", unit = "Hz", meaning = "the clock that is left, in steady state" }
voltage_factor = { type = "DOUBLE", meaning = "what an action on the chip costs at that clock, relative to the highest voltage of the die" }
uncapped_power_w = { type = "DOUBLE", unit = "W", meaning = "what the run would draw at its full clock: above the cap where that lowers the clock" }
interval_s = { type = "DOUBLE", unit = "s", meaning = "from one batch to the next, in steady state: the latency where batches do not overlap" }
throughput_limit = { type = "VARCHAR", meaning = "latency where a batch starts after another has ended; cores, devices or pipeline stage that always have work; memory bandwidth; power cap" }
mac_count = { type = "BIGINT", meaning = "multiply-accumulates" }
attained_ops_per_s = { type = "DOUBLE", unit = "ops/s", meaning = "two per MAC, over the time from one batch to the next" }
peak_ops_per_s = { type = "DOUBLE", unit = "ops/s", meaning = "dense, at this precision" }
compute_utilization_fraction = { type = "DOUBLE", meaning = "operations computed over what the peak allows, in steady state" }
dram_bytes = { type = "DOUBLE", unit = "B", meaning = "read and written off chip" }
pass_bytes = { type = "DOUBLE", unit = "B", meaning = "read and written again by passes that the runtime adds, at any level" }
memory_bandwidth_bytes_per_s = { type = "DOUBLE", unit = "B/s", meaning = "of the off-chip memory, as published" }
bandwidth_utilization_fraction = { type = "DOUBLE", meaning = "attained over published off-chip bandwidth" }
peak_memory_bytes = { type = "BIGINT", unit = "B", meaning = "weights and peak activations" }
weight_bytes = { type = "BIGINT", unit = "B", meaning = "parameters and buffers read, as they are stored" }
activation_bytes = { type = "BIGINT", unit = "B", meaning = "peak of live activations" }
memory_capacity_bytes = { type = "DOUBLE", unit = "B", meaning = "of the hardware's memory; a model that does not fit is refused" }
memory_fraction = { type = "DOUBLE", meaning = "peak memory over capacity" }
unit_name = { type = "VARCHAR", meaning = "what one unit is called" }
units_used_count = { type = "INTEGER", meaning = "units with work, mean over time, rounded up" }
units_total_count = { type = "INTEGER", meaning = "units that have this precision" }
tile_count = { type = "DOUBLE", meaning = "tiles of all subgraphs" }
wave_count = { type = "DOUBLE", meaning = "rounds of tiles over the units, of all subgraphs" }
wave_fill_fraction = { type = "DOUBLE", null = true, meaning = "tiles over waves x units; null where nothing has a tile" }
executed_mac_count = { type = "DOUBLE", null = true, meaning = "MAC slots of the tiles, padding included" }
padding_fraction = { type = "DOUBLE", null = true, meaning = "part of those slots without a MAC" }
subgraph_count = { type = "BIGINT", meaning = "subgraphs that run" }
operator_count = { type = "BIGINT", meaning = "operators that run" }
kernel_count = { type = "HUGEINT", meaning = "kernels launched" }
run_id = { type = "INTEGER", meaning = "number of the run" }
*/
WITH ledger AS (
    SELECT
        unnest(energy_by_part(a.part, a.common_category, l.energy_fj)),
        sum(CASE WHEN e.basis = 'assumed' THEN l.energy_fj ELSE 0 END) AS assumed_fj,
        sum(CASE WHEN e.basis = 'recalled' THEN l.energy_fj ELSE 0 END) AS recalled_fj
    FROM run_action AS l
    JOIN run AS r ON r.run_id = l.run_id
    JOIN action AS a ON a.action_id = l.action_id
    JOIN energy_per_action AS e ON e.hardware_digest = r.hardware_digest AND e.action_id = l.action_id
    WHERE l.run_id = $run_id
),
allocation AS (
    SELECT
        sum(latency_fs) AS latency_fs,
        sum(dram_bytes ORDER BY subgraph_index) AS dram_bytes,
        sum(pass_bytes ORDER BY subgraph_index) AS pass_bytes,
        sum(tile_count ORDER BY subgraph_index) AS tile_count,
        sum(wave_count ORDER BY subgraph_index) AS wave_count,
        CASE
            WHEN count(executed_mac_count) = count(*) THEN sum(executed_mac_count ORDER BY subgraph_index)
        END AS executed_mac_count,
        sum(kernel_count) AS kernel_count,
        count(*) AS subgraph_count
    FROM run_subgraph
    WHERE run_id = $run_id
),
work AS (
    SELECT count(*) AS operator_count
    FROM run_operator
    WHERE run_id = $run_id
),
fact AS (
    SELECT
        max(f.value) FILTER (WHERE f.quantity = 'tdp') AS tdp_w,
        max(f.value) FILTER (WHERE f.quantity = 'static_power') AS static_power_w,
        max(f.value) FILTER (WHERE f.quantity = 'memory_capacity') AS memory_capacity_bytes
    FROM run AS r
    JOIN hardware_fact AS f ON f.hardware_digest = r.hardware_digest
    WHERE r.run_id = $run_id
)
SELECT
    r.model,
    r.configured_hardware AS hardware,
    r.architecture,
    r.batch,
    r.precision_label AS "precision",
    r.runtime,
    r.is_projection,
    l.energy_fj,
    r.energy_j,
    joules(l.compute_fj) AS compute_energy_j,
    joules(l.memory_fj) AS memory_energy_j,
    joules(l.control_fj) AS control_energy_j,
    joules(l.static_fj) AS static_energy_j,
    joules(l.overhead_fj) AS overhead_energy_j,
    fraction(l.overhead_fj, l.energy_fj) AS overhead_fraction,
    r.energy_per_inference_j,
    fraction(l.assumed_fj, l.energy_fj) AS assumed_energy_fraction,
    fraction(l.recalled_fj, l.energy_fj) AS recalled_energy_fraction,
    s.latency_fs,
    r.latency_s,
    r.throughput_per_s,
    r.edp_js,
    r.average_power_w,
    f.static_power_w,
    f.tdp_w,
    r.clock_fraction,
    r.clock_hz,
    r.voltage_factor,
    r.uncapped_power_w,
    r.interval_s,
    r.throughput_limit,
    r.mac_count,
    r.attained_ops_per_s,
    r.peak_ops_per_s,
    r.compute_utilization_fraction,
    s.dram_bytes,
    s.pass_bytes,
    u.memory_bandwidth_bytes_per_s,
    r.bandwidth_utilization_fraction,
    r.peak_memory_bytes,
    r.weight_bytes,
    r.activation_bytes,
    f.memory_capacity_bytes,
    r.peak_memory_bytes / f.memory_capacity_bytes AS memory_fraction,
    v.unit_name,
    r.units_used_count,
    r.units_total_count,
    s.tile_count,
    s.wave_count,
    s.tile_count / nullif(s.wave_count * r.units_total_count, 0e0) AS wave_fill_fraction,
    s.executed_mac_count,
    1e0 - r.mac_count / nullif(s.executed_mac_count, 0e0) AS padding_fraction,
    s.subgraph_count,
    o.operator_count,
    s.kernel_count,
    r.run_id
FROM runs AS r
JOIN run AS u ON u.run_id = r.run_id
JOIN hardware_version AS v ON v.hardware_digest = r.hardware_digest
CROSS JOIN ledger AS l
CROSS JOIN allocation AS s
CROSS JOIN work AS o
CROSS JOIN fact AS f
WHERE r.run_id = $run_id
ORDER BY r.run_id
