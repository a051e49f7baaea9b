/*
summary = "Each subgraph with the hardware that has the lowest value of a metric for it"
grain = "one row per subgraph"
[parameters]
run_ids = { type = "INTEGER[]", meaning = "runs of one workload" }
metric = { type = "VARCHAR", default = "energy", meaning = "energy, latency or edp" }
[columns]
subgraph_index = { type = "INTEGER", meaning = "number of the subgraph" }
name = { type = "VARCHAR", meaning = "operator that leads the subgraph" }
fusion_pattern = { type = "VARCHAR", meaning = "operations in order" }
winner = { type = "VARCHAR", meaning = "hardware with the lowest value; ties go to the first name" }
metric = { type = "VARCHAR", meaning = "compared metric" }
value = { type = "DOUBLE", meaning = "value of the winner, in unit" }
unit = { type = "VARCHAR", meaning = "J, s or Js" }
*/
WITH candidate AS (
    SELECT
        subgraph_index,
        name,
        fusion_pattern,
        hardware,
        CASE $metric
            WHEN 'energy' THEN energy_j
            WHEN 'latency' THEN latency_s
            WHEN 'edp' THEN edp_share_js
            ELSE error('metric is ' || $metric || ', expected energy, latency or edp')
        END AS value
    FROM cube.part(run_ids := $run_ids, energy := 'whole')
    WHERE
        CASE
            WHEN (SELECT count(DISTINCT workload_id) FROM internal.run WHERE run_id IN (SELECT unnest($run_ids))) > 1
                THEN error('the runs are of several workloads; subgraphs compare within one')
            ELSE TRUE
        END
),
ranked AS (
    SELECT
        subgraph_index,
        name,
        fusion_pattern,
        hardware,
        value,
        row_number() OVER by_value AS rank,
        lead(hardware) OVER by_value AS runner_up,
        lead(value) OVER by_value AS next_value
    FROM candidate
    WHERE value IS NOT NULL
    WINDOW by_value AS (PARTITION BY subgraph_index ORDER BY value, hardware)
)
SELECT
    subgraph_index,
    name,
    fusion_pattern,
    hardware AS winner,
    $metric AS metric,
    value,
    find_metric($metric).unit AS unit,
    runner_up,
    next_value / nullif(value, 0e0) AS advantage_ratio
FROM ranked
WHERE rank = 1
ORDER BY subgraph_index
