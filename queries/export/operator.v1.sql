/*
record = "OperatorSpan"
summary = "Operators of one run in order, with their kernels"
grain = "one row per operator that runs; energies and latencies sum to the run, exactly"
order = ["kernel_index", "operator_index"]
[columns]
is_fused = { type = "BOOLEAN", meaning = "true if its subgraph is one kernel" }
*/
SELECT
    v.kernel_index,
    v.operator_index, v.subgraph_index, v.name, v.module_path, v.operation, v.kind, v.aten, v.output_shape,
    v.subgraph, v.fusion_pattern,
    v.is_merged AS is_fused,
    v.kernel_count, v.bottleneck, v.units_used_count, v.units_total_count, v.unit_name, v.mac_count, v.moved_bytes,
    v.dram_bytes, v.latency_fs, v.energy_fj, v.compute_fj, v.memory_fj, v.control_fj, v.static_fj, v.energy_j,
    v.latency_s, v.edp_share_js
FROM cube.part(run_ids := [$run_id], division := 'operator') AS v
ORDER BY v.kernel_index, v.operator_index
