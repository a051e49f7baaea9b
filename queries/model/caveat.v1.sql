/*
record = "Caveat"
summary = "What the trace of the runs' workloads had to assume, or could not count"
grain = "one row per assumption, and one per ATen operator without a formula"
order = ["kind", "operator_count descending", "text"]
[parameters]
run_ids = { type = "INTEGER[]", meaning = "runs" }
[columns]
operator_count = { type = "BIGINT", null = true, meaning = "how many operators are uncounted; null for an assumption" }
kind = { type = "VARCHAR", meaning = "uncounted: only its bytes are counted; assumed: a worst case stands for what depends on data" }
text = { type = "VARCHAR", meaning = "ATen operator, or what was assumed and where" }
*/
SELECT kind, text, CAST(sum(operator_count) AS BIGINT) AS operator_count
FROM caveats
WHERE workload_id IN (SELECT workload_id FROM internal.run WHERE run_id IN (SELECT unnest($run_ids)))
GROUP BY kind, text
ORDER BY kind, operator_count DESC NULLS LAST, text
