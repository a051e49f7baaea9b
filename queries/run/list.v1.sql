/*
summary = "Stored runs, newest first"
grain = "one row per evaluated run"
order = ["run_id descending"]
[parameters]
most = { type = "INTEGER", default = 1000, meaning = "maximum rows; 0 for all" }
[columns]
energy_j = { type = "DOUBLE", unit = "J", meaning = "energy per batch" }
latency_s = { type = "DOUBLE", unit = "s", meaning = "latency per batch" }
created_at = { type = "TIMESTAMP", meaning = "time of storing, UTC" }
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
