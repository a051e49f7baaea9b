/*
record = "Placement"
summary = "Placement, time and bottleneck of each subgraph of several runs"
grain = "one row per evaluated run and subgraph"
order = ["position", "run_id", "latency_fs descending", "subgraph_index"]
[parameters]
run_ids = { type = "INTEGER[]", meaning = "runs to show; refused ones are omitted" }
[columns]
fusion_pattern = { heading = "pattern" }
compute_utilization_fraction = { heading = "utilization" }
latency_fraction = { heading = "share of latency" }
units_used_count = { heading = "busy units" }
*/
SELECT
    v.hardware, v.subgraph_index, v.subgraph, v.fusion_pattern, v.latency_s, v.latency_fraction, v.bottleneck,
    v.compute_s, v.memory_s, v.launch_s, v.pass_s, v.units_used_count, v.units_total_count, v.unit_name, v.tile_count,
    v.wave_count, v.compute_utilization_fraction, v.energy_j, v.run_id
FROM cube.part(run_ids := $run_ids, division := 'subgraph', energy := 'whole') AS v
ORDER BY v.position, v.run_id, v.latency_fs DESC, v.subgraph_index
