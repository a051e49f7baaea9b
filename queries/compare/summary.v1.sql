/*
record = "Comparison"
summary = "Energy, latency, memory and utilization of each run, with ratios to a baseline"
grain = "one row per requested run, refused ones included"
order = ["the metric that decides, best first, refused runs last", "hardware", "run_id"]
[parameters]
run_ids = { type = "INTEGER[]", meaning = "runs to compare, as listed by `run.list`" }
baseline = { type = "VARCHAR", default = "", meaning = "hardware that ratios are relative to, at its first run; empty for the best available run" }
metric = { type = "VARCHAR", default = "energy", meaning = "metric of the order and the ratio: energy or energy x delay (edp) per inference, latency or memory of a batch, throughput, power or efficiency" }
[columns]
label = { type = "VARCHAR", meaning = "hardware, with precision, batch and runtime if the runs differ in any of these" }
value = { type = "DOUBLE", null = true, meaning = "the metric, in its SI unit; energy and energy x delay are per inference" }
ratio = { type = "DOUBLE", null = true, meaning = "the metric over the baseline's" }
baseline_hardware = { type = "VARCHAR", null = true, meaning = "hardware that ratios are relative to, with its configuration if the runs differ in configuration" }
average_power_w = { heading = "power" }
inferences_per_j = { heading = "inferences per joule" }
overhead_fraction = { heading = "overhead" }
latency_half_width = { heading = "latency range" }
compute_utilization_fraction = { heading = "utilization" }
units_used_count = { heading = "busy units" }
edp_js = { heading = "energy x delay" }
peak_memory_bytes = { heading = "memory" }
energy_half_width = { heading = "energy range" }
*/
-- the default baseline is the best run of hardware that can be bought or rented, if there is any; of equal ones, that
-- whose name is first
SELECT
    r.model, r.batch, r.hardware, n.label, r.architecture, r.precision, r.runtime, r.status, r.energy_j,
    r.energy_per_inference_j, r.inferences_per_j, r.latency_s, r.throughput_per_s, r.average_power_w, r.edp_js, r.peak_memory_bytes,
    r.compute_utilization_fraction, r.bandwidth_utilization_fraction, r.units_used_count, r.units_total_count,
    r.unit_name, r.overhead_energy_j, r.overhead_fraction,
    CASE $metric
        WHEN 'latency' THEN r.latency_s
        WHEN 'edp' THEN r.energy_per_inference_j * r.latency_s
        WHEN 'memory' THEN r.peak_memory_bytes
        WHEN 'throughput' THEN r.throughput_per_s
        WHEN 'power' THEN r.average_power_w
        WHEN 'efficiency' THEN r.inferences_per_j
        ELSE r.energy_per_inference_j
    END AS value,
    value / arg_min(
        value,
        row(
            if($baseline <> '', 0e0 + r.position, if(r.is_available, 0e0, 1e0)),
            as_cost(find_metric($metric).is_higher_better, value),
            n.label
        )
    ) FILTER (WHERE r.status = 'ok' AND $baseline IN ('', r.hardware)) OVER () AS ratio,
    arg_min(
        n.label,
        row(
            if($baseline <> '', 0e0 + r.position, if(r.is_available, 0e0, 1e0)),
            as_cost(find_metric($metric).is_higher_better, value),
            n.label
        )
    ) FILTER (WHERE r.status = 'ok' AND $baseline IN ('', r.hardware)) OVER () AS baseline_hardware,
    r.clock_fraction, r.clock_hz, r.voltage_factor, r.uncapped_power_w, r.interval_s, r.placement, r.throughput_limit,
    r.assumed_energy_fraction, r.recalled_energy_fraction, r.unattributed_energy_fraction, r.energy_low_j,
    r.energy_high_j, r.energy_half_width, r.energy_doubt, r.latency_low_s, r.latency_high_s, r.latency_half_width,
    r.latency_doubt, r.is_projection, r.is_available, r.reason, r.run_id
FROM cube.run(run_ids := $run_ids) AS r
JOIN cube.label(run_ids := $run_ids) AS n ON n.run_id = r.run_id
ORDER BY as_cost(find_metric($metric).is_higher_better, value) NULLS LAST, r.hardware, r.run_id
