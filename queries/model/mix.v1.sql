/*
name = "model.mix"
record = "OperationShare"
version = 1
schema = 1
summary = "What a workload consists of, by operation"
grain = "one row per operation that depends on an input, views apart"
order = ["mac_count descending", "moved_bytes descending", "operation"]
[parameters]
workload_id = { type = "INTEGER", meaning = "workload" }
[columns]
operation = { type = "VARCHAR", meaning = "conv2d, relu, add ..." }
kind = { type = "VARCHAR", meaning = "what it is to a mapping model" }
operator_count = { type = "BIGINT", meaning = "operators" }
operator_fraction = { type = "DOUBLE", meaning = "of all operators" }
mac_count = { type = "BIGINT", meaning = "multiply-accumulates" }
mac_fraction = { type = "DOUBLE", null = true, meaning = "of all MACs" }
elementwise_count = { type = "BIGINT", meaning = "additions, multiplications, comparisons" }
special_count = { type = "BIGINT", meaning = "exp, tanh, erf, rsqrt ..." }
moved_bytes = { type = "BIGINT", unit = "B", meaning = "read and written, unfused" }
moved_fraction = { type = "DOUBLE", null = true, meaning = "of all bytes" }
*/
WITH mix AS (
    SELECT
        operation,
        kind,
        count(*) AS operator_count,
        CAST(sum(mac_count) AS BIGINT) AS mac_count,
        CAST(sum(elementwise_count) AS BIGINT) AS elementwise_count,
        CAST(sum(special_count) AS BIGINT) AS special_count,
        CAST(sum(input_bytes + weight_bytes + output_bytes) AS BIGINT) AS moved_bytes
    FROM operators
    WHERE workload_id = $workload_id AND kind <> 'view' AND NOT is_foldable
    GROUP BY operation, kind
)
SELECT
    operation,
    kind,
    operator_count,
    operator_count / CAST(sum(operator_count) OVER () AS DOUBLE) AS operator_fraction,
    mac_count,
    mac_count / nullif(CAST(sum(mac_count) OVER () AS DOUBLE), 0e0) AS mac_fraction,
    elementwise_count,
    special_count,
    moved_bytes,
    moved_bytes / nullif(CAST(sum(moved_bytes) OVER () AS DOUBLE), 0e0) AS moved_fraction
FROM mix
ORDER BY mac_count DESC, moved_bytes DESC, operation, kind
