/*
record = "HardwareSummary"
summary = "Summary of one chip: class, names, power modes, and what is uncertain about it"
grain = "one row"
order = ["the only row"]
[parameters]
hardware = { type = "VARCHAR", meaning = "catalogue id" }
[columns]
hardware = { type = "VARCHAR", meaning = "catalogue id" }
vendor = { type = "VARCHAR", meaning = "manufacturer" }
static_power_w = { type = "DOUBLE", unit = "W", meaning = "power drawn while running, regardless of the work" }
needs_host = { type = "VARCHAR", meaning = "slot or port of the host that the hardware needs; no power here includes the host; empty for standalone hardware" }
aliases = { type = "VARCHAR[]", meaning = "aliases" }
power_modes = { type = "VARCHAR[]", meaning = "power modes besides the default" }
action_count = { type = "BIGINT", meaning = "actions of its energy reference table, without those that the power limit implies" }
recalled_action_count = { type = "BIGINT", meaning = "number of actions with a recalled energy" }
assumed_action_count = { type = "BIGINT", meaning = "number of actions with an assumed energy" }
projection = { type = "VARCHAR", meaning = "reason why key numbers are projections or estimates; empty where they are published" }
unavailable = { type = "VARCHAR", meaning = "reason why it is unavailable, or why its price is assumed; empty otherwise" }
doubts = { type = "VARCHAR[]", meaning = "disagreements of the sources" }
memory_type = { type = "VARCHAR", meaning = "memory type" }
hardware_digest = { type = "VARCHAR", meaning = "digest of its description" }
recalled_fact_count = { type = "BIGINT", meaning = "number of recalled numbers: public, but not verified against their source" }
assumed_fact_count = { type = "BIGINT", meaning = "number of assumed numbers" }
package = { type = "VARCHAR", meaning = "installed package that describes it, with version; empty for any other hardware" }
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
    h.package,
    h.hardware_digest
FROM hardware AS h
JOIN internal.hardware_version AS v ON v.hardware_digest = h.hardware_digest
WHERE h.hardware = $hardware
ORDER BY h.hardware
