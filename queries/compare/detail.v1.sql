/*
name = "compare.detail"
record = "RunFigure"
version = 1
schema = 1
summary = "Several runs, each as a whole: energy by part, time, utilization, memory, what bounds its subgraphs"
grain = "one row per run asked for, refused ones included"
order = ["model", "position in run_ids"]
[parameters]
run_ids = { type = "INTEGER[]", meaning = "runs to look at, as `run.list` shows them" }
[columns]
model = { type = "VARCHAR", meaning = "model" }
hardware = { type = "VARCHAR", meaning = "catalogue id, with @MODE where the power mode is not the default" }
architecture = { type = "VARCHAR", meaning = "architecture class" }
batch = { type = "INTEGER", meaning = "samples in one input" }
precision = { type = "VARCHAR", meaning = "precision; bf16/int4 where weights of products are stored at another" }
runtime = { type = "VARCHAR", meaning = "eager, graph or fused" }
status = { type = "VARCHAR", meaning = "ok or unsupported" }
energy_fj = { type = "HUGEINT", null = true, unit = "fJ", meaning = "per batch, exact" }
energy_j = { type = "DOUBLE", null = true, unit = "J", meaning = "per batch, static energy included" }
energy_per_inference_j = { type = "DOUBLE", null = true, unit = "J", meaning = "energy over batch" }
compute_energy_j = { type = "DOUBLE", null = true, unit = "J", meaning = "of arithmetic and its registers" }
memory_energy_j = { type = "DOUBLE", null = true, unit = "J", meaning = "of moving and keeping data" }
control_energy_j = { type = "DOUBLE", null = true, unit = "J", meaning = "of deciding what happens next, and of what regulators lose" }
static_energy_j = { type = "DOUBLE", null = true, unit = "J", meaning = "drawn whatever is computed" }
overhead_energy_j = { type = "DOUBLE", null = true, unit = "J", meaning = "architectural overhead: of what is neither arithmetic nor off-chip memory nor board nor static" }
overhead_fraction = { type = "DOUBLE", null = true, meaning = "part of the energy that is architectural overhead" }
latency_s = { type = "DOUBLE", null = true, unit = "s", meaning = "per batch" }
throughput_per_s = { type = "DOUBLE", null = true, unit = "1/s", meaning = "inferences per second" }
average_power_w = { type = "DOUBLE", null = true, unit = "W", meaning = "energy over the time from one batch to the next" }
edp_js = { type = "DOUBLE", null = true, unit = "Js", meaning = "energy x latency" }
compute_utilization_fraction = { type = "DOUBLE", null = true, meaning = "operations computed over what the peak allows, in steady state" }
bandwidth_utilization_fraction = { type = "DOUBLE", null = true, meaning = "attained over published off-chip bandwidth" }
units_used_count = { type = "INTEGER", null = true, meaning = "units with work, mean over time, rounded up" }
units_total_count = { type = "INTEGER", null = true, meaning = "units that have this precision" }
unit_name = { type = "VARCHAR", meaning = "what one unit is called" }
peak_memory_bytes = { type = "BIGINT", null = true, unit = "B", meaning = "weights and peak activations" }
activation_bytes = { type = "BIGINT", null = true, unit = "B", meaning = "peak of live activations" }
weight_bytes = { type = "BIGINT", null = true, unit = "B", meaning = "parameters and buffers read" }
memory_capacity_bytes = { type = "DOUBLE", null = true, unit = "B", meaning = "of the hardware" }
compute_bound_count = { type = "BIGINT", null = true, meaning = "subgraphs that compute bounds" }
memory_bound_count = { type = "BIGINT", null = true, meaning = "subgraphs that memory bounds" }
launch_bound_count = { type = "BIGINT", null = true, meaning = "subgraphs that their launch bounds" }
compute_time_fraction = { type = "DOUBLE", null = true, meaning = "of the latency in subgraphs that compute bounds" }
memory_time_fraction = { type = "DOUBLE", null = true, meaning = "of the latency in subgraphs that memory bounds" }
launch_time_fraction = { type = "DOUBLE", null = true, meaning = "of the latency in subgraphs that their launch bounds" }
clock_fraction = { type = "DOUBLE", null = true, meaning = "of the full clock; below 1 where the power cap gives way" }
clock_hz = { type = "DOUBLE", null = true, unit = "Hz", meaning = "the clock that is left, in steady state" }
voltage_factor = { type = "DOUBLE", null = true, meaning = "what an action on the chip costs at that clock, relative to the highest voltage of the die" }
uncapped_power_w = { type = "DOUBLE", null = true, unit = "W", meaning = "what the run would draw at its full clock: above the cap where that lowers the clock" }
interval_s = { type = "DOUBLE", null = true, unit = "s", meaning = "from one batch to the next, in steady state: the latency where batches do not overlap" }
throughput_limit = { type = "VARCHAR", null = true, meaning = "latency where a batch starts after another has ended; cores, devices or pipeline stage that always have work; memory bandwidth; power cap" }
is_projection = { type = "BOOLEAN", meaning = "key numbers of the hardware are projections or estimates" }
is_available = { type = "BOOLEAN", meaning = "it can be bought or rented, at a price that is no guess" }
reason = { type = "VARCHAR", meaning = "why it is unsupported" }
run_id = { type = "INTEGER", meaning = "number of the run" }
*/
WITH ledger AS (
    SELECT
        l.run_id,
        unnest(energy_by_part(a.part, a.common_category, l.energy_fj))
    FROM run_action AS l
    JOIN action AS a ON a.action_id = l.action_id
    WHERE l.run_id IN (SELECT unnest($run_ids))
    GROUP BY l.run_id
),
allocation AS (
    SELECT
        run_id,
        count(*) FILTER (WHERE bottleneck = 'compute') AS compute_bound_count,
        count(*) FILTER (WHERE bottleneck = 'memory') AS memory_bound_count,
        count(*) FILTER (WHERE bottleneck = 'launch') AS launch_bound_count,
        nullif(CAST(sum(latency_fs) AS DOUBLE), 0e0) AS latency_fs,
        CAST(sum(CASE WHEN bottleneck = 'compute' THEN latency_fs ELSE 0 END) AS DOUBLE) AS compute_fs,
        CAST(sum(CASE WHEN bottleneck = 'memory' THEN latency_fs ELSE 0 END) AS DOUBLE) AS memory_fs,
        CAST(sum(CASE WHEN bottleneck = 'launch' THEN latency_fs ELSE 0 END) AS DOUBLE) AS launch_fs
    FROM run_subgraph
    WHERE run_id IN (SELECT unnest($run_ids))
    GROUP BY run_id
),
answered AS (
    SELECT
        run_id, energy_j, energy_per_inference_j, latency_s, interval_s, throughput_per_s, average_power_w, edp_js,
        compute_utilization_fraction, bandwidth_utilization_fraction, units_used_count, peak_memory_bytes
    FROM runs
    WHERE run_id IN (SELECT unnest($run_ids))
),
fact AS (
    SELECT hardware_digest, max(value) AS memory_capacity_bytes
    FROM hardware_fact
    WHERE quantity = 'memory_capacity'
    GROUP BY hardware_digest
)
SELECT
    r.model,
    r.configured_hardware AS hardware,
    r.architecture,
    r.batch,
    r.precision_label AS "precision",
    r.runtime,
    CASE WHEN r.refusal IS NULL THEN 'ok' ELSE 'unsupported' END AS status,
    l.energy_fj,
    s.energy_j,
    s.energy_per_inference_j,
    joules(l.compute_fj) AS compute_energy_j,
    joules(l.memory_fj) AS memory_energy_j,
    joules(l.control_fj) AS control_energy_j,
    joules(l.static_fj) AS static_energy_j,
    joules(l.overhead_fj) AS overhead_energy_j,
    fraction(l.overhead_fj, l.energy_fj) AS overhead_fraction,
    s.latency_s,
    s.throughput_per_s,
    s.average_power_w,
    s.edp_js,
    s.compute_utilization_fraction,
    s.bandwidth_utilization_fraction,
    s.units_used_count,
    r.units_total_count,
    r.unit_name,
    s.peak_memory_bytes,
    r.activation_bytes,
    r.weight_bytes,
    f.memory_capacity_bytes,
    a.compute_bound_count,
    a.memory_bound_count,
    a.launch_bound_count,
    a.compute_fs / a.latency_fs AS compute_time_fraction,
    a.memory_fs / a.latency_fs AS memory_time_fraction,
    a.launch_fs / a.latency_fs AS launch_time_fraction,
    r.clock_fraction,
    r.clock_hz,
    r.voltage_factor,
    r.uncapped_power_w,
    s.interval_s,
    r.throughput_limit,
    r.is_projection,
    r.is_available,
    coalesce(r.refusal, '') AS reason,
    r.run_id
FROM run_configurations AS r
LEFT JOIN answered AS s ON s.run_id = r.run_id
LEFT JOIN ledger AS l ON l.run_id = r.run_id
LEFT JOIN allocation AS a ON a.run_id = r.run_id
LEFT JOIN fact AS f ON f.hardware_digest = r.hardware_digest
WHERE r.run_id IN (SELECT unnest($run_ids))
ORDER BY r.model, list_position($run_ids, r.run_id), r.run_id
