/*
summary = "Runs whose time depends on how many boxes reach non-maximum suppression"
grain = "one row per run in which suppression takes at least a hundredth of the time"
order = ["run_id"]
[parameters]
metric = { type = "VARCHAR", default = "energy", meaning = "quantity whose errors move the decision: energy, latency or neither" }
[columns]
latency_fraction = { type = "DOUBLE", meaning = "share of the latency in non-maximum suppression of the assumed boxes" }
doubt = { type = "DOUBLE", meaning = "natural logarithm of the factor by which the run takes longer with three times as many boxes, whose comparisons are nine times as many" }
*/
SELECT
    r.run_id,
    r.suppressed_s / seconds(t.latency_fs) AS latency_fraction,
    CASE WHEN $metric IN ('energy', 'latency') THEN ln(1e0 + 8e0 * latency_fraction) ELSE 0e0 END AS doubt
FROM internal.run AS r
JOIN internal.run_total AS t ON t.run_id = r.run_id
WHERE list_contains($run_ids, r.run_id) AND latency_fraction >= 0.01e0
ORDER BY r.run_id
