/*
summary = "Runs whose energy excludes the host that their hardware needs"
grain = "one row per such run"
order = ["run_id"]
[parameters]
metric = { type = "VARCHAR", default = "energy", meaning = "quantity whose errors move the decision: energy, latency or neither" }
[columns]
host_ratio = { type = "DOUBLE", null = true, meaning = "energy of the host, as recommend and fleet assume it, over the energy of the run; null below 0.005" }
bias = { type = "DOUBLE", meaning = "natural logarithm of the factor by which a host raises the energy" }
*/
WITH needing AS (
    SELECT
        r.run_id,
        v.hardware_digest,
        CAST(t.energy_fj AS DOUBLE) / CAST(t.interval_fs AS DOUBLE) AS power_w,
        v.own_host AS computer
    FROM internal.run AS r
    JOIN internal.run_total AS t ON t.run_id = r.run_id
    JOIN internal.hardware_version AS v ON v.hardware_digest = r.hardware_digest
    WHERE
        list_contains($run_ids, r.run_id) AND t.energy_fj IS NOT NULL AND v.host = '' AND v.boundary <> 'system'
        AND (v.needs_host <> '' OR (v.architecture <> 'cpu' AND v.deployment = ['datacenter'] AND r.placement = ''))
),
computers AS (
    SELECT v.hardware, f.value AS static_power_w
    FROM internal.catalogue_entry AS c
    JOIN internal.hardware_version AS v ON v.hardware_digest = c.hardware_digest
    JOIN internal.hardware_fact AS f ON f.hardware_digest = c.hardware_digest AND f.quantity = 'static_power'
),
added AS (
    SELECT
        n.run_id,
        coalesce(
            w.static_power_w / n.power_w,
            max(f.value),
            (SELECT value FROM internal.cost_assumption WHERE assumption = 'host')
        ) AS host_ratio
    FROM needing AS n
    LEFT JOIN computers AS w ON w.hardware = n.computer AND w.static_power_w > 0e0
    LEFT JOIN internal.hardware_fact AS f ON f.hardware_digest = n.hardware_digest AND f.quantity = 'host_share'
    GROUP BY n.run_id, n.power_w, w.static_power_w
)
SELECT
    run_id,
    nullif(round(host_ratio, 2), 0e0) AS host_ratio,
    CASE $metric WHEN 'energy' THEN ln(1e0 + host_ratio) ELSE 0e0 END AS bias
FROM added
WHERE host_ratio > 0e0
ORDER BY run_id
