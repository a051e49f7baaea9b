/*
record = "ModelCaveat"
summary = "What the trace of a workload had to assume, or could not count"
grain = "one row per assumption, and one per ATen operator without a formula"
order = ["kind", "operator_count descending", "text"]
[columns]
operator_count = { type = "BIGINT", null = true, meaning = "how many operators are uncounted; null for an assumption" }
kind = { type = "VARCHAR", meaning = "uncounted: only its bytes are counted; assumed: a worst case stands for what depends on data" }
text = { type = "VARCHAR", meaning = "ATen operator, or what was assumed and where" }
*/
SELECT kind, text, operator_count
FROM caveats
WHERE workload_id = $workload_id
ORDER BY kind, operator_count DESC NULLS LAST, text
