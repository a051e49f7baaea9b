/*
record = "ModelCaveat"
summary = "Assumptions and gaps of the trace of a workload"
grain = "one row per assumption, place that reads data, module that never ran, and ATen operator without a formula"
order = ["kind", "operator_count descending", "text"]
[columns]
operator_count = { type = "BIGINT", null = true, meaning = "number of uncounted operators; null for an assumption" }
kind = { type = "VARCHAR", meaning = "kind: uncounted, only its bytes are counted; assumed, a worst case replaces data-dependent values; read, Python code reads data there; idle, a module with weights never ran" }
text = { type = "VARCHAR", meaning = "ATen operator, the assumption and its place, file and line of the code that reads data (empty if unknown), or path of the module" }
*/
SELECT kind, text, operator_count
FROM caveats
WHERE workload_id = $workload_id
ORDER BY kind, operator_count DESC NULLS LAST, text
