/*
record = "ServedResidual"
summary = "Logarithmic error of each prediction of a served model, with the groups that intervals are made from"
grain = "one row per measurement and measured quantity with a prediction"
[columns]
quantity = { type = "VARCHAR", meaning = "quantity as in serving_predictions" }
vendor = { type = "VARCHAR", meaning = "vendor of the hardware" }
engine = { type = "VARCHAR", meaning = "engine used for the prediction" }
work = { type = "VARCHAR", meaning = "kind of model: `experts` for a mixture of experts, else `model`" }
hardware = { type = "VARCHAR", meaning = "catalogue id, without its operating point" }
model = { type = "VARCHAR", meaning = "model as its source names it" }
source = { type = "VARCHAR", meaning = "source of the measurement" }
batch = { type = "DOUBLE", meaning = "sequences per call, or mean requests in flight" }
half_width = { type = "DOUBLE", null = true, meaning = "half-width of the 80 % interval that the prediction states, of the logarithm" }
thin_half_width = { type = "DOUBLE", meaning = "part of it that thinly measured numbers of the engine add to times" }
*/
SELECT
    p.quantity, p.vendor, p.architecture, p.engine, p.work,
    split_part(m.hardware, '@', 1) AS hardware,
    m.model,
    m.source,
    m.scope,
    m.batch,
    p.measured, p.predicted,
    ln(p.measured / p.predicted) AS log_error,
    p.half_width, p.thin_half_width, p.serving_measurement_id
FROM serving_predictions AS p
JOIN internal.serving_measurement AS m ON m.serving_measurement_id = p.serving_measurement_id
WHERE p.predicted > 0e0 AND contains(lower(m.source), lower($source))
ORDER BY p.serving_measurement_id, p.quantity
