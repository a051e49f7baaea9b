/*
name = "compare.part"
version = 1
schema = 3
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
ratio = { type = "DOUBLE", meaning = "value over the least; 1 for the least, null where that is 0 and this is not" }
winner = { type = "VARCHAR", meaning = "hardware with the least" }
is_winner = { type = "BOOLEAN", meaning = "this is it" }
tied_count = { type = "BIGINT", meaning = "hardware with exactly the least; 1 for a winner of its own" }
energy_j = { type = "DOUBLE", unit = "J", meaning = "static energy included" }
latency_s = { type = "DOUBLE", unit = "s", meaning = "of its kernels, or its share of its kernel" }
edp_share_js = { type = "DOUBLE", unit = "Js", meaning = "(E_i T + E t_i) / 2; adds up to E T of the run: metric edp" }
memory_bytes = { type = "DOUBLE", unit = "B", meaning = "read and written off chip: metric memory; an operator's share by what crosses its kernel where the ledger has no dram" }
bottleneck = { type = "VARCHAR", meaning = "what bounds its subgraph: compute, memory or launch" }
units_used_count = { type = "INTEGER", meaning = "units with work in the fullest wave of its subgraph" }
run_id = { type = "INTEGER", meaning = "number of the run" }
workload_id = { type = "INTEGER", meaning = "number of the workload" }
*/
WITH asked AS (
    SELECT
        r.run_id,
        r.workload_id,
        w.model,
        configuration_name(v.hardware, r.power_mode) AS hardware,
        CASE WHEN $level IN ('subgraph', 'operator') THEN $level = 'operator'
            ELSE error('level is ' || $level || ', expected subgraph or operator')
        END AS is_operator
    FROM run AS r
    JOIN workload AS w ON w.workload_id = r.workload_id
    JOIN hardware_version AS v ON v.hardware_digest = r.hardware_digest
    WHERE list_contains($run_ids, r.run_id) AND r.refusal IS NULL
        AND CASE
            WHEN (SELECT count(DISTINCT workload_id) FROM run WHERE list_contains($run_ids, run_id)) > 32
                THEN error('the runs are of more than 32 workloads; ask about fewer models or batches at once')
            ELSE TRUE
        END
),
energy AS (
    SELECT
        l.run_id,
        CASE WHEN $level = 'operator' THEN l.operator_index ELSE l.subgraph_index END AS part_index,
        sum(l.energy_fj) AS energy_fj,
        sum(
            CASE
                WHEN $level = 'operator' AND l.action_id IN (SELECT action_id FROM action WHERE component = 'dram')
                    THEN CAST(l.action_count AS DECIMAL(38, 9))
            END
        ) AS dram_bytes
    FROM ledger_line AS l
    WHERE list_contains($run_ids, l.run_id)
    GROUP BY ALL
),
placed AS (
    SELECT
        s.run_id,
        s.subgraph_index,
        s.subgraph_index AS part_index,
        s.latency_fs,
        s.dram_bytes,
        FALSE AS is_operator
    FROM run_subgraph AS s
    WHERE $level <> 'operator' AND list_contains($run_ids, s.run_id)
    UNION ALL
    SELECT
        o.run_id,
        o.subgraph_index,
        o.operator_index,
        o.latency_fs,
        s.dram_bytes * coalesce(
            o.moved_bytes / nullif(sum(o.moved_bytes) OVER in_kernel, 0e0),
            1e0 / count(*) OVER in_kernel
        ),
        TRUE
    FROM run_operator AS o
    JOIN run_subgraph AS s ON s.run_id = o.run_id AND s.subgraph_index = o.subgraph_index
    WHERE $level = 'operator' AND list_contains($run_ids, o.run_id) AND list_contains($run_ids, s.run_id)
    WINDOW in_kernel AS (
        PARTITION BY o.run_id, o.subgraph_index ORDER BY o.operator_index
        ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
    )
),
figure AS (
    SELECT
        a.run_id,
        a.workload_id,
        a.model,
        a.hardware,
        p.part_index,
        p.subgraph_index,
        CAST(coalesce(e.energy_fj, 0) AS DOUBLE) / 1e15 AS energy_j,
        p.latency_fs / 1e15 AS latency_s,
        (
            CAST(coalesce(e.energy_fj, 0) AS DOUBLE) / 1e15
                * (CAST(sum(p.latency_fs) OVER (PARTITION BY a.run_id) AS DOUBLE) / 1e15)
            + CAST(sum(e.energy_fj) OVER (PARTITION BY a.run_id) AS DOUBLE) / 1e15 * (p.latency_fs / 1e15)
        ) / 2e0 AS edp_share_js,
        CASE
            WHEN a.is_operator AND count(e.dram_bytes) OVER (PARTITION BY a.run_id) > 0
                THEN coalesce(CAST(e.dram_bytes AS DOUBLE), 0e0)
            ELSE p.dram_bytes
        END AS memory_bytes
    FROM asked AS a
    JOIN placed AS p ON p.run_id = a.run_id AND p.is_operator = a.is_operator
    LEFT JOIN energy AS e ON e.run_id = a.run_id AND e.part_index = p.part_index
),
valued AS (
    SELECT
        run_id, workload_id, model, hardware, part_index, subgraph_index,
        energy_j, latency_s, edp_share_js, memory_bytes,
        CASE $metric
            WHEN 'energy' THEN energy_j
            WHEN 'latency' THEN latency_s
            WHEN 'edp' THEN edp_share_js
            WHEN 'memory' THEN memory_bytes
            ELSE error('metric is ' || $metric || ', expected energy, latency, edp or memory')
        END AS value
    FROM figure
),
ranked AS (
    SELECT
        run_id, workload_id, model, hardware, part_index, subgraph_index,
        energy_j, latency_s, edp_share_js, memory_bytes, value,
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
    r.model,
    r.part_index,
    coalesce(o.name, g.name) AS name,
    coalesce(o.operation, split_part(g.pattern, '+', 1)) AS kind,
    g.pattern AS fusion_pattern,
    r.hardware,
    $metric AS metric,
    r.value,
    CASE $metric WHEN 'energy' THEN 'J' WHEN 'latency' THEN 's' WHEN 'edp' THEN 'Js' ELSE 'B' END AS unit,
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
    r.run_id,
    r.workload_id
FROM ranked AS r
JOIN run_subgraph AS s ON s.run_id = r.run_id AND s.subgraph_index = r.subgraph_index
JOIN workload_subgraph AS g ON g.workload_id = r.workload_id AND g.subgraph_index = r.subgraph_index
LEFT JOIN workload_operator AS o
    ON $level = 'operator' AND o.workload_id = r.workload_id AND o.operator_index = r.part_index
WHERE list_contains($run_ids, s.run_id)
ORDER BY r.model, r.workload_id, r.part_index, r.rank
