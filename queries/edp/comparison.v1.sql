/*
record = "EdpComparison"
summary = "The same subgraph on several chips, with its share of each run's energy-delay product"
grain = "one row per subgraph and run"
order = ["share of the subgraph in the first run descending", "subgraph_index", "position in run_ids"]
[parameters]
run_ids = { type = "INTEGER[]", meaning = "runs of one workload; the first gives the order" }
[columns]
subgraph_index = { type = "INTEGER", meaning = "number of the subgraph" }
name = { type = "VARCHAR", meaning = "operator that leads the subgraph" }
fusion_pattern = { type = "VARCHAR", meaning = "operations in order" }
rank = { type = "BIGINT", meaning = "rank in its run, 1 for the largest share" }
energy_j = { type = "DOUBLE", unit = "J", meaning = "E_i, energy of the subgraph" }
latency_s = { type = "DOUBLE", unit = "s", meaning = "t_i, latency of the subgraph" }
edp_js = { type = "DOUBLE", unit = "Js", meaning = "E_i t_i, its own energy x its own latency" }
edp_share_js = { type = "DOUBLE", unit = "Js", meaning = "(E_i T + E t_i) / 2; adds up to E T of its run" }
share_fraction = { type = "DOUBLE", meaning = "share of its run's energy-delay product" }
least_ratio = { type = "DOUBLE", null = true, meaning = "edp_share_js over the least of all runs; 1 for the best" }
is_best = { type = "BOOLEAN", meaning = "true for the least edp_share_js alone; false for all runs of a tie" }
bottleneck = { type = "VARCHAR", meaning = "compute, memory or launch" }
*/
WITH part AS (
    SELECT
        subgraph_index, name, fusion_pattern, hardware, position, rank, energy_j, latency_s, edp_js, edp_share_js,
        edp_share_fraction, bottleneck, run_id
    FROM cube.part(run_ids := $run_ids, energy := 'whole')
    WHERE
        CASE
            WHEN (SELECT count(DISTINCT workload_id) FROM internal.run WHERE run_id IN (SELECT unnest($run_ids))) > 1
                THEN error('the runs are of several workloads; subgraphs compare within one')
            ELSE TRUE
        END
)
SELECT
    subgraph_index, name, fusion_pattern, hardware, rank, energy_j, latency_s, edp_js, edp_share_js,
    edp_share_fraction AS share_fraction,
    edp_share_js / nullif(min(edp_share_js) OVER (PARTITION BY subgraph_index), 0e0) AS least_ratio,
    rank() OVER (PARTITION BY subgraph_index ORDER BY edp_share_js) = 1
        AND count(*) OVER (PARTITION BY subgraph_index, edp_share_js) = 1 AS is_best,
    bottleneck, run_id
FROM part
ORDER BY
    max(CASE WHEN position = 1 THEN edp_share_fraction END) OVER (PARTITION BY subgraph_index) DESC NULLS LAST,
    subgraph_index,
    position,
    run_id
