/*
summary = "Runs whose numbers break a law of physics or arithmetic"
grain = "one row per such run"
order = ["run_id"]
[columns]
laws = { type = "VARCHAR", meaning = "laws that the run breaks, joined by commas" }
doubt = { type = "DOUBLE", meaning = "half-width of the logarithm of its values, as if they were unknown" }
*/
SELECT run_id, broken_laws AS laws, ln(1000e0) AS doubt
FROM internal.run
WHERE list_contains($run_ids, run_id) AND broken_laws <> ''
ORDER BY run_id
