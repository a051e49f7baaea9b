/*
record = "EdpShare"
summary = "Energy-delay product of a run by subgraph, by part and cumulatively"
grain = "one row per subgraph; shares sum to the run's energy-delay product"
from = "cube.place(run_ids := [$run_id], division := 'subgraph')"
columns = [
    "rank", "subgraph_index", "name", "fusion_pattern", "operator_count", "energy_fj", "energy_j", "latency_fs",
    "latency_s", "edp_js", "edp_share_js", "edp_share_fraction AS share_fraction", "cumulative_fraction",
    "compute_share_fraction", "memory_share_fraction", "control_share_fraction", "static_share_fraction",
    "halving_fraction", "bottleneck",
]
order = ["rank"]
*/
