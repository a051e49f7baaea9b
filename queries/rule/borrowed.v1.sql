/*
summary = "Runs whose interval comes from other kinds of work"
grain = "one row per such run"
order = ["run_id"]
[parameters]
metric = { type = "VARCHAR", default = "energy", meaning = "quantity whose errors move the decision: energy, latency or neither" }
[columns]
doubt = { type = "DOUBLE", null = true, meaning = "half-width of the borrowed interval, in natural logarithms" }
*/
SELECT
    run_id,
    CASE $metric WHEN 'energy' THEN energy_half_width WHEN 'latency' THEN latency_half_width ELSE 0e0 END AS doubt
FROM internal.run_total
WHERE list_contains($run_ids, run_id) AND latency_basis = 'other work of its class'
ORDER BY run_id
