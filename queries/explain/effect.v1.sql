/*
record = "Effect"
summary = "Exact additive decomposition of the difference between two runs' energies by kind of cause"
grain = "one row per effect, six in all; they sum to the difference B minus A, exactly"
order = ["only in A, only in B, count, price, time, static power"]
[parameters]
subgraph = { type = "VARCHAR", default = "", meaning = "name of the requested subgraph, as in explain.subgraph; empty for the whole runs" }
[columns]
effect = { heading = "cause", type = "VARCHAR", meaning = "cause: only in A, only in B, count and price (number and energy of actions that both have), time (static power for a longer or shorter time), static power (its power)" }
difference_fj = { type = "HUGEINT", unit = "fJ", meaning = "exact effect on B minus A" }
difference_j = { shown = "+", type = "DOUBLE", unit = "J", meaning = "effect on B minus A" }
action_count = { type = "BIGINT", meaning = "number of actions with this effect" }
largest_action = { type = "VARCHAR", null = true, meaning = "component.action with the largest effect; null without one" }
largest_difference_j = { heading = "its difference", shown = "+", type = "DOUBLE", null = true, unit = "J", meaning = "effect of that action" }
difference_fraction = { heading = "share of energy differences", type = "DOUBLE", null = true, meaning = "difference over the whole difference, so that all shares add up to 1; negative for a part against it, null for equal runs" }
*/
WITH split AS (
    SELECT component, action, part, price_a, price_b, is_shared, by_count_fj, difference_fj
    FROM explain.action(run_a := $run_a, run_b := $run_b, subgraph := $subgraph)
),
time AS (
    SELECT
        component,
        action,
        difference_fj,
        CASE WHEN price_a IS NULL OR price_b IS NULL THEN difference_fj ELSE by_count_fj END AS by_time_fj
    FROM split
    WHERE part = 'static'
),
moved AS (
    SELECT
        CASE WHEN price_b IS NULL THEN 1 ELSE 2 END AS position,
        component || '.' || action AS name,
        difference_fj
    FROM split
    WHERE NOT is_shared AND part <> 'static'
    UNION ALL
    SELECT 3, component || '.' || action, by_count_fj
    FROM split
    WHERE is_shared
    UNION ALL
    SELECT 4, component || '.' || action, difference_fj - by_count_fj
    FROM split
    WHERE is_shared
    UNION ALL
    SELECT 5, component || '.' || action, by_time_fj
    FROM time
    UNION ALL
    SELECT 6, component || '.' || action, difference_fj - by_time_fj
    FROM time
),
summed AS (
    SELECT
        position,
        sum(difference_fj) AS difference_fj,
        count(*) AS action_count,
        min({'size': -abs(difference_fj), 'name': name, 'fj': difference_fj}) AS largest
    FROM moved
    WHERE difference_fj <> 0
    GROUP BY position
)
SELECT
    e.effect,
    coalesce(s.difference_fj, 0) AS difference_fj,
    joules(coalesce(s.difference_fj, 0)) AS difference_j,
    fraction(coalesce(s.difference_fj, 0), sum(s.difference_fj) OVER ())
        AS difference_fraction,
    coalesce(s.action_count, 0) AS action_count,
    s.largest.name AS largest_action,
    s.largest.fj / 1e15 AS largest_difference_j
FROM (
    VALUES (1, 'only in A'), (2, 'only in B'), (3, 'count'), (4, 'price'), (5, 'time'), (6, 'static power')
) AS e (position, effect)
LEFT JOIN summed AS s ON s.position = e.position
ORDER BY e.position
