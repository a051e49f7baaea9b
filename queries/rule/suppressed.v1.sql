/*
summary = "Runs whose time depends on how many boxes reach non-maximum suppression"
grain = "one row per run in which suppression of an assumed number of boxes takes at least a hundredth of the time"
order = ["run_id"]
[parameters]
metric = { type = "VARCHAR", default = "energy", meaning = "quantity whose errors move the decision: energy, latency or neither" }
[columns]
share_fraction = { type = "DOUBLE", meaning = "share of the latency in non-maximum suppression of the assumed boxes" }
doubt = { type = "DOUBLE", meaning = "natural logarithm of the factor by which the run needs more with three times as many boxes, whose comparisons are nine times as many" }
*/
WITH suppressions AS (
    SELECT o.run_id, o.operator_index, o.latency_fs
    FROM internal.run AS r
    JOIN internal.workload AS w ON w.workload_id = r.workload_id AND NOT contains(w.source, 'nms_candidates=')
    JOIN internal.workload_operator AS q ON q.workload_id = r.workload_id AND q.operation = 'nms'
    JOIN internal.run_operator AS o ON o.run_id = r.run_id AND o.operator_index = q.operator_index
    WHERE list_contains($run_ids, r.run_id)
),
spent AS (
    SELECT l.run_id, sum(l.energy_fj) AS energy_fj
    FROM internal.ledger_line AS l
    SEMI JOIN suppressions AS s ON s.run_id = l.run_id AND s.operator_index = l.operator_index
    GROUP BY l.run_id
),
shares AS (
    SELECT
        s.run_id,
        CAST(sum(s.latency_fs) AS DOUBLE) / any_value(t.latency_fs) AS latency_fraction,
        CAST(any_value(e.energy_fj) AS DOUBLE) / any_value(t.energy_fj) AS energy_fraction
    FROM suppressions AS s
    JOIN internal.run_total AS t ON t.run_id = s.run_id
    JOIN spent AS e ON e.run_id = s.run_id
    GROUP BY s.run_id
)
SELECT
    run_id,
    latency_fraction AS share_fraction,
    ln(1e0 + 8e0 * CASE $metric WHEN 'energy' THEN energy_fraction WHEN 'latency' THEN latency_fraction ELSE 0e0 END)
        AS doubt
FROM shares
WHERE latency_fraction >= 0.01e0
ORDER BY run_id
