/*
record = "Omitted"
summary = "Operations that runs of a device alone leave out, because the host would compute them"
grain = "one row per run and operation that is left out"
order = ["position of the run in run_ids", "first_operator_index"]
[columns]
run_id = { type = "INTEGER", meaning = "run" }
configured_hardware = { type = "VARCHAR", meaning = "chip, with its power mode" }
operation = { type = "VARCHAR", meaning = "conv2d, gelu ..." }
operator_count = { type = "BIGINT", meaning = "operators of this operation that are left out" }
mac_fraction = { type = "DOUBLE", meaning = "share of the model's MACs in these operators, 0 to 1; 0 without MACs" }
first_operator_index = { type = "INTEGER", meaning = "index of the first of these operators in the model" }
*/
SELECT
    r.run_id,
    any_value(r.configured_hardware) AS configured_hardware,
    q.operation,
    count(*) AS operator_count,
    coalesce(CAST(sum(q.mac_count) AS DOUBLE) / nullif(any_value(w.mac_count), 0), 0e0) AS mac_fraction,
    min(q.operator_index) AS first_operator_index
FROM run_configurations AS r
JOIN internal.run AS u ON u.run_id = r.run_id AND u.has_ledger
JOIN internal.workload_operator AS q ON q.workload_id = r.workload_id
JOIN (
    SELECT
        workload_id,
        sum(mac_count) AS mac_count
    FROM internal.workload_operator
    GROUP BY workload_id
) AS w ON w.workload_id = r.workload_id
ANTI JOIN internal.run_operator AS o ON o.run_id = r.run_id AND o.operator_index = q.operator_index
WHERE list_contains($run_ids, r.run_id) AND r.host = 'none' AND r.refusal IS NULL AND q.kind <> 'view' AND NOT q.is_foldable
GROUP BY r.run_id, q.operation
ORDER BY list_position($run_ids, r.run_id), first_operator_index
