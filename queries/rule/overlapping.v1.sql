/*
summary = "Runs that start a batch before the previous one ends"
grain = "one row per such run"
order = ["run_id"]
[columns]
interval_s = { type = "DOUBLE", unit = "s", meaning = "time between batches" }
throughput_limit = { type = "VARCHAR", meaning = "what limits the throughput" }
*/
SELECT t.run_id, seconds(t.interval_fs) AS interval_s, r.throughput_limit
FROM internal.run_total AS t
JOIN internal.run AS r ON r.run_id = t.run_id
WHERE list_contains($run_ids, t.run_id) AND t.interval_fs < t.latency_fs
ORDER BY t.run_id
