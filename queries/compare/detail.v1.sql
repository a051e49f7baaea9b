/*
record = "RunFigure"
summary = "Totals of several runs: energy by part, time, utilization, memory, bottlenecks of their subgraphs"
grain = "one row per requested run, refused ones included"
order = ["model", "position", "run_id"]
*/
SELECT
    v.model, v.hardware, v.architecture, v.batch, v.precision, v.runtime, v.status, v.energy_fj, v.energy_j,
    v.energy_per_inference_j, v.compute_energy_j, v.memory_energy_j, v.control_energy_j, v.static_energy_j,
    v.overhead_energy_j, v.overhead_fraction, v.latency_s, v.throughput_per_s, v.average_power_w, v.edp_js,
    v.compute_utilization_fraction, v.bandwidth_utilization_fraction, v.units_used_count, v.units_total_count,
    v.unit_name, v.peak_memory_bytes, v.activation_bytes, v.weight_bytes, v.memory_capacity_bytes,
    v.compute_bound_count, v.memory_bound_count, v.launch_bound_count, v.compute_time_fraction,
    v.memory_time_fraction, v.launch_time_fraction, v.clock_fraction, v.clock_hz, v.voltage_factor,
    v.uncapped_power_w, v.interval_s, v.throughput_limit, v.is_projection, v.is_available, v.reason, v.run_id
FROM cube.run(run_ids := $run_ids) AS v
ORDER BY v.model, v.position, v.run_id
