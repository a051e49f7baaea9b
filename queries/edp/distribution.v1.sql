/*
record = "EdpShare"
summary = "Energy-delay product of a run by subgraph, by part and cumulatively"
grain = "one row per subgraph; shares sum to the run's energy-delay product"
table = [
    "rank", "name", "fusion_pattern", "energy_j", "latency_s", "edp_js", "edp_share_js.ranking",
    "edp_share_fraction", "cumulative_fraction.ranking", "compute_share_fraction", "memory_share_fraction",
    "control_share_fraction", "static_share_fraction", "halving_fraction", "bottleneck",
]
order = ["rank"]
[columns]
edp_share_fraction = { heading = "run share" }
compute_share_fraction = { heading = "compute" }
memory_share_fraction = { heading = "memory" }
static_share_fraction = { heading = "static" }
fusion_pattern = { heading = "pattern" }
rank = { heading = "#" }
halving_fraction = { heading = "saved by halving" }
name = { heading = "subgraph" }
edp_share_js = { heading = "additive EDP" }
control_share_fraction = { heading = "control" }
edp_js = { heading = "own EDP" }
*/
SELECT
    v.rank, v.subgraph_index, v.name, v.fusion_pattern, v.operator_count, v.energy_fj, v.energy_j, v.latency_fs,
    v.latency_s, v.edp_js, v.edp_share_js,
    v.edp_share_fraction,
    v.cumulative_fraction, v.compute_share_fraction, v.memory_share_fraction, v.control_share_fraction,
    v.static_share_fraction, v.halving_fraction, v.bottleneck
FROM cube.part(run_ids := [$run_id], division := 'subgraph') AS v
ORDER BY v.rank
