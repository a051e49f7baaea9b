/*
record = "ScoredRow"
summary = "Each measured row of some chips with its predictions, or the reason why there is none"
grain = "one row per measurement and measured quantity, one per measurement without a prediction"
order = ["hardware", "model", "precision", "batch", "runtime", "quantity"]
[parameters]
chips = { type = "VARCHAR[]", meaning = "measured hardware, with @MODE where it is not at its default power mode" }
[columns]
model = { type = "VARCHAR", meaning = "model name" }
precision = { type = "VARCHAR", meaning = "precision as measured" }
batch = { type = "DOUBLE", meaning = "samples in one input; for served models, sequences of a call or mean requests in flight" }
runtime = { type = "VARCHAR", meaning = "runtime; for served models, the engine" }
quantity = { type = "VARCHAR", null = true, meaning = "quantity as in prediction_errors; null without a prediction" }
measured = { type = "DOUBLE", null = true, meaning = "measured value in the quantity's unit; null without a prediction" }
predicted = { type = "DOUBLE", null = true, meaning = "predicted value in the quantity's unit; null without a prediction" }
is_seen = { type = "BOOLEAN", meaning = "true if a number was fitted to the row" }
is_covered = { type = "BOOLEAN", null = true, meaning = "true if the measured value is in the 80 % interval; null without an interval" }
refusal = { type = "VARCHAR", meaning = "reason why the hardware cannot run it; empty where it can, or if nothing was evaluated" }
*/
WITH refused AS (
    SELECT
        hardware || CASE WHEN power_mode = 'default' THEN '' ELSE '@' || power_mode END AS hardware,
        model, "precision", CAST(batch AS DOUBLE) AS batch, runtime, refusal
    FROM refused_runs
    UNION ALL
    SELECT configured_hardware, model, "precision", CAST(batch AS DOUBLE), runtime, refusal
    FROM estimates
    WHERE refusal IS NOT NULL
),
single AS (
    SELECT
        m.hardware, m.model, m.precision, CAST(m.batch AS DOUBLE) AS batch, m.runtime,
        coalesce(m.seen, '') <> '' AS is_seen,
        coalesce(min(r.refusal), '') AS refusal
    FROM internal.measurement AS m
    LEFT JOIN refused AS r
        ON r.hardware = m.hardware AND r.model = m.model AND r.precision = m.precision AND r.batch = m.batch
        AND r.runtime = m.runtime
    WHERE m.measurement_id NOT IN (SELECT measurement_id FROM prediction_errors WHERE measurement_id IS NOT NULL)
    GROUP BY m.measurement_id, m.hardware, m.model, m.precision, m.batch, m.runtime, m.seen
),
served AS (
    SELECT
        m.hardware, m.model, m.weight_precision AS "precision", m.batch, coalesce(m.engine, '') AS runtime,
        coalesce(m.seen, '') <> '' AS is_seen,
        coalesce(min(r.refusal), '') AS refusal
    FROM internal.serving_measurement AS m
    LEFT JOIN serving_refusals AS r ON r.serving_measurement_id = m.serving_measurement_id
    WHERE m.serving_measurement_id NOT IN (
        SELECT serving_measurement_id FROM prediction_errors WHERE serving_measurement_id IS NOT NULL
    )
    GROUP BY m.serving_measurement_id, m.hardware, m.model, m.weight_precision, m.batch, m.engine, m.seen
),
every AS (
    SELECT
        hardware, model, "precision", batch, coalesce(runtime, engine, '') AS runtime, quantity, measured, predicted,
        coalesce(seen, '') <> '' AS is_seen,
        measured BETWEEN low AND high AS is_covered,
        '' AS refusal
    FROM prediction_errors
    UNION ALL
    SELECT hardware, model, "precision", batch, runtime, NULL, NULL, NULL, is_seen, NULL, refusal FROM single
    UNION ALL
    SELECT hardware, model, "precision", batch, runtime, NULL, NULL, NULL, is_seen, NULL, refusal FROM served
)
SELECT hardware, model, "precision", batch, runtime, quantity, measured, predicted, is_seen, is_covered, refusal
FROM every
WHERE list_contains($chips, hardware)
ORDER BY hardware, model, "precision", batch, runtime, quantity NULLS LAST, measured, predicted, refusal
