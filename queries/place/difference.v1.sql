/*
record = "PlacementDifference"
summary = "Why one placement of a model takes more energy than another of the same question: what each device spends on each action"
grain = "one row per device, component and action that either has a line of"
order = ["difference_fj descending by absolute value, device, component, action"]
[parameters]
first = { type = "INTEGER", meaning = "placement_id" }
second = { type = "INTEGER", meaning = "placement_id that it is set beside" }
[columns]
device = { type = "VARCHAR", meaning = "of the box" }
first_count = { type = "DOUBLE", meaning = "how often it happens in the first; 0 where it does not" }
second_count = { type = "DOUBLE", meaning = "how often it happens in the second" }
first_j = { type = "DOUBLE", unit = "J", meaning = "energy in the first" }
second_j = { type = "DOUBLE", unit = "J", meaning = "energy in the second" }
difference_j = { type = "DOUBLE", unit = "J", meaning = "second less first" }
first_fj = { type = "HUGEINT", unit = "fJ", meaning = "energy in the first, exact: all rows add up to its total" }
difference_fj = { type = "HUGEINT", unit = "fJ", meaning = "the same, exact: all rows add up to the difference of both totals" }
*/
WITH booked AS (
    SELECT
        l.device,
        l.component,
        l.action,
        coalesce(sum(l.action_count) FILTER (WHERE l.placement_id = $first), 0) AS first_count,
        coalesce(sum(l.action_count) FILTER (WHERE l.placement_id = $second), 0) AS second_count,
        coalesce(sum(l.line_energy_fj) FILTER (WHERE l.placement_id = $first), 0) AS first_fj,
        coalesce(sum(l.line_energy_fj) FILTER (WHERE l.placement_id = $second), 0) AS second_fj
    FROM placement_ledger AS l
    WHERE l.placement_id IN ($first, $second)
    GROUP BY l.device, l.component, l.action
)
SELECT
    device,
    component,
    action,
    CAST(first_count AS DOUBLE) AS first_count,
    CAST(second_count AS DOUBLE) AS second_count,
    joules(first_fj) AS first_j,
    joules(second_fj) AS second_j,
    joules(second_fj - first_fj) AS difference_j,
    CAST(first_fj AS HUGEINT) AS first_fj,
    CAST(second_fj - first_fj AS HUGEINT) AS difference_fj
FROM booked
ORDER BY abs(second_fj - first_fj) DESC, device, component, action
