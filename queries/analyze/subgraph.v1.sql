/*
record = "SubgraphShare"
summary = "Subgraphs of a run: energy by part, latency, bottleneck, allocation"
grain = "one row per subgraph; energies and latencies sum to the run, exactly"
from = "cube.place(run_ids := [$run_id], division := 'subgraph')"
columns = [
    "subgraph_index", "name", "fusion_pattern", "operator_count", "kernel_count", "mac_count", "energy_fj",
    "energy_j", "compute_energy_j", "memory_energy_j", "control_energy_j", "static_energy_j",
    "energy_fraction AS share_fraction", "latency_fs", "latency_s", "latency_fraction", "edp_share_js",
    "edp_share_fraction", "bottleneck", "compute_s", "memory_s", "launch_s", "dram_bytes", "units_used_count",
    "units_total_count", "unit_name", "tile_count", "wave_count", "wave_fill_fraction", "executed_mac_count", "padding_fraction",
    "compute_utilization_fraction", "bandwidth_utilization_fraction", "pass_bytes",
]
order = ["subgraph_index"]
*/
