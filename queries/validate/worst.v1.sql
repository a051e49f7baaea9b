/*
summary = "The predictions that are furthest from their measurements, on each hardware"
grain = "one row per quantity, hardware and rank"
order = ["quantity, times and rates before energies, powers and memory", "hardware", "rank"]
[parameters]
model = { type = "VARCHAR", default = "", meaning = "only this model, or this kind of operator; empty for all" }
precision = { type = "VARCHAR", default = "", meaning = "only this precision; empty for all" }
limit = { type = "INTEGER", default = 3, meaning = "rows of each quantity and hardware" }
[columns]
quantity = { type = "VARCHAR", meaning = "as in prediction_errors" }
hardware = {}
rank = { type = "BIGINT", meaning = "1 is the furthest off" }
model = { type = "VARCHAR", meaning = "model name" }
family = { type = "VARCHAR", meaning = "its family" }
precision = { type = "VARCHAR", meaning = "as measured" }
batch = { type = "DOUBLE", meaning = "samples in one input; of what is served, sequences of a call or the mean of requests in flight" }
runtime = { type = "VARCHAR", meaning = "eager, graph, fused or engine; of what is served, its engine" }
measured = {}
predicted = {}
error_fraction = { type = "DOUBLE", meaning = "signed relative error; positive is predicted too high" }
split = { type = "VARCHAR", meaning = "how new the row is to the coefficients: fitted, same family, unseen family, unseen hardware" }
*/
SELECT
    {columns}
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
ORDER BY quantity_place(quantity), hardware, rank
