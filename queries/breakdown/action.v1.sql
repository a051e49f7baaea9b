/*
name = "breakdown.action"
record = "PartAction"
version = 1
schema = 1
summary = "Where the energy of each subgraph or operator goes, action by action: count x energy per action"
grain = "one row per part of a run and action; actions sum to their part and parts to the run, exactly"
order = ["run as in run_ids", "part_index", "energy_fj descending", "component", "action"]
[parameters]
run_ids = { type = "INTEGER[]", meaning = "runs, of one workload or of up to 32; refused ones are left out" }
level = { type = "VARCHAR", default = "subgraph", meaning = "subgraph or operator" }
subgraph = { type = "VARCHAR", default = "", meaning = "name of the subgraph that is looked into; empty for all" }
[columns]
run_id = { type = "INTEGER", meaning = "number of the run" }
model = { type = "VARCHAR", meaning = "model" }
hardware = { type = "VARCHAR", meaning = "catalogue id, with @MODE where the power mode is not the default" }
part_index = { type = "INTEGER", meaning = "subgraph_index or operator_index" }
name = { type = "VARCHAR", meaning = "of the operator, or of that which leads the subgraph" }
kind = { type = "VARCHAR", meaning = "operation of the operator, or of that which leads the subgraph: conv2d, linear, add ..." }
fusion_pattern = { type = "VARCHAR", meaning = "operations of its subgraph in order" }
category = { type = "VARCHAR", meaning = "the architecture's own" }
common_category = { type = "VARCHAR", meaning = "compute, register, unit_memory, chip_memory, interconnect, off_chip_memory, control, board or static" }
component = { type = "VARCHAR", meaning = "what acts" }
action = { type = "VARCHAR", meaning = "what it does" }
part = { type = "VARCHAR", meaning = "compute, memory, control or static" }
per = { type = "VARCHAR", meaning = "what one count is" }
action_count = { type = "DOUBLE", meaning = "how often" }
energy_per_action_j = { type = "DOUBLE", unit = "J", meaning = "price of one at the voltage of the run" }
energy_fj = { type = "HUGEINT", unit = "fJ", meaning = "exact; the sum of lines that are each round(count x price)" }
energy_j = { type = "DOUBLE", unit = "J", meaning = "energy" }
share_fraction = { type = "DOUBLE", null = true, meaning = "of its subgraph or operator" }
run_fraction = { type = "DOUBLE", null = true, meaning = "of the run" }
whole_energy_fj = { type = "HUGEINT", unit = "fJ", meaning = "of the run, or of the subgraph that is looked into, exact" }
basis = { type = "VARCHAR", meaning = "where the price comes from: measured, published, derived, scaled, recalled or assumed" }
source = { type = "VARCHAR", meaning = "document, measurement or arithmetic behind the price" }
*/
WITH act AS (
    SELECT
        l.run_id,
        l.part_index,
        l.action_id,
        l.run_fj,
        l.whole_fj,
        sum(l.action_count ORDER BY l.operator_index) AS action_count,
        sum(l.energy_fj) AS energy_fj,
        any_value(e.energy_per_action_fj * voltage_factor_of(c.common_category, l.voltage_factor)) AS price_fj,
        any_value(e.basis) AS basis,
        any_value(e.source) AS source
    FROM lines_of_parts($run_ids, $level, $subgraph) AS l
    JOIN energy_per_action AS e ON e.hardware_digest = l.hardware_digest AND e.action_id = l.action_id
    JOIN action AS c ON c.action_id = l.action_id
    GROUP BY ALL
)
SELECT
    s.run_id,
    p.model,
    p.hardware,
    s.part_index,
    p.name,
    p.kind,
    p.fusion_pattern,
    a.category,
    a.common_category,
    a.component,
    a.action,
    a.part,
    a.per,
    s.action_count,
    s.price_fj / 1e15 AS energy_per_action_j,
    s.energy_fj,
    joules(s.energy_fj) AS energy_j,
    fraction(s.energy_fj, sum(s.energy_fj) OVER (PARTITION BY s.run_id, s.part_index)) AS share_fraction,
    fraction(s.energy_fj, s.run_fj) AS run_fraction,
    s.whole_fj AS whole_energy_fj,
    s.basis,
    s.source
FROM act AS s
JOIN action AS a ON a.action_id = s.action_id
JOIN names_of_parts($run_ids, $level) AS p ON p.run_id = s.run_id AND p.part_index = s.part_index
JOIN places_of($run_ids) AS o ON o.run_id = s.run_id
ORDER BY o.position, s.run_id, s.part_index, s.energy_fj DESC, a.component, a.action, a.part, a.per
