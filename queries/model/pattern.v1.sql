/*
record = "PatternShare"
summary = "Fusion patterns of a workload"
grain = "one row per pattern; `view` stands for subgraphs of views alone, `constant` for operators that depend on no input"
table = [
    "fusion_pattern", "subgraph_count", "operator_count", "mac_count.kept", "mac_fraction.kept",
    "moved_bytes.kept", "fused_moved_bytes.kept", "saved_fraction.kept",
]
[columns]
fusion_pattern = { type = "VARCHAR", meaning = "operations in order" }
operator_count = { type = "BIGINT", meaning = "operators in these subgraphs, views included; the rows sum to the workload" }
fused_moved_bytes = { heading = "bytes moved fused", type = "BIGINT", unit = "B", meaning = "bytes read and written if every subgraph is a kernel; 0 for constants" }
saved_fraction = { type = "DOUBLE", null = true, meaning = "share of the bytes that fusion keeps on chip" }
moved_bytes = { heading = "bytes moved unfused" }
mac_count = { heading = "MACs" }
*/
WITH traffic AS (
    SELECT
        operator_index,
        sum(byte_count) AS moved_bytes,
        sum(fused_byte_count) AS fused_moved_bytes
    FROM internal.workload_access
    WHERE workload_id = $workload_id
    GROUP BY operator_index
),
pattern AS (
    SELECT
        CASE WHEN o.is_foldable THEN 'constant' ELSE s.pattern END AS fusion_pattern,
        count(DISTINCT s.subgraph_index) AS subgraph_count,
        count(*) AS operator_count,
        CAST(sum(o.mac_count) AS BIGINT) AS mac_count,
        CAST(sum(coalesce(t.moved_bytes, 0)) AS BIGINT) AS moved_bytes,
        CAST(sum(CASE WHEN o.is_foldable THEN 0 ELSE coalesce(t.fused_moved_bytes, 0) END) AS BIGINT) AS fused_moved_bytes
    FROM internal.workload_operator AS o
    JOIN internal.workload_subgraph AS s ON s.workload_id = o.workload_id AND s.subgraph_index = o.subgraph_index
    LEFT JOIN traffic AS t ON t.operator_index = o.operator_index
    WHERE o.workload_id = $workload_id
    GROUP BY 1
)
SELECT
    fusion_pattern,
    subgraph_count,
    operator_count,
    mac_count,
    CASE WHEN fusion_pattern <> 'constant' THEN mac_count END
        / nullif(CAST(sum(mac_count) FILTER (WHERE fusion_pattern <> 'constant') OVER () AS DOUBLE), 0e0) AS mac_fraction,
    moved_bytes,
    fused_moved_bytes,
    1e0 - fused_moved_bytes / nullif(CAST(moved_bytes AS DOUBLE), 0e0) AS saved_fraction
FROM pattern
ORDER BY mac_count DESC, moved_bytes DESC, fusion_pattern
