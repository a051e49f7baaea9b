/*
record = "HardwareSummary"
summary = "What one hardware is: class, names, operating points, and what is uncertain about it"
grain = "one row"
order = ["the only row"]
[parameters]
hardware = { type = "VARCHAR", meaning = "catalogue id" }
[columns]
hardware = { type = "VARCHAR", meaning = "catalogue id" }
vendor = { type = "VARCHAR", meaning = "who makes it" }
static_power_w = { type = "DOUBLE", unit = "W", meaning = "drawn while running, whatever is computed" }
needs_host = { type = "VARCHAR", meaning = "the slot or port of a computer that it needs, whose power is not in its own; empty for what works by itself" }
aliases = { type = "VARCHAR[]", meaning = "other names" }
power_modes = { type = "VARCHAR[]", meaning = "operating points beside the default" }
action_count = { type = "BIGINT", meaning = "actions of its energy reference table, without those that the power limit says" }
recalled_action_count = { type = "BIGINT", meaning = "those whose price is recalled" }
assumed_action_count = { type = "BIGINT", meaning = "those whose price is an assumption" }
projection = { type = "VARCHAR", meaning = "why its key numbers are projections or estimates; empty where they are published" }
unavailable = { type = "VARCHAR", meaning = "why it can be neither bought nor rented, or only at a price that is a guess; empty where it can" }
doubts = { type = "VARCHAR[]", meaning = "what the sources disagree about" }
hardware_digest = { type = "VARCHAR", meaning = "of its description" }
recalled_fact_count = { type = "BIGINT", meaning = "those that are public but were not checked against their source" }
assumed_fact_count = { type = "BIGINT", meaning = "those that are assumptions" }
*/
SELECT
    h.hardware,
    h.name,
    h.vendor,
    h.architecture,
    h.microarchitecture,
    h.deployment,
    h.units_total_count,
    h.unit_name,
    h.memory_type,
    h.tdp_w,
    h.static_power_w,
    h.needs_host,
    v.aliases,
    (
        SELECT coalesce(list(m.power_mode ORDER BY m.mode_index), [])
        FROM internal.hardware_power_mode AS m
        WHERE m.hardware_digest = h.hardware_digest
    ) AS power_modes,
    (SELECT count(*) FROM internal.hardware_fact AS f WHERE f.hardware_digest = h.hardware_digest) AS fact_count,
    (
        SELECT count(*) FROM internal.hardware_fact AS f WHERE f.hardware_digest = h.hardware_digest AND f.basis = 'recalled'
    ) AS recalled_fact_count,
    (
        SELECT count(*) FROM internal.hardware_fact AS f WHERE f.hardware_digest = h.hardware_digest AND f.basis = 'assumed'
    ) AS assumed_fact_count,
    (SELECT count(*) FROM internal.energy_per_action AS e WHERE e.hardware_digest = h.hardware_digest) AS action_count,
    (
        SELECT count(*)
        FROM internal.energy_per_action AS e
        WHERE e.hardware_digest = h.hardware_digest AND e.basis = 'recalled'
    ) AS recalled_action_count,
    (
        SELECT count(*)
        FROM internal.energy_per_action AS e
        WHERE e.hardware_digest = h.hardware_digest AND e.basis = 'assumed'
    ) AS assumed_action_count,
    h.projection,
    h.unavailable,
    v.doubts,
    h.hardware_digest
FROM hardware AS h
JOIN internal.hardware_version AS v ON v.hardware_digest = h.hardware_digest
WHERE h.hardware = $hardware
ORDER BY h.hardware
