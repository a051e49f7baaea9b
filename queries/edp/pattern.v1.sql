/*
record = "EdpPattern"
summary = "Energy-delay product of a run by fusion pattern"
grain = "one row per fusion pattern; shares sum to the run's energy-delay product"
table = [
    "fusion_pattern", "edp_share_fraction", "energy_j", "latency_s", "subgraph_count", "operator_count",
    "cumulative_fraction", "mac_fraction", "bottleneck", "bottleneck_fraction",
]
[columns]
rank = { type = "BIGINT", meaning = "rank, 1 for the largest share" }
fusion_pattern = { type = "VARCHAR", meaning = "operations in order" }
subgraph_count = { type = "BIGINT", meaning = "subgraphs of this pattern" }
operator_count = { type = "HUGEINT", meaning = "operators that run in these subgraphs" }
energy_j = { type = "DOUBLE", unit = "J", meaning = "energy" }
latency_fs = { type = "HUGEINT", unit = "fs", meaning = "latency, exact" }
latency_s = { type = "DOUBLE", unit = "s", meaning = "latency" }
edp_share_fraction = { heading = "run share", type = "DOUBLE", meaning = "share of the run's energy-delay product" }
mac_fraction = { heading = "MAC share", type = "DOUBLE", null = true, meaning = "share of the run's MACs" }
bottleneck = { type = "VARCHAR", meaning = "bottleneck with most of the time of these subgraphs" }
bottleneck_fraction = { type = "DOUBLE", meaning = "share of the time of these subgraphs with this bottleneck" }
*/
WITH part AS MATERIALIZED (
    SELECT
        fusion_pattern, operator_count, mac_count, energy_fj, run_fj, latency_fs, run_fs, edp_share_js, bottleneck
    FROM cube.part(run_ids := [$run_id])
),
bound AS (
    SELECT
        fusion_pattern,
        bottleneck,
        fraction(sum(latency_fs), sum(sum(latency_fs)) OVER (PARTITION BY fusion_pattern)) AS bottleneck_fraction
    FROM part
    GROUP BY fusion_pattern, bottleneck
    QUALIFY row_number() OVER (PARTITION BY fusion_pattern ORDER BY sum(latency_fs) DESC, bottleneck) = 1
),
grouped AS (
    SELECT
        fusion_pattern,
        count(*) AS subgraph_count,
        sum(operator_count) AS operator_count,
        sum(mac_count) AS mac_count,
        sum(energy_fj) AS energy_fj,
        any_value(run_fj) AS run_fj,
        sum(latency_fs) AS latency_fs,
        any_value(run_fs) AS run_fs,
        (fraction(sum(energy_fj), any_value(run_fj)) + fraction(sum(latency_fs), any_value(run_fs))) / 2e0
            AS edp_share_fraction
    FROM part
    GROUP BY fusion_pattern
)
SELECT
    row_number() OVER by_share AS rank,
    g.fusion_pattern, g.subgraph_count, g.operator_count, g.energy_fj,
    joules(g.energy_fj) AS energy_j,
    g.latency_fs,
    seconds(g.latency_fs) AS latency_s,
    edp_share(g.energy_fj, g.latency_fs, g.run_fj, g.run_fs) AS edp_share_js,
    g.edp_share_fraction,
    (
        fraction(sum(g.energy_fj) OVER by_share, g.run_fj) + fraction(sum(g.latency_fs) OVER by_share, g.run_fs)
    ) / 2e0 AS cumulative_fraction,
    fraction(g.mac_count, sum(g.mac_count) OVER ()) AS mac_fraction,
    b.bottleneck,
    b.bottleneck_fraction
FROM grouped AS g
JOIN bound AS b ON b.fusion_pattern = g.fusion_pattern
WINDOW by_share AS (
    ORDER BY g.edp_share_fraction DESC, g.fusion_pattern ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
)
ORDER BY g.edp_share_fraction DESC, g.fusion_pattern
