/*
record = "Utilization"
summary = "Use of each chip by a run: arithmetic, bandwidth, units, and its place on the roofline"
grain = "one row per requested run, refused ones included"
table = [
    "hardware", "compute_utilization_fraction.kept", "compute_grade.kept", "roofline_fraction.kept",
    "roofline_grade.kept", "idle_units_fraction.kept", "attained_ops_per_s", "peak_ops_per_s",
    "bandwidth_utilization_fraction", "sustained_bandwidth_fraction", "dram_intensity_ops_per_byte",
    "ridge_ops_per_byte", "roof", "units_used_count", "units_total_count", "average_power_w", "ops_per_j", "flags",
]
order = ["compute_utilization_fraction descending, refused runs last", "hardware", "run_id"]
[parameters]
max_bandwidth_fraction = { type = "DOUBLE", default = 0.9, meaning = "share of the sustained bandwidth above which a run is flagged" }
max_idle_fraction = { type = "DOUBLE", default = 0.8, meaning = "share of idle units above which a run is flagged" }
grade_bounds = { type = "DOUBLE[]", default = [], meaning = "minimum shares of excellent, good, fair and poor; empty for those of `utilization.grade`" }
[columns]
flop_count = { type = "BIGINT", null = true, meaning = "operations of one inference, two per MAC" }
least_flop_count = { type = "BIGINT", null = true, meaning = "lower bound of the model's size class, as in `utilization.pairing`" }
compute_grade = { heading = "grade", type = "VARCHAR", null = true, meaning = "grade of compute_utilization_fraction: excellent, good, fair, poor or very poor" }
fp32_peak_ops_per_s = { type = "DOUBLE", null = true, unit = "ops/s", meaning = "peak at fp32 of a GPU where peak_ops_per_s is that of TF32; null elsewhere" }
attained_bytes_per_s = { type = "DOUBLE", null = true, unit = "B/s", meaning = "bytes moved off chip over the time between batches" }
sustained_bandwidth_fraction = { heading = "share of sustained bandwidth", type = "DOUBLE", null = true, meaning = "attained over the off-chip bandwidth that its class sustains, published x dram_efficiency: the share that a flag tests" }
ridge_ops_per_byte = { type = "DOUBLE", null = true, unit = "ops/B", meaning = "ridge point: peak over off-chip bandwidth" }
ridge_ratio = { type = "DOUBLE", null = true, meaning = "dram_intensity_ops_per_byte over the ridge point" }
roof = { type = "VARCHAR", null = true, meaning = "memory below the ridge point, else compute" }
roofline_ops_per_s = { type = "DOUBLE", null = true, unit = "ops/s", meaning = "roofline limit: the lesser of the peak and intensity x bandwidth" }
roofline_fraction = { type = "DOUBLE", null = true, meaning = "attained operations per second over the roofline limit" }
roofline_grade = { type = "VARCHAR", null = true, meaning = "grade of roofline_fraction" }
peak_ops_per_j = { type = "DOUBLE", null = true, unit = "ops/J", meaning = "peak over the power cap" }
flags = { type = "VARCHAR[]", meaning = "raised flags: low_compute, high_bandwidth, idle_units; see `utilization.flag`" }
average_power_w = { heading = "power" }
units_total_count = { heading = "units" }
ops_per_j = { heading = "efficiency" }
dram_intensity_ops_per_byte = { heading = "ops per off-chip byte" }
compute_utilization_fraction = { heading = "utilization" }
peak_ops_per_s = { heading = "peak" }
idle_units_fraction = { heading = "idle units" }
bandwidth_utilization_fraction = { heading = "bandwidth" }
attained_ops_per_s = { heading = "attained" }
*/
WITH grade_step AS (FROM utilization.grade(grade_bounds := $grade_bounds)),
asked AS (
    SELECT
        model, batch, precision, runtime, hardware, architecture, status, mac_count, attained_ops_per_s, peak_ops_per_s,
        compute_utilization_fraction, memory_bandwidth_bytes_per_s, bandwidth_utilization_fraction,
        arithmetic_intensity_ops_per_byte, dram_intensity_ops_per_byte, compute_time_fraction, memory_time_fraction,
        launch_time_fraction, units_used_count, units_total_count, unit_name, idle_units_fraction, average_power_w, tdp_w,
        ops_per_j, clock_fraction, is_projection, is_available, reason, run_id,
        dram_bytes / interval_s AS attained_bytes_per_s,
        dram_bytes / interval_s / (memory_bandwidth_bytes_per_s * dram_efficiency) AS sustained_bandwidth_fraction,
        peak_ops_per_s / memory_bandwidth_bytes_per_s AS ridge_ops_per_byte,
        least(
            peak_ops_per_s * coalesce(mac_count / nullif(computed_mac_count, 0e0), 1e0),
            dram_intensity_ops_per_byte * memory_bandwidth_bytes_per_s
        ) AS roofline_ops_per_s
    FROM cube.run(run_ids := $run_ids)
),
lane AS (
    SELECT r.run_id AS of_run, f.value AS fp32_peak_ops_per_s
    FROM internal.run AS r
    JOIN internal.hardware_version AS v ON v.hardware_digest = r.hardware_digest AND v.architecture = 'gpu'
    JOIN internal.hardware_fact AS f ON f.hardware_digest = r.hardware_digest AND f.quantity = 'peak.fp32'
    WHERE r.run_id IN (SELECT unnest($run_ids)) AND r.precision = 'fp32' AND r.peak_ops_per_s > f.value
)
SELECT
    model, batch, precision, runtime, hardware, architecture, status,
    2 * mac_count // batch AS flop_count,
    -- the largest power of ten that the operations of one inference reach
    CASE
        WHEN mac_count < batch THEN 0
        ELSE CAST(pow(10, length(CAST(2 * mac_count // batch AS VARCHAR)) - 1) AS BIGINT)
    END AS least_flop_count,
    attained_ops_per_s, peak_ops_per_s, fp32_peak_ops_per_s, compute_utilization_fraction,
    (SELECT min_by(g.grade, g.grade_index) FROM grade_step AS g WHERE compute_utilization_fraction >= g.least_fraction)
        AS compute_grade,
    attained_bytes_per_s, memory_bandwidth_bytes_per_s, bandwidth_utilization_fraction, sustained_bandwidth_fraction,
    arithmetic_intensity_ops_per_byte, dram_intensity_ops_per_byte, ridge_ops_per_byte,
    dram_intensity_ops_per_byte / ridge_ops_per_byte AS ridge_ratio,
    CASE
        WHEN status <> 'ok' THEN NULL
        WHEN dram_intensity_ops_per_byte < ridge_ops_per_byte THEN 'memory'
        ELSE 'compute'
    END AS roof,
    roofline_ops_per_s,
    attained_ops_per_s / nullif(roofline_ops_per_s, 0e0) AS roofline_fraction,
    (
        SELECT min_by(g.grade, g.grade_index)
        FROM grade_step AS g
        WHERE attained_ops_per_s / nullif(roofline_ops_per_s, 0e0) >= g.least_fraction
    ) AS roofline_grade,
    compute_time_fraction, memory_time_fraction, launch_time_fraction, units_used_count, units_total_count, unit_name,
    idle_units_fraction, average_power_w, tdp_w, ops_per_j,
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
    is_projection, is_available, reason, run_id
FROM asked
LEFT JOIN lane ON lane.of_run = asked.run_id
ORDER BY compute_utilization_fraction DESC NULLS LAST, hardware, run_id
