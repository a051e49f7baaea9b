/*
name = "export.operator"
record = "Step"
version = 1
schema = 1
summary = "The operators of one run as they follow each other, with the kernel that runs each"
grain = "one row per operator that runs; energies and latencies sum to the run, exactly"
order = ["place", "operator_index"]
[parameters]
run_id = { type = "INTEGER", meaning = "run" }
[columns]
place = { type = "INTEGER", meaning = "what orders kernels: the last operator of a subgraph where it is one kernel, else the operator" }
operator_index = { type = "INTEGER", meaning = "order in which the model calls it" }
subgraph_index = { type = "INTEGER", meaning = "subgraph that holds it" }
name = { type = "VARCHAR", meaning = "module path, with the operation where the module holds several" }
module_path = { type = "VARCHAR", meaning = "module that calls it; empty for the model itself" }
operation = { type = "VARCHAR", meaning = "conv2d, relu, add ..." }
kind = { type = "VARCHAR", meaning = "what it is to a mapping model" }
aten = { type = "VARCHAR", meaning = "dispatched ATen operator" }
output_shape = { type = "VARCHAR", meaning = "e.g. 1x64x56x56" }
subgraph = { type = "VARCHAR", meaning = "name of the operator that leads its subgraph" }
fusion_pattern = { type = "VARCHAR", meaning = "operations of its subgraph, in order" }
is_fused = { type = "BOOLEAN", meaning = "its subgraph is one kernel" }
kernel_count = { type = "INTEGER", meaning = "1 where it leads a kernel, else 0" }
bottleneck = { type = "VARCHAR", meaning = "of its subgraph: compute, memory or launch" }
units_used_count = { type = "INTEGER", meaning = "of its subgraph, in the fullest wave" }
units_total_count = { type = "INTEGER", meaning = "units that have this precision" }
mac_count = { type = "BIGINT", meaning = "multiply-accumulates" }
moved_bytes = { type = "DOUBLE", unit = "B", meaning = "its part of what crosses the borders of its kernel" }
dram_bytes = { type = "DOUBLE", unit = "B", meaning = "read and written off chip" }
latency_fs = { type = "BIGINT", unit = "fs", meaning = "exact" }
energy_fj = { type = "BIGINT", unit = "fJ", meaning = "exact" }
compute_fj = { type = "BIGINT", unit = "fJ", meaning = "of arithmetic and its registers" }
memory_fj = { type = "BIGINT", unit = "fJ", meaning = "of moving and keeping data" }
control_fj = { type = "BIGINT", unit = "fJ", meaning = "of deciding what happens next, and of what regulators lose" }
static_fj = { type = "BIGINT", unit = "fJ", meaning = "static power x the time from one batch to the next" }
energy_j = { type = "DOUBLE", unit = "J", meaning = "energy" }
latency_s = { type = "DOUBLE", unit = "s", meaning = "its share of its kernel's latency" }
edp_share_js = { type = "DOUBLE", unit = "Js", meaning = "(E_i T + E t_i) / 2; adds up to E T" }
*/
SELECT
    CASE
        WHEN r.runtime IN ('fused', 'engine') THEN max(t.operator_index) OVER (PARTITION BY t.subgraph_index)
        ELSE t.operator_index
    END AS place,
    t.operator_index,
    t.subgraph_index,
    o.name,
    o.module_path,
    o.operation,
    o.kind,
    o.aten,
    o.output_shape,
    g.name AS subgraph,
    g.pattern AS fusion_pattern,
    r.runtime IN ('fused', 'engine') AS is_fused,
    t.kernel_count,
    s.bottleneck,
    s.units_used_count,
    r.units_total_count,
    o.mac_count,
    t.moved_bytes,
    t.dram_bytes,
    t.latency_fs,
    CAST(coalesce(p.energy_fj, 0) AS BIGINT) AS energy_fj,
    CAST(coalesce(p.compute_fj, 0) AS BIGINT) AS compute_fj,
    CAST(coalesce(p.memory_fj, 0) AS BIGINT) AS memory_fj,
    CAST(coalesce(p.control_fj, 0) AS BIGINT) AS control_fj,
    CAST(coalesce(p.static_fj, 0) AS BIGINT) AS static_fj,
    joules(coalesce(p.energy_fj, 0)) AS energy_j,
    seconds(t.latency_fs) AS latency_s,
    edp_share(
        coalesce(p.energy_fj, 0), t.latency_fs, sum(coalesce(p.energy_fj, 0)) OVER (), sum(t.latency_fs) OVER ()
    ) AS edp_share_js
FROM run_operator AS t
JOIN run AS r ON r.run_id = t.run_id
JOIN workload_operator AS o ON o.workload_id = r.workload_id AND o.operator_index = t.operator_index
JOIN workload_subgraph AS g ON g.workload_id = r.workload_id AND g.subgraph_index = t.subgraph_index
JOIN run_subgraph AS s ON s.run_id = t.run_id AND s.subgraph_index = t.subgraph_index
LEFT JOIN energy_parts AS p ON p.run_id = $run_id AND p.operator_index = t.operator_index
WHERE t.run_id = $run_id AND s.run_id = $run_id
ORDER BY place, t.operator_index
