/*
record = "ListedMeasurement"
summary = "What somebody measured"
grain = "one row per measurement"
[parameters]
model = { type = "VARCHAR", default = "", meaning = "only this model, or this kind of operator; empty for all" }
source = { type = "VARCHAR", default = "", meaning = "only measurements whose source holds this text, whatever the case; empty for all" }
[columns]
measurement_id = { type = "INTEGER", meaning = "number of the row" }
precision = { type = "VARCHAR", meaning = "as measured" }
latency_s = { type = "DOUBLE", null = true, unit = "s", meaning = "per batch" }
throughput_per_s = { type = "DOUBLE", null = true, unit = "1/s", meaning = "inferences per second of one device" }
energy_j = { type = "DOUBLE", null = true, unit = "J", meaning = "per batch" }
power_w = { type = "DOUBLE", null = true, unit = "W", meaning = "average" }
wall_power_w = { type = "DOUBLE", null = true, unit = "W", meaning = "average of the whole system at the wall plug, over its devices" }
device_count = { type = "INTEGER", null = true, meaning = "devices of the system at the wall plug; null without wall_power_w" }
peak_memory_bytes = { type = "BIGINT", null = true, unit = "B", meaning = "as the framework reports it" }
scope = { type = "VARCHAR", meaning = "what it covers" }
source = { type = "VARCHAR", meaning = "where it comes from" }
conditions = { type = "VARCHAR", meaning = "what it depends on" }
*/
SELECT
    measurement_id, hardware, model, "precision", batch, runtime, latency_s, throughput_per_s, energy_j, power_w,
    wall_power_w, device_count, peak_memory_bytes, scope, seen, source, conditions
FROM measurements
WHERE ($hardware = '' OR hardware = $hardware)
    AND ($model = '' OR model = $model OR operator_kind(model) = $model)
    AND contains(lower(source), lower($source))
ORDER BY hardware, model, precision, runtime, batch, measurement_id
