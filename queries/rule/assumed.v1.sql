/*
summary = "Share of the energy that rests on assumed numbers"
grain = "one row per run with at least a tenth"
order = ["run_id"]
[parameters]
metric = { type = "VARCHAR", default = "energy", meaning = "quantity whose errors move the decision: energy, latency or neither" }
[columns]
energy_fraction = { type = "DOUBLE", meaning = "share of the energy whose energy per action is assumed" }
mostly = { type = "VARCHAR", meaning = "static if at least 80 % of it is static power, else empty" }
doubt = { type = "DOUBLE", null = true, meaning = "half-width, in natural logarithms, of the interval due to the chip's own numbers" }
*/
WITH spent AS (
    SELECT
        l.run_id,
        CAST(sum(l.energy_fj) AS DOUBLE) AS whole,
        coalesce(sum(l.energy_fj) FILTER (e.basis = 'assumed'), 0) / whole AS energy_fraction,
        coalesce(sum(l.energy_fj) FILTER (e.basis = 'assumed' AND a.part = 'static'), 0) / whole AS static_fraction
    FROM internal.run_action AS l
    JOIN internal.run AS r ON r.run_id = l.run_id
    JOIN internal.action AS a ON a.action_id = l.action_id
    JOIN internal.energy_per_action AS e ON e.hardware_digest = r.hardware_digest AND e.action_id = l.action_id
    WHERE list_contains($run_ids, l.run_id)
    GROUP BY l.run_id
)
SELECT
    s.run_id,
    s.energy_fraction,
    CASE WHEN s.static_fraction >= {mostly_static} * s.energy_fraction THEN 'static' ELSE '' END AS mostly,
    CASE $metric WHEN 'energy' THEN t.energy_own_half_width ELSE 0e0 END AS doubt
FROM spent AS s
JOIN internal.run_total AS t ON t.run_id = s.run_id
WHERE s.energy_fraction >= {least_assumed}
ORDER BY s.run_id
