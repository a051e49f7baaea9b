/*
record = "Allocation"
summary = "Placement, time and bottleneck of each subgraph of one run"
grain = "one row per subgraph that runs; latencies sum to the run, exactly"
from = "cube.place(run_ids := [$run_id], division := 'subgraph', energy := 'none')"
columns = [
    "subgraph_index", "units_used_count", "units_total_count", "unit_name", "tile_count", "wave_count", "wave_fill_fraction",
    "executed_mac_count", "padding_fraction", "kernel_count", "latency_fs", "latency_s", "compute_s", "memory_s",
    "launch_s", "bottleneck", "dram_bytes", "moved_bytes", "pass_bytes", "compute_utilization_fraction",
    "bandwidth_utilization_fraction",
]
order = ["subgraph_index"]
*/
