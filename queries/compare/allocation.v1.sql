/*
record = "Placement"
summary = "Placement, time and bottleneck of each subgraph of several runs"
grain = "one row per evaluated run and subgraph"
from = "cube.place(run_ids := $run_ids, division := 'subgraph', energy := 'whole')"
columns = [
    "hardware", "subgraph_index", "subgraph", "fusion_pattern", "latency_s", "latency_fraction", "bottleneck",
    "compute_s", "memory_s", "launch_s", "units_used_count", "units_total_count", "unit_name", "tile_count",
    "wave_count", "compute_utilization_fraction", "energy_j", "run_id",
]
order = ["position", "run_id", "latency_fs descending", "subgraph_index"]
[parameters]
run_ids = { type = "INTEGER[]", meaning = "runs to show; refused ones are omitted" }
*/
