/*
record = "Contender"
summary = "Each subgraph or operator on each chip, ranked by a metric"
grain = "one row per part of a workload and run"
order = ["model", "workload_id", "part_index", "rank"]
[parameters]
run_ids = { type = "INTEGER[]", meaning = "runs to compare, of one workload or of up to 32; refused ones are omitted" }
metric = { type = "VARCHAR", default = "energy", meaning = "metric: energy, latency, edp or memory" }
[columns]
part_index = { type = "INTEGER", meaning = "number of the subgraph or operator" }
name = { type = "VARCHAR", meaning = "name of the operator, or of the subgraph's leading operator" }
kind = { type = "VARCHAR", meaning = "operation of the operator, or of the subgraph's leading operator: conv2d, linear, add ..." }
fusion_pattern = { type = "VARCHAR", meaning = "operations of its subgraph in order" }
value = { type = "DOUBLE", meaning = "value of the metric, in unit" }
unit = { type = "VARCHAR", meaning = "J, s, Js or B" }
rank = { type = "BIGINT", meaning = "rank by value, 1 for the least; ties go to the first name" }
ratio = { type = "DOUBLE", null = true, meaning = "value over the least; 1 for the least, null where only the least is 0" }
winner = { type = "VARCHAR", meaning = "hardware with the least value" }
is_winner = { type = "BOOLEAN", meaning = "true for the hardware with the least value" }
tied_count = { type = "BIGINT", meaning = "number of chips with exactly the least value" }
energy_j = { type = "DOUBLE", unit = "J", meaning = "energy, static energy included" }
latency_s = { type = "DOUBLE", unit = "s", meaning = "latency of its kernels; for an operator, its share of its kernel" }
edp_share_js = { type = "DOUBLE", unit = "Js", meaning = "(E_i T + E t_i) / 2, which sums to E T of the run; metric edp" }
memory_bytes = { type = "DOUBLE", unit = "B", meaning = "bytes read and written off chip; metric memory. For an operator whose ledger has no DRAM, the bytes of its subgraph are split by the bytes that cross kernel boundaries" }
bottleneck = { type = "VARCHAR", meaning = "bottleneck of its subgraph: compute, memory or launch" }
units_used_count = { type = "INTEGER", meaning = "units with work in the fullest wave of its subgraph" }
unit_name = { type = "VARCHAR", meaning = "name of one unit" }
*/
WITH valued AS (
    SELECT
        model, part_index, name, operation, fusion_pattern, hardware, energy_j, latency_s, edp_share_js, dram_bytes,
        bottleneck, units_used_count, unit_name, is_available, run_id, workload_id,
        CASE $metric
            WHEN 'energy' THEN energy_j
            WHEN 'latency' THEN latency_s
            WHEN 'edp' THEN edp_share_js
            WHEN 'memory' THEN dram_bytes
            ELSE error('metric is ' || $metric || ', expected energy, latency, edp or memory')
        END AS value
    FROM cube.part(run_ids := $run_ids, division := $level, energy := 'whole')
),
ranked AS (
    SELECT
        model, part_index, name, operation, fusion_pattern, hardware, energy_j, latency_s, edp_share_js, dram_bytes,
        bottleneck, units_used_count, unit_name, is_available, run_id, workload_id, value,
        row_number() OVER by_value AS rank,
        first_value(hardware) OVER by_value AS winner,
        first_value(value) OVER by_value AS least
    FROM valued
    WINDOW by_value AS (
        PARTITION BY workload_id, part_index ORDER BY value, hardware, run_id
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    )
)
SELECT
    model,
    part_index AS part_index,
    name,
    operation AS kind,
    fusion_pattern, hardware,
    $metric AS metric,
    value,
    find_metric($metric).unit AS unit,
    rank,
    CASE WHEN value = least THEN 1e0 ELSE value / nullif(least, 0e0) END AS ratio,
    winner,
    rank = 1 AS is_winner,
    count(*) FILTER (WHERE value = least) OVER (PARTITION BY workload_id, part_index) AS tied_count,
    energy_j, latency_s, edp_share_js,
    dram_bytes AS memory_bytes,
    bottleneck, units_used_count, unit_name, is_available, run_id, workload_id
FROM ranked
ORDER BY model, workload_id, part_index, rank
