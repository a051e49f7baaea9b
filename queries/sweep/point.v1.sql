/*
name = "sweep.point"
record = "SweepPoint"
version = 1
schema = 1
summary = "Every run of a sweep: what a larger batch brings and costs"
grain = "one row per run asked for, refused ones included"
order = ["model", "hardware", "precision", "runtime", "batch", "run_id"]
[parameters]
run_ids = { type = "INTEGER[]", meaning = "runs to look at, as `run.list` shows them" }
zone_fraction = { type = "DOUBLE", default = 0.9, meaning = "of the most inferences per joule that belongs to the power-efficiency zone" }
[columns]
model = { type = "VARCHAR", meaning = "model" }
hardware = { type = "VARCHAR", meaning = "catalogue id, with @MODE where the power mode is not the default" }
architecture = { type = "VARCHAR", meaning = "architecture class" }
precision = { type = "VARCHAR", meaning = "precision; bf16/int4 where weights of products are stored at another" }
runtime = { type = "VARCHAR", meaning = "eager, graph or fused" }
batch = { type = "INTEGER", meaning = "samples in one input" }
status = { type = "VARCHAR", meaning = "ok or unsupported" }
latency_s = { type = "DOUBLE", null = true, unit = "s", meaning = "per batch" }
throughput_per_s = { type = "DOUBLE", null = true, unit = "1/s", meaning = "inferences per second" }
throughput_limit = { type = "VARCHAR", null = true, meaning = "latency where a batch starts after another has ended; cores, devices or pipeline stage that always have work; memory bandwidth; power cap" }
energy_j = { type = "DOUBLE", null = true, unit = "J", meaning = "per batch" }
energy_per_inference_j = { type = "DOUBLE", null = true, unit = "J", meaning = "per inference" }
inferences_per_j = { type = "DOUBLE", null = true, unit = "1/J", meaning = "inferences per joule, or per second and watt" }
edp_js = { type = "DOUBLE", null = true, unit = "Js", meaning = "energy x latency, per batch" }
average_power_w = { type = "DOUBLE", null = true, unit = "W", meaning = "energy over the time from one batch to the next" }
speedup_ratio = { type = "DOUBLE", null = true, meaning = "throughput over that at batch 1; null without a run at batch 1" }
batch_scaling_ratio = { type = "DOUBLE", null = true, meaning = "throughput(N) / (N x throughput(1)); null without a run at batch 1" }
compute_utilization_fraction = { type = "DOUBLE", null = true, meaning = "operations computed over what the peak allows, in steady state" }
bandwidth_utilization_fraction = { type = "DOUBLE", null = true, meaning = "attained over published off-chip bandwidth" }
peak_memory_bytes = { type = "BIGINT", null = true, unit = "B", meaning = "weights and peak activations" }
clock_fraction = { type = "DOUBLE", null = true, meaning = "of the full clock; below 1 where the power cap gives way" }
is_in_zone = { type = "BOOLEAN", meaning = "in the power-efficiency zone of its model, hardware, precision and runtime" }
is_projection = { type = "BOOLEAN", meaning = "key numbers of the hardware are projections or estimates" }
is_available = { type = "BOOLEAN", meaning = "it can be bought or rented, at a price that is no guess" }
reason = { type = "VARCHAR", meaning = "why it is unsupported" }
run_id = { type = "INTEGER", meaning = "number of the run" }
*/
WITH asked AS (
    SELECT
        r.model,
        r.configured_hardware AS hardware,
        r.architecture,
        r.precision_label AS "precision",
        r.runtime,
        r.series,
        r.batch,
        r.refusal,
        s.latency_s,
        s.throughput_per_s,
        s.throughput_limit,
        s.energy_j,
        s.energy_per_inference_j,
        1e0 / s.energy_per_inference_j AS inferences_per_j,
        s.edp_js,
        s.average_power_w,
        s.compute_utilization_fraction,
        s.bandwidth_utilization_fraction,
        s.peak_memory_bytes,
        s.clock_fraction,
        r.is_projection,
        r.is_available,
        r.run_id
    FROM run_configurations AS r
    LEFT JOIN (
        SELECT
            run_id,
            latency_s,
            throughput_per_s,
            throughput_limit,
            energy_j,
            energy_per_inference_j,
            edp_js,
            average_power_w,
            compute_utilization_fraction,
            bandwidth_utilization_fraction,
            peak_memory_bytes,
            clock_fraction
        FROM runs
        WHERE run_id IN (SELECT unnest($run_ids))
    ) AS s ON s.run_id = r.run_id
    WHERE r.run_id IN (SELECT unnest($run_ids))
),
compared AS (
    SELECT
        run_id,
        max(CASE WHEN batch = 1 THEN throughput_per_s END) OVER series AS single_per_s,
        inferences_per_j >= $zone_fraction * max(inferences_per_j) OVER series AS is_efficient,
        row_number() OVER (
            PARTITION BY series, hardware
            ORDER BY inferences_per_j DESC NULLS LAST, batch, run_id
        ) = 1 AS is_best
    FROM asked
    WINDOW series AS (PARTITION BY series, hardware)
),
zoned AS (
    SELECT
        a.run_id,
        c.single_per_s,
        bool_and(coalesce(c.is_efficient, FALSE)) OVER from_the_best AS is_in_zone
    FROM asked AS a
    JOIN compared AS c ON c.run_id = a.run_id
    JOIN (
        SELECT b.series, b.hardware, b.batch AS best_batch
        FROM asked AS b
        JOIN compared AS d ON d.run_id = b.run_id AND d.is_best
    ) AS t ON t.series = a.series AND t.hardware = a.hardware
    WINDOW from_the_best AS (
        PARTITION BY a.series, a.hardware, a.batch >= t.best_batch
        ORDER BY abs(a.batch - t.best_batch), a.run_id
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    )
)
SELECT
    a.model,
    a.hardware,
    a.architecture,
    a.precision,
    a.runtime,
    a.batch,
    CASE WHEN a.refusal IS NULL THEN 'ok' ELSE 'unsupported' END AS status,
    a.latency_s,
    a.throughput_per_s,
    a.throughput_limit,
    a.energy_j,
    a.energy_per_inference_j,
    a.inferences_per_j,
    a.edp_js,
    a.average_power_w,
    a.throughput_per_s / z.single_per_s AS speedup_ratio,
    a.throughput_per_s / (a.batch * z.single_per_s) AS batch_scaling_ratio,
    a.compute_utilization_fraction,
    a.bandwidth_utilization_fraction,
    a.peak_memory_bytes,
    a.clock_fraction,
    z.is_in_zone,
    a.is_projection,
    a.is_available,
    coalesce(a.refusal, '') AS reason,
    a.run_id
FROM asked AS a
JOIN zoned AS z ON z.run_id = a.run_id
ORDER BY a.model, a.hardware, a.precision, a.runtime, a.series, a.batch, a.run_id
