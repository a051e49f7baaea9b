/*
record = "PairChance"
summary = "Probability that each of these runs is better than each other run of its model"
grain = "one row per metric and ordered pair of evaluated runs"
order = ["metric", "probability_better, highest first", "label", "other_label", "run_id", "other_run_id"]
[parameters]
run_ids = { type = "INTEGER[]", meaning = "runs to compare; refused ones are omitted" }
metric = { type = "VARCHAR", default = "", meaning = "metric: energy_per_inference, latency, edp_per_inference, throughput or power; empty for all" }
[columns]
label = { type = "VARCHAR", meaning = "hardware, precision, batch and runtime" }
other_label = { type = "VARCHAR", meaning = "label of the other run" }
value = { type = "DOUBLE", meaning = "value in the metric's unit" }
other_value = { type = "DOUBLE", meaning = "value of the other run" }
better_ratio = { type = "DOUBLE", meaning = "factor by which the run is predicted to be better than the other run; below 1 if it is worse" }
half_width = { type = "DOUBLE", meaning = "half-width of the 80 % interval of the logarithm of better_ratio" }
probability_better = { type = "DOUBLE", meaning = "probability that the run is better than the other run; errors that both share cancel" }
is_told_apart = { type = "BOOLEAN", meaning = "true if one of the two is better with a probability of at least 0.8" }
other_run_id = { type = "INTEGER", meaning = "number of the other run" }
*/
WITH one AS MATERIALIZED (
    SELECT
        f.run_id,
        w.source,
        f.label,
        f.latency_s,
        f.energy_per_inference_j,
        f.edp_per_inference_js,
        f.throughput_per_s,
        f.average_power_w
    FROM runs AS f
    JOIN internal.workload AS w ON w.workload_id = f.workload_id
    WHERE f.run_id IN (SELECT unnest($run_ids))
),
valued AS (
    SELECT
        a.run_id,
        b.run_id AS other_run_id,
        a.label,
        b.label AS other_label,
        unnest([
            {'metric': 'energy_per_inference', 'value': a.energy_per_inference_j, 'other_value': b.energy_per_inference_j},
            {'metric': 'latency', 'value': a.latency_s, 'other_value': b.latency_s},
            {'metric': 'edp_per_inference', 'value': a.edp_per_inference_js, 'other_value': b.edp_per_inference_js},
            {'metric': 'throughput', 'value': a.throughput_per_s, 'other_value': b.throughput_per_s},
            {'metric': 'power', 'value': a.average_power_w, 'other_value': b.average_power_w}
        ], recursive := TRUE)
    FROM one AS a
    JOIN one AS b ON b.run_id <> a.run_id AND b.source = a.source
),
pair AS (
    SELECT v.*, better_ratio(m.is_higher_better, v.value, v.other_value) AS better_ratio
    FROM valued AS v
    JOIN internal.metric AS m ON m.name = v.metric
    WHERE $metric = '' OR v.metric = $metric
),
difference AS (FROM numpy.differences_of(pair))
SELECT
    p.metric,
    p.label,
    p.other_label,
    p.value,
    p.other_value,
    p.better_ratio,
    d.half_width,
    d.probability_better,
    d.is_told_apart,
    p.run_id,
    p.other_run_id
FROM pair AS p
JOIN difference AS d ON d.run_id = p.run_id AND d.other_run_id = p.other_run_id AND d.metric = p.metric
ORDER BY p.metric, d.probability_better DESC, p.label, p.other_label, p.run_id, p.other_run_id
