/*
record = "EdpOperatorShare"
summary = "Energy-delay product of each operator of a run, by part and cumulative"
grain = "one row per operator; shares sum to the run's energy-delay product"
table = [
    "rank", "name", "kind", "fusion_pattern", "is_fused", "energy_j", "latency_s", "edp_js",
    "edp_share_js.ranking", "edp_share_fraction", "cumulative_fraction.ranking", "compute_share_fraction",
    "memory_share_fraction", "control_share_fraction", "static_share_fraction", "halving_fraction", "bottleneck",
]
order = ["rank"]
[columns]
name = { heading = "operator" }
edp_share_fraction = { heading = "run share" }
is_fused = { heading = "fused" }
compute_share_fraction = { heading = "compute" }
memory_share_fraction = { heading = "memory" }
static_share_fraction = { heading = "static" }
fusion_pattern = { heading = "pattern" }
rank = { heading = "#" }
halving_fraction = { heading = "saved by halving" }
edp_share_js = { heading = "additive EDP" }
control_share_fraction = { heading = "control" }
edp_js = { heading = "own EDP" }
*/
SELECT
    v.rank, v.operator_index, v.subgraph_index, v.name, v.operation, v.kind, v.fusion_pattern, v.is_fused, v.energy_fj,
    v.energy_j, v.latency_fs, v.latency_s, v.edp_js, v.edp_share_js, v.edp_share_fraction, v.cumulative_fraction,
    v.compute_share_fraction, v.memory_share_fraction, v.control_share_fraction, v.static_share_fraction,
    v.halving_fraction, v.bottleneck
FROM cube.part(run_ids := [$run_id], division := 'operator') AS v
ORDER BY v.rank
