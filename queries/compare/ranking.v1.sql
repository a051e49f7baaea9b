/*
name = "compare.ranking"
record = "RankedHardware"
version = 1
schema = 1
summary = "Hardware ranked by what matters where it is deployed"
grain = "one row per run asked for, refused ones included"
order = ["rank, refused runs last", "hardware", "run_id"]
[parameters]
run_ids = { type = "INTEGER[]", meaning = "runs to rank" }
sort = { type = "VARCHAR", default = "efficiency", meaning = "a metric of runs: latency, throughput, power, efficiency, energy_per_inference ..." }
[columns]
rank = { type = "BIGINT", null = true, meaning = "1 for the best; ties go to the first name; null for a refused run" }
hardware = { type = "VARCHAR", meaning = "catalogue id, with @MODE where the power mode is not the default" }
architecture = { type = "VARCHAR", meaning = "architecture class" }
microarchitecture = { type = "VARCHAR", meaning = "the vendor's name of the design" }
power_mode = { type = "VARCHAR", meaning = "operating point; default for that of its plain name" }
deployment = { type = "VARCHAR[]", meaning = "where it is used" }
status = { type = "VARCHAR", meaning = "ok or unsupported" }
sort = { type = "VARCHAR", meaning = "what it is ranked by" }
best_ratio = { type = "DOUBLE", null = true, meaning = "how many times worse than the best; 1 for the best" }
latency_s = { type = "DOUBLE", null = true, unit = "s", meaning = "per batch" }
throughput_per_s = { type = "DOUBLE", null = true, unit = "1/s", meaning = "inferences per second" }
average_power_w = { type = "DOUBLE", null = true, unit = "W", meaning = "energy over the time from one batch to the next" }
inferences_per_j = { type = "DOUBLE", null = true, unit = "1/J", meaning = "inferences per second and watt, which is per joule: efficiency" }
energy_per_inference_j = { type = "DOUBLE", null = true, unit = "J", meaning = "static energy included" }
tdp_w = { type = "DOUBLE", null = true, unit = "W", meaning = "the power cap" }
compute_utilization_fraction = { type = "DOUBLE", null = true, meaning = "operations computed over what the peak allows, in steady state" }
units_used_count = { type = "INTEGER", null = true, meaning = "units with work, mean over time, rounded up" }
units_total_count = { type = "INTEGER", null = true, meaning = "units that have this precision" }
unit_name = { type = "VARCHAR", meaning = "what one unit is called" }
batch = { type = "INTEGER", meaning = "samples in one input" }
precision = { type = "VARCHAR", meaning = "precision; bf16/int4 where weights of products are stored at another" }
runtime = { type = "VARCHAR", meaning = "eager, graph or fused" }
model = { type = "VARCHAR", meaning = "model" }
is_projection = { type = "BOOLEAN", meaning = "key numbers of the hardware are projections or estimates" }
is_available = { type = "BOOLEAN", meaning = "it can be bought or rented, at a price that is no guess" }
reason = { type = "VARCHAR", meaning = "why it is unsupported" }
run_id = { type = "INTEGER", meaning = "number of the run" }
*/
WITH answered AS (
    SELECT
        r.run_id,
        r.latency_s,
        r.throughput_per_s,
        r.average_power_w,
        r.energy_per_inference_j,
        r.inferences_per_j,
        r.compute_utilization_fraction,
        r.units_used_count,
        metric_value($sort, r) AS value
    FROM runs AS r
    WHERE r.run_id IN (SELECT unnest($run_ids))
),
fact AS (
    SELECT hardware_digest, max(value) AS tdp_w
    FROM hardware_fact
    WHERE quantity = 'tdp'
    GROUP BY hardware_digest
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
        v.microarchitecture,
        r.power_mode,
        r.deployment,
        r.unit_name,
        r.units_total_count,
        r.is_projection,
        r.is_available,
        r.refusal,
        f.tdp_w,
        s.latency_s,
        s.throughput_per_s,
        s.average_power_w,
        s.energy_per_inference_j,
        s.inferences_per_j,
        s.compute_utilization_fraction,
        s.units_used_count,
        s.value,
        as_cost(is_higher_better($sort), s.value) AS cost
    FROM run_configurations AS r
    JOIN hardware_version AS v ON v.hardware_digest = r.hardware_digest
    LEFT JOIN answered AS s ON s.run_id = r.run_id
    LEFT JOIN fact AS f ON f.hardware_digest = r.hardware_digest
    WHERE r.run_id IN (SELECT unnest($run_ids))
)
SELECT
    CASE WHEN cost IS NOT NULL THEN row_number() OVER (ORDER BY cost NULLS LAST, hardware, run_id) END AS rank,
    hardware,
    architecture,
    microarchitecture,
    power_mode,
    deployment,
    CASE WHEN refusal IS NULL THEN 'ok' ELSE 'unsupported' END AS status,
    $sort AS sort,
    better_ratio(is_higher_better($sort), arg_min(value, cost) OVER (), value) AS best_ratio,
    latency_s,
    throughput_per_s,
    average_power_w,
    inferences_per_j,
    energy_per_inference_j,
    tdp_w,
    compute_utilization_fraction,
    units_used_count,
    units_total_count,
    unit_name,
    batch,
    precision,
    runtime,
    model,
    is_projection,
    is_available,
    coalesce(refusal, '') AS reason,
    run_id
FROM asked
ORDER BY rank NULLS LAST, hardware, run_id
