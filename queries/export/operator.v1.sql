/*
record = "Step"
summary = "Operators of one run in order, with their kernels"
grain = "one row per operator that runs; energies and latencies sum to the run, exactly"
from = "cube.place(run_ids := [$run_id], division := 'operator')"
columns = [
    "kernel_index AS place", "operator_index", "subgraph_index", "name", "module_path", "operation", "kind", "aten",
    "output_shape", "subgraph", "fusion_pattern", "is_merged AS is_fused", "kernel_count", "bottleneck",
    "units_used_count", "units_total_count", "unit_name", "mac_count", "moved_bytes", "dram_bytes", "latency_fs", "energy_fj",
    "compute_fj", "memory_fj", "control_fj", "static_fj", "energy_j", "latency_s", "edp_share_js",
]
order = ["kernel_index", "operator_index"]
*/
