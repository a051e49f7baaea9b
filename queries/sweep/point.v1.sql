/*
record = "SweepPoint"
summary = "Runs of a sweep, with the gain and cost of a larger batch"
grain = "one row per requested run, refused ones included"
order = ["model", "hardware", "precision", "runtime", "batch", "run_id"]
[parameters]
zone_fraction = { type = "DOUBLE", default = 0.9, meaning = "minimum inferences per joule of an efficient batch, as a share of the highest of its series" }
[columns]
speedup_ratio = { heading = "speedup over batch 1", type = "DOUBLE", null = true, meaning = "throughput over throughput at batch 1; null without a run at batch 1" }
batch_scaling_ratio = { shown = "%", heading = "share of linear scaling", type = "DOUBLE", null = true, meaning = "throughput(N) / (N x throughput(1)); null without a run at batch 1" }
dram_bytes_per_inference = { type = "DOUBLE", null = true, unit = "B", meaning = "bytes read and written off chip over the inferences of the batch" }
bound = { type = "VARCHAR", null = true, meaning = "bound of most of the latency: compute, operands, memory, launch or communication" }
is_in_zone = { heading = "efficient", type = "BOOLEAN", meaning = "true for an efficient batch of its model, hardware, precision and runtime" }
inferences_per_j = { heading = "inferences per joule", shown = "~" }
compute_utilization_fraction = { heading = "utilization" }
bandwidth_utilization_fraction = { heading = "bandwidth utilization" }
peak_memory_bytes = { heading = "memory" }
average_power_w = { heading = "power" }
*/
WITH asked AS (
    SELECT
        model, hardware, architecture, precision, runtime, series, batch, status, latency_s, throughput_per_s,
        throughput_limit, energy_j, energy_per_inference_j, inferences_per_j, edp_js, average_power_w,
        compute_utilization_fraction, bandwidth_utilization_fraction, peak_memory_bytes, clock_fraction, is_projection,
        is_available, reason, run_id,
        max(CASE WHEN batch = 1 THEN throughput_per_s END) OVER of_series AS single_per_s,
        inferences_per_j >= $zone_fraction * max(inferences_per_j) OVER of_series AS is_efficient,
        first_value(batch) OVER (
            of_series ORDER BY CAST(inferences_per_j AS FLOAT) DESC NULLS LAST, batch, run_id
            ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
        ) AS best_batch
    FROM cube.run(run_ids := $run_ids)
    WINDOW of_series AS (PARTITION BY series, hardware)
),
spent AS (FROM cube.bound(run_ids := $run_ids)),
bounded AS (
    SELECT run_id AS of_run, max_by(bound, latency_fs) AS bound
    FROM spent
    GROUP BY run_id
)
SELECT
    model, hardware, architecture, precision, runtime, batch, status, latency_s, throughput_per_s, throughput_limit,
    energy_j, energy_per_inference_j, inferences_per_j, edp_js, average_power_w,
    throughput_per_s / single_per_s AS speedup_ratio,
    throughput_per_s / (batch * single_per_s) AS batch_scaling_ratio,
    compute_utilization_fraction, bandwidth_utilization_fraction, peak_memory_bytes, clock_fraction,
    t.dram_bytes / batch AS dram_bytes_per_inference,
    n.bound,
    bool_and(coalesce(is_efficient, FALSE)) OVER (
        PARTITION BY series, hardware, batch >= best_batch
        ORDER BY abs(batch - best_batch), batch
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS is_in_zone,
    is_projection, is_available, reason, asked.run_id
FROM asked
LEFT JOIN bounded AS n ON n.of_run = asked.run_id
LEFT JOIN internal.run_total AS t ON t.run_id = asked.run_id
ORDER BY model, hardware, precision, runtime, series, batch, asked.run_id
