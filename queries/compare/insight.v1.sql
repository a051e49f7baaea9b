/*
record = "Insight"
summary = "Energy of the best run against that of every other run, with the category that explains most of the difference"
grain = "one row per pair of the lowest-energy run with another"
[parameters]
run_ids = { type = "INTEGER[]", meaning = "runs to compare; refused ones count in the labels" }
[columns]
best_hardware = { type = "VARCHAR", meaning = "run with the lowest energy (per inference if batches differ); its configuration is added if the runs differ in configuration" }
other_hardware = { type = "VARCHAR", meaning = "run compared with best_hardware, named in the same way" }
energy_ratio = { type = "DOUBLE", meaning = "energy of the other run over that of the best" }
latency_per_inference_ratio = { type = "DOUBLE", meaning = "latency per inference of the other run over that of the best" }
difference_j = { type = "DOUBLE", unit = "J", meaning = "energy of the other run minus that of the best; per batch, or per inference where batches differ" }
common_category = { type = "VARCHAR", meaning = "category with the largest difference, as in explain.category" }
category_difference_j = { type = "DOUBLE", unit = "J", meaning = "energy difference of that category" }
category_share_fraction = { type = "DOUBLE", null = true, meaning = "category_difference_j over the sum of all absolute differences, as in explain.category, 0 to 1" }
best_power_w = { type = "DOUBLE", unit = "W", meaning = "average power of the best run" }
other_power_w = { type = "DOUBLE", unit = "W", meaning = "average power of the other run" }
*/
WITH chosen AS (
    SELECT
        r.run_id,
        n.label AS hardware,
        CASE WHEN n.is_batch_varying THEN r.batch ELSE 1 END AS divisor,
        joules(t.energy_fj) / CASE WHEN n.is_batch_varying THEN r.batch ELSE 1 END AS energy_j,
        seconds(t.latency_fs) AS latency_s,
        fraction(t.energy_fj, t.interval_fs) AS average_power_w
    FROM internal.run_total AS t
    JOIN internal.run AS r ON r.run_id = t.run_id
    JOIN cube.label(run_ids := $run_ids) AS n ON n.run_id = t.run_id
    WHERE t.run_id IN (SELECT unnest($run_ids)) AND t.energy_fj IS NOT NULL
),
best AS (
    SELECT run_id, hardware, divisor, energy_j, latency_s, average_power_w
    FROM chosen
    ORDER BY energy_j, hardware, run_id
    LIMIT 1
),
spent AS (
    SELECT
        l.run_id,
        join_memories(a.common_category) AS common_category,
        sum(l.energy_fj) AS energy_fj
    FROM internal.run_action AS l
    JOIN internal.action AS a ON a.action_id = l.action_id
    WHERE l.run_id IN (SELECT unnest($run_ids))
    GROUP BY l.run_id, join_memories(a.common_category)
),
gap AS (
    SELECT
        o.run_id,
        k.common_category,
        (coalesce(q.energy_fj, 0) / o.divisor - coalesce(s.energy_fj, 0) / b.divisor) / 1e15 AS category_difference_j
    FROM (SELECT run_id, divisor FROM chosen WHERE run_id NOT IN (SELECT run_id FROM best)) AS o
    CROSS JOIN (SELECT DISTINCT common_category FROM spent) AS k
    CROSS JOIN best AS b
    LEFT JOIN spent AS q ON q.run_id = o.run_id AND q.common_category = k.common_category
    LEFT JOIN spent AS s ON s.run_id = b.run_id AND s.common_category = k.common_category
)
SELECT
    b.hardware AS best_hardware,
    c.hardware AS other_hardware,
    c.energy_j / b.energy_j AS energy_ratio,
    (c.latency_s / c.divisor) / (b.latency_s / b.divisor) AS latency_per_inference_ratio,
    c.energy_j - b.energy_j AS difference_j,
    g.common_category,
    g.category_difference_j,
    change_fraction(
        g.category_difference_j, c.energy_j - b.energy_j, sum(abs(g.category_difference_j)) OVER (PARTITION BY g.run_id)
    ) AS category_share_fraction,
    b.average_power_w AS best_power_w,
    c.average_power_w AS other_power_w
FROM gap AS g
JOIN chosen AS c ON c.run_id = g.run_id
CROSS JOIN best AS b
QUALIFY row_number() OVER (PARTITION BY g.run_id ORDER BY g.category_difference_j DESC, g.common_category) = 1
ORDER BY energy_ratio, other_hardware
