/*
record = "Sample"
summary = "Time, bytes and MACs of each operator of one run, and energy of each of its actions"
grain = "one row per operator with an empty component, and one row per operator and action; every amount sums to the run"
order = ["operator_index", "component, the row without one first", "action", "category", "per"]
[columns]
operator_index = { type = "INTEGER", meaning = "position in the model's order of calls" }
name = { type = "VARCHAR", meaning = "name of the operator: module path, with the operation where the module holds several" }
module_path = { type = "VARCHAR", meaning = "module that calls it; empty for the model itself" }
subgraph = { type = "VARCHAR", meaning = "name of the operator that leads its subgraph" }
component = { type = "VARCHAR", meaning = "component of the action; empty for the operator itself" }
common_category = { type = "VARCHAR", meaning = "category common to all architectures" }
basis = { type = "VARCHAR", meaning = "basis of the energy per action" }
energy_fj = { type = "BIGINT", unit = "fJ", meaning = "exact energy of the action; 0 for the operator itself" }
latency_fs = { type = "BIGINT", unit = "fs", meaning = "exact latency of the operator; 0 for an action" }
moved_bytes = { type = "DOUBLE", unit = "B", meaning = "bytes across the boundaries of its kernel; 0 for an action" }
dram_bytes = { type = "DOUBLE", unit = "B", meaning = "bytes read and written off chip; 0 for an action" }
mac_count = { type = "BIGINT", meaning = "multiply-accumulates; 0 for an action" }
*/
WITH sample AS (
    SELECT
        t.operator_index,
        t.subgraph_index,
        '' AS component,
        '' AS action,
        '' AS category,
        '' AS common_category,
        '' AS per,
        '' AS basis,
        CAST(0 AS BIGINT) AS energy_fj,
        t.latency_fs,
        t.moved_bytes,
        t.dram_bytes,
        o.mac_count
    FROM internal.run_operator AS t
    JOIN internal.run AS r ON r.run_id = t.run_id
    JOIN internal.workload_operator AS o ON o.workload_id = r.workload_id AND o.operator_index = t.operator_index
    WHERE t.run_id = $run_id
    UNION ALL
    SELECT
        l.operator_index,
        l.subgraph_index,
        a.component,
        a.action,
        a.category,
        a.common_category,
        a.per,
        e.basis,
        l.energy_fj,
        CAST(0 AS BIGINT),
        0e0,
        0e0,
        CAST(0 AS BIGINT)
    FROM internal.ledger_line AS l
    JOIN internal.run AS r ON r.run_id = l.run_id
    JOIN internal.action AS a ON a.action_id = l.action_id
    JOIN internal.energy_per_action AS e ON e.hardware_digest = r.hardware_digest AND e.action_id = l.action_id
    WHERE l.run_id = $run_id
)
SELECT
    s.operator_index,
    o.name,
    o.module_path,
    o.operation,
    g.name AS subgraph,
    s.component, s.action, s.category, s.common_category, s.basis, s.energy_fj, s.latency_fs, s.moved_bytes,
    s.dram_bytes, s.mac_count
FROM sample AS s
JOIN internal.run AS r ON r.run_id = $run_id
JOIN internal.workload_operator AS o ON o.workload_id = r.workload_id AND o.operator_index = s.operator_index
JOIN internal.workload_subgraph AS g ON g.workload_id = r.workload_id AND g.subgraph_index = s.subgraph_index
ORDER BY s.operator_index, s.component, s.action, s.category, s.per
