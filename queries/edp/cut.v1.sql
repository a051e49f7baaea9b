/*
record = "EdpCut"
summary = "Fewest subgraphs, or operators, that make up 50, 80, 90, 95 and 99 % of a run's energy-delay product"
grain = "one row per level and cut"
[columns]
level = { type = "VARCHAR", meaning = "counted level: subgraph or operator" }
cut_fraction = { shown = "set %", heading = "additive EDP", type = "DOUBLE", meaning = "requested share of the energy-delay product" }
top_count = { shown = "top {top_count} of {total_count}", type = "BIGINT", meaning = "fewest parts that reach cut_fraction, largest shares first" }
total_count = { type = "BIGINT", meaning = "number of all parts" }
reached_fraction = { type = "DOUBLE", meaning = "share of the energy-delay product of these parts together; at least cut_fraction" }
last = { type = "VARCHAR", meaning = "name of the smallest of these parts" }
*/
SELECT
    p.level,
    c.cut_fraction,
    p.rank AS top_count,
    p.total_count,
    p.cumulative_fraction AS reached_fraction,
    p.name AS last
FROM (VALUES (0.5e0), (0.8e0), (0.9e0), (0.95e0), (0.99e0)) AS c (cut_fraction)
JOIN (
    SELECT 'subgraph' AS level, s.name, s.rank, s.cumulative_fraction, count(*) OVER () AS total_count
    FROM cube.part(run_ids := [$run_id]) AS s
    UNION ALL
    SELECT 'operator', o.name, o.rank, o.cumulative_fraction, count(*) OVER ()
    FROM edp.operator(run_id := $run_id) AS o
) AS p ON p.cumulative_fraction >= c.cut_fraction
QUALIFY row_number() OVER (PARTITION BY p.level, c.cut_fraction ORDER BY p.rank) = 1
ORDER BY p.level DESC, c.cut_fraction
