/*
name = "run.list"
version = 1
schema = 1
summary = "Stored runs, newest first"
grain = "one row per evaluated run"
order = ["run_id descending"]
[parameters]
model = { type = "VARCHAR", default = "", meaning = "only this model; empty for all" }
most = { type = "INTEGER", default = 1000, meaning = "rows at most; 0 for all" }
[columns]
run_id = { type = "INTEGER", meaning = "number of the run" }
model = { type = "VARCHAR", meaning = "model" }
hardware = { type = "VARCHAR", meaning = "catalogue id, with @MODE where the power mode is not the default" }
precision = { type = "VARCHAR", meaning = "precision; bf16/int4 where weights of products are stored at another" }
batch = { type = "INTEGER", meaning = "samples in one input" }
runtime = { type = "VARCHAR", meaning = "eager, graph, fused or engine" }
energy_j = { type = "DOUBLE", unit = "J", meaning = "per batch" }
latency_s = { type = "DOUBLE", unit = "s", meaning = "per batch" }
created_at = { type = "TIMESTAMP", meaning = "when it was stored, UTC" }
*/
SELECT
    run_id,
    model,
    configured_hardware AS hardware,
    precision_label AS "precision",
    batch,
    runtime,
    energy_j,
    latency_s,
    created_at
FROM runs
WHERE $model = '' OR model = $model
ORDER BY run_id DESC
LIMIT CASE WHEN $most > 0 THEN $most END
