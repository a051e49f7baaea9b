/*
summary = "Ledger of one run: every line with its count and energy per action"
grain = "one row per operator and action; lines sum to operators, subgraphs and the run, exactly"
order = ["operator_index", "energy_fj descending", "component", "action"]
[columns]
subgraph_index = { type = "INTEGER", meaning = "subgraph of the operator" }
energy_fj = { type = "BIGINT", unit = "fJ", meaning = "energy of the line, exact: round(count x energy per action)" }
energy_j = { type = "DOUBLE", unit = "J", meaning = "energy" }
basis = { type = "VARCHAR", meaning = "basis of the energy per action: measured, published, derived, scaled, recalled or assumed" }
source = { type = "VARCHAR", meaning = "document, measurement or arithmetic behind the energy per action" }
*/
SELECT
    l.subgraph_index,
    l.operator_index,
    a.category,
    a.common_category,
    a.component,
    a.action,
    a.part,
    a.per,
    l.action_count,
    e.energy_per_action_fj * voltage_factor_of(a.category, a.common_category, a.action, r.voltage_factor) / 1e15 AS energy_per_action_j,
    l.energy_fj,
    joules(l.energy_fj) AS energy_j,
    is_overhead(a.common_category) AS is_overhead,
    e.basis,
    e.source
FROM internal.ledger_line AS l
JOIN internal.run AS r ON r.run_id = l.run_id
JOIN internal.action AS a ON a.action_id = l.action_id
JOIN internal.energy_per_action AS e ON e.hardware_digest = r.hardware_digest AND e.action_id = l.action_id
WHERE l.run_id = $run_id
ORDER BY l.operator_index, l.energy_fj DESC, a.component, a.action, a.part, a.per
