/*
summary = "Share of the energy that rests on published numbers recalled without checking the source"
grain = "one row per run in which it is at least a tenth"
order = ["run_id"]
[columns]
energy_fraction = { type = "DOUBLE", meaning = "share of the energy whose energy per action is recalled" }
*/
SELECT
    l.run_id,
    coalesce(sum(l.energy_fj) FILTER (e.basis = 'recalled'), 0) / CAST(sum(l.energy_fj) AS DOUBLE) AS energy_fraction
FROM internal.run_action AS l
JOIN internal.run AS r ON r.run_id = l.run_id
JOIN internal.energy_per_action AS e ON e.hardware_digest = r.hardware_digest AND e.action_id = l.action_id
WHERE list_contains($run_ids, l.run_id)
GROUP BY l.run_id
HAVING energy_fraction >= 0.1e0
ORDER BY l.run_id
