/*
name = "compare.summary"
record = "Comparison"
version = 1
schema = 1
summary = "Energy, latency, memory and utilization of each run, with ratios to a baseline"
grain = "one row per run asked for, refused ones included"
order = ["energy_per_inference_j, refused runs last", "hardware", "run_id"]
listed = [
    "model", "batch", "hardware", "label", "architecture", "precision", "runtime", "status", "energy_j",
    "energy_per_inference_j", "latency_s", "throughput_per_s", "average_power_w", "edp_js", "peak_memory_bytes",
    "compute_utilization_fraction", "bandwidth_utilization_fraction", "units_used_count", "units_total_count",
    "unit_name", "overhead_energy_j", "overhead_fraction", "energy_ratio", "latency_ratio", "baseline_hardware",
    "clock_fraction", "clock_hz", "voltage_factor", "uncapped_power_w", "interval_s", "placement", "throughput_limit",
    "assumed_energy_fraction", "recalled_energy_fraction", "unattributed_energy_fraction", "energy_low_j",
    "energy_high_j", "energy_half_width", "energy_doubt", "latency_low_s", "latency_high_s", "latency_half_width",
    "latency_doubt", "is_projection", "is_available", "reason", "run_id",
]
[parameters]
run_ids = { type = "INTEGER[]", meaning = "runs to compare, as `run.list` shows them" }
baseline = { type = "VARCHAR", default = "", meaning = "hardware that ratios are relative to, at its first run; empty for the first run that was not refused" }
[columns]
label = { type = "VARCHAR", meaning = "hardware, in words with precision, batch and runtime where the runs differ in one" }
energy_ratio = { type = "DOUBLE", null = true, meaning = "energy per inference over the baseline's" }
latency_ratio = { type = "DOUBLE", null = true, meaning = "latency of a batch over the baseline's" }
baseline_hardware = { type = "VARCHAR", null = true, meaning = "what the ratios are relative to, with its configuration where the runs differ in that" }
*/
SELECT
    r.model, r.batch, r.hardware, n.label, r.architecture, r.precision, r.runtime, r.status, r.energy_j,
    r.energy_per_inference_j, r.latency_s, r.throughput_per_s, r.average_power_w, r.edp_js, r.peak_memory_bytes,
    r.compute_utilization_fraction, r.bandwidth_utilization_fraction, r.units_used_count, r.units_total_count,
    r.unit_name, r.overhead_energy_j, r.overhead_fraction,
    r.energy_per_inference_j
        / arg_min(r.energy_per_inference_j, r.position) FILTER (WHERE r.status = 'ok' AND $baseline IN ('', r.hardware)) OVER ()
        AS energy_ratio,
    r.latency_s
        / arg_min(r.latency_s, r.position) FILTER (WHERE r.status = 'ok' AND $baseline IN ('', r.hardware)) OVER () AS latency_ratio,
    arg_min(n.label, r.position) FILTER (WHERE r.status = 'ok' AND $baseline IN ('', r.hardware)) OVER () AS baseline_hardware,
    r.clock_fraction, r.clock_hz, r.voltage_factor, r.uncapped_power_w, r.interval_s, r.placement, r.throughput_limit,
    r.assumed_energy_fraction, r.recalled_energy_fraction, r.unattributed_energy_fraction, r.energy_low_j,
    r.energy_high_j, r.energy_half_width, r.energy_doubt, r.latency_low_s, r.latency_high_s, r.latency_half_width,
    r.latency_doubt, r.is_projection, r.is_available, r.reason, r.run_id
FROM cube.run(run_ids := $run_ids) AS r
JOIN labels_of($run_ids) AS n ON n.run_id = r.run_id
ORDER BY r.energy_per_inference_j NULLS LAST, r.hardware, r.run_id
