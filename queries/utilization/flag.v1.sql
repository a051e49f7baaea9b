/*
record = "UtilizationFlag"
summary = "Problems in how runs use their hardware, and the responsible subgraphs"
grain = "one row per run and raised flag"
table = [
    "hardware", "flag.kept", "value_fraction.kept", "limit_fraction.kept", "subgraph.kept", "subgraph_fraction.kept",
    "bottleneck", "subgraph_count", "bottleneck_fraction", "units_used_count",
]
order = ["position in run_ids", "flag in the order low_compute, high_bandwidth, idle_units"]
[parameters]
max_bandwidth_fraction = { type = "DOUBLE", default = 0.9, meaning = "share of the sustained bandwidth, published x dram_efficiency, above which a run is flagged" }
max_idle_fraction = { type = "DOUBLE", default = 0.8, meaning = "share of idle units above which a run is flagged" }
[columns]
flag = { type = "VARCHAR", meaning = "flag: low_compute, high_bandwidth or idle_units" }
value_fraction = { heading = "value", type = "DOUBLE", meaning = "value of the flagged quantity" }
limit_fraction = { heading = "limit", type = "DOUBLE", meaning = "threshold of the flag" }
cost = { type = "VARCHAR", meaning = "unit of the cost: time lost against the peak, bytes moved off chip, or unit-seconds idle" }
bottleneck = { type = "VARCHAR", meaning = "bottleneck of the subgraphs with most of the cost: compute, memory or launch" }
bottleneck_fraction = { heading = "their share", type = "DOUBLE", null = true, meaning = "share of the cost in the subgraphs with this bottleneck" }
subgraph_count = { type = "BIGINT", meaning = "number of subgraphs with this bottleneck" }
total_count = { type = "BIGINT", meaning = "subgraphs of the run" }
subgraph_index = { type = "INTEGER", meaning = "subgraph with the largest cost; ties go to the first" }
subgraph = { heading = "worst subgraph", type = "VARCHAR", meaning = "operator that leads the subgraph" }
subgraph_fraction = { heading = "share", type = "DOUBLE", null = true, meaning = "share of the cost in this subgraph" }
tile_count = { type = "DOUBLE", meaning = "tiles of work of this subgraph" }
units_used_count = { heading = "busy units", type = "INTEGER", meaning = "units with work in the fullest wave of this subgraph" }
units_total_count = { type = "INTEGER", meaning = "units that support this precision" }
*/
WITH paced AS (
    SELECT o.run_id, o.subgraph_index, sum(o.interval_fs) AS interval_fs
    FROM internal.run_operator AS o
    WHERE o.run_id IN (SELECT unnest($run_ids))
    GROUP BY o.run_id, o.subgraph_index
),
part AS (
    SELECT
        s.run_id,
        s.subgraph_index,
        s.bottleneck,
        s.tile_count,
        s.units_used_count,
        r.units_total_count,
        r.peak_ops_per_s,
        r.memory_bandwidth_bytes_per_s * coalesce(f.value, 1e0) AS memory_bandwidth_bytes_per_s,
        s.latency_fs,
        w.interval_fs,
        s.computed_mac_count AS mac_count,
        s.dram_bytes,
        CAST(s.latency_fs AS HUGEINT) * s.units_used_count AS unit_fs
    FROM internal.run_subgraph AS s
    JOIN internal.run AS r ON r.run_id = s.run_id
    JOIN paced AS w ON w.run_id = s.run_id AND w.subgraph_index = s.subgraph_index
    JOIN internal.hardware_version AS v ON v.hardware_digest = r.hardware_digest
    LEFT JOIN internal.hardware_fact AS f
        ON f.hardware_digest = r.hardware_digest AND f.quantity = dram_efficiency_of(v.architecture, v.memory_type)
    WHERE s.run_id IN (SELECT unnest($run_ids)) AND r.run_id IN (SELECT unnest($run_ids))
),
total AS (
    SELECT
        run_id,
        count(*) AS total_count,
        2e0 * CAST(sum(mac_count) AS DOUBLE) / (seconds(sum(interval_fs))) / any_value(peak_ops_per_s)
            AS compute,
        sum(dram_bytes ORDER BY subgraph_index) / (seconds(sum(interval_fs)))
            / any_value(memory_bandwidth_bytes_per_s) AS bandwidth,
        1e0 - CAST(sum(unit_fs) AS DOUBLE) / (CAST(sum(interval_fs) AS DOUBLE) * any_value(units_total_count)) AS idle
    FROM part
    GROUP BY run_id
),
tested AS (
    SELECT
        run_id,
        total_count,
        unnest([
            {
                'position': 1, 'flag': 'low_compute', 'cost': 'time lost against the peak',
                'value': compute, 'level': $min_compute_fraction, 'is_raised': compute < $min_compute_fraction
            },
            {
                'position': 2, 'flag': 'high_bandwidth', 'cost': 'bytes moved off chip',
                'value': bandwidth, 'level': $max_bandwidth_fraction, 'is_raised': bandwidth > $max_bandwidth_fraction
            },
            {
                'position': 3, 'flag': 'idle_units', 'cost': 'unit-seconds idle',
                'value': idle, 'level': $max_idle_fraction, 'is_raised': idle > $max_idle_fraction
            }
        ]) AS test
    FROM total
),
priced AS (
    SELECT
        t.run_id,
        t.total_count,
        t.test.position AS position,
        t.test.flag AS flag,
        t.test.cost AS cost,
        t.test.value AS value,
        t.test.level AS level,
        p.subgraph_index,
        p.bottleneck,
        p.tile_count,
        p.units_used_count,
        p.units_total_count,
        -- whole femtoseconds, bytes and unit-femtoseconds: their sums do not depend on the order
        CASE t.test.flag
            WHEN 'low_compute'
                THEN p.latency_fs - CAST(round(2e15 * p.mac_count / p.peak_ops_per_s) AS HUGEINT)
            WHEN 'high_bandwidth' THEN CAST(round(p.dram_bytes) AS HUGEINT)
            ELSE CAST(p.latency_fs AS HUGEINT) * p.units_total_count - p.unit_fs
        END AS amount
    FROM tested AS t
    JOIN part AS p ON p.run_id = t.run_id
    WHERE t.test.is_raised
),
bound AS (
    SELECT
        run_id,
        flag,
        bottleneck,
        count(*) AS subgraph_count,
        sum(amount) AS amount,
        sum(sum(amount)) OVER (PARTITION BY run_id, flag) AS whole
    FROM priced
    GROUP BY run_id, flag, bottleneck
    QUALIFY row_number() OVER (PARTITION BY run_id, flag ORDER BY sum(amount) DESC, bottleneck) = 1
),
worst AS (
    SELECT
        priced.*
    FROM priced
    QUALIFY row_number() OVER (PARTITION BY run_id, flag ORDER BY amount DESC, subgraph_index) = 1
)
SELECT
    r.configured_hardware AS hardware,
    x.flag,
    x.value AS value_fraction,
    x.level AS limit_fraction,
    x.cost,
    b.bottleneck,
    fraction(b.amount, b.whole) AS bottleneck_fraction,
    b.subgraph_count,
    x.total_count, x.subgraph_index,
    g.name AS subgraph,
    fraction(x.amount, b.whole) AS subgraph_fraction,
    x.tile_count, x.units_used_count, x.units_total_count,
    r.unit_name,
    x.run_id
FROM worst AS x
JOIN bound AS b ON b.run_id = x.run_id AND b.flag = x.flag
JOIN run_configurations AS r ON r.run_id = x.run_id
JOIN internal.workload_subgraph AS g ON g.workload_id = r.workload_id AND g.subgraph_index = x.subgraph_index
ORDER BY list_position($run_ids, x.run_id), x.run_id, x.position
