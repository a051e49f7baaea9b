/*
name = "edp.bound"
record = "EdpBound"
version = 1
schema = 1
summary = "The most that removing one cost could take off a run's energy-delay product"
grain = "one row per remedy"
order = ["saving_fraction descending", "remedy"]
[parameters]
run_id = { type = "INTEGER", meaning = "an evaluated run" }
[columns]
remedy = { type = "VARCHAR", meaning = "roofline: every subgraph at its roofline; no_memory_wait: memory never slower than compute; full_units: no padding, no partly filled wave; no_launch: no fixed cost of kernels; no_static: no static power; no_control: no control energy" }
saving_fraction = { type = "DOUBLE", meaning = "of E T that would go; an upper bound" }
edp_js = { type = "DOUBLE", unit = "Js", meaning = "what would remain" }
latency_s = { type = "DOUBLE", unit = "s", meaning = "what would remain" }
latency_saving_fraction = { type = "DOUBLE", meaning = "of T that would go" }
energy_j = { type = "DOUBLE", unit = "J", meaning = "what would remain; static energy falls with the latency, all other energy stays" }
energy_saving_fraction = { type = "DOUBLE", meaning = "of E that would go" }
subgraph_count = { type = "BIGINT", meaning = "subgraphs that it touches" }
total_count = { type = "BIGINT", meaning = "subgraphs that run" }
*/
WITH energy AS (
    SELECT
        joules(sum(energy_fj)) AS energy_j,
        joules(sum(static_fj)) AS static_j,
        joules(sum(control_fj)) AS control_j
    FROM energy_parts
    WHERE run_id = $run_id
),
work AS (
    SELECT o.subgraph_index, sum(q.mac_count) AS mac_count
    FROM run_operator AS o
    JOIN run AS r ON r.run_id = o.run_id
    JOIN workload_operator AS q ON q.workload_id = r.workload_id AND q.operator_index = o.operator_index
    WHERE o.run_id = $run_id
    GROUP BY o.subgraph_index
),
part AS (
    SELECT
        s.subgraph_index,
        seconds(s.latency_fs) AS latency_s,
        least(s.launch_s, seconds(s.latency_fs)) AS launch_s,
        greatest(seconds(s.latency_fs) - s.launch_s, 0e0) AS busy_s,
        s.compute_s,
        s.memory_s,
        s.compute_s
            * coalesce(s.tile_count / nullif(s.wave_count * r.units_total_count, 0e0), 1e0)
            * coalesce(CAST(w.mac_count AS DOUBLE) / nullif(s.executed_mac_count, 0e0), 1e0) AS full_s,
        greatest(
            2e0 * CAST(s.computed_mac_count AS DOUBLE) / r.peak_ops_per_s,
            s.dram_bytes / r.memory_bandwidth_bytes_per_s
        ) AS roofline_s
    FROM run_subgraph AS s
    JOIN run AS r ON r.run_id = s.run_id
    LEFT JOIN work AS w ON w.subgraph_index = s.subgraph_index
    WHERE s.run_id = $run_id
),
remedied AS (
    SELECT
        p.subgraph_index,
        p.latency_s,
        unnest([
            {'remedy': 'roofline', 'latency_s': least(p.latency_s, p.roofline_s)},
            {'remedy': 'no_memory_wait', 'latency_s': p.launch_s + least(p.busy_s, p.compute_s)},
            {'remedy': 'full_units', 'latency_s': p.launch_s + least(p.busy_s, greatest(p.full_s, p.memory_s))},
            {'remedy': 'no_launch', 'latency_s': p.latency_s - p.launch_s},
            {'remedy': 'no_static', 'latency_s': p.latency_s},
            {'remedy': 'no_control', 'latency_s': p.latency_s}
        ]) AS change
    FROM part AS p
),
timed AS (
    SELECT
        d.change.remedy AS remedy,
        sum(d.latency_s ORDER BY d.subgraph_index) AS whole_s,
        sum(least(d.change.latency_s, d.latency_s) ORDER BY d.subgraph_index) AS latency_s,
        count(*) FILTER (WHERE d.change.latency_s < d.latency_s * (1e0 - 1e-9)) AS subgraph_count,
        count(*) AS total_count
    FROM remedied AS d
    GROUP BY d.change.remedy
),
priced AS (
    SELECT
        t.remedy,
        t.whole_s,
        t.latency_s,
        e.energy_j AS whole_j,
        CASE t.remedy
            WHEN 'no_static' THEN e.energy_j - e.static_j
            WHEN 'no_control' THEN e.energy_j - e.control_j
            ELSE e.energy_j - e.static_j * (1e0 - t.latency_s / t.whole_s)
        END AS energy_j,
        CASE WHEN t.remedy IN ('no_static', 'no_control') THEN t.total_count ELSE t.subgraph_count END AS subgraph_count,
        t.total_count
    FROM timed AS t
    CROSS JOIN energy AS e
)
SELECT
    remedy,
    1e0 - energy_j / whole_j * (latency_s / whole_s) AS saving_fraction,
    energy_j * latency_s AS edp_js,
    latency_s,
    1e0 - latency_s / whole_s AS latency_saving_fraction,
    energy_j,
    1e0 - energy_j / whole_j AS energy_saving_fraction,
    subgraph_count,
    total_count
FROM priced
ORDER BY saving_fraction DESC, remedy
