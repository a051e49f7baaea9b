/*
record = "ModelFigure"
summary = "Figures of several models on several chips, with the best hardware of each model and the best model of each hardware"
grain = "one row per requested model and hardware, refused ones included"
table = [
    "model", "hardware", "status", "energy_j.kept", "latency_s.kept", "average_power_w",
    'compute_utilization_fraction.headed("utilization")', "throughput_per_s", "edp_js", "peak_memory_bytes",
    "ops_per_j",
]
order = ["model's first position in run_ids", "workload_id", "hardware_rank, refused runs last", "hardware", "run_id"]
[parameters]
run_ids = { type = "INTEGER[]", meaning = "runs to compare" }
metric = { type = "VARCHAR", default = "energy", meaning = "metric of runs: energy, latency, edp, memory, throughput, efficiency ..." }
[columns]
value = { type = "DOUBLE", null = true, meaning = "value of the metric, in unit" }
unit = { type = "VARCHAR", meaning = "unit of the metric" }
hardware_rank = { type = "BIGINT", null = true, meaning = "rank of this hardware for the model, 1 for the best; ties go to the first name" }
hardware_ratio = { type = "DOUBLE", null = true, meaning = "factor by which the best hardware for the model is better; 1 for the best" }
tied_count = { type = "BIGINT", meaning = "number of chips that exactly tie for the best of the model" }
model_rank = { type = "BIGINT", null = true, meaning = "rank of this model on the hardware, 1 for the best; ties go to the first name" }
model_ratio = { type = "DOUBLE", null = true, meaning = "factor by which the best model on this hardware is better; 1 for the best" }
hardware_won_count = { type = "BIGINT", meaning = "number of models for which this hardware is first; ties go to the first name" }
model_count = { type = "BIGINT", meaning = "number of requested models" }
average_power_w = { heading = "power" }
compute_utilization_fraction = { heading = "utilization" }
edp_js = { heading = "energy x delay" }
ops_per_j = { heading = "operations per joule" }
peak_memory_bytes = { heading = "memory" }
*/
WITH asked AS (
    SELECT
        r.model, r.batch, r.hardware, r.architecture, r.precision, r.runtime, r.status, r.energy_j,
        r.energy_per_inference_j, r.energy_low_j, r.energy_high_j, r.assumed_energy_fraction, r.latency_s,
        r.throughput_per_s,
        r.average_power_w, r.edp_js, r.peak_memory_bytes, r.compute_utilization_fraction, r.mac_count, r.ops_per_j,
        r.parameter_count, r.is_projection, r.is_available, r.reason, r.run_id, r.workload_id, m.value,
        min(r.position) OVER (PARTITION BY r.workload_id) AS first_position,
        as_cost(find_metric($metric).is_higher_better, m.value) AS cost
    FROM cube.run(run_ids := $run_ids) AS r
    LEFT JOIN (
        SELECT f.run_id, run_metric($metric, f) AS value FROM runs AS f WHERE f.run_id IN (SELECT unnest($run_ids))
    ) AS m ON m.run_id = r.run_id
),
ranked AS (
    SELECT
        model, batch, hardware, architecture, precision, runtime, status, energy_j, energy_per_inference_j,
        energy_low_j, energy_high_j, assumed_energy_fraction, latency_s, throughput_per_s, average_power_w, edp_js,
        peak_memory_bytes, compute_utilization_fraction, mac_count, ops_per_j, parameter_count, is_projection,
        is_available, reason, run_id, workload_id, value, first_position,
        CASE WHEN value IS NOT NULL THEN row_number() OVER (of_model ORDER BY cost NULLS LAST, hardware, run_id) END
            AS hardware_rank,
        arg_min(value, cost) OVER of_model AS model_best,
        CASE WHEN value IS NOT NULL THEN row_number() OVER (on_hardware ORDER BY cost NULLS LAST, model, run_id) END
            AS model_rank,
        arg_min(value, cost) OVER on_hardware AS hardware_best
    FROM asked
    WINDOW of_model AS (PARTITION BY workload_id), on_hardware AS (PARTITION BY hardware)
)
SELECT
    model, batch, hardware, architecture, precision, runtime, status,
    $metric AS metric,
    value,
    find_metric($metric).unit AS unit,
    hardware_rank,
    better_ratio(find_metric($metric).is_higher_better, model_best, value) AS hardware_ratio,
    count(*) FILTER (WHERE value = model_best) OVER (PARTITION BY workload_id) AS tied_count,
    model_rank,
    better_ratio(find_metric($metric).is_higher_better, hardware_best, value) AS model_ratio,
    count(*) FILTER (WHERE hardware_rank = 1) OVER (PARTITION BY hardware) AS hardware_won_count,
    (SELECT count(DISTINCT workload_id) FROM asked) AS model_count,
    energy_j, energy_per_inference_j, energy_low_j, energy_high_j, assumed_energy_fraction, latency_s, throughput_per_s,
    average_power_w, edp_js, peak_memory_bytes, compute_utilization_fraction, mac_count, ops_per_j, parameter_count,
    is_projection, is_available, reason, run_id, workload_id
FROM ranked
ORDER BY first_position, workload_id, hardware_rank NULLS LAST, hardware, run_id
