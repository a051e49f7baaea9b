/*
record = "ListedOperator"
summary = "Operators of a workload in execution order"
grain = "one row per operator"
[parameters]
workload_id = { type = "INTEGER", meaning = "number of the workload, as in the view operators" }
[columns]
name = { type = "VARCHAR", meaning = "module path, with the operation where the module holds several" }
output_shape = { type = "VARCHAR", meaning = "shape of the output, e.g. 1x64x56x56" }
dtype = { type = "VARCHAR", meaning = "dtype of the output" }
skipped_mac_count = { type = "BIGINT", meaning = "MACs that a causal mask hides, which a kernel that skips them does not compute" }
input_bytes = { type = "BIGINT", unit = "B", meaning = "bytes of activations read" }
weight_bytes = { type = "BIGINT", unit = "B", meaning = "bytes of parameters and constants read" }
output_bytes = { type = "BIGINT", unit = "B", meaning = "bytes written" }
bias_element_count = { type = "BIGINT", meaning = "elements of the bias of a convolution or linear layer; 0 without one" }
bias_addition_count = { type = "BIGINT", meaning = "additions of that bias, in elementwise_count" }
subgraph_index = { type = "INTEGER", meaning = "number of the subgraph that holds it" }
fusion_pattern = { type = "VARCHAR", meaning = "fusion pattern of its subgraph" }
aten = { type = "VARCHAR", meaning = "dispatched ATen operator" }
is_counted = { type = "BOOLEAN", meaning = "true if its arithmetic has a formula" }
*/
SELECT
    operator_index, name, operation, output_shape, dtype, mac_count, skipped_mac_count, elementwise_count,
    special_count, input_bytes, weight_bytes, output_bytes, bias_element_count, bias_addition_count, subgraph_index,
    pattern AS fusion_pattern,
    aten,
    kind <> 'uncounted' AS is_counted
FROM operators
WHERE workload_id = $workload_id
ORDER BY operator_index
