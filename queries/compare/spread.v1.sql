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
WITH part AS MATERIALIZED (
    SELECT
        run_id, position, hardware, place_index, name, operation, latency_fs, run_fs, bottleneck, mac_count,
        computed_mac_count, peak_ops_per_s, CASE WHEN mac_count > 0 THEN compute_utilization_fraction END AS utilization
    FROM cube.place(run_ids := $run_ids, energy := 'none')
),
ends AS (
    SELECT
        run_id,
        min({'value': utilization, 'index': place_index, 'kind': operation, 'name': name}) AS lowest,
        min({'value': -utilization, 'index': place_index, 'kind': operation, 'name': name}) AS highest
    FROM part
    WHERE utilization IS NOT NULL
    GROUP BY run_id
),
idle AS (
    SELECT run_id, min({'fs': -idle_fs, 'kind': operation}) AS most
    FROM (
        SELECT run_id, operation, sum(latency_fs) AS idle_fs
        FROM part
        WHERE mac_count = 0
        GROUP BY run_id, operation
    )
    GROUP BY run_id
),
whole AS (
    SELECT
        run_id,
        position,
        hardware,
        run_fs,
        utilization_of(sum(computed_mac_count), run_fs, any_value(peak_ops_per_s)) AS utilization,
        sum(CASE WHEN mac_count = 0 THEN latency_fs ELSE 0 END) AS idle_fs,
        count(*) AS subgraph_count,
        count(*) FILTER (WHERE bottleneck = 'compute') AS compute_bound_count,
        count(*) FILTER (WHERE bottleneck = 'memory') AS memory_bound_count,
        count(*) FILTER (WHERE bottleneck = 'launch') AS launch_bound_count,
        sum(CASE WHEN bottleneck = 'compute' THEN latency_fs ELSE 0 END) AS compute_fs,
        sum(CASE WHEN bottleneck = 'memory' THEN latency_fs ELSE 0 END) AS memory_fs,
        sum(CASE WHEN bottleneck = 'launch' THEN latency_fs ELSE 0 END) AS launch_fs
    FROM part
    GROUP BY run_id, position, hardware, run_fs
)
SELECT
    t.hardware,
    t.utilization AS mean_utilization_fraction,
    e.lowest.value AS min_utilization_fraction,
    e.lowest.kind AS min_kind,
    e.lowest.name AS min_name,
    -e.highest.value AS max_utilization_fraction,
    e.highest.kind AS max_kind,
    e.highest.name AS max_name,
    i.most.kind AS idle_kind,
    fraction(t.idle_fs, t.run_fs) AS idle_time_fraction,
    t.subgraph_count,
    t.compute_bound_count,
    t.memory_bound_count,
    t.launch_bound_count,
    fraction(t.compute_fs, t.run_fs) AS compute_time_fraction,
    fraction(t.memory_fs, t.run_fs) AS memory_time_fraction,
    fraction(t.launch_fs, t.run_fs) AS launch_time_fraction,
    t.run_id
FROM whole AS t
LEFT JOIN ends AS e ON e.run_id = t.run_id
LEFT JOIN idle AS i ON i.run_id = t.run_id
ORDER BY t.position, t.run_id
