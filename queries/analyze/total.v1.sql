/*
record = "RunTotal"
summary = "Totals of one run: energy by part, time, utilization, power cap, memory, allocation"
grain = "one row"
from = "cube.run(run_ids := [$run_id], rows := 'evaluated')"
columns = [
    "model", "hardware", "architecture", "batch", "precision", "runtime", "is_projection", "energy_fj", "energy_j",
    "compute_energy_j", "memory_energy_j", "control_energy_j", "static_energy_j", "overhead_energy_j",
    "overhead_fraction", "energy_per_inference_j", "assumed_energy_fraction", "recalled_energy_fraction",
    "latency_fs", "latency_s", "throughput_per_s", "edp_js", "average_power_w", "static_power_w", "tdp_w",
    "clock_fraction", "clock_hz", "voltage_factor", "uncapped_power_w", "interval_s", "throughput_limit",
    "mac_count", "attained_ops_per_s", "peak_ops_per_s", "compute_utilization_fraction", "dram_bytes", "pass_bytes",
    "memory_bandwidth_bytes_per_s", "bandwidth_utilization_fraction", "peak_memory_bytes", "weight_bytes",
    "activation_bytes", "memory_capacity_bytes", "memory_fraction", "unit_name", "units_used_count",
    "units_total_count", "tile_count", "wave_count", "wave_fill_fraction", "executed_mac_count", "padding_fraction",
    "subgraph_count", "operator_count", "kernel_count", "run_id",
]
order = ["run_id"]
[parameters]
run_id = { type = "INTEGER", meaning = "run, as listed by `run.list`" }
*/
