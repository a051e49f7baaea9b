/*
summary = "Energy that no counted action explains"
grain = "one row per run in which it is at least a tenth"
order = ["run_id"]
[columns]
energy_fraction = { type = "DOUBLE", meaning = "share of the energy: implied by the power limit, or a residual fitted to boards" }
*/
SELECT
    l.run_id,
    round(
        sum(CASE WHEN a.common_category = 'unattributed' THEN l.energy_fj ELSE 0 END)
        / CAST(sum(l.energy_fj) AS DOUBLE), 4
    ) AS energy_fraction
FROM internal.run_action AS l
JOIN internal.action AS a ON a.action_id = l.action_id
WHERE list_contains($run_ids, l.run_id)
GROUP BY l.run_id
HAVING energy_fraction >= 0.1e0
ORDER BY l.run_id
