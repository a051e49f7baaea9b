/*
record = "ListedMeasurement"
summary = "Measurements of models and operators"
grain = "one row per measurement"
[parameters]
model = { type = "VARCHAR", default = "", meaning = "model, kind of operator or power_state to restrict to; empty for all" }
source = { type = "VARCHAR", default = "", meaning = "text that source names must contain, ignoring case; empty for all" }
[columns]
measurement_id = { type = "INTEGER", meaning = "number of the row" }
precision = { type = "VARCHAR", meaning = "precision as measured" }
matmul_precision = { type = "VARCHAR", meaning = "arithmetic of GEMMs and convolutions at fp32, as measured; default at other precisions" }
latency_s = { type = "DOUBLE", null = true, unit = "s", meaning = "latency per batch" }
throughput_per_s = { type = "DOUBLE", null = true, unit = "1/s", meaning = "inferences per second of one device" }
energy_j = { type = "DOUBLE", null = true, unit = "J", meaning = "energy per batch" }
power_w = { type = "DOUBLE", null = true, unit = "W", meaning = "average power" }
wall_power_w = { type = "DOUBLE", null = true, unit = "W", meaning = "average power of the whole system at the wall plug, divided by the number of devices" }
device_count = { type = "INTEGER", null = true, meaning = "devices of the system at the wall plug; null without wall_power_w" }
peak_memory_bytes = { type = "BIGINT", null = true, unit = "B", meaning = "peak memory as the framework reports it" }
scope = { type = "VARCHAR", meaning = "description of the measurement" }
boundary = { type = "VARCHAR", meaning = "boundary of energy_j and power_w, chip or board; empty without them" }
idle_power_w = { type = "DOUBLE", null = true, unit = "W", meaning = "idle power that was subtracted from energy_j; null for an energy that contains it" }
source = { type = "VARCHAR", meaning = "source of the measurement" }
conditions = { type = "VARCHAR", meaning = "conditions of the measurement" }
seen = { heading = "used to fit" }
*/
SELECT
    measurement_id, hardware, model, "precision", matmul_precision, batch, runtime, latency_s, throughput_per_s, energy_j, power_w,
    wall_power_w, device_count, peak_memory_bytes, scope, boundary, idle_power_w, seen, source, conditions
FROM measurements
WHERE ($hardware = '' OR hardware = $hardware)
    AND (
        $model = ''
        OR model = $model
        OR operator_kind(model) = $model
        OR ($model = 'power_state' AND starts_with(model, 'power_state('))
    )
    AND contains(lower(source), lower($source))
ORDER BY hardware, model, precision, runtime, batch, measurement_id
