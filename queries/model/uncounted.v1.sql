/*
name = "model.uncounted"
version = 1
schema = 2
summary = "Operators of the runs' workloads whose arithmetic could not be counted"
grain = "one row per ATen operator"
order = ["operator_count descending", "aten"]
[parameters]
run_ids = { type = "INTEGER[]", meaning = "runs" }
[columns]
aten = { type = "VARCHAR", meaning = "dispatched operator" }
operator_count = { type = "BIGINT", meaning = "how many" }
reason = { type = "VARCHAR", meaning = "why" }
*/
SELECT u.aten, count(*) AS operator_count, u.reason
FROM uncounted AS u
WHERE u.workload_id IN (SELECT r.workload_id FROM run AS r WHERE list_contains($run_ids, r.run_id))
GROUP BY u.aten, u.reason
ORDER BY operator_count DESC, u.aten
