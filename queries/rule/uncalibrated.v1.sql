/*
summary = "Runs without a calibration, next to runs with one"
grain = "one row per run without a calibration; none if all or no runs have one"
order = ["run_id"]
[parameters]
metric = { type = "VARCHAR", default = "energy", meaning = "quantity whose errors move the decision: energy, latency or neither" }
[columns]
doubt = { type = "DOUBLE", null = true, meaning = "half-width that a calibration could remove, in natural logarithms" }
*/
SELECT
    r.run_id,
    CASE $metric
        WHEN 'latency' THEN sqrt(greatest(t.latency_half_width ** 2 - t.latency_own_half_width ** 2, 0e0))
        WHEN 'energy' THEN sqrt(greatest(t.energy_half_width ** 2 - t.energy_own_half_width ** 2, 0e0))
        ELSE 0e0
    END AS doubt
FROM internal.run AS r
JOIN internal.run_total AS t ON t.run_id = r.run_id
WHERE list_contains($run_ids, r.run_id)
QUALIFY r.calibration_digest = '' AND bool_or(r.calibration_digest <> '') OVER ()
ORDER BY r.run_id
