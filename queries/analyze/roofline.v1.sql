/*
record = "SubgraphRoof"
summary = "Subgraphs of a run on the roofline of its hardware: operations per off-chip byte, and operations per second"
grain = "one row per subgraph"
order = ["subgraph_index"]
[columns]
kind = { type = "VARCHAR", meaning = "operation of the operator, or of the subgraph's leading operator: conv2d, linear, add ..." }
*/
SELECT
    v.subgraph_index, v.name,
    v.operation AS kind,
    v.fusion_pattern, v.energy_j, v.latency_s, v.latency_fraction, v.bottleneck, v.dram_bytes,
    v.dram_intensity_ops_per_byte, v.attained_ops_per_s, v.peak_ops_per_s, v.memory_bandwidth_bytes_per_s,
    v.ridge_ops_per_byte, v.roofline_ops_per_s, v.roofline_fraction
FROM cube.part(run_ids := [$run_id], division := 'subgraph') AS v
ORDER BY v.subgraph_index
