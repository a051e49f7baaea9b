/*
name = "validate.worst"
version = 1
schema = 1
summary = "The predictions that are furthest from their measurements, on each hardware"
grain = "one row per quantity, hardware and rank"
order = ["quantity, in the order latency, rate, energy, power, memory", "hardware", "rank"]
[parameters]
hardware = { type = "VARCHAR", default = "", meaning = "only this hardware; empty for all" }
model = { type = "VARCHAR", default = "", meaning = "only this model, or this kind of operator; empty for all" }
precision = { type = "VARCHAR", default = "", meaning = "only this precision; empty for all" }
limit = { type = "INTEGER", default = 3, meaning = "rows of each quantity and hardware" }
[columns]
quantity = { type = "VARCHAR", meaning = "latency, rate, energy, power or memory" }
hardware = { type = "VARCHAR", meaning = "catalogue id, with @MODE where the power mode is not the default" }
rank = { type = "BIGINT", meaning = "1 is the furthest off" }
model = { type = "VARCHAR", meaning = "model name" }
family = { type = "VARCHAR", meaning = "its family" }
precision = { type = "VARCHAR", meaning = "as measured" }
batch = { type = "INTEGER", meaning = "samples in one input" }
runtime = { type = "VARCHAR", meaning = "eager, graph, fused or engine" }
measured = { type = "DOUBLE", meaning = "per batch, a rate per inference, in the quantity's SI unit" }
predicted = { type = "DOUBLE", meaning = "per batch, a rate per inference, in the quantity's SI unit" }
error_fraction = { type = "DOUBLE", meaning = "signed relative error; positive is predicted too high" }
split = { type = "VARCHAR", meaning = "how new the row is to the coefficients: fitted, same family, unseen family, unseen hardware" }
*/
WITH pair AS (
    SELECT
        unnest([
            {'position': 1, 'quantity': 'latency', 'measured': measured_latency_s, 'predicted': predicted_latency_s},
            {
                'position': 2,
                'quantity': 'rate',
                'measured': measured_throughput_per_s,
                'predicted': predicted_throughput_per_s
            },
            {'position': 3, 'quantity': 'energy', 'measured': measured_energy_j, 'predicted': predicted_energy_j},
            {'position': 4, 'quantity': 'power', 'measured': measured_power_w, 'predicted': predicted_power_w},
            {
                'position': 5,
                'quantity': 'memory',
                'measured': CAST(measured_memory_bytes AS DOUBLE),
                'predicted': CAST(predicted_memory_bytes AS DOUBLE)
            }
        ]) AS one,
        measurement_id,
        hardware,
        model,
        family,
        precision,
        batch,
        runtime
    FROM prediction_errors
    WHERE ($hardware = '' OR hardware = $hardware)
        AND ($model = '' OR model = $model OR operator_kind(model) = $model)
        AND ($precision = '' OR precision = $precision)
),
scored AS (
    SELECT
        p.one.position AS position,
        p.one.quantity AS quantity,
        p.hardware,
        row_number() OVER (
            PARTITION BY p.one.quantity, p.hardware
            ORDER BY abs(p.one.predicted / p.one.measured - 1e0) DESC, p.measurement_id
        ) AS rank,
        p.model,
        p.family,
        p.precision,
        p.batch,
        p.runtime,
        p.one.measured AS measured,
        p.one.predicted AS predicted,
        p.one.predicted / p.one.measured - 1e0 AS error_fraction,
        s.split
    FROM pair AS p
    JOIN measurement_splits AS s ON s.measurement_id = p.measurement_id
    WHERE p.one.measured IS NOT NULL AND p.one.predicted IS NOT NULL
)
SELECT quantity, hardware, rank, model, family, precision, batch, runtime, measured, predicted, error_fraction, split
FROM scored
WHERE rank <= $limit
ORDER BY position, hardware, rank
