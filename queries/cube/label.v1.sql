/*
summary = "Labels that distinguish the runs of one table"
grain = "one row per run, refused ones included"
[parameters]
run_ids = { type = "INTEGER[]", meaning = "runs to label" }
[columns]
label = { type = "VARCHAR", meaning = "hardware, with the rest of the configuration if the runs differ in it" }
is_batch_varying = { type = "BOOLEAN", meaning = "true if the runs differ in batch, so that values per inference are compared" }
*/
SELECT
    r.run_id,
    CASE WHEN count(DISTINCT r.error_case) OVER () > 1 THEN r.label ELSE r.configured_hardware END AS label,
    count(DISTINCT r.batch) OVER () > 1 AS is_batch_varying
FROM run_configurations AS r
WHERE r.run_id IN (SELECT unnest($run_ids))
ORDER BY r.run_id
