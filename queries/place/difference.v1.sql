/*
record = "PlacementDifference"
summary = "Energy difference of two placements of a model, by device and action"
grain = "one row per device, component and action of either placement"
table = ["device", "component", "action", "first_j", "second_j", "difference_j"]
order = ["difference_fj descending by absolute value, device, component, action"]
[parameters]
first = { type = "INTEGER", meaning = "placement_id of the first placement" }
second = { type = "INTEGER", meaning = "placement_id of the second placement" }
[columns]
device = { type = "VARCHAR", meaning = "device of the box" }
first_count = { type = "DOUBLE", meaning = "count in the first placement; 0 without the action" }
second_count = { type = "DOUBLE", meaning = "count in the second placement; 0 without the action" }
first_j = { heading = "alone", type = "DOUBLE", unit = "J", meaning = "energy in the first placement" }
second_j = { heading = "mixture", type = "DOUBLE", unit = "J", meaning = "energy in the second placement" }
difference_j = { shown = "+J", type = "DOUBLE", unit = "J", meaning = "second minus first" }
first_fj = { type = "HUGEINT", unit = "fJ", meaning = "exact energy in the first placement; all rows sum to its total" }
difference_fj = { type = "HUGEINT", unit = "fJ", meaning = "exact difference; all rows sum to the difference of both totals" }
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
