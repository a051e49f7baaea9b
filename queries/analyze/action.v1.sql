/*
name = "analyze.action"
record = "ActionShare"
version = 1
schema = 1
summary = "Where a run's energy goes, action by action: count x energy per action"
grain = "one row per action; actions sum to their category and to the run, exactly"
order = ["energy of the category descending", "category", "energy_fj descending", "component", "action"]
[parameters]
run_id = { type = "INTEGER", meaning = "run" }
[columns]
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
share_fraction = { type = "DOUBLE", null = true, meaning = "of the run" }
category_fraction = { type = "DOUBLE", null = true, meaning = "of its category" }
basis = { type = "VARCHAR", meaning = "where the price comes from: measured, published, derived, scaled or assumed" }
source = { type = "VARCHAR", meaning = "document, measurement or arithmetic behind the price" }
*/
WITH act AS (
    SELECT
        a.category,
        a.common_category,
        a.component,
        a.action,
        a.part,
        a.per,
        any_value(l.action_count) AS action_count,
        any_value(e.energy_per_action_fj * voltage_factor_of(a.common_category, r.voltage_factor)) AS price_fj,
        sum(l.energy_fj) AS energy_fj,
        any_value(e.basis) AS basis,
        any_value(e.source) AS source
    FROM run_action AS l
    JOIN run AS r ON r.run_id = l.run_id
    JOIN action AS a ON a.action_id = l.action_id
    JOIN energy_per_action AS e ON e.hardware_digest = r.hardware_digest AND e.action_id = l.action_id
    WHERE l.run_id = $run_id
    GROUP BY l.action_id, a.category, a.common_category, a.component, a.action, a.part, a.per
)
SELECT
    category,
    common_category,
    component,
    action,
    part,
    per,
    action_count,
    price_fj / 1e15 AS energy_per_action_j,
    energy_fj,
    joules(energy_fj) AS energy_j,
    fraction(energy_fj, sum(energy_fj) OVER ()) AS share_fraction,
    fraction(energy_fj, sum(energy_fj) OVER (PARTITION BY category))
        AS category_fraction,
    basis,
    source
FROM act
ORDER BY sum(energy_fj) OVER (PARTITION BY category) DESC, category, energy_fj DESC, component, action, part, per
