/*
name = "edp.comparison"
record = "EdpComparison"
version = 1
schema = 1
summary = "The same subgraph on several hardware: its share of each run's energy-delay product"
grain = "one row per subgraph and run"
order = ["share of the subgraph in the first run descending", "subgraph_index", "position in run_ids"]
[parameters]
run_ids = { type = "INTEGER[]", meaning = "runs of one workload; the first gives the order" }
[columns]
subgraph_index = { type = "INTEGER", meaning = "subgraph" }
name = { type = "VARCHAR", meaning = "operator that leads it" }
fusion_pattern = { type = "VARCHAR", meaning = "operations in order" }
hardware = { type = "VARCHAR", meaning = "catalogue id, with @MODE where the power mode is not the default" }
rank = { type = "BIGINT", meaning = "in its run, 1 for the largest share" }
energy_j = { type = "DOUBLE", unit = "J", meaning = "E_i" }
latency_s = { type = "DOUBLE", unit = "s", meaning = "t_i" }
edp_js = { type = "DOUBLE", unit = "Js", meaning = "E_i t_i, its own energy x its own latency" }
edp_share_js = { type = "DOUBLE", unit = "Js", meaning = "(E_i T + E t_i) / 2; adds up to E T of its run" }
share_fraction = { type = "DOUBLE", meaning = "of its run's energy-delay product" }
least_ratio = { type = "DOUBLE", null = true, meaning = "edp_share_js over the least among the runs; 1 for the best" }
is_best = { type = "BOOLEAN", meaning = "has the least edp_share_js; ties go to the first name" }
bottleneck = { type = "VARCHAR", meaning = "compute, memory or launch" }
run_id = { type = "INTEGER", meaning = "number of the run" }
*/
WITH asked AS MATERIALIZED (
    SELECT run_id, workload_id, configured_hardware
    FROM run_configurations
    WHERE run_id IN (SELECT unnest($run_ids))
),
energy AS (
    SELECT run_id, subgraph_index, sum(energy_fj) AS energy_fj
    FROM ledger_line
    WHERE run_id IN (SELECT unnest($run_ids))
    GROUP BY run_id, subgraph_index
),
part AS (
    SELECT
        s.run_id,
        s.subgraph_index,
        s.latency_fs,
        s.bottleneck,
        coalesce(e.energy_fj, 0) AS energy_fj,
        nullif(CAST(sum(s.latency_fs) OVER (PARTITION BY s.run_id) AS DOUBLE), 0e0) AS run_fs,
        nullif(CAST(sum(e.energy_fj) OVER (PARTITION BY s.run_id) AS DOUBLE), 0e0) AS run_fj
    FROM run_subgraph AS s
    LEFT JOIN energy AS e ON e.run_id = s.run_id AND e.subgraph_index = s.subgraph_index
    WHERE s.run_id IN (SELECT unnest($run_ids))
        AND CASE
            WHEN (SELECT count(DISTINCT workload_id) FROM run WHERE run_id IN (SELECT unnest($run_ids))) > 1
                THEN error('the runs are of several workloads; subgraphs compare within one')
            ELSE TRUE
        END
),
share AS (
    SELECT
        p.run_id,
        p.subgraph_index,
        g.name,
        g.pattern,
        r.configured_hardware AS hardware,
        list_position($run_ids, p.run_id) AS position,
        joules(p.energy_fj) AS energy_j,
        seconds(p.latency_fs) AS latency_s,
        p.bottleneck,
        edp_share(p.energy_fj, p.latency_fs, p.run_fj, p.run_fs) AS edp_share_js,
        (CAST(p.energy_fj AS DOUBLE) / p.run_fj + p.latency_fs / p.run_fs) / 2e0 AS share_fraction
    FROM part AS p
    JOIN asked AS r ON r.run_id = p.run_id
    JOIN workload_subgraph AS g ON g.workload_id = r.workload_id AND g.subgraph_index = p.subgraph_index
)
SELECT
    subgraph_index,
    name,
    pattern AS fusion_pattern,
    hardware,
    row_number() OVER (PARTITION BY run_id ORDER BY share_fraction DESC, subgraph_index) AS rank,
    energy_j,
    latency_s,
    energy_j * latency_s AS edp_js,
    edp_share_js,
    share_fraction,
    edp_share_js / nullif(min(edp_share_js) OVER (PARTITION BY subgraph_index), 0e0) AS least_ratio,
    row_number() OVER (PARTITION BY subgraph_index ORDER BY edp_share_js, hardware, run_id) = 1 AS is_best,
    bottleneck,
    run_id
FROM share
ORDER BY
    max(CASE WHEN position = 1 THEN share_fraction END) OVER (PARTITION BY subgraph_index) DESC NULLS LAST,
    subgraph_index,
    position,
    run_id
