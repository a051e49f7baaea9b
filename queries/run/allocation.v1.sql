/*
summary = "Placement, time and bottleneck of each subgraph of one run"
grain = "one row per subgraph that runs; latencies sum to the run, exactly"
order = ["subgraph_index"]
*/
SELECT
    v.subgraph_index, v.units_used_count, v.units_total_count, v.unit_name, v.tile_count, v.wave_count,
    v.wave_fill_fraction, v.executed_mac_count, v.padding_fraction, v.kernel_count, v.latency_fs, v.latency_s,
    v.compute_s, v.memory_s, v.launch_s, v.pass_s, v.bottleneck, v.dram_bytes, v.moved_bytes, v.pass_bytes,
    v.compute_utilization_fraction, v.bandwidth_utilization_fraction
FROM cube.part(run_ids := [$run_id], division := 'subgraph', energy := 'none') AS v
ORDER BY v.subgraph_index
