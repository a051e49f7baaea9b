/*
name = "compare.spread"
record = "UtilizationSpread"
version = 1
schema = 1
summary = "Compute utilization of each run: its mean, its least and most with what is responsible, and what bounds it"
grain = "one row per evaluated run"
order = ["position in run_ids", "run_id"]
[parameters]
run_ids = { type = "INTEGER[]", meaning = "runs to look at; refused ones are left out" }
[columns]
hardware = { type = "VARCHAR", meaning = "catalogue id, with @MODE where the power mode is not the default" }
mean_utilization_fraction = { type = "DOUBLE", null = true, meaning = "operations computed over what the peak allows within the latency of a batch: the mean of its subgraphs over time" }
min_utilization_fraction = { type = "DOUBLE", null = true, meaning = "of the subgraph with MACs that attains least; null without one" }
min_kind = { type = "VARCHAR", null = true, meaning = "operation that leads it; ties go to the first subgraph" }
min_name = { type = "VARCHAR", null = true, meaning = "the operator that leads it" }
max_utilization_fraction = { type = "DOUBLE", null = true, meaning = "of the subgraph with MACs that attains most" }
max_kind = { type = "VARCHAR", null = true, meaning = "operation that leads it; ties go to the first subgraph" }
max_name = { type = "VARCHAR", null = true, meaning = "the operator that leads it" }
idle_kind = { type = "VARCHAR", null = true, meaning = "kind of subgraph without MACs that takes most time; null without one" }
idle_time_fraction = { type = "DOUBLE", null = true, meaning = "of the latency in subgraphs without MACs" }
subgraph_count = { type = "BIGINT", meaning = "subgraphs that run" }
compute_bound_count = { type = "BIGINT", meaning = "of which compute bounds" }
memory_bound_count = { type = "BIGINT", meaning = "of which memory bounds" }
launch_bound_count = { type = "BIGINT", meaning = "of which their launch bounds" }
compute_time_fraction = { type = "DOUBLE", null = true, meaning = "of the latency in subgraphs that compute bounds" }
memory_time_fraction = { type = "DOUBLE", null = true, meaning = "of the latency in subgraphs that memory bounds" }
launch_time_fraction = { type = "DOUBLE", null = true, meaning = "of the latency in subgraphs that their launch bounds" }
run_id = { type = "INTEGER", meaning = "number of the run" }
*/
WITH asked AS MATERIALIZED (
    SELECT run_id, workload_id, peak_ops_per_s, configured_hardware
    FROM run_configurations
    WHERE run_id IN (SELECT unnest($run_ids))
),
work AS (
    SELECT o.run_id, o.subgraph_index, CAST(sum(q.mac_count) AS BIGINT) AS mac_count
    FROM run_operator AS o
    JOIN asked AS r ON r.run_id = o.run_id
    JOIN workload_operator AS q ON q.workload_id = r.workload_id AND q.operator_index = o.operator_index
    GROUP BY o.run_id, o.subgraph_index
),
part AS (
    SELECT
        s.run_id,
        s.subgraph_index,
        g.name,
        split_part(g.pattern, '+', 1) AS kind,
        s.latency_fs,
        s.bottleneck,
        coalesce(w.mac_count, 0) AS mac_count,
        s.computed_mac_count,
        CASE
            WHEN w.mac_count > 0 THEN 2 * s.computed_mac_count / nullif(seconds(s.latency_fs), 0e0) / r.peak_ops_per_s
        END AS utilization
    FROM run_subgraph AS s
    JOIN asked AS r ON r.run_id = s.run_id
    JOIN workload_subgraph AS g ON g.workload_id = r.workload_id AND g.subgraph_index = s.subgraph_index
    LEFT JOIN work AS w ON w.run_id = s.run_id AND w.subgraph_index = s.subgraph_index
),
ends AS (
    SELECT
        run_id,
        min({'value': utilization, 'index': subgraph_index, 'kind': kind, 'name': name}) AS lowest,
        min({'value': -utilization, 'index': subgraph_index, 'kind': kind, 'name': name}) AS highest
    FROM part
    WHERE utilization IS NOT NULL
    GROUP BY run_id
),
idle AS (
    SELECT run_id, min({'fs': -idle_fs, 'kind': kind}) AS most
    FROM (
        SELECT run_id, kind, sum(latency_fs) AS idle_fs
        FROM part
        WHERE mac_count = 0
        GROUP BY run_id, kind
    )
    GROUP BY run_id
),
whole AS (
    SELECT
        run_id,
        sum(computed_mac_count) AS computed_mac_count,
        nullif(CAST(sum(latency_fs) AS DOUBLE), 0e0) AS latency_fs,
        CAST(sum(CASE WHEN mac_count = 0 THEN latency_fs ELSE 0 END) AS DOUBLE) AS idle_fs,
        count(*) AS subgraph_count,
        count(*) FILTER (WHERE bottleneck = 'compute') AS compute_bound_count,
        count(*) FILTER (WHERE bottleneck = 'memory') AS memory_bound_count,
        count(*) FILTER (WHERE bottleneck = 'launch') AS launch_bound_count,
        CAST(sum(CASE WHEN bottleneck = 'compute' THEN latency_fs ELSE 0 END) AS DOUBLE) AS compute_fs,
        CAST(sum(CASE WHEN bottleneck = 'memory' THEN latency_fs ELSE 0 END) AS DOUBLE) AS memory_fs,
        CAST(sum(CASE WHEN bottleneck = 'launch' THEN latency_fs ELSE 0 END) AS DOUBLE) AS launch_fs
    FROM part
    GROUP BY run_id
)
SELECT
    r.configured_hardware AS hardware,
    2 * CAST(t.computed_mac_count AS DOUBLE) / seconds(t.latency_fs) / r.peak_ops_per_s AS mean_utilization_fraction,
    e.lowest.value AS min_utilization_fraction,
    e.lowest.kind AS min_kind,
    e.lowest.name AS min_name,
    -e.highest.value AS max_utilization_fraction,
    e.highest.kind AS max_kind,
    e.highest.name AS max_name,
    i.most.kind AS idle_kind,
    t.idle_fs / t.latency_fs AS idle_time_fraction,
    t.subgraph_count,
    t.compute_bound_count,
    t.memory_bound_count,
    t.launch_bound_count,
    t.compute_fs / t.latency_fs AS compute_time_fraction,
    t.memory_fs / t.latency_fs AS memory_time_fraction,
    t.launch_fs / t.latency_fs AS launch_time_fraction,
    r.run_id
FROM whole AS t
JOIN asked AS r ON r.run_id = t.run_id
LEFT JOIN ends AS e ON e.run_id = t.run_id
LEFT JOIN idle AS i ON i.run_id = t.run_id
ORDER BY list_position($run_ids, r.run_id), r.run_id
