/*
record = "SweepWinner"
summary = "Best hardware at each batch of a sweep, and the batches at which it changes"
grain = "one row per model, precision, runtime, metric and batch"
order = ["model", "precision", "runtime", "metric", "batch"]
[parameters]
takes_all = { type = "BOOLEAN", default = false, meaning = "true to rank unavailable hardware too; it is also ranked where no available hardware runs the model" }
[columns]
metric = { shown = "metric", type = "VARCHAR", values = "MetricName", meaning = "metric: edp, energy x latency of a batch; energy_per_inference; latency of a batch" }
winner = { heading = "best", type = "VARCHAR", meaning = "ranked hardware with the least value of the metric; ties go to the first name" }
value = { shown = "in unit", type = "DOUBLE", meaning = "value of the winner, in unit" }
unit = { type = "VARCHAR", meaning = "J, s or Js" }
probability_ahead = { heading = "confidence", type = "DOUBLE", null = true, meaning = "probability that the winner is better than the runner-up; null without one" }
candidate_count = { type = "BIGINT", meaning = "number of ranked chips that run this batch" }
previous_batch = { type = "INTEGER", null = true, meaning = "the next smaller batch of the sweep; null for the first" }
previous_winner = { type = "VARCHAR", null = true, meaning = "winner at the next smaller batch" }
is_change = { heading = "new best", type = "BOOLEAN", meaning = "true if the winner differs from the one at the next smaller batch" }
is_overtaking = { type = "BOOLEAN", meaning = "true if the winner changes although previous_winner runs this batch too" }
advantage_ratio = { heading = "advantage", type = "DOUBLE", null = true, meaning = "value of the runner-up over that of the winner", shown = "[{advantage_ratio:x} better than {runner_up}]" }
*/
WITH ran AS (
    SELECT model, "precision", runtime, series, batch, hardware, run_id, edp_js, energy_per_inference_j, latency_s
    FROM cube.run(run_ids := $run_ids, rows := 'evaluated')
    QUALIFY $takes_all OR is_available OR NOT bool_or(is_available) OVER (PARTITION BY series)
),
candidate AS (
    SELECT
        model, "precision", runtime, series, batch, hardware, run_id,
        unnest([
            {'metric': 'edp', 'unit': find_metric('edp').unit, 'value': edp_js},
            {'metric': 'energy_per_inference', 'unit': find_metric('energy_per_inference').unit, 'value': energy_per_inference_j},
            {'metric': 'latency', 'unit': find_metric('latency').unit, 'value': latency_s}
        ], recursive := TRUE)
    FROM ran
),
ranked AS (
    SELECT
        model,
        precision,
        runtime,
        series,
        metric,
        batch,
        hardware,
        value,
        unit,
        row_number() OVER by_value AS rank,
        lead(hardware) OVER by_value AS runner_up,
        run_id,
        lead(run_id) OVER by_value AS runner_up_id,
        lead(value) OVER by_value AS next_value,
        count(*) OVER (PARTITION BY series, metric, batch) AS candidate_count
    FROM candidate
    WINDOW by_value AS (
        PARTITION BY series, metric, batch ORDER BY value, hardware, run_id
    )
),
best AS (
    SELECT
        model,
        precision,
        runtime,
        series,
        metric,
        batch,
        hardware AS winner,
        value,
        unit,
        runner_up,
        run_id,
        runner_up_id,
        next_value / nullif(value, 0e0) AS advantage_ratio,
        candidate_count,
        lag(batch) OVER by_batch AS previous_batch,
        lag(hardware) OVER by_batch AS previous_winner
    FROM ranked
    WHERE rank = 1
    WINDOW by_batch AS (PARTITION BY series, metric ORDER BY batch)
),
pair AS (
    SELECT metric, run_id, runner_up_id AS other_run_id, advantage_ratio AS better_ratio
    FROM best
    WHERE runner_up_id IS NOT NULL AND advantage_ratio > 0e0
),
chance AS (FROM numpy.differences_of(pair))
SELECT
    b.model, b.precision, b.runtime, b.metric, b.batch, b.winner, b.value, b.unit, b.runner_up, b.advantage_ratio,
    h.probability_better AS probability_ahead,
    b.candidate_count, b.previous_batch, b.previous_winner,
    coalesce(b.winner <> b.previous_winner, FALSE) AS is_change,
    coalesce(b.winner <> b.previous_winner, FALSE) AND r.hardware IS NOT NULL AS is_overtaking
FROM best AS b
LEFT JOIN chance AS h ON h.metric = b.metric AND h.run_id = b.run_id
LEFT JOIN (SELECT DISTINCT series, batch, hardware FROM candidate) AS r
    ON r.series = b.series
    AND r.batch = b.batch
    AND r.hardware = b.previous_winner
ORDER BY b.model, b.precision, b.runtime, b.series, b.metric, b.batch
