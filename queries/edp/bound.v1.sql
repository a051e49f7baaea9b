/*
record = "EdpBound"
summary = "Upper bounds of the reduction of a run's energy-delay product by removing one cost"
grain = "one row per remedy"
table = [
    "remedy", "saving_fraction", "edp_js", "latency_saving_fraction", "energy_saving_fraction", "subgraph_count",
]
[parameters]
run_id = { type = "INTEGER", meaning = "an evaluated run" }
[columns]
remedy = { heading = "without", type = "VARCHAR", meaning = "roofline: every subgraph at its roofline; no_memory_wait: memory never slower than compute; full_units: no padding, no partly filled wave; no_launch: no fixed cost of kernels; no_static: no static power; no_control: no control energy" }
saving_fraction = { heading = "EDP saved", type = "DOUBLE", meaning = "share of E T that the remedy would save at most" }
edp_js = { heading = "EDP left", type = "DOUBLE", unit = "Js", meaning = "remaining energy-delay product" }
latency_s = { type = "DOUBLE", unit = "s", meaning = "remaining latency" }
latency_saving_fraction = { heading = "latency saved", type = "DOUBLE", meaning = "share of T that the remedy would save at most" }
energy_j = { type = "DOUBLE", unit = "J", meaning = "remaining energy; static energy falls with the latency, all other energy stays" }
energy_saving_fraction = { heading = "energy saved", type = "DOUBLE", meaning = "share of E that the remedy would save at most" }
subgraph_count = { heading = "subgraphs affected", type = "BIGINT", meaning = "number of affected subgraphs" }
total_count = { type = "BIGINT", meaning = "subgraphs that run" }
*/
WITH placed AS MATERIALIZED (
    SELECT
        part_index, latency_s, compute_s, memory_s, launch_s, pass_s, energy_fj, static_fj, control_fj, mac_count,
        executed_mac_count, wave_fill_fraction, computed_mac_count, peak_ops_per_s, dram_bytes,
        memory_bandwidth_bytes_per_s
    FROM cube.part(run_ids := [$run_id])
),
energy AS (
    SELECT
        joules(sum(energy_fj)) AS energy_j,
        joules(sum(static_fj)) AS static_j,
        joules(sum(control_fj)) AS control_j
    FROM placed
),
part AS (
    SELECT
        part_index,
        latency_s,
        least(launch_s, latency_s) AS launch_s,
        greatest(latency_s - launch_s, 0e0) AS busy_s,
        compute_s,
        memory_s,
        pass_s,
        compute_s * coalesce(wave_fill_fraction, 1e0) * coalesce(fraction(mac_count, executed_mac_count), 1e0)
            AS full_s,
        greatest(
            2e0 * CAST(computed_mac_count AS DOUBLE) / peak_ops_per_s, dram_bytes / memory_bandwidth_bytes_per_s
        ) AS roofline_s
    FROM placed
),
remedied AS (
    SELECT
        p.part_index,
        p.latency_s,
        unnest([
            {'remedy': 'roofline', 'latency_s': least(p.latency_s, p.roofline_s)},
            {'remedy': 'no_memory_wait', 'latency_s': p.launch_s + least(p.busy_s, p.compute_s)},
            {'remedy': 'full_units', 'latency_s': p.launch_s + least(p.busy_s, p.pass_s + greatest(p.full_s, p.memory_s))},
            {'remedy': 'no_launch', 'latency_s': p.latency_s - p.launch_s},
            {'remedy': 'no_static', 'latency_s': p.latency_s},
            {'remedy': 'no_control', 'latency_s': p.latency_s}
        ]) AS change
    FROM part AS p
),
timed AS (
    SELECT
        d.change.remedy AS remedy,
        sum(d.latency_s ORDER BY d.part_index) AS whole_s,
        sum(least(d.change.latency_s, d.latency_s) ORDER BY d.part_index) AS latency_s,
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
    subgraph_count, total_count
FROM priced
ORDER BY saving_fraction DESC, remedy
