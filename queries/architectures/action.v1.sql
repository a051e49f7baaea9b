/*
name = "architectures.action"
record = "ArchitectureAction"
version = 1
schema = 1
summary = "What one MAC takes on each architecture, action by action: count for a MAC x energy per action"
grain = "one row per evaluated run and action; those of a run sum to its energy, exactly"
order = ["position in run_ids", "run_id", "rank"]
[parameters]
run_ids = { type = "INTEGER[]", meaning = "runs of one model, one of each architecture" }
[columns]
architecture = { type = "VARCHAR", meaning = "architecture class" }
hardware = { type = "VARCHAR", meaning = "catalogue id, with @MODE where the power mode is not the default" }
rank = { type = "BIGINT", meaning = "1 for the action with most energy in its run" }
category_rank = { type = "BIGINT", meaning = "1 for the action with most energy of its common category in its run" }
common_category = { type = "VARCHAR", meaning = "compute, register, unit_memory, chip_memory, interconnect, off_chip_memory, control, board or static" }
category = { type = "VARCHAR", meaning = "the architecture's own" }
component = { type = "VARCHAR", meaning = "what acts" }
action = { type = "VARCHAR", meaning = "what it does" }
per = { type = "VARCHAR", meaning = "what one count is" }
action_count = { type = "DOUBLE", meaning = "how often, in the run" }
count_per_mac = { type = "DOUBLE", null = true, meaning = "how often for one MAC of the model; null without MACs" }
energy_per_action_j = { type = "DOUBLE", unit = "J", meaning = "price of one at the voltage of the run" }
energy_fj = { type = "HUGEINT", unit = "fJ", meaning = "in the run, exact; the sum of lines that are each round(count x price)" }
energy_j = { type = "DOUBLE", unit = "J", meaning = "in the run" }
energy_per_mac_j = { type = "DOUBLE", null = true, unit = "J", meaning = "for one MAC of the model; null without MACs" }
share_fraction = { type = "DOUBLE", null = true, meaning = "of the run" }
basis = { type = "VARCHAR", meaning = "where the price comes from: measured, published, derived, scaled, recalled or assumed" }
source = { type = "VARCHAR", meaning = "document, measurement or arithmetic behind the price" }
run_id = { type = "INTEGER", meaning = "number of the run" }
*/
WITH answered AS (
    SELECT run_id, nullif(mac_count, 0) AS mac_count
    FROM runs
    WHERE run_id IN (SELECT unnest($run_ids))
)
SELECT
    r.architecture,
    r.configured_hardware AS hardware,
    row_number() OVER (PARTITION BY t.run_id ORDER BY t.energy_fj DESC, a.component, a.action, a.part, a.per) AS rank,
    row_number() OVER (
        PARTITION BY t.run_id, a.common_category ORDER BY t.energy_fj DESC, a.component, a.action, a.part, a.per
    ) AS category_rank,
    a.common_category,
    a.category,
    a.component,
    a.action,
    a.per,
    t.action_count,
    t.action_count / m.mac_count AS count_per_mac,
    e.energy_per_action_fj * voltage_factor_of(a.common_category, r.voltage_factor) / 1e15 AS energy_per_action_j,
    t.energy_fj,
    joules(t.energy_fj) AS energy_j,
    joules(t.energy_fj) / m.mac_count AS energy_per_mac_j,
    fraction(t.energy_fj, sum(t.energy_fj) OVER (PARTITION BY t.run_id)) AS share_fraction,
    e.basis,
    e.source,
    r.run_id
FROM run_action AS t
JOIN answered AS m ON m.run_id = t.run_id
JOIN run_configurations AS r ON r.run_id = t.run_id
JOIN action AS a ON a.action_id = t.action_id
JOIN energy_per_action AS e ON e.hardware_digest = r.hardware_digest AND e.action_id = t.action_id
JOIN places_of($run_ids) AS o ON o.run_id = r.run_id
ORDER BY o.position, r.run_id, rank
