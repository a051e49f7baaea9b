/*
name = "edp.cut"
record = "EdpCut"
version = 1
schema = 1
summary = "How few subgraphs, or operators, make up 50, 80, 90, 95 and 99 % of a run's energy-delay product"
grain = "one row per cut"
order = ["cut_fraction"]
[parameters]
run_id = { type = "INTEGER", meaning = "run" }
level = { type = "VARCHAR", default = "subgraph", meaning = "subgraph or operator" }
[columns]
level = { type = "VARCHAR", meaning = "what is counted" }
cut_fraction = { type = "DOUBLE", meaning = "of the energy-delay product that is asked for" }
top_count = { type = "BIGINT", meaning = "the fewest that reach it, largest shares first" }
total_count = { type = "BIGINT", meaning = "all there are" }
reached_fraction = { type = "DOUBLE", meaning = "of the energy-delay product that they make up; at least cut_fraction" }
last = { type = "VARCHAR", meaning = "name of the smallest of them" }
*/
WITH part AS (
    SELECT s.subgraph_index AS position, g.name, s.latency_fs, coalesce(e.energy_fj, 0) AS energy_fj
    FROM run_subgraph AS s
    JOIN run AS r ON r.run_id = s.run_id
    JOIN workload_subgraph AS g ON g.workload_id = r.workload_id AND g.subgraph_index = s.subgraph_index
    LEFT JOIN (
        SELECT subgraph_index, sum(energy_fj) AS energy_fj
        FROM ledger_line
        WHERE run_id = $run_id
        GROUP BY subgraph_index
    ) AS e ON e.subgraph_index = s.subgraph_index
    WHERE s.run_id = $run_id
        AND CASE $level
            WHEN 'subgraph' THEN TRUE
            WHEN 'operator' THEN FALSE
            ELSE error('level is ' || $level || ', expected subgraph or operator')
        END
    UNION ALL
    SELECT o.operator_index, q.name, o.latency_fs, coalesce(e.energy_fj, 0)
    FROM run_operator AS o
    JOIN run AS r ON r.run_id = o.run_id
    JOIN workload_operator AS q ON q.workload_id = r.workload_id AND q.operator_index = o.operator_index
    LEFT JOIN (
        SELECT operator_index, sum(energy_fj) AS energy_fj
        FROM ledger_line
        WHERE run_id = $run_id
        GROUP BY operator_index
    ) AS e ON e.operator_index = o.operator_index
    WHERE o.run_id = $run_id AND $level = 'operator'
),
whole AS (
    SELECT
        nullif(CAST(sum(energy_fj) AS DOUBLE), 0e0) AS energy_fj,
        nullif(CAST(sum(latency_fs) AS DOUBLE), 0e0) AS latency_fs,
        count(*) AS total_count
    FROM part
),
share AS (
    SELECT
        p.position,
        p.name,
        p.energy_fj,
        p.latency_fs,
        (CAST(p.energy_fj AS DOUBLE) / w.energy_fj + p.latency_fs / w.latency_fs) / 2e0 AS share_fraction
    FROM part AS p
    CROSS JOIN whole AS w
),
ranked AS (
    SELECT
        h.name,
        row_number() OVER running AS rank,
        (
            CAST(sum(h.energy_fj) OVER running AS DOUBLE) / w.energy_fj
            + CAST(sum(h.latency_fs) OVER running AS DOUBLE) / w.latency_fs
        ) / 2e0 AS cumulative_fraction,
        w.total_count
    FROM share AS h
    CROSS JOIN whole AS w
    WINDOW running AS (
        ORDER BY h.share_fraction DESC, h.position ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    )
)
SELECT
    $level AS level,
    c.cut_fraction,
    k.rank AS top_count,
    k.total_count,
    k.cumulative_fraction AS reached_fraction,
    k.name AS last
FROM (VALUES (0.5e0), (0.8e0), (0.9e0), (0.95e0), (0.99e0)) AS c (cut_fraction)
JOIN ranked AS k ON k.cumulative_fraction >= c.cut_fraction
QUALIFY row_number() OVER (PARTITION BY c.cut_fraction ORDER BY k.rank) = 1
ORDER BY c.cut_fraction
