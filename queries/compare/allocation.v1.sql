/*
name = "compare.allocation"
record = "Placement"
version = 1
schema = 1
summary = "Where each subgraph of several runs is placed, how long it takes there and what bounds it"
grain = "one row per evaluated run and subgraph"
order = ["position in run_ids", "run_id", "latency_s descending", "subgraph_index"]
[parameters]
run_ids = { type = "INTEGER[]", meaning = "runs to look at; refused ones are left out" }
[columns]
hardware = { type = "VARCHAR", meaning = "catalogue id, with @MODE where the power mode is not the default" }
subgraph_index = { type = "INTEGER", meaning = "subgraph of the workload" }
subgraph = { type = "VARCHAR", meaning = "operator that leads it" }
fusion_pattern = { type = "VARCHAR", meaning = "its operations in order" }
latency_s = { type = "DOUBLE", unit = "s", meaning = "of its kernels" }
latency_fraction = { type = "DOUBLE", null = true, meaning = "of the run" }
bottleneck = { type = "VARCHAR", meaning = "the largest of compute, memory and launch time" }
compute_s = { type = "DOUBLE", unit = "s", meaning = "time of the units, padded tiles and partial waves included" }
memory_s = { type = "DOUBLE", unit = "s", meaning = "time of the slowest memory level" }
launch_s = { type = "DOUBLE", unit = "s", meaning = "fixed cost of its kernels" }
units_used_count = { type = "INTEGER", meaning = "units with work in the fullest wave" }
units_total_count = { type = "INTEGER", meaning = "units that have this precision" }
unit_name = { type = "VARCHAR", meaning = "what one unit is called" }
tile_count = { type = "DOUBLE", meaning = "tiles of work" }
wave_count = { type = "DOUBLE", meaning = "rounds of tiles over the units" }
compute_utilization_fraction = { type = "DOUBLE", null = true, meaning = "operations computed over what the peak allows within its latency" }
energy_j = { type = "DOUBLE", unit = "J", meaning = "static energy included" }
run_id = { type = "INTEGER", meaning = "number of the run" }
*/
WITH asked AS MATERIALIZED (
    SELECT
        run_id, workload_id, configured_hardware, units_total_count, unit_name, peak_ops_per_s,
        list_position($run_ids, run_id) AS position
    FROM run_configurations
    WHERE run_id IN (SELECT unnest($run_ids))
),
energy AS (
    SELECT run_id, subgraph_index, sum(energy_fj) AS energy_fj
    FROM ledger_line
    WHERE run_id IN (SELECT unnest($run_ids))
    GROUP BY run_id, subgraph_index
)
SELECT
    r.configured_hardware AS hardware,
    s.subgraph_index,
    g.name AS subgraph,
    g.pattern AS fusion_pattern,
    seconds(s.latency_fs) AS latency_s,
    fraction(s.latency_fs, sum(s.latency_fs) OVER (PARTITION BY s.run_id)) AS latency_fraction,
    s.bottleneck,
    s.compute_s,
    s.memory_s,
    s.launch_s,
    s.units_used_count,
    r.units_total_count,
    r.unit_name,
    s.tile_count,
    s.wave_count,
    2 * s.computed_mac_count / nullif(seconds(s.latency_fs), 0e0) / r.peak_ops_per_s AS compute_utilization_fraction,
    joules(coalesce(e.energy_fj, 0)) AS energy_j,
    s.run_id
FROM run_subgraph AS s
JOIN asked AS r ON r.run_id = s.run_id
JOIN workload_subgraph AS g ON g.workload_id = r.workload_id AND g.subgraph_index = s.subgraph_index
LEFT JOIN energy AS e ON e.run_id = s.run_id AND e.subgraph_index = s.subgraph_index
ORDER BY r.position, s.run_id, s.latency_fs DESC, s.subgraph_index
