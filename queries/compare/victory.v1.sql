/*
name = "compare.victory"
version = 1
schema = 3
summary = "Which kinds of subgraph or operator each hardware runs at the least cost"
grain = "one row per workload, hardware and kind that the workload has"
order = ["model", "workload_id", "hardware_won_count descending", "hardware", "won_count descending", "kind"]
[parameters]
run_ids = { type = "INTEGER[]", meaning = "runs to compare, of one workload or of up to 32; refused ones are left out" }
level = { type = "VARCHAR", default = "subgraph", meaning = "subgraph or operator" }
metric = { type = "VARCHAR", default = "energy", meaning = "energy, latency, edp or memory, as `compare.part` compares them" }
[columns]
model = { type = "VARCHAR", meaning = "model" }
hardware = { type = "VARCHAR", meaning = "catalogue id, with @MODE where the power mode is not the default" }
kind = { type = "VARCHAR", meaning = "operation of the operator, or of that which leads the subgraph" }
part_count = { type = "BIGINT", meaning = "parts of this kind" }
won_count = { type = "BIGINT", meaning = "of which it alone has the least" }
tied_count = { type = "BIGINT", meaning = "of which it has the least together with others" }
won_fraction = { type = "DOUBLE", meaning = "won_count over part_count" }
verdict = { type = "VARCHAR", meaning = "all, most (more than half), some or none of this kind are won" }
hardware_won_count = { type = "HUGEINT", meaning = "parts of any kind that it alone has at the least" }
hardware_tied_count = { type = "HUGEINT", meaning = "parts of any kind that it shares the least of" }
all_part_count = { type = "HUGEINT", meaning = "parts of the workload" }
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
        workload_id, model, hardware, part_index, subgraph_index,
        CASE $metric
            WHEN 'energy' THEN energy_j
            WHEN 'latency' THEN latency_s
            WHEN 'edp' THEN edp_share_js
            WHEN 'memory' THEN memory_bytes
            ELSE error('metric is ' || $metric || ', expected energy, latency, edp or memory')
        END AS value
    FROM figure
),
least AS (
    SELECT
        workload_id, model, hardware, part_index, subgraph_index,
        value = min(value) OVER (PARTITION BY workload_id, part_index) AS is_least
    FROM valued
),
judged AS (
    SELECT
        l.workload_id,
        l.model,
        l.hardware,
        coalesce(o.operation, split_part(g.pattern, '+', 1)) AS kind,
        l.is_least,
        count(*) FILTER (WHERE l.is_least) OVER (PARTITION BY l.workload_id, l.part_index) AS least_count
    FROM least AS l
    JOIN workload_subgraph AS g ON g.workload_id = l.workload_id AND g.subgraph_index = l.subgraph_index
    LEFT JOIN workload_operator AS o
        ON $level = 'operator' AND o.workload_id = l.workload_id AND o.operator_index = l.part_index
),
counted AS (
    SELECT
        workload_id,
        model,
        hardware,
        kind,
        count(*) AS part_count,
        count(*) FILTER (WHERE is_least AND least_count = 1) AS won_count,
        count(*) FILTER (WHERE is_least AND least_count > 1) AS tied_count
    FROM judged
    GROUP BY workload_id, model, hardware, kind
)
SELECT
    model,
    hardware,
    kind,
    part_count,
    won_count,
    tied_count,
    won_count / part_count AS won_fraction,
    CASE
        WHEN won_count = part_count THEN 'all'
        WHEN 2 * won_count > part_count THEN 'most'
        WHEN won_count > 0 THEN 'some'
        ELSE 'none'
    END AS verdict,
    sum(won_count) OVER of_hardware AS hardware_won_count,
    sum(tied_count) OVER of_hardware AS hardware_tied_count,
    sum(part_count) OVER of_hardware AS all_part_count,
    workload_id
FROM counted
WINDOW of_hardware AS (PARTITION BY workload_id, hardware)
ORDER BY model, workload_id, hardware_won_count DESC, hardware, won_count DESC, kind
