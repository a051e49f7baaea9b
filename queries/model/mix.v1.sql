/*
record = "OperationShare"
summary = "Operators of a workload by operation"
grain = "one row per operation that depends on an input, without views"
table = [
    "operation", "kind", "operator_count", "operator_fraction", "mac_count.kept", "mac_fraction.kept",
    "elementwise_count", "special_count", "moved_bytes.kept", "moved_fraction.kept",
]
order = ["mac_count descending", "moved_bytes descending", "operation"]
[columns]
kind = { type = "VARCHAR", meaning = "kind of operator" }
operator_count = { type = "BIGINT", meaning = "number of operators" }
moved_fraction = { type = "DOUBLE", null = true, meaning = "share of all bytes" }
elementwise_count = { heading = "elementwise" }
special_count = { heading = "special functions" }
mac_count = { heading = "MACs" }
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
