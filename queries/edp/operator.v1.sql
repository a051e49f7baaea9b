/*
name = "edp.operator"
record = "EdpOperatorShare"
version = 1
schema = 1
summary = "How a run's energy-delay product spreads over its operators, by part and cumulatively"
grain = "one row per operator; shares sum to the run's energy-delay product"
from = "cube.place(run_ids := [$run_id], division := 'operator')"
columns = [
    "rank", "operator_index", "subgraph_index", "name", "operation", "kind", "fusion_pattern", "is_fused",
    "energy_fj", "energy_j", "latency_fs", "latency_s", "edp_js", "edp_share_js",
    "edp_share_fraction AS share_fraction", "cumulative_fraction", "compute_share_fraction", "memory_share_fraction",
    "control_share_fraction", "static_share_fraction", "halving_fraction", "bottleneck",
]
order = ["rank"]
[parameters]
run_id = { type = "INTEGER", meaning = "run" }
*/
