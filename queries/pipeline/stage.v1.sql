/*
record = "StageTime"
summary = "Latency of the stages of a pipeline, each run alone"
grain = "one row per evaluated run"
order = ["hardware", "precision", "batch", "runtime", "model", "run_id"]
[columns]
latency_s = { type = "DOUBLE", unit = "s", meaning = "latency per batch" }
*/
SELECT
    r.hardware,
    r.precision,
    r.batch,
    r.runtime,
    r.model,
    r.latency_s,
    r.run_id
FROM cube.run(run_ids := $run_ids, rows := 'evaluated') AS r
ORDER BY r.hardware, r.precision, r.batch, r.runtime, r.model, r.run_id
