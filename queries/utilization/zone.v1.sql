/*
record = "BatchZone"
summary = "Efficient batches of a chip: utilization and inferences per joule near the best of its series"
grain = "one row per model, hardware, precision and runtime of the requested runs"
table = [
    "hardware", "zone_batches.kept", "best_batch.kept", "best_utilization_fraction.kept",
    "least_energy_per_inference_j.kept", "latency_s.kept", "peak_memory_bytes.kept", "refused_batch.kept",
]
order = ["model", "first position in run_ids"]
[parameters]
run_ids = { type = "INTEGER[]", meaning = "runs at several batches" }
zone_fraction = { type = "DOUBLE", default = 0.9, meaning = "minimum utilization and inferences per joule of an efficient batch, as shares of the highest of its series" }
[columns]
precision = { type = "VARCHAR", meaning = "precision" }
batches = { type = "INTEGER[]", meaning = "batches tried, refused ones included" }
zone_batches = { heading = "efficient batches", type = "INTEGER[]", meaning = "efficient batches; empty where no batch is efficient" }
best_batch = { type = "INTEGER", null = true, meaning = "batch with the most utilization x inferences per joule; ties go to the smallest; null where every batch was refused" }
best_utilization_fraction = { heading = "utilization", type = "DOUBLE", null = true, meaning = "highest compute utilization of any batch" }
utilization_batch = { type = "INTEGER", null = true, meaning = "batch with best_utilization_fraction; ties go to the smallest" }
least_energy_per_inference_j = { heading = "lowest energy per inference", type = "DOUBLE", null = true, unit = "J", meaning = "least energy per inference of any batch" }
energy_batch = { type = "INTEGER", null = true, meaning = "batch with least_energy_per_inference_j; ties go to the smallest" }
latency_s = { type = "DOUBLE", null = true, unit = "s", meaning = "latency of a batch at best_batch" }
peak_memory_bytes = { type = "BIGINT", null = true, unit = "B", meaning = "weights and peak activations at best_batch" }
refused_batch = { type = "INTEGER", null = true, meaning = "smallest refused batch; null without one" }
refusal = { type = "VARCHAR", null = true, meaning = "reason why refused_batch was refused" }
run_id = { type = "INTEGER", null = true, meaning = "run at best_batch" }
*/
WITH compared AS (
    SELECT
        model, hardware, "precision", runtime, series, batch, run_id, compute_utilization_fraction AS utilization,
        inferences_per_j, latency_s, energy_per_inference_j, peak_memory_bytes, nullif(reason, '') AS refusal, position,
        compute_utilization_fraction >= $zone_fraction * max(compute_utilization_fraction) OVER followed
            AND inferences_per_j >= $zone_fraction * max(inferences_per_j) OVER followed AS is_in_zone
    FROM cube.run(run_ids := $run_ids)
    WINDOW followed AS (PARTITION BY series, hardware)
)
SELECT
    any_value(model) AS model,
    hardware,
    any_value("precision") AS "precision",
    any_value(runtime) AS runtime,
    list(batch ORDER BY batch) AS batches,
    coalesce(list(batch ORDER BY batch) FILTER (WHERE is_in_zone), []) AS zone_batches,
    arg_min(batch, {'cost': -utilization * inferences_per_j, 'batch': batch}) FILTER (WHERE refusal IS NULL) AS best_batch,
    max(utilization) AS best_utilization_fraction,
    arg_min(batch, {'cost': -utilization, 'batch': batch}) FILTER (WHERE refusal IS NULL) AS utilization_batch,
    min(energy_per_inference_j) AS least_energy_per_inference_j,
    arg_min(batch, {'cost': energy_per_inference_j, 'batch': batch}) FILTER (WHERE refusal IS NULL) AS energy_batch,
    arg_min(latency_s, {'cost': -utilization * inferences_per_j, 'batch': batch}) FILTER (WHERE refusal IS NULL) AS latency_s,
    arg_min(peak_memory_bytes, {'cost': -utilization * inferences_per_j, 'batch': batch}) FILTER (WHERE refusal IS NULL)
        AS peak_memory_bytes,
    min(batch) FILTER (WHERE refusal IS NOT NULL) AS refused_batch,
    arg_min(refusal, batch) FILTER (WHERE refusal IS NOT NULL) AS refusal,
    arg_min(run_id, {'cost': -utilization * inferences_per_j, 'batch': batch}) FILTER (WHERE refusal IS NULL) AS run_id
FROM compared
GROUP BY series, hardware
ORDER BY model, min(position)
