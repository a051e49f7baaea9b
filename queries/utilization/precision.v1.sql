/*
name = "utilization.precision"
record = "PrecisionGain"
version = 1
schema = 1
summary = "What each precision of a hardware gains over fp32, or over the widest that it has without fp32"
grain = "one row per evaluated run asked for"
order = ["model", "batch", "runtime", "hardware in the order of run_ids", "precision, fp32 first, then from wide to narrow"]
[parameters]
run_ids = { type = "INTEGER[]", meaning = "runs at several precisions; refused ones are left out" }
[columns]
model = { type = "VARCHAR", meaning = "model" }
hardware = { type = "VARCHAR", meaning = "catalogue id, with @MODE where the power mode is not the default" }
batch = { type = "INTEGER", meaning = "samples in one input" }
runtime = { type = "VARCHAR", meaning = "eager, graph or fused" }
precision = { type = "VARCHAR", meaning = "precision" }
baseline_precision = { type = "VARCHAR", meaning = "what it is held against" }
speedup_ratio = { type = "DOUBLE", meaning = "inferences per second over those of the baseline" }
energy_ratio = { type = "DOUBLE", meaning = "energy per inference over that of the baseline: below 1 is less" }
peak_ratio = { type = "DOUBLE", meaning = "peak operations per second over that of the baseline" }
memory_ratio = { type = "DOUBLE", meaning = "weights and peak activations over those of the baseline" }
compute_utilization_fraction = { type = "DOUBLE", meaning = "of the peak at this precision" }
latency_s = { type = "DOUBLE", unit = "s", meaning = "per batch" }
energy_per_inference_j = { type = "DOUBLE", unit = "J", meaning = "static energy included" }
is_projection = { type = "BOOLEAN", meaning = "key numbers of the hardware are projections or estimates" }
run_id = { type = "INTEGER", meaning = "number of the run" }
*/
WITH one AS (
    SELECT
        c.model,
        c.configured_hardware AS hardware,
        c.batch,
        c.runtime,
        c.precision,
        CASE WHEN c.precision = 'fp32' THEN 0 ELSE precision_place(c.precision) END AS place,
        c.throughput_per_s,
        c.energy_per_inference_j,
        c.latency_s,
        CAST(c.peak_memory_bytes AS DOUBLE) AS peak_memory_bytes,
        c.compute_utilization_fraction,
        r.peak_ops_per_s,
        c.is_projection,
        c.run_id,
        list_position($run_ids, c.run_id) AS position
    FROM configurations($run_ids) AS c
    JOIN run AS r ON r.run_id = c.run_id
    WHERE c.refusal IS NULL
)
SELECT
    model,
    hardware,
    batch,
    runtime,
    "precision",
    first_value("precision") OVER series AS baseline_precision,
    throughput_per_s / first_value(throughput_per_s) OVER series AS speedup_ratio,
    energy_per_inference_j / first_value(energy_per_inference_j) OVER series AS energy_ratio,
    peak_ops_per_s / first_value(peak_ops_per_s) OVER series AS peak_ratio,
    peak_memory_bytes / first_value(peak_memory_bytes) OVER series AS memory_ratio,
    compute_utilization_fraction,
    latency_s,
    energy_per_inference_j,
    is_projection,
    run_id
FROM one
WINDOW series AS (
    PARTITION BY model, hardware, batch, runtime
    ORDER BY place, run_id
    ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
)
ORDER BY
    model,
    batch,
    runtime,
    min(position) OVER (PARTITION BY model, hardware, batch, runtime),
    place,
    run_id
