/*
record = "UtilizationSpread"
summary = "Compute utilization of each run: mean, minimum and maximum with the responsible subgraphs, and bottlenecks"
grain = "one row per evaluated run"
order = ["position in run_ids", "run_id"]
[parameters]
run_ids = { type = "INTEGER[]", meaning = "runs to show; refused ones are omitted" }
[columns]
mean_utilization_fraction = { heading = "mean utilization", type = "DOUBLE", null = true, meaning = "operations computed over those that the peak allows within the latency of a batch: the time-weighted mean over subgraphs" }
min_utilization_fraction = { heading = "lowest", type = "DOUBLE", null = true, meaning = "share of the peak of the least utilized subgraph with MACs; null without one" }
min_kind = { type = "VARCHAR", null = true, meaning = "operation that leads this subgraph; ties go to the first subgraph" }
min_name = { heading = "lowest subgraph", type = "VARCHAR", null = true, meaning = "operator that leads this subgraph" }
max_utilization_fraction = { heading = "highest", type = "DOUBLE", null = true, meaning = "share of the peak of the most utilized subgraph with MACs" }
max_kind = { type = "VARCHAR", null = true, meaning = "operation that leads this subgraph; ties go to the first subgraph" }
max_name = { heading = "highest subgraph", type = "VARCHAR", null = true, meaning = "operator that leads this subgraph" }
idle_kind = { type = "VARCHAR", null = true, meaning = "kind of subgraph without MACs that takes the most time; null without one" }
idle_time_fraction = { heading = "time without MACs", type = "DOUBLE", null = true, meaning = "share of the latency in subgraphs without MACs" }
memory_time_fraction = { heading = "memory-bound time" }
launch_time_fraction = { heading = "launch-bound time" }
compute_time_fraction = { heading = "compute-bound time" }
*/
WITH part AS MATERIALIZED (
    SELECT
        run_id, part_index, name, operation, latency_fs, mac_count,
        CASE WHEN mac_count > 0 THEN compute_utilization_fraction END AS utilization
    FROM cube.part(run_ids := $run_ids, energy := 'none')
),
ends AS (
    SELECT
        run_id,
        min({'value': utilization, 'index': part_index, 'kind': operation, 'name': name}) AS lowest,
        min({'value': -utilization, 'index': part_index, 'kind': operation, 'name': name}) AS highest
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
idle_time AS (
    SELECT run_id, sum(CASE WHEN mac_count = 0 THEN latency_fs ELSE 0 END) AS idle_fs
    FROM part
    GROUP BY run_id
)
SELECT
    r.hardware,
    utilization_of(r.computed_mac_count, r.latency_fs, r.peak_ops_per_s) AS mean_utilization_fraction,
    e.lowest.value AS min_utilization_fraction,
    e.lowest.kind AS min_kind,
    e.lowest.name AS min_name,
    -e.highest.value AS max_utilization_fraction,
    e.highest.kind AS max_kind,
    e.highest.name AS max_name,
    i.most.kind AS idle_kind,
    fraction(t.idle_fs, r.latency_fs) AS idle_time_fraction,
    r.subgraph_count, r.compute_bound_count, r.memory_bound_count, r.launch_bound_count, r.compute_time_fraction,
    r.memory_time_fraction, r.launch_time_fraction, r.run_id
FROM cube.run(run_ids := $run_ids, rows := 'evaluated') AS r
JOIN idle_time AS t ON t.run_id = r.run_id
LEFT JOIN ends AS e ON e.run_id = r.run_id
LEFT JOIN idle AS i ON i.run_id = r.run_id
ORDER BY r.position, r.run_id
