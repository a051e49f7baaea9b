/*
record = "ActionPrice"
summary = "Energy reference table of one chip"
grain = "one row per action"
[parameters]
hardware = { type = "VARCHAR", meaning = "catalogue id" }
[columns]
category = { type = "VARCHAR", meaning = "category of the action, in the architecture's own grouping" }
energy_per_action_j = { type = "DOUBLE", unit = "J", meaning = "energy of one action at the chip's process node" }
low_j = { type = "DOUBLE", null = true, unit = "J", meaning = "lower end of the plausible range" }
high_j = { type = "DOUBLE", null = true, unit = "J", meaning = "upper end of the plausible range" }
count_formula = { type = "VARCHAR", meaning = "formula of the number of these actions in an operator" }
*/
SELECT category, component, action, part, energy_per_action_j, per, low_j, high_j, basis, source, count_formula
FROM energy_reference
WHERE hardware = $hardware AND is_current
ORDER BY category, component, action
