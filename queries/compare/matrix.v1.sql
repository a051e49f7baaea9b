/*
name = "compare.matrix"
record = "ModelFigure"
version = 1
schema = 1
summary = "Several models on several hardware: figures, and who is best of either"
grain = "one row per model and hardware asked for, refused ones included"
order = ["model's first position in run_ids", "workload_id", "hardware_rank, refused runs last", "hardware", "run_id"]
[parameters]
run_ids = { type = "INTEGER[]", meaning = "runs to compare" }
metric = { type = "VARCHAR", default = "energy", meaning = "a metric of runs: energy, latency, edp, memory, throughput, efficiency ..." }
[columns]
model = { type = "VARCHAR", meaning = "model" }
batch = { type = "INTEGER", meaning = "samples in one input" }
hardware = { type = "VARCHAR", meaning = "catalogue id, with @MODE where the power mode is not the default" }
architecture = { type = "VARCHAR", meaning = "architecture class" }
status = { type = "VARCHAR", meaning = "ok or unsupported" }
metric = { type = "VARCHAR", meaning = "what is compared" }
value = { type = "DOUBLE", null = true, meaning = "of the metric, in unit" }
unit = { type = "VARCHAR", meaning = "of the metric" }
hardware_rank = { type = "BIGINT", null = true, meaning = "of this hardware for the model, 1 for the best; ties go to the first name" }
hardware_ratio = { type = "DOUBLE", null = true, meaning = "how many times worse than the best of the model" }
tied_count = { type = "BIGINT", meaning = "hardware with exactly the best for this model" }
model_rank = { type = "BIGINT", null = true, meaning = "of this model on the hardware, 1 for the best; ties go to the first name" }
model_ratio = { type = "DOUBLE", null = true, meaning = "how many times worse than the best on this hardware" }
hardware_won_count = { type = "BIGINT", meaning = "models that this hardware is the first of, ties going to the first name" }
model_count = { type = "BIGINT", meaning = "models that were asked for" }
energy_j = { type = "DOUBLE", null = true, unit = "J", meaning = "per batch, static energy included" }
latency_s = { type = "DOUBLE", null = true, unit = "s", meaning = "per batch" }
throughput_per_s = { type = "DOUBLE", null = true, unit = "1/s", meaning = "inferences per second" }
average_power_w = { type = "DOUBLE", null = true, unit = "W", meaning = "energy over the time from one batch to the next" }
edp_js = { type = "DOUBLE", null = true, unit = "Js", meaning = "energy x latency" }
peak_memory_bytes = { type = "BIGINT", null = true, unit = "B", meaning = "weights and peak activations: metric memory" }
compute_utilization_fraction = { type = "DOUBLE", null = true, meaning = "operations computed over what the peak allows, in steady state" }
mac_count = { type = "BIGINT", null = true, meaning = "multiply-accumulates per batch" }
ops_per_j = { type = "DOUBLE", null = true, unit = "ops/J", meaning = "two per MAC, over the energy" }
parameter_count = { type = "BIGINT", meaning = "elements of all parameters" }
is_projection = { type = "BOOLEAN", meaning = "key numbers of the hardware are projections or estimates" }
is_available = { type = "BOOLEAN", meaning = "it can be bought or rented, at a price that is no guess" }
reason = { type = "VARCHAR", meaning = "why it is unsupported" }
run_id = { type = "INTEGER", meaning = "number of the run" }
workload_id = { type = "INTEGER", meaning = "number of the workload" }
*/
WITH answered AS (
    SELECT
        r.run_id, r.energy_j, r.latency_s, r.throughput_per_s, r.average_power_w, r.edp_js, r.peak_memory_bytes,
        r.compute_utilization_fraction, r.mac_count, r.ops_per_j, metric_value($metric, r) AS value
    FROM runs AS r
    WHERE r.run_id IN (SELECT unnest($run_ids))
),
asked AS (
    SELECT
        r.run_id,
        r.workload_id,
        r.model,
        r.batch,
        r.configured_hardware AS hardware,
        r.architecture,
        r.is_projection,
        r.is_available,
        r.refusal,
        r.parameter_count,
        min(list_position($run_ids, r.run_id)) OVER (PARTITION BY r.workload_id) AS position,
        s.energy_j,
        s.latency_s,
        s.throughput_per_s,
        s.average_power_w,
        s.edp_js,
        s.peak_memory_bytes,
        s.compute_utilization_fraction,
        s.mac_count,
        s.ops_per_j,
        s.value,
        as_cost(is_higher_better($metric), s.value) AS cost
    FROM run_configurations AS r
    LEFT JOIN answered AS s ON s.run_id = r.run_id
    WHERE r.run_id IN (SELECT unnest($run_ids))
),
ranked AS (
    SELECT
        run_id, workload_id, model, batch, hardware, architecture, is_projection, is_available, refusal, parameter_count,
        position, energy_j, latency_s, throughput_per_s, average_power_w, edp_js, peak_memory_bytes,
        compute_utilization_fraction, mac_count, ops_per_j, value, cost,
        CASE
            WHEN value IS NOT NULL
                THEN row_number() OVER (PARTITION BY workload_id ORDER BY cost NULLS LAST, hardware, run_id)
        END AS hardware_rank,
        arg_min(value, cost) OVER (PARTITION BY workload_id) AS model_best,
        CASE
            WHEN value IS NOT NULL
                THEN row_number() OVER (PARTITION BY hardware ORDER BY cost NULLS LAST, model, run_id)
        END AS model_rank,
        arg_min(value, cost) OVER (PARTITION BY hardware) AS hardware_best
    FROM asked
)
SELECT
    model,
    batch,
    hardware,
    architecture,
    CASE WHEN refusal IS NULL THEN 'ok' ELSE 'unsupported' END AS status,
    $metric AS metric,
    value,
    metric_unit($metric) AS unit,
    hardware_rank,
    better_ratio(is_higher_better($metric), model_best, value) AS hardware_ratio,
    count(*) FILTER (WHERE value = model_best) OVER (PARTITION BY workload_id) AS tied_count,
    model_rank,
    better_ratio(is_higher_better($metric), hardware_best, value) AS model_ratio,
    count(*) FILTER (WHERE hardware_rank = 1) OVER (PARTITION BY hardware) AS hardware_won_count,
    (SELECT count(DISTINCT workload_id) FROM asked) AS model_count,
    energy_j,
    latency_s,
    throughput_per_s,
    average_power_w,
    edp_js,
    peak_memory_bytes,
    compute_utilization_fraction,
    mac_count,
    ops_per_j,
    parameter_count,
    is_projection,
    is_available,
    coalesce(refusal, '') AS reason,
    run_id,
    workload_id
FROM ranked
ORDER BY position, workload_id, hardware_rank NULLS LAST, hardware, run_id
