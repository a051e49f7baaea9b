/*
name = "compare.part"
record = "Contender"
version = 1
schema = 1
summary = "Each subgraph or operator on each hardware, and who runs it at the least cost"
grain = "one row per part of a workload and run"
order = ["model", "workload_id", "part_index", "rank"]
[parameters]
run_ids = { type = "INTEGER[]", meaning = "runs to compare, of one workload or of up to 32; refused ones are left out" }
level = { type = "VARCHAR", default = "subgraph", meaning = "subgraph or operator" }
metric = { type = "VARCHAR", default = "energy", meaning = "energy, latency, edp or memory" }
[columns]
model = { type = "VARCHAR", meaning = "model" }
part_index = { type = "INTEGER", meaning = "subgraph_index or operator_index" }
name = { type = "VARCHAR", meaning = "of the operator, or of that which leads the subgraph" }
kind = { type = "VARCHAR", meaning = "operation of the operator, or of that which leads the subgraph: conv2d, linear, add ..." }
fusion_pattern = { type = "VARCHAR", meaning = "operations of its subgraph in order" }
hardware = { type = "VARCHAR", meaning = "catalogue id, with @MODE where the power mode is not the default" }
metric = { type = "VARCHAR", meaning = "what is compared" }
value = { type = "DOUBLE", meaning = "of the metric, in unit" }
unit = { type = "VARCHAR", meaning = "J, s, Js or B" }
rank = { type = "BIGINT", meaning = "1 for the least; ties go to the first name" }
ratio = { type = "DOUBLE", null = true, meaning = "value over the least; 1 for the least, null where that is 0 and this is not" }
winner = { type = "VARCHAR", meaning = "hardware with the least" }
is_winner = { type = "BOOLEAN", meaning = "this is it" }
tied_count = { type = "BIGINT", meaning = "hardware with exactly the least; 1 for a winner of its own" }
energy_j = { type = "DOUBLE", unit = "J", meaning = "static energy included" }
latency_s = { type = "DOUBLE", unit = "s", meaning = "of its kernels, or its share of its kernel" }
edp_share_js = { type = "DOUBLE", unit = "Js", meaning = "(E_i T + E t_i) / 2; adds up to E T of the run: metric edp" }
memory_bytes = { type = "DOUBLE", unit = "B", meaning = "read and written off chip: metric memory; an operator's share by what crosses its kernel where the ledger has no dram" }
bottleneck = { type = "VARCHAR", meaning = "what bounds its subgraph: compute, memory or launch" }
units_used_count = { type = "INTEGER", meaning = "units with work in the fullest wave of its subgraph" }
is_available = { type = "BOOLEAN", meaning = "the hardware can be bought or rented, at a price that is no guess" }
run_id = { type = "INTEGER", meaning = "number of the run" }
workload_id = { type = "INTEGER", meaning = "number of the workload" }
*/
WITH ranked AS (
    SELECT
        run_id, workload_id, model, hardware, part_index, subgraph_index,
        energy_j, latency_s, edp_share_js, memory_bytes, value,
        row_number() OVER by_value AS rank,
        first_value(hardware) OVER by_value AS winner,
        first_value(value) OVER by_value AS least
    FROM parts($run_ids, $level, $metric)
    WINDOW by_value AS (
        PARTITION BY workload_id, part_index ORDER BY value, hardware, run_id
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    )
)
SELECT
    r.model,
    r.part_index,
    coalesce(o.name, g.name) AS name,
    coalesce(o.operation, split_part(g.pattern, '+', 1)) AS kind,
    g.pattern AS fusion_pattern,
    r.hardware,
    $metric AS metric,
    r.value,
    metric_unit($metric) AS unit,
    r.rank,
    CASE WHEN r.value = r.least THEN 1e0 ELSE r.value / nullif(r.least, 0e0) END AS ratio,
    r.winner,
    r.rank = 1 AS is_winner,
    count(*) FILTER (WHERE r.value = r.least) OVER (PARTITION BY r.workload_id, r.part_index) AS tied_count,
    r.energy_j,
    r.latency_s,
    r.edp_share_js,
    r.memory_bytes,
    s.bottleneck,
    s.units_used_count,
    v.unavailable = '' AS is_available,
    r.run_id,
    r.workload_id
FROM ranked AS r
JOIN run AS q ON q.run_id = r.run_id
JOIN hardware_version AS v ON v.hardware_digest = q.hardware_digest
JOIN run_subgraph AS s ON s.run_id = r.run_id AND s.subgraph_index = r.subgraph_index
JOIN workload_subgraph AS g ON g.workload_id = r.workload_id AND g.subgraph_index = r.subgraph_index
LEFT JOIN workload_operator AS o
    ON $level = 'operator' AND o.workload_id = r.workload_id AND o.operator_index = r.part_index
WHERE s.run_id IN (SELECT unnest($run_ids))
ORDER BY r.model, r.workload_id, r.part_index, r.rank
