/*
record = "PrecisionGain"
summary = "Gain of each precision of a chip over fp32, or over its widest precision without fp32"
grain = "one row per requested evaluated run"
table = [
    "hardware", "precision.kept", "speedup_ratio.kept", "energy_ratio.kept", "peak_ratio.kept", "memory_ratio.kept",
    "compute_utilization_fraction.kept", "baseline_precision.kept",
]
order = ["model", "batch", "runtime", "hardware in the order of run_ids", "precision, fp32 first, then from wide to narrow"]
[parameters]
run_ids = { type = "INTEGER[]", meaning = "runs at several precisions; refused ones are omitted" }
[columns]
baseline_precision = { heading = "baseline", type = "VARCHAR", meaning = "baseline precision" }
speedup_ratio = { heading = "speedup", type = "DOUBLE", meaning = "inferences per second over those of the baseline" }
energy_ratio = { type = "DOUBLE", meaning = "energy per inference over that of the baseline; below 1 is less" }
peak_ratio = { type = "DOUBLE", meaning = "peak operations per second over that of the baseline" }
memory_ratio = { type = "DOUBLE", meaning = "weights and peak activations over those of the baseline" }
compute_utilization_fraction = { heading = "utilization" }
*/
WITH one AS (
    SELECT
        model, hardware, batch, runtime, "precision", throughput_per_s, energy_per_inference_j, latency_s,
        peak_memory_bytes, compute_utilization_fraction, peak_ops_per_s, is_projection, run_id, position,
        CASE
            WHEN "precision" = 'fp32' THEN 0
            ELSE list_position(
                ['fp64', 'fp32', 'tf32', 'bf16', 'fp16', 'fp8', 'int8', 'fp4', 'int4'], split_part("precision", '/', 1)
            )
        END AS candidate_rank
    FROM cube.run(run_ids := $run_ids, rows := 'evaluated')
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
    fraction(peak_memory_bytes, first_value(peak_memory_bytes) OVER series) AS memory_ratio,
    compute_utilization_fraction,
    latency_s,
    energy_per_inference_j,
    is_projection,
    run_id
FROM one
WINDOW series AS (
    PARTITION BY model, hardware, batch, runtime
    ORDER BY candidate_rank, run_id
    ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
)
ORDER BY
    model,
    batch,
    runtime,
    min(position) OVER (PARTITION BY model, hardware, batch, runtime),
    candidate_rank,
    run_id
