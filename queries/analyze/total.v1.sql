/*
record = "RunTotal"
summary = "Totals of one run: energy by part, time, utilization, power cap, memory, allocation"
grain = "one row"
order = ["run_id"]
[parameters]
run_id = { type = "INTEGER", meaning = "run, as listed by `run.list`" }
*/
SELECT
    v.model, v.hardware, v.architecture, v.batch, v.precision, v.runtime, v.is_projection, v.energy_fj, v.energy_j,
    v.compute_energy_j, v.memory_energy_j, v.control_energy_j, v.static_energy_j, v.overhead_energy_j,
    v.overhead_fraction, v.energy_per_inference_j, v.assumed_energy_fraction, v.recalled_energy_fraction,
    v.latency_fs, v.latency_s, v.throughput_per_s, v.edp_js, v.average_power_w, v.static_power_w, v.tdp_w,
    v.clock_fraction, v.clock_hz, v.voltage_factor, v.uncapped_power_w, v.interval_s, v.throughput_limit, v.mac_count,
    v.attained_ops_per_s, v.peak_ops_per_s, v.compute_utilization_fraction, v.dram_bytes, v.pass_bytes,
    v.memory_bandwidth_bytes_per_s, v.bandwidth_utilization_fraction, v.peak_memory_bytes, v.weight_bytes,
    v.activation_bytes, v.memory_capacity_bytes, v.memory_fraction, v.unit_name, v.units_used_count,
    v.units_total_count, v.tile_count, v.wave_count, v.wave_fill_fraction, v.executed_mac_count, v.padding_fraction,
    v.subgraph_count, v.operator_count, v.kernel_count, v.run_id
FROM cube.run(run_ids := [$run_id], rows := 'evaluated') AS v
ORDER BY v.run_id
