/*
record = "ServedResidual"
summary = "The error of each prediction of a served model as a logarithm, with the groups that intervals are made of"
grain = "one row per measurement and measured quantity with a prediction"
[columns]
quantity = { type = "VARCHAR", meaning = "as in serving_predictions" }
vendor = { type = "VARCHAR", meaning = "of the hardware" }
engine = { type = "VARCHAR", meaning = "that is taken for the prediction" }
work = { type = "VARCHAR", meaning = "model, or experts where tokens choose among weights" }
hardware = { type = "VARCHAR", meaning = "catalogue id, without its operating point" }
model = { type = "VARCHAR", meaning = "as its source names it" }
source = { type = "VARCHAR", meaning = "where the measurement comes from" }
batch = { type = "DOUBLE", meaning = "sequences of a call, or the mean of requests in flight" }
half_width = { type = "DOUBLE", null = true, meaning = "of the 80 % interval that the prediction states, of the natural logarithm" }
*/
SELECT
    p.quantity, p.vendor, p.engine, p.work,
    split_part(m.hardware, '@', 1) AS hardware,
    m.model,
    m.source,
    m.scope,
    m.batch,
    p.measured, p.predicted,
    ln(p.measured / p.predicted) AS log_error,
    p.half_width, p.serving_measurement_id
FROM serving_predictions AS p
JOIN internal.serving_measurement AS m ON m.serving_measurement_id = p.serving_measurement_id
WHERE p.predicted > 0e0 AND contains(lower(m.source), lower($source))
ORDER BY p.serving_measurement_id, p.quantity
