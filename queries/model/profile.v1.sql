/*
record = "ModelProfile"
summary = "Totals of a workload, independent of hardware"
grain = "one row"
order = ["the only row"]
[columns]
name = { type = "VARCHAR", meaning = "model" }
input_spec = { type = "VARCHAR", meaning = "shapes and dtypes of the inputs" }
parameter_count = { type = "BIGINT", meaning = "elements of all parameters, shared ones once" }
mac_count = { type = "BIGINT", meaning = "multiply-accumulates that depend on an input" }
skipped_mac_count = { type = "BIGINT", meaning = "MACs that a causal mask hides: kernels that skip them compute mac_count minus these" }
flop_count = { type = "BIGINT", meaning = "two per multiply-accumulate" }
foldable_mac_count = { type = "BIGINT", meaning = "multiply-accumulates that depend on no input: a compiler computes them in advance, eager and graph run them" }
foldable_elementwise_count = { type = "BIGINT", meaning = "additions, multiplications and comparisons that depend on no input, such as those of a weight norm" }
operator_count = { type = "BIGINT", meaning = "operators, views included" }
uncounted_count = { type = "BIGINT", meaning = "operators whose arithmetic has no formula" }
weight_bytes = { type = "BIGINT", unit = "B", meaning = "parameters and buffers read" }
weight_read_bytes = { type = "BIGINT", unit = "B", meaning = "bytes of parameters and buffers that operators read: of experts only the chosen ones, of an embedding only the used rows" }
moved_bytes = { type = "BIGINT", unit = "B", meaning = "bytes read and written when every operator is a kernel" }
fused_moved_bytes = { type = "BIGINT", unit = "B", meaning = "bytes read and written when every subgraph is a kernel, without operators that depend on no input" }
peak_activation_bytes = { type = "BIGINT", unit = "B", meaning = "largest sum of live activations over the execution order" }
fused_peak_activation_bytes = { type = "BIGINT", unit = "B", meaning = "peak of live activations, without those that a subgraph keeps on chip" }
arithmetic_intensity_ops_per_byte = { type = "DOUBLE", null = true, meaning = "FLOPs, those of foldable_mac_count included, over moved_bytes" }
fused_arithmetic_intensity_ops_per_byte = { type = "DOUBLE", null = true, meaning = "FLOPs over fused_moved_bytes" }
assumption_count = { type = "BIGINT", meaning = "number of assumptions of the trace; see the view assumptions" }
is_shipped = { type = "BOOLEAN", meaning = "true if traced when joulemap was built, not here" }
torch_version = { type = "VARCHAR", meaning = "torch that traced it" }
torchvision_version = { type = "VARCHAR", meaning = "torchvision that built it" }
tracer_version = { type = "VARCHAR", meaning = "digest of the tracing and fusion rules" }
*/
WITH work AS (
    SELECT
        CAST(coalesce(sum(mac_count) FILTER (WHERE NOT is_foldable), 0) AS BIGINT) AS mac_count,
        CAST(coalesce(sum(skipped_mac_count) FILTER (WHERE NOT is_foldable), 0) AS BIGINT) AS skipped_mac_count,
        CAST(coalesce(sum(elementwise_count) FILTER (WHERE NOT is_foldable), 0) AS BIGINT) AS elementwise_count,
        CAST(coalesce(sum(special_count) FILTER (WHERE NOT is_foldable), 0) AS BIGINT) AS special_count,
        CAST(coalesce(sum(mac_count) FILTER (WHERE is_foldable), 0) AS BIGINT) AS foldable_mac_count,
        CAST(coalesce(sum(elementwise_count) FILTER (WHERE is_foldable), 0) AS BIGINT) AS foldable_elementwise_count,
        count(*) AS operator_count,
        count(*) FILTER (WHERE kind = 'uncounted') AS uncounted_count
    FROM counted_operators
    WHERE workload_id = $workload_id
),
traffic AS (
    SELECT
        CAST(coalesce(sum(a.byte_count) FILTER (WHERE a.role = 'weight'), 0) AS BIGINT) AS weight_read_bytes,
        CAST(sum(a.byte_count) AS BIGINT) AS moved_bytes,
        CAST(sum(a.fused_byte_count) FILTER (WHERE NOT o.is_foldable) AS BIGINT) AS fused_moved_bytes
    FROM internal.workload_access AS a
    JOIN internal.workload_operator AS o USING (workload_id, operator_index)
    WHERE workload_id = $workload_id
),
change AS (
    SELECT birth_index AS step, byte_count AS bytes, CASE WHEN is_hidden THEN 0 ELSE byte_count END AS fused_bytes
    FROM internal.workload_buffer
    WHERE workload_id = $workload_id
    UNION ALL
    SELECT death_index + 1, -byte_count, CASE WHEN is_hidden THEN 0 ELSE -byte_count END
    FROM internal.workload_buffer
    WHERE workload_id = $workload_id
),
live AS (
    SELECT
        sum(sum(bytes)) OVER (ORDER BY step ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS bytes,
        sum(sum(fused_bytes)) OVER (ORDER BY step ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS fused_bytes
    FROM change
    GROUP BY step
),
peak AS (
    SELECT CAST(max(bytes) AS BIGINT) AS peak_bytes, CAST(max(fused_bytes) AS BIGINT) AS fused_peak_bytes
    FROM live
)
SELECT
    w.model AS name,
    w.batch,
    w.input_spec,
    w.parameter_count,
    k.mac_count, k.skipped_mac_count,
    2 * k.mac_count AS flop_count,
    k.elementwise_count, k.special_count, k.foldable_mac_count, k.foldable_elementwise_count, k.operator_count,
    (SELECT count(*) FROM internal.workload_subgraph AS s WHERE s.workload_id = w.workload_id) AS subgraph_count,
    k.uncounted_count,
    w.weight_bytes,
    t.weight_read_bytes,
    t.moved_bytes,
    t.fused_moved_bytes,
    p.peak_bytes AS peak_activation_bytes,
    p.fused_peak_bytes AS fused_peak_activation_bytes,
    2 * (k.mac_count + k.foldable_mac_count) / nullif(CAST(t.moved_bytes AS DOUBLE), 0e0) AS arithmetic_intensity_ops_per_byte,
    2 * k.mac_count / nullif(CAST(t.fused_moved_bytes AS DOUBLE), 0e0) AS fused_arithmetic_intensity_ops_per_byte,
    len(w.notes) AS assumption_count,
    starts_with(w.workload_key, 'shipped:') AS is_shipped,
    w.torch_version,
    w.torchvision_version,
    w.tracer_version
FROM internal.workload AS w
CROSS JOIN work AS k
CROSS JOIN traffic AS t
CROSS JOIN peak AS p
WHERE w.workload_id = $workload_id
ORDER BY w.workload_id
