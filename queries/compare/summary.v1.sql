/*
name = "compare.summary"
record = "Comparison"
version = 1
schema = 1
summary = "Energy, latency, memory and utilization of each run, with ratios to a baseline"
grain = "one row per run asked for, refused ones included"
order = ["energy_per_inference_j, refused runs last", "hardware", "run_id"]
[parameters]
run_ids = { type = "INTEGER[]", meaning = "runs to compare, as `run.list` shows them" }
baseline = { type = "VARCHAR", default = "", meaning = "hardware that ratios are relative to, at its first run; empty for the first run that was not refused" }
[columns]
model = { type = "VARCHAR", meaning = "model" }
batch = { type = "INTEGER", meaning = "samples in one input" }
hardware = { type = "VARCHAR", meaning = "catalogue id, with @MODE where the power mode is not the default" }
label = { type = "VARCHAR", meaning = "hardware, in words with precision, batch and runtime where the runs differ in one" }
architecture = { type = "VARCHAR", meaning = "architecture class" }
precision = { type = "VARCHAR", meaning = "precision; bf16/int4 where weights of products are stored at another" }
runtime = { type = "VARCHAR", meaning = "eager, graph or fused" }
status = { type = "VARCHAR", meaning = "ok or unsupported" }
energy_j = { type = "DOUBLE", null = true, unit = "J", meaning = "per batch, static energy included" }
energy_per_inference_j = { type = "DOUBLE", null = true, unit = "J", meaning = "of it, per inference" }
latency_s = { type = "DOUBLE", null = true, unit = "s", meaning = "per batch" }
throughput_per_s = { type = "DOUBLE", null = true, unit = "1/s", meaning = "inferences per second" }
average_power_w = { type = "DOUBLE", null = true, unit = "W", meaning = "energy over the time from one batch to the next" }
edp_js = { type = "DOUBLE", null = true, unit = "Js", meaning = "energy x latency" }
peak_memory_bytes = { type = "BIGINT", null = true, unit = "B", meaning = "weights and peak activations" }
compute_utilization_fraction = { type = "DOUBLE", null = true, meaning = "operations computed over what the peak allows, in steady state" }
bandwidth_utilization_fraction = { type = "DOUBLE", null = true, meaning = "attained over published DRAM bandwidth" }
units_used_count = { type = "INTEGER", null = true, meaning = "units with work, mean over time, rounded up" }
units_total_count = { type = "INTEGER", null = true, meaning = "units that have this precision" }
unit_name = { type = "VARCHAR", meaning = "what one unit is called" }
overhead_energy_j = { type = "DOUBLE", null = true, unit = "J", meaning = "architectural overhead: of what is neither arithmetic nor off-chip memory nor board nor static" }
overhead_fraction = { type = "DOUBLE", null = true, meaning = "part of the energy that is architectural overhead" }
energy_ratio = { type = "DOUBLE", null = true, meaning = "energy per inference over the baseline's" }
latency_ratio = { type = "DOUBLE", null = true, meaning = "latency of a batch over the baseline's" }
baseline_hardware = { type = "VARCHAR", null = true, meaning = "what the ratios are relative to, with its configuration where the runs differ in that" }
clock_fraction = { type = "DOUBLE", null = true, meaning = "of the full clock; below 1 where the power cap gives way" }
clock_hz = { type = "DOUBLE", null = true, unit = "Hz", meaning = "the clock that is left, in steady state" }
voltage_factor = { type = "DOUBLE", null = true, meaning = "what an action on the chip costs at that clock, relative to the highest voltage of the die" }
uncapped_power_w = { type = "DOUBLE", null = true, unit = "W", meaning = "what the run would draw at its full clock: above the cap where that lowers the clock" }
interval_s = { type = "DOUBLE", null = true, unit = "s", meaning = "from one batch to the next, in steady state: the latency where batches do not overlap" }
throughput_limit = { type = "VARCHAR", null = true, meaning = "latency where a batch starts after another has ended; cores, devices or pipeline stage that always have work; memory bandwidth; power cap" }
assumed_energy_fraction = { type = "DOUBLE", null = true, meaning = "part of the energy whose price per action is an assumption" }
recalled_energy_fraction = { type = "DOUBLE", null = true, meaning = "part of the energy whose price per action is a public number not checked against its source" }
unattributed_energy_fraction = { type = "DOUBLE", null = true, meaning = "part of the energy that no circuit explains: what the power limit says of busy units and memories beyond all other prices" }
energy_low_j = { type = "DOUBLE", null = true, unit = "J", meaning = "of energy_j: below it one time in ten" }
energy_high_j = { type = "DOUBLE", null = true, unit = "J", meaning = "above it one time in ten" }
energy_half_width = { type = "DOUBLE", null = true, meaning = "of that interval, of the natural logarithm" }
energy_doubt = { type = "VARCHAR", null = true, meaning = "what the interval of the energy follows from" }
latency_low_s = { type = "DOUBLE", null = true, unit = "s", meaning = "of latency_s: below it one time in ten" }
latency_high_s = { type = "DOUBLE", null = true, unit = "s", meaning = "above it one time in ten" }
latency_half_width = { type = "DOUBLE", null = true, meaning = "of that interval, of the natural logarithm" }
latency_doubt = { type = "VARCHAR", null = true, meaning = "what the interval of the latency follows from" }
is_projection = { type = "BOOLEAN", meaning = "key numbers of the hardware are projections or estimates" }
is_available = { type = "BOOLEAN", meaning = "it can be bought or rented, at a price that is no guess" }
reason = { type = "VARCHAR", meaning = "why it is unsupported" }
run_id = { type = "INTEGER", meaning = "number of the run" }
*/
WITH asked AS (
    SELECT
        r.run_id,
        r.model,
        r.batch,
        r.configured_hardware AS hardware,
        r.architecture,
        r.precision_label AS "precision",
        r.runtime,
        n.label,
        r.unit_name,
        r.is_projection,
        r.is_available,
        r.refusal,
        list_position($run_ids, r.run_id) AS position
    FROM run_configurations AS r
    JOIN labels_of($run_ids) AS n ON n.run_id = r.run_id
    WHERE r.run_id IN (SELECT unnest($run_ids))
),
certainty AS (
    SELECT
        l.run_id,
        fraction(sum(CASE WHEN e.basis = 'assumed' THEN l.energy_fj ELSE 0 END), sum(l.energy_fj))
            AS assumed_energy_fraction,
        fraction(sum(CASE WHEN e.basis = 'recalled' THEN l.energy_fj ELSE 0 END), sum(l.energy_fj))
            AS recalled_energy_fraction,
        fraction(sum(CASE WHEN is_unattributed(a.component, a.action) THEN l.energy_fj ELSE 0 END), sum(l.energy_fj))
            AS unattributed_energy_fraction,
        joules(sum_overhead(a.common_category, l.energy_fj)) AS overhead_energy_j,
        fraction(sum_overhead(a.common_category, l.energy_fj), sum(l.energy_fj)) AS overhead_fraction
    FROM run_action AS l
    JOIN run AS r ON r.run_id = l.run_id
    JOIN action AS a ON a.action_id = l.action_id
    JOIN energy_per_action AS e ON e.hardware_digest = r.hardware_digest AND e.action_id = l.action_id
    WHERE l.run_id IN (SELECT unnest($run_ids))
    GROUP BY l.run_id
),
answered AS (
    SELECT
        run_id,
        energy_j,
        energy_per_inference_j,
        latency_s,
        throughput_per_s,
        average_power_w,
        edp_js,
        peak_memory_bytes,
        compute_utilization_fraction,
        bandwidth_utilization_fraction,
        units_used_count,
        units_total_count,
        clock_fraction,
        clock_hz,
        voltage_factor,
        uncapped_power_w,
        interval_s,
        throughput_limit
    FROM runs
    WHERE run_id IN (SELECT unnest($run_ids))
),
baseline AS (
    SELECT a.label, s.energy_per_inference_j, s.latency_s
    FROM asked AS a
    JOIN answered AS s ON s.run_id = a.run_id
    WHERE $baseline = '' OR a.hardware = $baseline
    ORDER BY a.position, a.run_id
    LIMIT 1
)
SELECT
    a.model,
    a.batch,
    a.hardware,
    a.label,
    a.architecture,
    a.precision,
    a.runtime,
    CASE WHEN a.refusal IS NULL THEN 'ok' ELSE 'unsupported' END AS status,
    s.energy_j,
    s.energy_per_inference_j,
    s.latency_s,
    s.throughput_per_s,
    s.average_power_w,
    s.edp_js,
    s.peak_memory_bytes,
    s.compute_utilization_fraction,
    s.bandwidth_utilization_fraction,
    s.units_used_count,
    s.units_total_count,
    a.unit_name,
    c.overhead_energy_j,
    c.overhead_fraction,
    s.energy_per_inference_j / b.energy_per_inference_j AS energy_ratio,
    s.latency_s / b.latency_s AS latency_ratio,
    b.label AS baseline_hardware,
    s.clock_fraction,
    s.clock_hz,
    s.voltage_factor,
    s.uncapped_power_w,
    s.interval_s,
    s.throughput_limit,
    c.assumed_energy_fraction,
    c.recalled_energy_fraction,
    c.unattributed_energy_fraction,
    s.energy_j * exp(-t.energy_half_width) AS energy_low_j,
    s.energy_j * exp(t.energy_half_width) AS energy_high_j,
    t.energy_half_width,
    t.energy_basis AS energy_doubt,
    s.latency_s * exp(-t.latency_half_width) AS latency_low_s,
    s.latency_s * exp(t.latency_half_width) AS latency_high_s,
    t.latency_half_width,
    t.latency_basis AS latency_doubt,
    a.is_projection,
    a.is_available,
    coalesce(a.refusal, '') AS reason,
    a.run_id
FROM asked AS a
LEFT JOIN answered AS s ON s.run_id = a.run_id
LEFT JOIN certainty AS c ON c.run_id = a.run_id
LEFT JOIN run_total AS t ON t.run_id = a.run_id
LEFT JOIN baseline AS b ON TRUE
ORDER BY s.energy_per_inference_j NULLS LAST, a.hardware, a.run_id
