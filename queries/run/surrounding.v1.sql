/*
record = "PluggedHardware"
summary = "Power at the wall plug beyond each board of the given runs at the boundary system: growth factor and host power"
grain = "one row per hardware version at the boundary system"
order = ["hardware", "growth_ratio", "host_power_w", "host_source"]
[parameters]
run_ids = { type = "INTEGER[]", meaning = "runs whose hardware is listed; those at another boundary are omitted" }
[columns]
growth_ratio = { type = "DOUBLE", meaning = "energy at the wall per joule of the board, the host excluded" }
host_power_w = { type = "DOUBLE", null = true, unit = "W", meaning = "power of the host that counts for one board; null without a host" }
board_count = { type = "DOUBLE", null = true, meaning = "number of boards that share the host; null without a host" }
host_source = { type = "VARCHAR", meaning = "origin of host_power_w; empty without a host" }
*/
SELECT
    v.hardware,
    1e0 + coalesce(sum(e.energy_per_action_fj) FILTER (a.component IN ('chassis', 'psu')), 0e0) / 1e15 AS growth_ratio,
    any_value(e.energy_per_action_fj) FILTER (a.component = 'host' AND a.action = 'static_power') / 1e15
        AS host_power_w,
    any_value(f.value) AS board_count,
    coalesce(any_value(e.source) FILTER (a.component = 'host' AND a.action = 'static_power'), '') AS host_source
FROM internal.hardware_version AS v
JOIN internal.energy_per_action AS e ON e.hardware_digest = v.hardware_digest
JOIN internal.action AS a ON a.action_id = e.action_id
LEFT JOIN internal.hardware_fact AS f
    ON f.hardware_digest = v.hardware_digest AND f.quantity = 'coefficient.system_board_count'
WHERE
    v.boundary = 'system'
    AND v.hardware_digest IN (SELECT r.hardware_digest FROM internal.run AS r WHERE list_contains($run_ids, r.run_id))
GROUP BY v.hardware_digest, v.hardware
ORDER BY v.hardware, growth_ratio, host_power_w, host_source
