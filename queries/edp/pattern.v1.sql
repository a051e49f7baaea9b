/*
name = "edp.pattern"
record = "EdpPattern"
version = 1
schema = 1
summary = "How a run's energy-delay product spreads over its fusion patterns"
grain = "one row per fusion pattern; shares sum to the run's energy-delay product"
order = ["share_fraction descending", "fusion_pattern"]
[parameters]
run_id = { type = "INTEGER", meaning = "run" }
[columns]
rank = { type = "BIGINT", meaning = "1 for the largest share" }
fusion_pattern = { type = "VARCHAR", meaning = "operations in order" }
subgraph_count = { type = "BIGINT", meaning = "subgraphs of this pattern" }
operator_count = { type = "HUGEINT", meaning = "operators that run in them" }
energy_fj = { type = "HUGEINT", unit = "fJ", meaning = "exact" }
energy_j = { type = "DOUBLE", unit = "J", meaning = "energy" }
latency_fs = { type = "HUGEINT", unit = "fs", meaning = "exact" }
latency_s = { type = "DOUBLE", unit = "s", meaning = "latency" }
edp_share_js = { type = "DOUBLE", unit = "Js", meaning = "(E_i T + E t_i) / 2; adds up to E T" }
share_fraction = { type = "DOUBLE", meaning = "of the run's energy-delay product" }
cumulative_fraction = { type = "DOUBLE", meaning = "of this and all larger shares; 1 in the last row" }
mac_fraction = { type = "DOUBLE", null = true, meaning = "of the run's MACs" }
bottleneck = { type = "VARCHAR", meaning = "what bounds most of their time" }
bottleneck_fraction = { type = "DOUBLE", meaning = "how much of their time it bounds" }
*/
WITH energy AS (
    SELECT subgraph_index, sum(energy_fj) AS energy_fj
    FROM ledger_line
    WHERE run_id = $run_id
    GROUP BY subgraph_index
),
work AS (
    SELECT o.subgraph_index, count(*) AS operator_count, sum(q.mac_count) AS mac_count
    FROM run_operator AS o
    JOIN run AS r ON r.run_id = o.run_id
    JOIN workload_operator AS q ON q.workload_id = r.workload_id AND q.operator_index = o.operator_index
    WHERE o.run_id = $run_id
    GROUP BY o.subgraph_index
),
part AS (
    SELECT
        g.pattern,
        s.latency_fs,
        s.bottleneck,
        coalesce(e.energy_fj, 0) AS energy_fj,
        coalesce(w.operator_count, 0) AS operator_count,
        coalesce(w.mac_count, 0) AS mac_count
    FROM run_subgraph AS s
    JOIN run AS r ON r.run_id = s.run_id
    JOIN workload_subgraph AS g ON g.workload_id = r.workload_id AND g.subgraph_index = s.subgraph_index
    LEFT JOIN energy AS e ON e.subgraph_index = s.subgraph_index
    LEFT JOIN work AS w ON w.subgraph_index = s.subgraph_index
    WHERE s.run_id = $run_id
),
bound AS (
    SELECT
        pattern,
        bottleneck,
        fraction(sum(latency_fs), sum(sum(latency_fs)) OVER (PARTITION BY pattern))
            AS bottleneck_fraction
    FROM part
    GROUP BY pattern, bottleneck
    QUALIFY row_number() OVER (PARTITION BY pattern ORDER BY sum(latency_fs) DESC, bottleneck) = 1
),
whole AS (
    SELECT
        nullif(CAST(sum(energy_fj) AS DOUBLE), 0e0) AS energy_fj,
        nullif(CAST(sum(latency_fs) AS DOUBLE), 0e0) AS latency_fs,
        nullif(CAST(sum(mac_count) AS DOUBLE), 0e0) AS mac_count
    FROM part
),
grouped AS (
    SELECT
        p.pattern,
        count(*) AS subgraph_count,
        sum(p.operator_count) AS operator_count,
        sum(p.energy_fj) AS energy_fj,
        sum(p.latency_fs) AS latency_fs,
        sum(p.mac_count) AS mac_count,
        (
            CAST(sum(p.energy_fj) AS DOUBLE) / any_value(w.energy_fj)
            + CAST(sum(p.latency_fs) AS DOUBLE) / any_value(w.latency_fs)
        ) / 2e0 AS share_fraction
    FROM part AS p
    CROSS JOIN whole AS w
    GROUP BY p.pattern
)
SELECT
    row_number() OVER by_share AS rank,
    g.pattern AS fusion_pattern,
    g.subgraph_count,
    g.operator_count,
    g.energy_fj,
    joules(g.energy_fj) AS energy_j,
    g.latency_fs,
    seconds(g.latency_fs) AS latency_s,
    edp_share(g.energy_fj, g.latency_fs, w.energy_fj, w.latency_fs) AS edp_share_js,
    g.share_fraction,
    (
        CAST(sum(g.energy_fj) OVER running AS DOUBLE) / w.energy_fj
        + CAST(sum(g.latency_fs) OVER running AS DOUBLE) / w.latency_fs
    ) / 2e0 AS cumulative_fraction,
    CAST(g.mac_count AS DOUBLE) / w.mac_count AS mac_fraction,
    b.bottleneck,
    b.bottleneck_fraction
FROM grouped AS g
JOIN bound AS b ON b.pattern = g.pattern
CROSS JOIN whole AS w
WINDOW
    by_share AS (ORDER BY g.share_fraction DESC, g.pattern),
    running AS (ORDER BY g.share_fraction DESC, g.pattern ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
ORDER BY g.share_fraction DESC, g.pattern
