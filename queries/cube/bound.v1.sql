/*
summary = "Latency of runs by bottleneck"
grain = "one row per run and bound"
[parameters]
run_ids = { type = "INTEGER[]", meaning = "runs to show, as listed by `run.list`; refused ones are omitted" }
[columns]
run_id = { type = "INTEGER", meaning = "number of the run" }
bound = { type = "VARCHAR", meaning = "compute, operands, memory, launch or communication" }
latency_fs = { type = "HUGEINT", unit = "fs", meaning = "latency of subgraphs that it bounds, exact" }
*/
-- Communication bounds subgraphs that exchange between devices; operands bound units whose MACs, padding included, take
-- less than a tenth of their time; every other subgraph is bound by its bottleneck.
SELECT
    s.run_id,
    CASE
        WHEN k.is_talking THEN 'communication'
        WHEN
            s.bottleneck = 'compute' AND s.executed_mac_count > 0e0
            AND 2e0 * s.executed_mac_count / r.peak_ops_per_s < 0.1e0 * s.compute_s
            THEN 'operands'
        ELSE s.bottleneck
    END AS bound,
    sum(s.latency_fs) AS latency_fs
FROM internal.run_subgraph AS s
JOIN internal.run AS r ON r.run_id = s.run_id
JOIN (
    SELECT workload_id, subgraph_index, bool_or(kind = 'communication') AS is_talking
    FROM internal.workload_operator
    WHERE workload_id IN (SELECT workload_id FROM internal.run WHERE run_id IN (SELECT unnest($run_ids)) AND has_ledger)
    GROUP BY workload_id, subgraph_index
) AS k ON k.workload_id = r.workload_id AND k.subgraph_index = s.subgraph_index
WHERE s.run_id IN (SELECT unnest($run_ids))
GROUP BY s.run_id, bound
HAVING sum(s.latency_fs) > 0
UNION ALL
SELECT p.run_id, b.bound, CAST(b.latency_fs AS HUGEINT) AS latency_fs
FROM internal.point_total AS p
CROSS JOIN LATERAL (VALUES
    ('compute', p.compute_bound_fs),
    ('operands', p.operands_bound_fs),
    ('memory', p.memory_bound_fs),
    ('launch', p.launch_bound_fs),
    ('communication', p.communication_bound_fs)
) AS b (bound, latency_fs)
WHERE p.run_id IN (SELECT unnest($run_ids)) AND b.latency_fs > 0
ORDER BY run_id, bound
