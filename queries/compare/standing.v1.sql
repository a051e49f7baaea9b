/*
record = "Standing"
summary = "Value of each run by one metric, its interval, and its probability to be the best run of its model"
grain = "one row per evaluated run"
order = ["model's first position in run_ids", "workload_id", "rank", "run_id"]
[parameters]
run_ids = { type = "INTEGER[]", meaning = "runs to rank; refused ones are omitted" }
among_ids = { type = "INTEGER[]", default = [], meaning = "runs of run_ids that can be the best; empty for all" }
metric = { type = "VARCHAR", default = "energy", meaning = "metric of runs: energy, latency, edp, memory, throughput, efficiency, power ..." }
[columns]
hardware = { type = "VARCHAR", meaning = "hardware at its power mode" }
value = { type = "DOUBLE", meaning = "value of the metric, in unit" }
unit = { type = "VARCHAR", meaning = "unit of the metric" }
half_width = { type = "DOUBLE", null = true, meaning = "half-width of the 80 % interval of the value's natural logarithm; null without one" }
rank = { type = "BIGINT", meaning = "rank among the runs of the model, 1 for the best; ties go to the first name" }
probability_best = { type = "DOUBLE", null = true, meaning = "probability that the run is the best of its model; null for a metric without an interval, and outside of among_ids" }
probability_better = { type = "DOUBLE", null = true, meaning = "probability that the run is better than the best of among_ids; null for that one, and where probability_best is" }
likely_best = { type = "BOOLEAN", meaning = "true for the best of among_ids, and for runs that are statistically tied with it: better with a probability above 0.2" }
is_available = { type = "BOOLEAN", meaning = "true if the hardware can be bought or rented at a known price" }
*/
WITH valued AS (
    SELECT
        f.model, f.workload_id, f.configured_hardware AS hardware, f.is_available, f.run_id,
        run_metric($metric, f) AS value,
        find_metric($metric).is_higher_better AS is_higher_better,
        nullif(metric_half_width($metric, t), 0e0) AS half_width,
        min(list_position($run_ids, f.run_id)) OVER (PARTITION BY f.workload_id) AS first_position,
        len($among_ids) = 0 OR list_contains($among_ids, f.run_id) AS is_among
    FROM runs AS f
    JOIN internal.run_total AS t ON t.run_id = f.run_id
    WHERE f.run_id IN (SELECT unnest($run_ids))
),
costed AS (
    SELECT
        model, workload_id, hardware, is_available, run_id, value, is_higher_better, half_width, first_position, is_among,
        as_cost(is_higher_better, value) AS cost
    FROM valued
),
ranked AS (
    SELECT
        model, workload_id, hardware, is_available, run_id, value, is_higher_better, half_width, first_position, is_among,
        row_number() OVER (PARTITION BY workload_id ORDER BY cost, hardware, run_id) AS rank,
        row_number() OVER (PARTITION BY workload_id, is_among ORDER BY cost, hardware, run_id) AS row_id
    FROM costed
),
contender AS (
    SELECT
        CAST(workload_id AS VARCHAR) AS question,
        $metric AS metric,
        row_id,
        run_id,
        as_cost(is_higher_better, ln(value)) AS cost,
        0e0 AS price_half_width,
        '' AS price_key,
        '' AS seller
    FROM ranked
    WHERE is_among AND half_width IS NOT NULL AND value > 0e0
),
standing AS (FROM numpy.standing_among(contender))
SELECT
    r.model, r.hardware,
    $metric AS metric,
    r.value,
    find_metric($metric).unit AS unit,
    r.half_width, r.rank, s.probability_best,
    s.probability_ahead AS probability_better,
    coalesce(s.is_likely_best, r.is_among AND r.row_id = 1) AS likely_best,
    r.is_available, r.run_id, r.workload_id
FROM ranked AS r
LEFT JOIN standing AS s ON s.question = CAST(r.workload_id AS VARCHAR) AND s.row_id = r.row_id AND r.is_among
ORDER BY r.first_position, r.workload_id, r.rank, r.run_id
