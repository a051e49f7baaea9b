/*
record = "SweepSeries"
summary = "Best batch of each chip: within a latency budget, for throughput and for energy"
grain = "one row per model, hardware, precision and runtime of the requested runs"
order = ["model", "precision", "runtime", "throughput_per_s descending, refused ones last", "hardware"]
[parameters]
max_latency_s = { type = "DOUBLE", default = 0.0, meaning = "latency budget of a batch, in seconds; 0 for none; where a batch is within it, batches beyond it are never the best" }
zone_fraction = { type = "DOUBLE", default = 0.9, meaning = "minimum inferences per joule of an efficient batch, as a share of the highest of its series" }
[columns]
batch_count = { type = "BIGINT", meaning = "number of batches that run" }
refused_count = { type = "BIGINT", meaning = "number of refused batches" }
least_latency_batch = { type = "INTEGER", null = true, meaning = "batch with the least latency; ties go to the smaller batch, here and below" }
least_latency_s = { shown = "[{least_latency_s:s} at {least_latency_batch}]", heading = "lowest latency", type = "DOUBLE", null = true, unit = "s", meaning = "latency at least_latency_batch" }
budget_batch = { type = "INTEGER", null = true, meaning = "batch of the highest throughput within the budget; null without a budget or where none meets it" }
budget_throughput_per_s = { type = "DOUBLE", null = true, unit = "1/s", meaning = "inferences per second at budget_batch" }
budget_latency_s = { type = "DOUBLE", null = true, unit = "s", meaning = "latency at budget_batch" }
throughput_batch = { type = "INTEGER", null = true, meaning = "batch of the highest throughput" }
throughput_per_s = { shown = "[{throughput_per_s:1/s} at {throughput_batch}]", type = "DOUBLE", null = true, unit = "1/s", meaning = "inferences per second at throughput_batch" }
throughput_latency_s = { heading = "latency at highest throughput", type = "DOUBLE", null = true, unit = "s", meaning = "latency at throughput_batch" }
energy_batch = { type = "INTEGER", null = true, meaning = "batch with the lowest energy per inference" }
energy_per_inference_j = { type = "DOUBLE", null = true, unit = "J", meaning = "energy per inference at energy_batch" }
energy_latency_s = { type = "DOUBLE", null = true, unit = "s", meaning = "latency at energy_batch" }
zone_low_batch = { heading = "efficient batches", type = "INTEGER", null = true, meaning = "smallest efficient batch: efficient batches adjoin the batch with the lowest energy per inference of all, with at least zone_fraction of its inferences per joule" }
zone_high_batch = { type = "INTEGER", null = true, meaning = "largest efficient batch" }
zone_low_power_w = { heading = "power at efficient batches", type = "DOUBLE", null = true, unit = "W", meaning = "least average power of efficient batches" }
zone_high_power_w = { type = "DOUBLE", null = true, unit = "W", meaning = "largest average power of efficient batches" }
largest_batch = { heading = "largest batch run", type = "INTEGER", null = true, meaning = "largest batch that runs" }
largest_speedup_ratio = { type = "DOUBLE", null = true, meaning = "throughput at largest_batch over throughput at batch 1; null without a run at batch 1" }
largest_batch_scaling_ratio = { shown = "%", heading = "share of linear scaling", type = "DOUBLE", null = true, meaning = "throughput(N) / (N x throughput(1)) for N = largest_batch; null without a run at batch 1" }
reason = { type = "VARCHAR", meaning = "reason of refusal of the smallest refused batch" }
*/
WITH asked AS (
    SELECT
        model, hardware, architecture, "precision", runtime, series, batch, nullif(reason, '') AS refusal, latency_s,
        throughput_per_s, throughput_limit, energy_per_inference_j, average_power_w, is_projection,
        is_available, run_id,
        latency_s IS NOT NULL AND (
            latency_s <= $max_latency_s
            OR NOT coalesce(bool_or(latency_s <= $max_latency_s) OVER (PARTITION BY series, hardware), FALSE)
        ) AS is_kept
    FROM cube.run(run_ids := $run_ids)
),
followed AS (
    SELECT
        any_value(model) AS model,
        hardware,
        any_value(architecture) AS architecture,
        any_value(precision) AS precision,
        any_value(runtime) AS runtime,
        series,
        count(latency_s) AS batch_count,
        count(refusal) AS refused_count,
        min({'cost': latency_s, 'batch': batch}) FILTER (WHERE latency_s IS NOT NULL) AS fastest,
        -- rounded, so that rates and energies that differ by femtoseconds and femtojoules are ties
        min({
            'cost': CAST(1e0 / throughput_per_s AS FLOAT), 'batch': batch, 'value': throughput_per_s,
            'latency_s': latency_s
        }) FILTER (WHERE latency_s <= $max_latency_s) AS within,
        min({
            'cost': CAST(1e0 / throughput_per_s AS FLOAT), 'batch': batch, 'value': throughput_per_s,
            'latency_s': latency_s, 'throughput_limit': throughput_limit
        }) FILTER (WHERE is_kept) AS busiest,
        min({
            'cost': CAST(energy_per_inference_j AS FLOAT), 'batch': batch, 'value': energy_per_inference_j,
            'latency_s': latency_s
        }) FILTER (WHERE is_kept) AS leanest,
        min({'cost': CAST(energy_per_inference_j AS FLOAT), 'batch': batch, 'value': energy_per_inference_j})
            FILTER (WHERE latency_s IS NOT NULL) AS thriftiest,
        max({'batch': batch, 'throughput_per_s': throughput_per_s}) FILTER (WHERE latency_s IS NOT NULL) AS largest,
        max(CASE WHEN batch = 1 THEN throughput_per_s END) AS single_per_s,
        bool_or(is_projection) AS is_projection,
        bool_or(is_available) AS is_available,
        min({'batch': batch, 'refusal': refusal}) FILTER (WHERE refusal IS NOT NULL) AS refused
    FROM asked
    GROUP BY series, hardware
),
near AS (
    SELECT
        a.series,
        a.hardware,
        a.batch,
        a.average_power_w,
        bool_and(coalesce(s.thriftiest.value / a.energy_per_inference_j >= $zone_fraction, FALSE)) OVER (
            PARTITION BY a.series, a.hardware, a.batch >= s.thriftiest.batch
            ORDER BY abs(a.batch - s.thriftiest.batch), a.batch
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS is_in_zone
    FROM asked AS a
    JOIN followed AS s
        ON s.series = a.series
        AND s.hardware = a.hardware
),
zone AS (
    SELECT
        series,
        hardware,
        min(batch) AS low_batch,
        max(batch) AS high_batch,
        min(average_power_w) AS low_power_w,
        max(average_power_w) AS high_power_w
    FROM near
    WHERE is_in_zone
    GROUP BY series, hardware
)
SELECT
    s.model,
    s.hardware,
    s.architecture,
    s.precision,
    s.runtime,
    s.batch_count,
    s.refused_count,
    s.fastest.batch AS least_latency_batch,
    s.fastest.cost AS least_latency_s,
    s.within.batch AS budget_batch,
    s.within.value AS budget_throughput_per_s,
    s.within.latency_s AS budget_latency_s,
    s.busiest.batch AS throughput_batch,
    s.busiest.value AS throughput_per_s,
    s.busiest.latency_s AS throughput_latency_s,
    s.busiest.throughput_limit AS throughput_limit,
    s.leanest.batch AS energy_batch,
    s.leanest.value AS energy_per_inference_j,
    s.leanest.latency_s AS energy_latency_s,
    z.low_batch AS zone_low_batch,
    z.high_batch AS zone_high_batch,
    z.low_power_w AS zone_low_power_w,
    z.high_power_w AS zone_high_power_w,
    s.largest.batch AS largest_batch,
    s.largest.throughput_per_s / s.single_per_s AS largest_speedup_ratio,
    s.largest.throughput_per_s / (s.largest.batch * s.single_per_s) AS largest_batch_scaling_ratio,
    s.is_projection,
    s.is_available,
    coalesce(s.refused.refusal, '') AS reason
FROM followed AS s
LEFT JOIN zone AS z
    ON z.series = s.series AND z.hardware = s.hardware
ORDER BY s.model, s.precision, s.runtime, s.series, s.busiest.value DESC NULLS LAST, s.hardware
