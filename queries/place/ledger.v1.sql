/*
record = "PlacedLine"
summary = "Ledger of a placement on a box: parts, copies between devices, and power of waiting devices"
grain = "one row per line"
[parameters]
placement = { type = "INTEGER", meaning = "placement_id" }
[columns]
line_index = { type = "INTEGER", meaning = "order in the ledger" }
device = { type = "VARCHAR", meaning = "device of the box; for a copy, the device that sends" }
subgraph_index = { type = "INTEGER", null = true, meaning = "subgraph of the line; null without one" }
energy_per_action_j = { type = "DOUBLE", unit = "J", meaning = "energy of one action at the die's highest voltage" }
energy_fj = { type = "BIGINT", unit = "fJ", meaning = "energy of the line, exact" }
basis = { type = "VARCHAR", meaning = "basis of the energy per action" }
source = { type = "VARCHAR", meaning = "document, measurement or arithmetic behind the energy per action" }
*/
SELECT
    l.line_index, l.device, l.subgraph_index, l.component, l.action, l.per, l.action_count,
    CAST(l.energy_per_action_j AS DOUBLE) AS energy_per_action_j,
    l.line_energy_fj AS energy_fj,
    l.basis, l.source
FROM placement_ledger AS l
WHERE l.placement_id = $placement
ORDER BY l.line_index
