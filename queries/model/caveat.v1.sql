/*
name = "model.caveat"
version = 1
schema = 1
summary = "What the trace of the runs' workloads had to assume, or could not count"
grain = "one row per assumption, and one per ATen operator without a formula"
order = ["kind", "operator_count descending", "text"]
[parameters]
run_ids = { type = "INTEGER[]", meaning = "runs" }
[columns]
kind = { type = "VARCHAR", meaning = "uncounted: only its bytes are counted; assumed: a worst case stands for what depends on data" }
text = { type = "VARCHAR", meaning = "ATen operator, or what was assumed and where" }
operator_count = { type = "BIGINT", meaning = "how many operators are uncounted; null for an assumption" }
*/
WITH asked AS (
    SELECT DISTINCT workload_id
    FROM run
    WHERE list_contains($run_ids, run_id)
),
caveat AS (
    SELECT 'uncounted' AS kind, u.aten AS text, count(*) AS operator_count
    FROM uncounted AS u
    JOIN asked AS a ON a.workload_id = u.workload_id
    GROUP BY u.aten
    UNION ALL
    SELECT 'assumed', n.note, NULL
    FROM (SELECT DISTINCT unnest(w.notes) AS note FROM workload AS w JOIN asked AS a ON a.workload_id = w.workload_id) AS n
)
SELECT kind, text, operator_count
FROM caveat
ORDER BY kind, operator_count DESC NULLS LAST, text
