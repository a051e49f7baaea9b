/*
summary = "Runs on hardware whose list of supported operators is unknown"
grain = "one row per such run"
order = ["run_id"]
[columns]
doubt = { type = "DOUBLE", meaning = "infinite: the chip may not run the model at all" }
*/
SELECT DISTINCT r.run_id, CAST('inf' AS DOUBLE) AS doubt
FROM internal.run AS r
JOIN internal.hardware_operator AS o ON o.hardware_digest = r.hardware_digest
WHERE list_contains($run_ids, r.run_id) AND o.compiler = 'an unlisted compiler'
ORDER BY r.run_id
