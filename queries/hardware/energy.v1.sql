/*
name = "hardware.energy"
record = "ActionPrice"
version = 1
schema = 1
summary = "The energy reference table of one hardware"
grain = "one row per action"
order = ["category", "component", "action"]
[parameters]
hardware = { type = "VARCHAR", meaning = "catalogue id" }
[columns]
category = { type = "VARCHAR", meaning = "the architecture's own grouping" }
component = { type = "VARCHAR", meaning = "what acts" }
action = { type = "VARCHAR", meaning = "what it does" }
part = { type = "VARCHAR", meaning = "compute, memory, control or static" }
energy_per_action_j = { type = "DOUBLE", unit = "J", meaning = "of one count, at this process node" }
per = { type = "VARCHAR", meaning = "what one count is" }
low_j = { type = "DOUBLE", null = true, unit = "J", meaning = "lower end of the plausible range" }
high_j = { type = "DOUBLE", null = true, unit = "J", meaning = "upper end of the plausible range" }
basis = { type = "VARCHAR", meaning = "measured, published, derived, scaled or assumed" }
source = { type = "VARCHAR", meaning = "document, measurement or arithmetic" }
count_formula = { type = "VARCHAR", meaning = "how the count follows from an operator" }
*/
SELECT category, component, action, part, energy_per_action_j, per, low_j, high_j, basis, source, count_formula
FROM energy_reference
WHERE hardware = $hardware AND is_current
ORDER BY category, component, action
