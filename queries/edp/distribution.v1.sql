/*
name = "edp.distribution"
version = 1
schema = 2
summary = "How a run's energy-delay product spreads over its subgraphs, cumulatively"
grain = "one row per subgraph"
order = ["edp_share_js descending", "subgraph_index"]
[parameters]
run_id = { type = "INTEGER", meaning = "run" }
[columns]
rank = { type = "BIGINT", meaning = "1 for the largest share" }
subgraph_index = { type = "INTEGER", meaning = "subgraph" }
name = { type = "VARCHAR", meaning = "operator that leads it" }
fusion_pattern = { type = "VARCHAR", meaning = "operations in order" }
energy_j = { type = "DOUBLE", unit = "J", meaning = "of the subgraph" }
latency_s = { type = "DOUBLE", unit = "s", meaning = "of the subgraph" }
edp_js = { type = "DOUBLE", unit = "Js", meaning = "its own energy x its own latency; does not add up" }
edp_share_js = { type = "DOUBLE", unit = "Js", meaning = "(E_i T + E t_i) / 2; adds up to E T" }
share_fraction = { type = "DOUBLE", meaning = "of the run's energy-delay product" }
cumulative_fraction = { type = "DOUBLE", meaning = "of this and all larger shares" }
bottleneck = { type = "VARCHAR", meaning = "compute, memory or launch" }
*/
WITH share AS (
    SELECT
        subgraph_index,
        name,
        fusion_pattern,
        energy_j,
        latency_s,
        edp_js,
        edp_share_js,
        bottleneck,
        sum(edp_share_js) OVER () AS total_js
    FROM subgraph_results
    WHERE run_id = $run_id
)
SELECT
    row_number() OVER by_share AS rank,
    subgraph_index,
    name,
    fusion_pattern,
    energy_j,
    latency_s,
    edp_js,
    edp_share_js,
    edp_share_js / nullif(total_js, 0e0) AS share_fraction,
    sum(edp_share_js) OVER (
        ORDER BY edp_share_js DESC, subgraph_index ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) / nullif(total_js, 0e0) AS cumulative_fraction,
    bottleneck
FROM share
WINDOW by_share AS (ORDER BY edp_share_js DESC, subgraph_index)
ORDER BY edp_share_js DESC, subgraph_index
