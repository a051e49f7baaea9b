/*
name = "utilization.summary"
record = "Utilization"
version = 1
schema = 1
summary = "How much of each hardware a run uses: arithmetic, bandwidth, units, and where it stands on the roofline"
grain = "one row per run asked for, refused ones included"
order = ["compute_utilization_fraction descending, refused runs last", "hardware", "run_id"]
[parameters]
run_ids = { type = "INTEGER[]", meaning = "runs to look at, as `run.list` shows them" }
min_compute_fraction = { type = "DOUBLE", default = 0.2, meaning = "compute utilization below which a run is flagged" }
max_bandwidth_fraction = { type = "DOUBLE", default = 0.9, meaning = "share of the sustained bandwidth above which a run is flagged" }
max_idle_fraction = { type = "DOUBLE", default = 0.8, meaning = "share of idle units above which a run is flagged" }
grade_bounds = { type = "DOUBLE[]", default = [], meaning = "least shares that are excellent, good, fair and poor; empty for those of `utilization.grade`" }
[columns]
model = { type = "VARCHAR", meaning = "model" }
batch = { type = "INTEGER", meaning = "samples in one input" }
precision = { type = "VARCHAR", meaning = "precision" }
runtime = { type = "VARCHAR", meaning = "eager, graph or fused" }
hardware = { type = "VARCHAR", meaning = "catalogue id, with @MODE where the power mode is not the default" }
architecture = { type = "VARCHAR", meaning = "architecture class" }
status = { type = "VARCHAR", meaning = "ok or unsupported" }
flop_count = { type = "BIGINT", null = true, meaning = "operations of one inference, two per MAC" }
least_flop_count = { type = "BIGINT", null = true, meaning = "the class of model sizes that it is in begins here, as in `utilization.pairing`" }
attained_ops_per_s = { type = "DOUBLE", null = true, unit = "ops/s", meaning = "2 x MACs over the time from one batch to the next" }
peak_ops_per_s = { type = "DOUBLE", null = true, unit = "ops/s", meaning = "dense peak at this precision and power mode" }
compute_utilization_fraction = { type = "DOUBLE", null = true, meaning = "operations computed over what the peak allows, in steady state" }
compute_grade = { type = "VARCHAR", null = true, meaning = "compute_utilization_fraction in a word: excellent, good, fair, poor or very poor" }
attained_bytes_per_s = { type = "DOUBLE", null = true, unit = "B/s", meaning = "bytes moved off chip over the time from one batch to the next" }
memory_bandwidth_bytes_per_s = { type = "DOUBLE", null = true, unit = "B/s", meaning = "of the off-chip memory, as published" }
bandwidth_utilization_fraction = { type = "DOUBLE", null = true, meaning = "attained over published off-chip bandwidth" }
sustained_bandwidth_fraction = { type = "DOUBLE", null = true, meaning = "attained over the off-chip bandwidth that its class sustains, published x dram_efficiency: what is flagged" }
arithmetic_intensity_ops_per_byte = { type = "DOUBLE", null = true, unit = "ops/B", meaning = "operations over bytes that cross kernel boundaries, on chip or off" }
dram_intensity_ops_per_byte = { type = "DOUBLE", null = true, unit = "ops/B", meaning = "operations over bytes moved off chip; null where there are none" }
ridge_ops_per_byte = { type = "DOUBLE", null = true, unit = "ops/B", meaning = "peak over off-chip bandwidth: the intensity from which the peak, not the memory, is the roof" }
ridge_ratio = { type = "DOUBLE", null = true, meaning = "dram_intensity_ops_per_byte over the ridge point" }
roof = { type = "VARCHAR", null = true, meaning = "memory below the ridge point, else compute" }
roofline_ops_per_s = { type = "DOUBLE", null = true, unit = "ops/s", meaning = "the roof: the lesser of the peak and intensity x bandwidth" }
roofline_fraction = { type = "DOUBLE", null = true, meaning = "attained over the roof" }
roofline_grade = { type = "VARCHAR", null = true, meaning = "roofline_fraction in a word" }
compute_time_fraction = { type = "DOUBLE", null = true, meaning = "of the latency in subgraphs that compute bounds" }
memory_time_fraction = { type = "DOUBLE", null = true, meaning = "of the latency in subgraphs that memory bounds" }
launch_time_fraction = { type = "DOUBLE", null = true, meaning = "of the latency in subgraphs that their launch bounds" }
units_used_count = { type = "INTEGER", null = true, meaning = "units with work, mean over time, rounded up" }
units_total_count = { type = "INTEGER", null = true, meaning = "units that have this precision" }
unit_name = { type = "VARCHAR", meaning = "what one unit is called" }
idle_units_fraction = { type = "DOUBLE", null = true, meaning = "1 - mean over time of the units with work over all" }
average_power_w = { type = "DOUBLE", null = true, unit = "W", meaning = "energy over the time from one batch to the next" }
tdp_w = { type = "DOUBLE", unit = "W", meaning = "the power cap" }
ops_per_j = { type = "DOUBLE", null = true, unit = "ops/J", meaning = "attained operations per second and watt; 1e12 is one TOPS/W" }
peak_ops_per_j = { type = "DOUBLE", null = true, unit = "ops/J", meaning = "peak over the power cap" }
clock_fraction = { type = "DOUBLE", null = true, meaning = "of the full clock; below 1 where the power cap gives way" }
flags = { type = "VARCHAR[]", meaning = "low_compute, high_bandwidth, idle_units: `utilization.flag` has the reasons" }
is_projection = { type = "BOOLEAN", meaning = "key numbers of the hardware are projections or estimates" }
is_available = { type = "BOOLEAN", meaning = "it can be bought or rented, at a price that is no guess" }
reason = { type = "VARCHAR", meaning = "why it is unsupported" }
run_id = { type = "INTEGER", meaning = "number of the run" }
*/
WITH allocation AS (
    SELECT
        run_id,
        CAST(sum(latency_fs) AS DOUBLE) AS latency_fs,
        sum(dram_bytes ORDER BY subgraph_index) AS dram_bytes,
        CAST(sum(computed_mac_count) AS DOUBLE) AS computed_mac_count,
        CAST(sum(CAST(units_used_count AS HUGEINT) * latency_fs) AS DOUBLE) AS unit_fs,
        CAST(sum(CASE WHEN bottleneck = 'compute' THEN latency_fs ELSE 0 END) AS DOUBLE) AS compute_fs,
        CAST(sum(CASE WHEN bottleneck = 'memory' THEN latency_fs ELSE 0 END) AS DOUBLE) AS memory_fs,
        CAST(sum(CASE WHEN bottleneck = 'launch' THEN latency_fs ELSE 0 END) AS DOUBLE) AS launch_fs
    FROM run_subgraph
    WHERE run_id IN (SELECT unnest($run_ids))
    GROUP BY run_id
),
answered AS (
    SELECT
        s.run_id,
        2 * s.mac_count // s.batch AS flop_count,
        flop_class(s.mac_count, s.batch) AS least_flop_count,
        s.attained_ops_per_s,
        s.compute_utilization_fraction,
        coalesce(s.mac_count / nullif(a.computed_mac_count, 0e0), 1e0) AS saved_ratio,
        a.dram_bytes / s.interval_s AS attained_bytes_per_s,
        s.arithmetic_intensity_ops_per_byte,
        2 * s.mac_count / nullif(a.dram_bytes, 0e0) AS dram_intensity_ops_per_byte,
        a.compute_fs / a.latency_fs AS compute_time_fraction,
        a.memory_fs / a.latency_fs AS memory_time_fraction,
        a.launch_fs / a.latency_fs AS launch_time_fraction,
        s.units_used_count,
        greatest(1e0 - seconds(a.unit_fs) / (s.interval_s * s.units_total_count), 0e0) AS idle_units_fraction,
        s.average_power_w,
        s.ops_per_j,
        s.clock_fraction
    FROM runs AS s
    JOIN allocation AS a ON a.run_id = s.run_id
    WHERE s.run_id IN (SELECT unnest($run_ids))
),
fact AS (
    SELECT
        f.hardware_digest,
        max(f.value) FILTER (WHERE f.quantity = 'tdp') AS tdp_w,
        max(f.value) FILTER (WHERE f.quantity = dram_efficiency_of(v.architecture, v.memory_type)) AS dram_efficiency
    FROM hardware_fact AS f
    JOIN hardware_version AS v ON v.hardware_digest = f.hardware_digest
    GROUP BY f.hardware_digest
),
asked AS (
    SELECT
        r.run_id,
        r.model,
        r.batch,
        r.precision_label AS "precision",
        r.runtime,
        r.configured_hardware AS hardware,
        r.architecture,
        r.unit_name,
        r.is_projection,
        r.is_available,
        r.refusal,
        r.units_total_count,
        r.peak_ops_per_s,
        r.memory_bandwidth_bytes_per_s,
        t.tdp_w,
        r.peak_ops_per_s / r.memory_bandwidth_bytes_per_s AS ridge_ops_per_byte,
        s.flop_count,
        s.least_flop_count,
        s.attained_ops_per_s,
        s.compute_utilization_fraction,
        s.attained_bytes_per_s,
        s.attained_bytes_per_s / r.memory_bandwidth_bytes_per_s AS bandwidth_utilization_fraction,
        s.attained_bytes_per_s / (r.memory_bandwidth_bytes_per_s * coalesce(t.dram_efficiency, 1e0))
            AS sustained_bandwidth_fraction,
        s.arithmetic_intensity_ops_per_byte,
        s.dram_intensity_ops_per_byte,
        least(
            r.peak_ops_per_s * s.saved_ratio, s.dram_intensity_ops_per_byte * r.memory_bandwidth_bytes_per_s
        ) AS roofline_ops_per_s,
        s.attained_ops_per_s / nullif(least(
            r.peak_ops_per_s * s.saved_ratio, s.dram_intensity_ops_per_byte * r.memory_bandwidth_bytes_per_s
        ), 0e0) AS roofline_fraction,
        s.compute_time_fraction,
        s.memory_time_fraction,
        s.launch_time_fraction,
        s.units_used_count,
        s.idle_units_fraction,
        s.average_power_w,
        s.ops_per_j,
        s.clock_fraction
    FROM run_configurations AS r
    LEFT JOIN fact AS t ON t.hardware_digest = r.hardware_digest
    LEFT JOIN answered AS s ON s.run_id = r.run_id
    WHERE r.run_id IN (SELECT unnest($run_ids))
)
SELECT
    model,
    batch,
    precision,
    runtime,
    hardware,
    architecture,
    CASE WHEN refusal IS NULL THEN 'ok' ELSE 'unsupported' END AS status,
    flop_count,
    least_flop_count,
    attained_ops_per_s,
    peak_ops_per_s,
    compute_utilization_fraction,
    grade(compute_utilization_fraction, $grade_bounds) AS compute_grade,
    attained_bytes_per_s,
    memory_bandwidth_bytes_per_s,
    bandwidth_utilization_fraction,
    sustained_bandwidth_fraction,
    arithmetic_intensity_ops_per_byte,
    dram_intensity_ops_per_byte,
    ridge_ops_per_byte,
    dram_intensity_ops_per_byte / ridge_ops_per_byte AS ridge_ratio,
    CASE
        WHEN refusal IS NOT NULL THEN NULL
        WHEN dram_intensity_ops_per_byte < ridge_ops_per_byte THEN 'memory'
        ELSE 'compute'
    END AS roof,
    roofline_ops_per_s,
    roofline_fraction,
    grade(roofline_fraction, $grade_bounds) AS roofline_grade,
    compute_time_fraction,
    memory_time_fraction,
    launch_time_fraction,
    units_used_count,
    units_total_count,
    unit_name,
    idle_units_fraction,
    average_power_w,
    tdp_w,
    ops_per_j,
    peak_ops_per_s / tdp_w AS peak_ops_per_j,
    clock_fraction,
    list_filter(
        [
            CASE WHEN compute_utilization_fraction < $min_compute_fraction THEN 'low_compute' END,
            CASE WHEN sustained_bandwidth_fraction > $max_bandwidth_fraction THEN 'high_bandwidth' END,
            CASE WHEN idle_units_fraction > $max_idle_fraction THEN 'idle_units' END
        ],
        lambda flag: flag IS NOT NULL
    ) AS flags,
    is_projection,
    is_available,
    coalesce(refusal, '') AS reason,
    run_id
FROM asked
ORDER BY compute_utilization_fraction DESC NULLS LAST, hardware, run_id
