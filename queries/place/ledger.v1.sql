/*
record = "PlacedLine"
summary = "The ledger of a placement on a box: parts, copies between devices, and what each draws while others work"
grain = "one row per line"
[parameters]
placement = { type = "INTEGER", meaning = "placement_id" }
[columns]
line_index = { type = "INTEGER", meaning = "order in the ledger" }
device = { type = "VARCHAR", meaning = "of the box; of a copy the one that sends" }
subgraph_index = { type = "INTEGER", null = true, meaning = "null where it belongs to none" }
energy_per_action_j = { type = "DOUBLE", unit = "J", meaning = "at the highest voltage of the die" }
energy_fj = { type = "BIGINT", unit = "fJ", meaning = "of the line, exact" }
basis = { type = "VARCHAR", meaning = "where the price comes from" }
source = { type = "VARCHAR", meaning = "who says so" }
*/
SELECT
    l.line_index, l.device, l.subgraph_index, l.component, l.action, l.per, l.action_count,
    CAST(l.energy_per_action_j AS DOUBLE) AS energy_per_action_j,
    l.line_energy_fj AS energy_fj,
    l.basis, l.source
FROM placement_ledger AS l
WHERE l.placement_id = $placement
ORDER BY l.line_index
