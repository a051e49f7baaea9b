/*
record = "RunFigure"
summary = "Totals of several runs: energy by part, time, utilization, memory, bottlenecks of their subgraphs"
grain = "one row per requested run, refused ones included"
from = "cube.run(run_ids := $run_ids)"
columns = [
    "model", "hardware", "architecture", "batch", "precision", "runtime", "status", "energy_fj", "energy_j",
    "energy_per_inference_j", "compute_energy_j", "memory_energy_j", "control_energy_j", "static_energy_j",
    "overhead_energy_j", "overhead_fraction", "latency_s", "throughput_per_s", "average_power_w", "edp_js",
    "compute_utilization_fraction", "bandwidth_utilization_fraction", "units_used_count", "units_total_count",
    "unit_name", "peak_memory_bytes", "activation_bytes", "weight_bytes", "memory_capacity_bytes",
    "compute_bound_count", "memory_bound_count", "launch_bound_count", "compute_time_fraction",
    "memory_time_fraction", "launch_time_fraction", "clock_fraction", "clock_hz", "voltage_factor",
    "uncapped_power_w", "interval_s", "throughput_limit", "is_projection", "is_available", "reason", "run_id",
]
order = ["model", "position", "run_id"]
*/
