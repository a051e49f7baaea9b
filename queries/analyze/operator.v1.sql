/*
record = "OperatorShare"
summary = "Operators of a run: energy by part, latency, share, and the saving by fusion"
grain = "one row per operator; energies and latencies sum to the run, exactly"
from = "cube.place(run_ids := [$run_id], division := 'operator')"
columns = [
    "operator_index", "subgraph_index", "name", "operation", "kind", "mac_count", "energy_fj", "energy_j",
    "compute_energy_j", "memory_energy_j", "control_energy_j", "static_energy_j",
    "energy_fraction AS share_fraction", "latency_fs", "latency_s", "latency_fraction", "edp_share_js",
    "edp_share_fraction", "is_fused", "separate_energy_j", "separate_latency_s", "saved_energy_j", "saved_latency_s",
    "dram_bytes", "pass_bytes", "bias_addition_count", "bias_element_count",
]
order = ["operator_index"]
*/
