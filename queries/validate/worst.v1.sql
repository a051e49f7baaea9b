/*
summary = "Worst predictions of each chip"
grain = "one row per quantity, hardware and rank"
order = ["quantity, times and rates before energies, powers and memory", "hardware", "rank"]
[parameters]
model = { type = "VARCHAR", default = "", meaning = "model or kind of operator to restrict to; empty for all" }
precision = { type = "VARCHAR", default = "", meaning = "precision to restrict to; empty for all" }
limit = { type = "INTEGER", default = 3, meaning = "maximum rows per quantity and hardware" }
[columns]
quantity = { type = "VARCHAR", meaning = "quantity as in prediction_errors" }
rank = { type = "BIGINT", meaning = "rank, 1 for the worst" }
model = { type = "VARCHAR", meaning = "model name" }
family = { type = "VARCHAR", meaning = "family of the model" }
precision = { type = "VARCHAR", meaning = "precision as measured" }
batch = { type = "DOUBLE", meaning = "samples in one input; for served models, sequences of a call or mean requests in flight" }
runtime = { type = "VARCHAR", meaning = "runtime; for served models, the engine" }
error_fraction = { type = "DOUBLE", meaning = "signed relative error; positive is predicted too high" }
split = { type = "VARCHAR", meaning = "relation to the rows that coefficients were fitted to: fitted, same family, unseen family or unseen hardware" }
*/
SELECT
    quantity, hardware, rank, model, family, "precision", batch, runtime, measured, predicted, error_fraction, split
FROM (
    SELECT
        e.quantity,
        e.hardware,
        row_number() OVER (
            PARTITION BY e.quantity, e.hardware
            ORDER BY abs(e.error_fraction) DESC, e.measurement_id, e.serving_measurement_id
        ) AS rank,
        e.model,
        e.family,
        e.precision,
        e.batch,
        coalesce(e.runtime, e.engine) AS runtime,
        e.measured,
        e.predicted,
        e.error_fraction,
        coalesce(s.split, v.split) AS split
    FROM prediction_errors AS e
    LEFT JOIN measurement_splits AS s ON s.measurement_id = e.measurement_id
    LEFT JOIN serving_measurements AS v ON v.serving_measurement_id = e.serving_measurement_id
    WHERE ($hardware = '' OR e.hardware = $hardware)
        AND ($model = '' OR e.model = $model OR operator_kind(e.model) = $model)
        AND ($precision = '' OR e.precision = $precision)
)
WHERE rank <= $limit
ORDER BY quantity_index(quantity), hardware, rank
