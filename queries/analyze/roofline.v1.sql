/*
record = "SubgraphRoof"
summary = "Subgraphs of a run on the roofline of its hardware: operations per off-chip byte, and operations per second"
grain = "one row per subgraph"
from = "cube.place(run_ids := [$run_id], division := 'subgraph')"
columns = [
    "subgraph_index", "name", "operation AS kind", "fusion_pattern", "energy_j", "latency_s", "latency_fraction",
    "bottleneck", "dram_bytes", "dram_intensity_ops_per_byte", "attained_ops_per_s", "peak_ops_per_s",
    "memory_bandwidth_bytes_per_s", "ridge_ops_per_byte", "roofline_ops_per_s", "roofline_fraction",
]
order = ["subgraph_index"]
*/
