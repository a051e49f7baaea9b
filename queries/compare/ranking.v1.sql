/*
record = "RankedHardware"
summary = "Hardware ranked by the metric that matters for its deployment"
grain = "one row per requested run, refused ones included"
order = ["rank, refused runs last", "hardware", "run_id"]
[parameters]
run_ids = { type = "INTEGER[]", meaning = "runs to rank" }
sort = { type = "VARCHAR", default = "efficiency", meaning = "metric of runs: latency, throughput, power, efficiency, energy_per_inference ..." }
[columns]
rank = { type = "BIGINT", null = true, meaning = "rank, 1 for the best; ties go to the first name; null for a refused run" }
sort = { type = "VARCHAR", meaning = "metric that ranks the hardware" }
best_ratio = { type = "DOUBLE", null = true, meaning = "factor by which the best run is better; 1 for the best" }
inferences_per_j = { heading = "inferences/J" }
throughput_per_s = { heading = "inferences/s" }
architecture = { heading = "class" }
energy_per_inference_j = { heading = "energy/inference" }
tdp_w = { heading = "TDP" }
units_used_count = { heading = "busy units" }
compute_utilization_fraction = { heading = "utilization" }
average_power_w = { heading = "power" }
*/
WITH asked AS (
    SELECT
        r.hardware, r.architecture, r.microarchitecture, r.power_mode, r.deployment, r.status, r.latency_s,
        r.throughput_per_s, r.average_power_w, r.inferences_per_j, r.energy_per_inference_j, r.tdp_w,
        r.compute_utilization_fraction, r.units_used_count, r.units_total_count, r.unit_name, r.batch, r.precision,
        r.runtime, r.model, r.is_projection, r.is_available, r.reason, r.run_id, m.value,
        as_cost(find_metric($sort).is_higher_better, m.value) AS cost
    FROM cube.run(run_ids := $run_ids) AS r
    LEFT JOIN (
        SELECT f.run_id, run_metric($sort, f) AS value FROM runs AS f WHERE f.run_id IN (SELECT unnest($run_ids))
    ) AS m ON m.run_id = r.run_id
)
SELECT
    CASE WHEN cost IS NOT NULL THEN row_number() OVER (ORDER BY cost NULLS LAST, hardware, run_id) END AS rank,
    hardware, architecture, microarchitecture, power_mode, deployment, status,
    $sort AS sort,
    better_ratio(find_metric($sort).is_higher_better, arg_min(value, cost) OVER (), value) AS best_ratio,
    latency_s, throughput_per_s, average_power_w, inferences_per_j, energy_per_inference_j, tdp_w,
    compute_utilization_fraction, units_used_count, units_total_count, unit_name, batch, precision, runtime, model,
    is_projection, is_available, reason, run_id
FROM asked
ORDER BY rank NULLS LAST, hardware, run_id
